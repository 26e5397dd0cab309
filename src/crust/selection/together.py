"""What processes that each hold some rows of the points must be able to do, and one process that holds all of them.

Rows are dealt in pieces that follow each other: what processes bring, joined in their order, is in the order of the
rows. All of them call the same functions in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Together(Protocol):
    """The processes, as one of them sees them."""

    rank: int
    count: int

    def slice(self, n: int, rank: int | None = None, /) -> NDArray[np.int64]:
        """Our rows of n, or those of another process."""

    def add(self, numbers: NDArray[np.int64], /) -> NDArray[np.int64]:
        """Whole numbers summed over the processes, which has the same answer in any order."""

    def largest(self, number: float, /) -> float: ...

    def join(self, rows: NDArray[Any], /) -> NDArray[Any]:
        """The rows of all processes, in their order, for everyone."""

    def exchange(self, pieces: Sequence[NDArray[Any]], /) -> NDArray[Any]:
        """Give every process the piece that is meant for it; what all have given us, in their order."""


class Alone:
    """One process that has everything.

    Example:
        >>> alone = Alone()
        >>> alone.slice(3).tolist(), alone.largest(2.0), alone.exchange([np.ones(1)]).tolist()
        ([0, 1, 2], 2.0, [1.0])
    """

    rank, count = 0, 1

    def slice(self, n: int, rank: int | None = None) -> NDArray[np.int64]:
        return np.arange(n)

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers

    def largest(self, number: float) -> float:
        return number

    def join(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows

    def exchange(self, pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return pieces[0]


ALONE = Alone()


def lower_quantile(values: NDArray[np.floating], share: float, together: Together = ALONE) -> float:
    """The largest value that at most so large a share of all values lies below: `np.quantile` by method "lower".

    Of values in several processes, none negative: their bits are in the order of the values, so that three counts, of
    the upper 11 bits, the next 11 and the last 10, find the very same value without a value being sent.

    Example:
        >>> lower_quantile(np.arange(10, dtype=np.float32), 0.25)
        2.0
    """
    if together.count == 1:
        return float(np.quantile(values, share, method="lower"))
    bits = values.astype(np.float32, copy=False).reshape(-1).view(np.uint32)
    place = int(share * (int(together.add(np.array([bits.size]))[0]) - 1))
    found = 0
    for shift, width in ((21, 11), (10, 11), (0, 10)):
        ends = np.cumsum(together.add(np.bincount((bits >> shift) & (2**width - 1), minlength=2**width)))
        number = int(np.searchsorted(ends, place, side="right"))
        place -= int(ends[number - 1]) if number else 0
        bits = bits[(bits >> shift) & (2**width - 1) == number]  # of those left the upper bits are the same
        found += number << shift
    return float(np.array([found], np.uint32).view(np.float32)[0])
