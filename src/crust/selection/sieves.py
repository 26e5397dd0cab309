"""Sieves for a stream: each keeps what gains enough on a fixed set of measured points.

For a guess v of the best value that r picks can have, a sieve takes every point that gains at least v / 2r, until it
has r. If v is right, it ends with at least v / 2: either it is full, or whatever the best picks would still add is
below the threshold, r times. Guesses are powers of 1 + epsilon, so one of them is nearly right.

References:
    Badanidiyuru, Mirzasoleiman, Karbasi, Krause: Streaming submodular maximization (2014).
    Kazemi, Mitrovic, Zadimoghaddam, Lattanzi, Karbasi: Submodular streaming in all its glory (2019): the constant
    threshold, and guesses below what is reached already need no sieve.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crust.selection.approximate import gain_of_row
from crust.selection.assign import WORTH_THREADS
from crust.selection.kernels import BLOCK, kernel, snapped_sum
from crust.selection.picks import magic_number
from crust.selection.workers import Ticker, spread


@dataclass
class Sieve:
    """One guess: what it took, and how near that is to the measured points."""

    threshold: float
    nearest: NDArray[np.float32]
    picks: list[int] = field(default_factory=list)
    value: float = 0.0


class Sieves:
    """All sieves of one stream.

    Args:
        base: distances of the measured points to the first medoid; gains count from there.
        room: how many points each sieve may take.
        epsilon: how far apart the guesses are.
    """

    def __init__(self, base: NDArray[np.float32], room: int, epsilon: float, threads: int, ticker: Ticker):
        self.room, self.epsilon, self.threads, self.ticker = room, epsilon, threads, ticker
        self.sieves: dict[int, Sieve] = {}  # by the exponent of the guess
        self.top = 0.0  # the largest gain that any point had by itself
        self._measure(base)

    def _measure(self, base: NDArray[np.float32]) -> None:
        self.base = base
        self.magic = magic_number(len(base) * float(base.max()))
        self.whole = float(snapped_sum(base, self.magic))  # no choice can gain more

    def offer(self, tile: NDArray[np.float32], first: int) -> None:
        """Show the points first, first + 1, ... of the stream: one row each, their distances to the measured points."""
        if self.room == 0 or self.whole == 0.0:
            return
        gains = np.maximum.accumulate(np.maximum(_single_gains(tile, self.base, self.magic), self.top))
        self.top = float(gains[-1])
        if self.top == 0.0:
            return
        lowest = self._exponent(max(self.top, self._reached()))
        highest = self._exponent(min(2 * self.room * self.top, self.whole))
        begins = dict.fromkeys(self.sieves, 0)
        for exponent in range(lowest, highest + 1):
            if exponent not in self.sieves:
                threshold = (1 + self.epsilon) ** exponent / (2 * self.room)
                self.sieves[exponent] = Sieve(threshold, self.base.copy())
                begins[exponent] = int(np.searchsorted(gains, threshold))  # none before gains enough even by itself
        self._fill(tile, first, begins)
        # what the optimum surely exceeds is no guess any more; the best choice so far stays
        floor, best = self._exponent(max(self.top, self._reached())), self.best()
        self.sieves = {e: sieve for e, sieve in self.sieves.items() if e >= floor or sieve is best}

    def _fill(self, tile: NDArray[np.float32], first: int, begins: dict[int, int]) -> None:
        def work(exponent: int, slot: int) -> None:
            sieve = self.sieves[exponent]
            left = self.room - len(sieve.picks)
            taken = np.empty(min(left, len(tile)), np.int64)
            count, gain = _take(tile, begins[exponent], sieve.threshold, sieve.nearest, self.magic, taken)
            sieve.picks += (first + taken[:count]).tolist()
            sieve.value += gain

        busy = [exponent for exponent, sieve in self.sieves.items() if len(sieve.picks) < self.room]
        threads = self.threads if tile.size * len(busy) > WORTH_THREADS else 1
        spread(busy, work, threads, self.ticker)

    def _exponent(self, value: float) -> int:
        return math.floor(math.log(value) / math.log1p(self.epsilon))

    def _reached(self) -> float:
        return max((sieve.value for sieve in self.sieves.values()), default=0.0)

    def best(self) -> Sieve:
        """The sieve with the largest value; an empty one if none took anything."""
        ranked = sorted(self.sieves.items(), key=lambda item: (-item[1].value, item[0]))
        return ranked[0][1] if ranked else Sieve(0.0, self.base.copy())

    def replace(self, slots: NDArray[np.int64], base: NDArray[np.float32], far: dict[int, NDArray[np.float32]]) -> None:
        """Other points are measured from now on.

        Args:
            slots: which of the measured points are replaced.
            base: distances of the new ones to the first medoid.
            far: for each pick of any sieve, its distances to the new ones.
        """
        changed = self.base.copy()
        changed[slots] = base
        self._measure(changed)
        for sieve in self.sieves.values():
            nearest = base.copy()
            for pick in sieve.picks:
                np.minimum(nearest, far[pick], out=nearest)
            sieve.nearest[slots] = nearest
            sieve.value = self.whole - float(snapped_sum(sieve.nearest, self.magic))


@kernel
def _single_gains(tile, base, magic):
    terms, out = np.empty(BLOCK), np.empty(tile.shape[0])
    for r in range(tile.shape[0]):
        out[r] = gain_of_row(tile[r], base, magic, terms)
    return out


@kernel
def _take(tile, begin, threshold, nearest, magic, taken):
    """Take the rows that gain enough, as long as there is room; returns how many, and what they gain together."""
    terms = np.empty(BLOCK)
    count, total = 0, 0.0
    for r in range(begin, tile.shape[0]):
        if count == taken.shape[0]:
            break
        gain = gain_of_row(tile[r], nearest, magic, terms)
        if gain >= threshold:
            taken[count] = r
            count += 1
            total += gain
            for j in range(nearest.shape[0]):
                nearest[j] = min(nearest[j], tile[r, j])
    return count, total
