"""Small networks and data for the theory's tests."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def small_net(outputs: int, hidden: int = 8, inputs: int = 6, seed: int = 1) -> nn.Sequential:
    """A smooth two-layer network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


class Clusters(NamedTuple):
    """Data as the paper's appendix has it: every point lies on the centre of its cluster."""

    x: Tensor
    y: np.ndarray  # given labels, -1 and 1
    truth: np.ndarray
    cluster: np.ndarray
    members: np.ndarray  # every second point
    weights: np.ndarray


def clusters(wrong_each: int = 0, count: int = 4, size: int = 12, wrong_in: tuple[int, ...] | None = None) -> Clusters:
    """`count` far clusters of `size` equal points; the first `wrong_each` members of some clusters are flipped.

    The coreset has every second point of each cluster, so half of the flipped ones, with a weight of 2.
    """
    centres = 2.0 * torch.linalg.qr(normal(6, 6, seed=3))[0][:count]
    cluster = np.repeat(np.arange(count), size)
    truth = np.where(cluster % 2 == 0, 1.0, -1.0)
    y = truth.copy()
    for which in range(count) if wrong_in is None else wrong_in:
        start = which * size
        y[start : start + wrong_each] *= -1
    members = np.arange(0, count * size, 2)
    return Clusters(centres[cluster], y, truth, cluster, members, np.full(len(members), 2))
