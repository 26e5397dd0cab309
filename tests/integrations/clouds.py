"""A small problem of numbers for the frameworks: three clouds of points, a third of the labels wrong."""

import numpy as np
import torch
from torch import nn

CLASSES = 3


def clouds(n=240, seed=0, wrong=0.3):
    """Points, given labels, true labels."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, CLASSES, n)
    x = (np.eye(CLASSES, 6)[true] * 3 + rng.normal(size=(n, 6))).astype(np.float32)
    given = np.where(rng.random(n) < wrong, (true + rng.integers(1, CLASSES, n)) % CLASSES, true)
    return torch.from_numpy(x), given, true


def network(seed=0):
    """Of one hidden layer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, CLASSES))
