"""The transition matrix from anchors, against one that is known."""

import numpy as np
import pytest

from crust import noise
from crust.training.losses import anchor_T


@pytest.mark.parametrize("kind", ["symmetric", "pair-flip"])
@pytest.mark.parametrize("q", [None, 0.97])
def test_sure_examples_give_the_matrix_back(kind, q):
    """A network that knows the noisy posterior of examples whose class is sure says the rows of T."""
    T = noise.transition_matrix(kind, 0.3, 4)
    true = np.arange(400) % 4
    assert anchor_T(T[true], q) == pytest.approx(T, abs=1e-12)


def test_outliers_are_passed_over():
    rng = np.random.default_rng(0)
    T = noise.transition_matrix("symmetric", 0.4, 3)
    P = T[np.arange(300) % 3] + 0.001 * rng.random((300, 3))
    P[:3] = np.eye(3)  # three examples that were memorised
    assert anchor_T(P, None) == pytest.approx(np.eye(3))
    assert anchor_T(P, 0.97) == pytest.approx(T, abs=0.01)


def test_it_looks_and_does_not_touch():
    P = np.random.default_rng(1).dirichlet(np.ones(5), 50).astype(np.float32)
    before = P.copy()
    T = anchor_T(P)
    assert (before == P).all()
    assert T.sum(axis=1) == pytest.approx(np.ones(5))
    for i in range(5):
        cut = np.sort(P[:, i])[int(np.ceil(0.97 * 49))]
        anchor = max((j for j in range(50) if P[j, i] < cut), key=lambda j: P[j, i])
        assert T[i] == pytest.approx(P[anchor] / P[anchor].sum(), rel=1e-6)


@pytest.mark.parametrize("n", [1, 4])
def test_predictions_that_are_all_alike(n):
    assert anchor_T(np.full((n, 3), 1 / 3)) == pytest.approx(np.full((3, 3), 1 / 3))


@pytest.mark.parametrize("classes", [10, 20, 40])
def test_the_anchor_of_a_rare_class_is_of_that_class(classes):
    """One class is 2% of the data; with 40 classes all of them are below 3%."""
    rng = np.random.default_rng(0)
    share = np.full(classes, 0.98 / (classes - 1))
    share[0] = 0.02
    true = rng.choice(classes, 5000, p=share)
    T = 0.6 * np.eye(classes) + 0.4 / classes
    sure = rng.beta(5, 1, 5000)[:, None]
    P = sure * T[true] + (1 - sure) / classes
    assert anchor_T(P, 0.97).diagonal().min() > 0.45  # the truth is 0.61 or more
