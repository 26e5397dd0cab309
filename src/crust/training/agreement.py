"""What held-out predictions say about the noise: how many labels are wrong, and whether they went wrong at random.

A network that has learnt from noisy labels predicts about as noisily as they are. Where its predictions on examples
that it was not trained on agree with their labels, two independent draws of the same noise have met (Chen et al. 2019).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

NoiseType = Literal["symmetric", "asymmetric"]
STEP = 0.001
ODD = 0.25  # more than this share of the disagreements in odd places: the noise has a direction


def expected_agreement(rate: float, classes: int) -> float:
    """How often two independent draws of symmetric noise agree: both right, or both wrong in the same way.

    Example:
        >>> round(expected_agreement(0.5, 10), 4)
        0.2778
    """
    return (1 - rate) ** 2 + rate**2 / (classes - 1)


def rate_from_agreement(agreement: float, classes: int) -> float:
    """The smallest noise rate, in steps of 0.001, at which no more agreement than this is expected.

    Args:
        agreement: the share of held-out examples whose prediction is their label.
        classes: how many there are.

    Returns:
        The rate; below the agreement of blind guessing that of labels which say nothing, 1 - 1/classes.

    Example:
        >>> rate_from_agreement(expected_agreement(0.5, 10), 10)
        0.5
        >>> rate_from_agreement(1.0, 10), rate_from_agreement(0.0, 10)
        (0.0, 0.9)
    """
    last = int((1 - 1 / classes) / STEP + 1e-9)
    for step in range(last + 1):
        if expected_agreement(step * STEP, classes) <= agreement + 1e-12:
            return round(step * STEP, 3)
    return round(last * STEP, 3)


def confusion(labels: NDArray[np.int64], predictions: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """How often each given label (row) met each prediction (column).

    Example:
        >>> confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
        [[1, 1], [0, 1]]
    """
    return np.bincount(labels * classes + predictions, minlength=classes**2).reshape(classes, classes)


def oddness(counts: NDArray[np.integer]) -> float:
    """How far the disagreements of a confusion are from where symmetric noise would put them, from 0 to 1.

    Symmetric noise says nothing about the true class, so the predictions that disagree with a label are spread as all
    predictions are. The answer is the total variation distance from that, averaged over the disagreements, less what
    chance alone makes of it in a sample of that size. The two add up as squares: chance hardly moves a distance that
    is there already, so that the answer for the same noise does not grow with the number of examples.

    Example:
        >>> everywhere = np.full((4, 4), 100) + 300 * np.eye(4, dtype=int)
        >>> next_door = 300 * np.eye(4, dtype=int) + 300 * np.eye(4, dtype=int)[[1, 2, 3, 0]]
        >>> oddness(everywhere), round(oddness(next_door), 2)
        (0.0, 0.67)
    """
    classes = len(counts)
    spread = counts.sum(axis=0) / max(1, counts.sum())
    distance = chance = total = 0.0
    for row in range(classes):
        others = np.arange(classes) != row
        seen, expected = counts[row, others].astype(np.float64), spread[others]
        if not seen.sum() or not expected.sum():
            continue
        expected = expected / expected.sum()
        distance += seen.sum() * 0.5 * np.abs(seen / seen.sum() - expected).sum()
        chance += 0.5 * _mean_deviation(seen.sum(), expected).sum()
        total += seen.sum()
    return float(np.sqrt(max(0.0, distance**2 - chance**2)) / total) if total else 0.0


def _mean_deviation(n: float, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """E|X - np| of binomial counts, exactly (de Moivre): the normal approximation fails below one expected count."""
    p = p[(p > 0) & (p < 1)]
    m = np.minimum(np.floor(n * p) + 1, n)
    chosen = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return 2 * m * np.exp(chosen + m * np.log(p) + (n - m + 1) * np.log1p(-p))


def type_from_confusion(counts: NDArray[np.integer]) -> NoiseType:
    """Whether wrong labels went anywhere or somewhere in particular, as far as held-out predictions can tell.

    With two classes there is only one other place to go: the answer is then symmetric.

    Example:
        >>> type_from_confusion(300 * np.eye(4, dtype=int) + 300 * np.eye(4, dtype=int)[[1, 2, 3, 0]])
        'asymmetric'
        >>> type_from_confusion(np.array([[60, 40], [30, 70]]))
        'symmetric'
    """
    return "asymmetric" if oddness(counts) > ODD else "symmetric"
