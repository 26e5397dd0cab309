"""What an algorithm finds in one group, and the arithmetic that all of them share."""

import math
from dataclasses import dataclass

import numpy as np

FINER = 1024.0  # sums get a finer quantum when the gains have fallen this far below the largest that could be


@dataclass
class Picks:
    """Medoids of one group; all indices count within the group."""

    order: np.ndarray  # the medoids in the order they were picked
    gains: np.ndarray  # marginal gains, in the same order
    owner: np.ndarray  # the medoid of each point
    nearest: np.ndarray  # its distance, float32


def magic_number(bound: float) -> float:
    """What to add and take away (`kernels_exact.snap`) so that sums up to `bound` are exact."""
    return 1.5 * math.ldexp(1.0, math.ceil(math.log2(bound))) if bound > 0 else 0.0
