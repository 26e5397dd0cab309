"""How many labels are wrong, estimated from the run itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def from_losses(losses: NDArray[np.floating], steps: int = 100) -> float:
    """The share of the high-loss part of a mixture of two Gaussians, fitted to the losses by expectation maximisation.

    Args:
        losses: one loss an example, better averaged over several epochs.
        steps: of expectation maximisation.

    Returns:
        The estimated share of wrong labels, between 0 and 1.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> losses = np.concatenate([rng.normal(0.2, 0.1, 700), rng.normal(3.0, 0.5, 300)])
        >>> round(from_losses(losses), 1)
        0.3
    """
    x = np.asarray(losses, np.float64)
    spread = x.std()
    if not spread > 0:
        return 0.0
    x = (x - x.mean()) / spread
    means, variances = np.quantile(x, [0.1, 0.9]), np.array([0.5, 0.5])
    shares = np.array([0.5, 0.5])
    for _ in range(steps):
        logs = np.log(shares) - 0.5 * np.log(variances) - 0.5 * (x[:, None] - means) ** 2 / variances
        parts = np.exp(logs - logs.max(axis=1, keepdims=True))
        parts /= parts.sum(axis=1, keepdims=True)
        mass = np.maximum(parts.sum(axis=0), 1e-9)
        means = (parts * x[:, None]).sum(axis=0) / mass
        variances = np.maximum((parts * (x[:, None] - means) ** 2).sum(axis=0) / mass, 1e-3)
        shares = mass / mass.sum()
    return float(shares[means.argmax()])


def estimate(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64], share: float = 0.5
) -> tuple[float, NDArray[np.float64]]:
    """The noise rate and the transition matrix, from what networks say of examples that they were not trained on.

    Args:
        probabilities: (n, classes), out of sample.
        labels: the given labels.
        share: of the examples of each predicted class that are judged: those with the clearest predictions.

    Returns:
        The estimated share of wrong labels, and the matrix P(given | true).
    """
    n, classes = probabilities.shape
    top = np.sort(probabilities, axis=1)
    margin = top[:, -1] - top[:, -2]
    predictions = probabilities.argmax(axis=1)
    sure = np.zeros(n, bool)
    for name in range(classes):
        members = np.flatnonzero(predictions == name)
        if len(members):
            order = members[np.argsort(-margin[members], kind="stable")]
            sure[order[: max(1, round(share * len(order)))]] = True
    rate = float((predictions[sure] != labels[sure]).mean())
    return rate, transitions(labels[sure], predictions[sure], classes)


def transitions(labels: NDArray[np.int64], truth: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """P(given | true) as counted; a class that does not occur keeps its label.

    Example:
        >>> transitions(np.array([0, 1, 1]), np.array([0, 0, 1]), 3).tolist()
        [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    counts = np.zeros((classes, classes))
    np.add.at(counts, (truth, labels), 1.0)
    rows = counts.sum(axis=1, keepdims=True)
    return np.where(rows > 0, counts / np.maximum(rows, 1), np.eye(classes))


def kind_of(matrix: NDArray[np.floating]) -> str:
    """`symmetric` where wrong labels are spread over the other classes, `asymmetric` where one class takes most.

    Example:
        >>> kind_of(np.full((4, 4), 0.1) + 0.6 * np.eye(4))
        'symmetric'
        >>> kind_of(0.6 * np.eye(4) + 0.4 * np.eye(4)[[1, 2, 3, 0]])
        'asymmetric'
    """
    wrong = matrix * (1 - np.eye(len(matrix)))
    mass = wrong.sum()
    if mass == 0 or len(matrix) == 2:
        return "symmetric"
    even = 1 / (len(matrix) - 1)
    largest = wrong.max(axis=1).sum() / mass
    return "asymmetric" if largest > (1 + even) / 2 else "symmetric"
