"""Class probabilities from features alone, each example judged by the labels of all others but not by its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 25
POOL = 10_000  # examples that neighbours are looked for among: beyond it time would grow with the square
ROWS = 1024  # examples at a time
PENALTY = 0.1  # of the linear classifier, on standardised columns
SHARPNESS = (1.0, 2.0, 4.0, 8.0, 16.0)


def from_features(
    features: NDArray[np.floating],
    labels: NDArray[np.int64],
    classes: int,
    report: Callable[[float, float], None] | None = None,
) -> NDArray[np.float64]:
    """The mean of two judges: the labels of the nearest neighbours, and a linear classifier that left the example out.

    Measured on digits, on digits with ten times fewer of half of the classes, and on clusters that no line separates,
    each with symmetric noise of 0.2 and 0.5 and with pair-flip noise of 0.3: mean AUROC of the doubt over the nine

    - 10, 25 or 50 neighbours: 0.940, 0.953, 0.951; 25 of them on standardised columns: 0.931
    - ridge regression without the example itself (in closed form): 0.937
    - logistic regression, penalty 100 or 10, five folds: 0.922, 0.916
    - linear discriminants, shrunk, five folds: 0.936
    - 25 neighbours and ridge regression together: 0.958

    Args:
        features: (n, d), finite numbers; distances count as they are, so columns of other units want one scale.
        labels: numbers from 0 to classes − 1.
        classes: how many there are.
        report: called with how many are done, and of how many.

    Returns:
        (n, classes).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.integers(0, 2, 200)
        >>> labels = np.where(np.arange(200) < 20, 1 - true, true)
        >>> p = from_features(true[:, None] * 4 + rng.normal(size=(200, 3)), labels, 2)
        >>> int((p.argmax(axis=1) == true).sum()) > 190
        True
    """
    x = np.asarray(features, np.float64)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    near = _neighbours(x.astype(np.float32), labels, classes, report)
    return 0.5 * (near + _linear((x / np.where(spread > 0, spread, 1)).astype(np.float32), labels, classes))


def _neighbours(
    x: NDArray[np.float32],
    labels: NDArray[np.int64],
    classes: int,
    report: Callable[[float, float], None] | None = None,
) -> NDArray[np.float64]:
    """Shares of the labels among the nearest others, with one more vote spread as all labels are."""
    n = len(x)
    pool = np.unique(np.linspace(0, n - 1, min(n, POOL)).round().astype(np.int64))
    others = x[pool]
    squares = (others * others).sum(axis=1)
    k = max(1, min(NEIGHBOURS, len(pool) - 1))
    found = np.empty((n, classes))
    place = np.full(n, -1)
    place[pool] = np.arange(len(pool))
    for start in range(0, n, ROWS):
        rows = np.arange(start, min(n, start + ROWS))
        far = squares - 2 * (x[rows] @ others.T)
        own = place[rows]
        far[np.flatnonzero(own >= 0), own[own >= 0]] = np.inf
        near = labels[pool[np.argpartition(far, k - 1, axis=1)[:, :k]]]
        votes = np.bincount((np.arange(len(rows))[:, None] * classes + near).ravel(), minlength=len(rows) * classes)
        found[rows] = votes.reshape(len(rows), classes)
        if report is not None:
            report(start + len(rows), n)
    return (found + np.bincount(labels, minlength=classes) / n) / (k + 1)


def _linear(x: NDArray[np.float32], labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Ridge regression on the classes; each example's own share is taken out of its answer in closed form."""
    n = len(x)
    z = np.concatenate([x, np.ones((n, 1), np.float32)], axis=1)
    gram = (z.T @ z).astype(np.float64) / n + PENALTY * np.eye(z.shape[1])
    sums = np.zeros((z.shape[1], classes))
    for name in range(classes):
        sums[:, name] = z[labels == name].sum(axis=0, dtype=np.float64)
    inverse = np.linalg.inv(gram)
    answers = z @ (inverse @ sums / n)
    lever = np.einsum("ij,ij->i", z @ inverse, z)[:, None] / n
    own = np.zeros((n, classes))
    own[np.arange(n), labels] = 1
    answers = (answers - lever * own) / np.maximum(1 - lever, 1e-6)
    found = [_softmax(answers * each) for each in SHARPNESS]
    return min(found, key=lambda p: -np.log(np.maximum(p[np.arange(n), labels], 1e-6)).mean())


def _softmax(values: NDArray[np.floating]) -> NDArray[np.float64]:
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
