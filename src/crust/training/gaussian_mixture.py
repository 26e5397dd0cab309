"""A mixture of two Gaussians on losses: which examples look as if their label were right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMALLEST = 5e-4  # variance, of losses between 0 and 1


def clean_probability(losses: NDArray[np.floating], steps: int = 10, enough: float = 1e-2) -> NDArray[np.float64]:
    """The posterior probability of the component with the small mean, of two fitted by expectation maximisation.

    Losses are brought between 0 and 1 first. Beyond the two means the posterior stays what it is there: components of
    different widths would else call the largest losses of all clean, or the smallest wrong.

    Args:
        losses: one an example.
        steps: of expectation maximisation, at most: run to the end, it would split the easy examples in two.
        enough: stop when a step adds less than this to the mean log-likelihood.

    Returns:
        One probability an example, never larger where the loss is larger; all 1 where all losses are alike.

    References:
        Arazo et al.: Unsupervised Label Noise Modeling and Loss Correction, ICML 2019; Li, Socher, Hoi: DivideMix,
        ICLR 2020, section 3.1.

    Example:
        >>> clean_probability(np.array([0.1, 0.2, 0.15, 3.0, 3.1])).round(2).tolist()
        [1.0, 1.0, 1.0, 0.0, 0.0]
        >>> clean_probability(np.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """
    x = np.asarray(losses, np.float64)
    low, high = (x.min(), x.max()) if len(x) else (0.0, 0.0)
    if not high > low:
        return np.ones(len(x))
    x = (x - low) / (high - low)
    means, variances, shares = _start(x)
    before = -np.inf
    for _ in range(steps):
        logs = _logs(x, means, variances, shares)
        top = logs.max(axis=1, keepdims=True)
        now = float((top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))).mean())
        parts = _posterior(logs)
        mass = np.maximum(parts.sum(axis=0), 1e-9)
        means = (parts * x[:, None]).sum(axis=0) / mass
        variances = (parts * (x[:, None] - means) ** 2).sum(axis=0) / mass + SMALLEST
        shares = mass / mass.sum()
        if now - before < enough:
            break
        before = now
    order = means.argsort()
    between = np.clip(x, *means[order])
    return _posterior(_logs(between, means, variances, shares))[:, order[0]]


def _start(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Means, variances and shares of the two sides of the middle of the range, moved to between their means."""
    edge = 0.5
    for _ in range(20):
        left = x <= edge
        means = np.array([x[left].mean(), x[~left].mean()])
        if (middle := means.mean()) == edge:
            break
        edge = middle
    variances = np.array([x[left].var(), x[~left].var()]) + SMALLEST
    shares = np.array([left.mean(), 1 - left.mean()])
    return means, variances, shares


def _logs(
    x: NDArray[np.float64], means: NDArray[np.float64], variances: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log densities, a column a component, but for a constant."""
    found: NDArray[np.float64] = np.log(shares) - 0.5 * np.log(variances) - 0.5 * (x[:, None] - means) ** 2 / variances
    return found


def _posterior(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    parts: NDArray[np.float64] = np.exp(logs - logs.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)
