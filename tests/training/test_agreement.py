"""What held-out predictions say about the noise, against noise that is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from crust import noise
from crust.training.noise_estimation import (
    _mean_deviation,
    confusion,
    expected_agreement,
    oddness,
    rate_from_agreement,
    type_from_confusion,
)


@given(st.integers(2, 200), st.floats(0, 1))
def test_the_rate_inverts_the_formula(classes, share):
    rate = share * (1 - 1 / classes)
    found = rate_from_agreement(expected_agreement(rate, classes), classes)
    assert abs(found - rate) <= 0.001 + 1e-9


@given(st.integers(2, 200), st.floats(0, 1))
def test_it_is_the_smallest_rate_of_the_grid(classes, agreement):
    found = rate_from_agreement(agreement, classes)
    if agreement >= 1 / classes + 0.001:
        assert expected_agreement(found, classes) <= agreement + 1e-9
    if found:
        assert expected_agreement(found - 0.001, classes) > agreement


def test_pair_flip_looks_like_less_symmetric_noise():
    """Two ideal draws of 40% pair-flip agree in 0.6² + 0.4² of all cases, which the formula reads as 0.286."""
    assert rate_from_agreement(0.6**2 + 0.4**2, 10) == pytest.approx(0.286, abs=0.001)


def drawn(kind: str, rate: float, classes: int = 10, n: int = 4000, right: float = 0.6, seed: int = 0):
    """Labels with noise, and the predictions of a network that is right to a degree and confuses neighbours."""
    rng = np.random.default_rng(seed)
    true = np.arange(n) % classes
    labels = noise.make_noisy_labels(true, f"{kind}:{rate}", classes=classes, seed=seed).labels
    blurred = np.where(rng.random(n) < 0.5, true ^ 1, rng.integers(0, classes, n))  # half of its errors in pairs
    predictions = np.where(rng.random(n) < right, true, blurred)
    return labels, predictions


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [0.4, 0.5, 0.8])
def test_symmetric_noise_is_known_as_such(rate, seed):
    assert type_from_confusion(confusion(*drawn("symmetric", rate, seed=seed), 10)) == "symmetric"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["pair-flip", "derangement", "asymmetric-cifar10"])
def test_noise_with_a_direction_is_known_as_such(kind, seed):
    assert type_from_confusion(confusion(*drawn(kind, 0.4, seed=seed), 10)) == "asymmetric"


@pytest.mark.parametrize(("kind", "classes", "n"), [("pair-flip", 10, 300), ("pair-flip", 100, 4000)])
def test_a_direction_is_seen_in_few_examples(kind, classes, n):
    assert oddness(confusion(*drawn(kind, 0.3, classes, n, right=1.0), classes)) > 0.4
    assert oddness(confusion(*drawn("symmetric", 0.3, classes, n, right=1.0), classes)) < 0.2


def test_the_same_noise_is_as_odd_in_few_examples_as_in_many():
    found = [oddness(confusion(*drawn("pair-flip", 0.3, 10, n, right=0.7), 10)) for n in (1000, 4000, 40000)]
    assert max(found) - min(found) < 0.1


@given(st.integers(1, 40), st.floats(0.01, 0.99))
def test_the_mean_deviation_is_that_of_the_binomial(n, p):
    k = np.arange(n + 1)
    expected = (binom.pmf(k, n, p) * np.abs(k - n * p)).sum()
    assert _mean_deviation(n, np.array([p]))[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_few_examples_of_many_classes_are_no_evidence():
    rng = np.random.default_rng(0)
    assert oddness(confusion(rng.integers(0, 100, 150), rng.integers(0, 100, 150), 100)) < 0.25


@pytest.mark.parametrize("counts", [np.zeros((3, 3), int), np.eye(3, dtype=int) * 9, np.array([[5, 0], [0, 0]])])
def test_no_disagreement_is_no_direction(counts):
    assert oddness(counts) == 0.0


def test_two_classes_are_symmetric():
    assert type_from_confusion(np.array([[10, 90], [3, 97]])) == "symmetric"


def test_confusion_counts_all_pairs():
    rng = np.random.default_rng(1)
    labels, predictions = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    found = confusion(labels, predictions, 4)
    for i in range(4):
        for j in range(4):
            assert found[i, j] == ((labels == i) & (predictions == j)).sum()
