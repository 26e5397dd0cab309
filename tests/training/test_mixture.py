"""The mixture of two Gaussians against another's, and where there is nothing to mix."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from crust.training.gaussian_mixture import clean_probability


def losses(rate: float, n: int = 2000, seed: int = 0):
    """Losses as training leaves them: small ones for right labels, large ones for wrong."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < rate
    return np.where(wrong, rng.normal(3, 1, n).clip(0.05), rng.exponential(0.5, n)), wrong


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.5, 0.6])
def test_it_is_the_mixture_of_the_published_code(rate):
    x, _ = losses(rate)
    scaled = ((x - x.min()) / (x.max() - x.min()))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten steps are meant
        theirs = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0).fit(scaled)
    small = theirs.means_[:, 0].argmin()
    between = np.clip(scaled, *np.sort(theirs.means_[:, 0]))
    assert clean_probability(x) == pytest.approx(theirs.predict_proba(between)[:, small], abs=0.02)


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
