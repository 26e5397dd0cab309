"""What a mentor is to learn: curricula in closed form, and the constants that go with them.

Time runs in hundredths of the training, from 0 to 99, so that nothing depends on the number of epochs.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

LAST_FREE = 18  # until then the predefined curriculum takes every example
FIRST_SOFT = 90  # from then on it weighs them by degrees
PERCENTILES = {  # (noise rate, percentile) as the authors mean them; between them on a straight line
    "pd": ((0.2, 0.75), (0.4, 0.75), (0.8, 0.5)),
    "self-paced": ((0.0, 0.7),),
    "dd": ((0.2, 0.8), (0.4, 0.6), (0.8, 0.5)),
}
BURN_IN = {"pd": 18, "self-paced": 0, "dd": 18}


def self_paced(difference: Tensor) -> Tensor:
    """One for a loss up to the threshold, else nothing.

    Example:
        >>> self_paced(torch.tensor([-1.0, 0.0, 0.1])).tolist()
        [1.0, 1.0, 0.0]
    """
    return (difference <= 0).to(difference.dtype)


def linear(difference: Tensor) -> Tensor:
    """One for a loss up to the threshold, falling to nothing at one above it."""
    return (1 - difference).clamp(0, 1)


def predefined(difference: Tensor, time: Tensor) -> Tensor:
    """The predefined curriculum over time from 0 to 99: everyone, then self-paced, in the end linear."""
    later = torch.where(time < FIRST_SOFT, self_paced(difference), linear(difference))
    return torch.where(time <= LAST_FREE, torch.ones_like(difference), later)


def percentile(variant: str, noise_rate: float) -> float:
    """Which percentile of the losses is the threshold, given the share of wrong labels."""
    rates, values = zip(*PERCENTILES[variant], strict=True)
    return float(np.interp(noise_rate, rates, values))


def dropout(variant: str, time: int) -> float:
    """The share of each batch that is left out at random."""
    if variant == "self-paced":
        return 0.0
    if time < 17:
        return 0.5
    return 0.9 if variant == "dd" and time >= 95 else 0.05


def nearest_rank(losses: Tensor, share: float) -> float:
    """The smallest loss that at least this share of them does not exceed."""
    rank = min(len(losses), max(1, math.ceil(share * len(losses) - 1e-9)))
    return float(losses.kthvalue(rank).values)


def moved(threshold: float | None, losses: Tensor, share: float, decay: float) -> float:
    """The moving percentile after a batch; None: it begins with this one.

    Example:
        >>> losses = torch.tensor([1.0, 2.0])
        >>> moved(0.0, losses, 1.0, 0.5), moved(None, losses, 1.0, 0.5)
        (1.0, 2.0)
    """
    new = nearest_rank(losses, share)
    return new if threshold is None else decay * threshold + (1 - decay) * new
