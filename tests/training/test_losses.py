"""Losses against torch's own, and their gradients against finite differences."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.training.losses import cross_entropy, mix, one_hot, soft_cross_entropy


def drawn(n, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    y = torch.randint(classes, (n,), generator=generator)
    weight = torch.rand(n, generator=generator, dtype=torch.float64) * 3
    target = torch.rand(n, classes, generator=generator, dtype=torch.float64)
    return logits, y, weight, target / target.sum(1, keepdim=True)


problems = (st.integers(1, 8), st.integers(2, 6), st.integers(0, 10**6))


@settings(max_examples=40, deadline=None)
@given(*problems)
def test_against_torch(n, classes, seed):
    logits, y, weight, target = drawn(n, classes, seed)
    assert torch.allclose(cross_entropy(logits, y), F.cross_entropy(logits, y))
    assert torch.allclose(soft_cross_entropy(logits, target), F.cross_entropy(logits, target))
    each = F.cross_entropy(logits, y, reduction="none")
    assert torch.allclose(cross_entropy(logits, y, weight), (each * weight).sum() / n)
    each = F.cross_entropy(logits, target, reduction="none")
    assert torch.allclose(soft_cross_entropy(logits, target, weight), (each * weight).sum() / n)
    hard = soft_cross_entropy(logits.float(), one_hot(y, classes), weight.float())
    assert torch.allclose(hard, cross_entropy(logits.float(), y, weight.float()), atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(*problems)
def test_against_finite_differences(n, classes, seed):
    logits, y, weight, target = drawn(n, classes, seed)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: cross_entropy(z, y, weight), (logits,))
    assert torch.autograd.gradcheck(lambda z: soft_cross_entropy(z, target, weight), (logits,))


def test_huge_logits_stay_finite():
    logits, y = torch.tensor([[1e4, -1e4], [-1e4, 1e4]]), torch.tensor([1, 1])
    assert float(cross_entropy(logits, y)) == pytest.approx(1e4)
    assert float(soft_cross_entropy(logits, one_hot(y, 2))) == pytest.approx(1e4)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(0, 99), st.sampled_from([(3,), (1, 4, 4), (2, 3)]))
def test_mixing_is_row_by_row(n, seed, shape):
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, n, *shape, generator=generator)
    share = torch.rand(n, generator=generator)
    found = mix(a, b, share)
    for i in range(n):
        assert torch.allclose(found[i], share[i] * a[i] + (1 - share[i]) * b[i])
    assert mix(a, b, torch.ones(n)).equal(a)
    assert mix(a, b, torch.zeros(n)).equal(b)
