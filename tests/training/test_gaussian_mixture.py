"""The mixture of two Gaussians against one by hand, and where there is nothing to mix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import norm

from crust.training.gaussian_mixture import clean_probability


def losses(rate: float, n: int = 2000, seed: int = 0):
    """Losses as training leaves them: small ones for right labels, large ones for wrong."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < rate
    return np.where(wrong, rng.normal(3, 1, n).clip(0.05), rng.exponential(0.5, n)), wrong


def by_hand(x, steps: int = 10, enough: float = 1e-2):
    """Expectation maximisation step by step, from the two sides of the middle between their means."""
    x = (x - x.min()) / (x.max() - x.min())
    edge = 0.5
    for _ in range(50):
        edge = (x[x <= edge].mean() + x[x > edge].mean()) / 2
    parts, before = np.stack([x <= edge, x > edge]).astype(float), -np.inf

    def maximised(parts):
        mass = parts.sum(1)
        means = parts @ x / mass
        return means, (parts * (x - means[:, None]) ** 2).sum(1) / mass + 5e-4, mass / len(x)

    def density(at, means, variances, shares):
        return shares[:, None] * norm.pdf(at, means[:, None], np.sqrt(variances)[:, None])

    fitted = maximised(parts)
    for _ in range(steps):
        parts = density(x, *fitted)
        now = np.log(parts.sum(0)).mean()
        fitted = maximised(parts / parts.sum(0))
        if now - before < enough:
            break
        before = now
    at = density(np.clip(x, *fitted[0]), *fitted)
    return at[0] / at.sum(0)


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.5, 0.6])
def test_it_is_expectation_maximisation(rate):
    x, _ = losses(rate)
    assert clean_probability(x) == pytest.approx(by_hand(x), abs=0.01)


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_it_tells_right_from_wrong(rate):
    x, wrong = losses(rate)
    clean = clean_probability(x) > 0.5
    assert wrong[clean].mean() < 0.05
    assert clean[~wrong].mean() > 0.85


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 50, width=32)))
def test_a_larger_loss_is_never_cleaner(x):
    found = clean_probability(x)
    assert found.shape == x.shape
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(x, kind="stable")]) <= 1e-12).all()


@given(st.floats(0, 50), st.integers(0, 5))
def test_equal_losses_are_all_clean(value, n):
    assert clean_probability(np.full(n, value)).tolist() == [1.0] * n


def test_neither_scale_nor_shift_matters():
    x, _ = losses(0.3)
    assert clean_probability(7 * x + 2) == pytest.approx(clean_probability(x), abs=1e-9)


def test_two_losses_are_one_of_each():
    found = clean_probability(np.array([0.1, 4.0]))
    assert found[0] > 0.99
    assert found[1] < 0.01
