"""mixup: what it comes down to where nothing is mixed, and what cannot be mixed."""

import numpy as np
import pytest
import torch
from tests.methods.single import hand_made as context
from torch.nn.functional import cross_entropy

from crust.errors import InputError
from crust.methods import METHODS
from crust.training.losses import mix, one_hot, soft_cross_entropy
from crust.training.method import Batch, Output


def of_cross_entropies(z, y, order, share):
    """The loss as published: a share of the cross-entropy of the labels, the rest of that of the partners' labels."""
    return share * cross_entropy(z, y) + (1 - share) * cross_entropy(z, y[order])


@pytest.mark.parametrize("share", [1.0, 0.3, 0.0])
def test_the_loss_of_mixed_labels_is_that_of_both(share):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(9, 4, generator=generator)
    y = torch.randint(0, 4, (9,), generator=generator)
    order = torch.randperm(9, generator=generator)
    target = mix(one_hot(y, 4), one_hot(y[order], 4), torch.full((9,), share))
    assert soft_cross_entropy(z, target) == pytest.approx(float(of_cross_entropies(z, y, order, share)), rel=1e-6)


@pytest.mark.parametrize("kind", ["one share", "one order"])
def test_where_nothing_is_mixed_it_is_cross_entropy(kind, monkeypatch):
    """Where the share is 1, or everyone is their own partner."""
    method, found = METHODS["mixup"](METHODS["mixup"].Settings()), context()
    rng = np.random.default_rng(0)

    class Fixed:
        def beta(self, *_):
            return 1.0 if kind == "one share" else 0.3

        def permutation(self, n):
            return rng.permutation(n) if kind == "one share" else np.arange(n)

    monkeypatch.setattr(found, "rng", lambda *_, **__: Fixed())
    index = np.arange(12)
    x, y = found.train.inputs[:12], torch.from_numpy(found.labels[:12])
    batch = method.prepare(Batch(x.clone(), y, index, index), found)
    assert torch.allclose(batch.x, x, atol=1e-6)
    z = torch.randn(12, found.classes, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(method.losses([Output(z)], batch, found)[0], cross_entropy(z, y))


@pytest.mark.parametrize("x", [torch.zeros(4, 6, dtype=torch.int64), {"tokens": torch.zeros(4, 6)}])
def test_what_cannot_be_mixed_is_refused(x):
    method = METHODS["mixup"](METHODS["mixup"].Settings())
    with pytest.raises(InputError, match="these inputs cannot be mixed, and mixup needs that"):
        method.prepare(Batch(x, torch.zeros(4, dtype=torch.int64), np.arange(4), np.arange(4)), context())
