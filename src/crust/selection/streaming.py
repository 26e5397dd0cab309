"""Sieve-streaming on arrays: one pass over the points, gains measured on a uniform sample of them.

The first medoid is the point most central to the sample; the sieves choose the rest by what it adds to the first. With
F(S) the sum over the sample of d0 - d(i, S), d0 the largest distance, the choice has at least 1/2 - epsilon of the best
F that k points can have: the first alone has 1/k of it, and the sieves bring at least 1/2 - epsilon of what the best
k - 1 others add.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crust.selection import kernels
from crust.selection.approximate import Lazy
from crust.selection.assign import complete, diameter, part_of
from crust.selection.distances import Distances
from crust.selection.picks import Picks, magic_number
from crust.selection.sieves import Sieves
from crust.selection.workers import Ticker, spread

RESERVOIR = 2000
AT_ONCE = 512  # points shown to the sieves in one go
SPLIT = 64  # points a thread takes from them


def sieve(
    distances: Distances,
    k: int,
    *,
    epsilon: float,
    rng: np.random.Generator,
    threads: int,
    ticker: Ticker,
    reservoir: int = RESERVOIR,
) -> Picks:
    """Pick k points in one pass over them, then assign all points in a second one.

    Where the sieves end with fewer than k, greedy on the sample picks more of its points, then chance any others.
    """
    n = distances.n
    measured = np.sort(rng.choice(n, min(n, reservoir), replace=False))
    widest = diameter(distances, threads=threads, ticker=ticker)
    magic = magic_number(len(measured) * widest)
    sums = np.empty(n)
    tiles = _Tiles(distances, measured, threads, ticker)
    for left, tile in tiles:
        sums[left : left + len(tile)] = [kernels.snapped_sum(row, magic) for row in tile]
    first = int(sums.argmin())
    sieves = Sieves(tiles.rows(np.array([first]))[0], k - 1, epsilon, threads, ticker)
    for left, tile in tiles:
        sieves.offer(tile, left)
    best = sieves.best()
    order = [first, *best.picks]
    sample = part_of(distances, measured, approximate=False)
    order += measured[fill_up(sample, best.nearest, np.isin(measured, order), k - len(order), ticker)].tolist()
    if len(order) < k:
        rest = np.setdiff1d(np.arange(n), order)
        order += rng.choice(rest, k - len(order), replace=False).tolist()
    return complete(distances, np.array(order), widest, threads=threads, ticker=ticker)


class _Tiles:
    """Exact distances from all points of a group to the measured ones, a block of points at a time."""

    def __init__(self, distances: Distances, measured: NDArray[np.int64], threads: int, ticker: Ticker):
        self.distances, self.measured, self.threads, self.ticker = distances, measured, threads, ticker
        if distances.matrix is None:
            self.targets = np.ascontiguousarray(distances.x[measured].T)

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        distances = self.distances
        if distances.matrix is None:
            return exact_between(distances, distances.x[rows], self.targets, self.threads, self.ticker)
        out = np.empty((len(rows), len(self.measured)), np.float32)
        wanted, columns = rows[:, None], self.measured
        if distances.index is not None:
            wanted, columns = distances.index[wanted], distances.index[columns]
        out[:] = distances.matrix[np.minimum(wanted, columns), np.maximum(wanted, columns)]
        return out

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for left in range(0, self.distances.n, AT_ONCE):
            yield left, self.rows(np.arange(left, min(self.distances.n, left + AT_ONCE)))


def exact_between(
    distances: Distances, points: NDArray[np.float64], targets: NDArray[np.float64], threads: int, ticker: Ticker
) -> NDArray[np.float32]:
    """Exact distances from points (rows) to targets (columns)."""
    m = targets.shape[1]
    out = np.empty((len(points), m), np.float32)

    def work(first: int, slot: int) -> None:
        rows = np.arange(first, min(len(points), first + SPLIT))
        kernels.exact_tile(points, targets, rows, 0, m, distances.root, distances.factor, out[rows[0] : rows[-1] + 1])
        ticker.step(len(rows) * m)

    spread(range(0, len(points), SPLIT), work, threads if out.size * len(targets) > 2**20 else 1, ticker)
    return out


def fill_up(
    sample: Distances, nearest: NDArray[np.float32], picked: NDArray[np.bool_], count: int, ticker: Ticker
) -> NDArray[np.int64]:
    """Up to `count` more points of the sample, by greedy."""
    order = np.empty(min(count, int((~picked).sum())), np.int64)
    if len(order):
        run = Lazy(sample, 1, ticker)
        run.picked[:] = picked
        run.start(nearest.copy(), np.zeros(sample.n, np.int64))
        run.pick(order, np.empty(len(order)), 0)
    return order
