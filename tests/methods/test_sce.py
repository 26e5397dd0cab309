"""Symmetric cross-entropy: two parts, and the weights that were published for 10 classes and for 100."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import fit

from crust.methods.sce import SceSettings
from crust.methods.sce import weights as of
from crust.training.losses import cross_entropy, one_hot, sce


def drawn(n: int, classes: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    return z, torch.randint(classes, (n,), generator=generator)


problems = (st.integers(1, 8), st.integers(2, 6), st.integers(0, 10**6))


@settings(max_examples=25, deadline=None)
@given(*problems, st.floats(0, 6), st.floats(0, 2))
def test_it_is_what_the_formula_says(n, classes, seed, alpha, beta):
    z, y = drawn(n, classes, seed)
    logs = torch.where(one_hot(y, classes).bool(), 0.0, -4.0).double()
    reverse = -(z.softmax(1) * logs).sum(1).mean()
    assert torch.allclose(sce(z, y, alpha, beta), alpha * cross_entropy(z, y) + beta * reverse)


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_without_the_reverse_it_is_cross_entropy(n, classes, seed):
    z, y = drawn(n, classes, seed)
    assert torch.allclose(sce(z, y, 1.0, 0.0), cross_entropy(z, y))


@settings(max_examples=10, deadline=None)
@given(*problems)
def test_against_finite_differences(n, classes, seed):
    z, y = drawn(n, classes, seed)
    weight = torch.rand(n, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: sce(z, y, 0.3, 1.2, -4.0, weight), (z.requires_grad_(),))


def test_the_reverse_is_bounded_and_cross_entropy_is_not():
    z, y = torch.tensor([[-200.0, 200.0]]), torch.tensor([0])
    assert float(sce(z, y, 0.0, 1.0)) == pytest.approx(4.0)
    assert float(sce(z, y, 1.0, 0.0)) == pytest.approx(400.0)


def test_the_weights_follow_the_classes_unless_they_are_given():
    assert of(SceSettings(), 3) == (0.1, 1.0)
    assert of(SceSettings(), 100) == (6.0, 0.1)
    assert of(SceSettings(alpha=2.0, beta=0.0), 100) == (2.0, 0.0)


def test_without_the_reverse_a_run_is_plain_training():
    plain, ours = fit("erm"), fit("sce", alpha=1.0, beta=0.0)
    trained = (run.recorder.context.networks[0].state_dict() for run in (plain, ours))
    for a, b in zip(*(list(state.values()) for state in trained), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
