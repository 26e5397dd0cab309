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
