"""How much is remembered of many examples in many classes, and how many of them are worked on at once."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS = 2**14  # examples at a time, where all at once would take memory for nothing
# From so many probabilities on (a million examples in 135 classes) half precision, which is good to three digits: in
# single precision a million examples in a thousand classes would take 4 GB for each thing remembered.
HALF_FROM = 2**27
SINGLE_FROM = 2**23  # and so many sums are means in single precision instead of sums in double


def kept_type(n: int, classes: int, *, summed: bool = False) -> type[np.floating[Any]]:
    """The type in which the probabilities of n examples are remembered, or `summed` over a run.

    Example:
        >>> kept_type(1_000_000, 10).__name__, kept_type(1_000_000, 1000).__name__
        ('float32', 'float16')
        >>> kept_type(50_000, 10, summed=True).__name__
        'float64'
    """
    if n * classes >= HALF_FROM:
        return np.float16
    return np.float64 if summed and n * classes < SINGLE_FROM else np.float32
