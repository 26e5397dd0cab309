"""Generalised cross-entropy between its two ends."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import fit, weights

from crust.training.losses import cross_entropy, gce


def drawn(n: int, classes: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    return z, torch.randint(classes, (n,), generator=generator)


problems = (st.integers(1, 8), st.integers(2, 6), st.integers(0, 10**6))


@settings(max_examples=25, deadline=None)
@given(*problems, st.floats(0.01, 1))
def test_it_is_what_the_formula_says(n, classes, seed, q):
    z, y = drawn(n, classes, seed)
    p = z.softmax(1)[torch.arange(n), y]
    assert torch.allclose(gce(z, y, q), ((1 - p**q) / q).mean())


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_its_ends_are_cross_entropy_and_mean_absolute_error(n, classes, seed):
    z, y = drawn(n, classes, seed)
    assert torch.allclose(gce(z, y, 0.0), cross_entropy(z, y))
    assert torch.allclose(gce(z, y, 1e-9), cross_entropy(z, y))
    target = torch.nn.functional.one_hot(y, classes)
    assert torch.allclose(gce(z, y, 1.0), (z.softmax(1) - target).abs().sum(1).mean() / 2)


@settings(max_examples=10, deadline=None)
@given(*problems, st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_against_finite_differences(n, classes, seed, q):
    z, y = drawn(n, classes, seed)
    weight = torch.rand(n, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: gce(z, y, q, weight), (z.requires_grad_(),))


def test_a_wrong_label_cannot_pull_without_end():
    z = torch.tensor([[-200.0, 200.0]], requires_grad=True)
    loss = gce(z, torch.tensor([0]), 0.7)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(1 / 0.7)
    assert float(z.grad.abs().max()) < 1e-6


def test_at_zero_it_is_plain_training():
    plain, ours = fit("erm"), fit("gce", q=0.0)
    trained = (run.recorder.context.networks[0].state_dict() for run in (plain, ours))
    for a, b in zip(*(list(state.values()) for state in trained), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert weights(fit("gce")) != weights(plain)
