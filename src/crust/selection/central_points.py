"""Two plain choices to compare with: the most central points, and random ones."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math

import numpy as np

from crust.selection import kernels
from crust.selection.assignment import Picks, complete, diameter
from crust.selection.distances import Distances
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.kernels import magic_number

SETTLED_ROWS = 16  # rows that are settled in one go
SUM_ERROR = 8 * 2.0**-24  # relative, of sums that add up to eight numbers in float32


def random(distances: Distances, k: int, *, rng: np.random.Generator, threads: int, ticker: Ticker) -> Picks:
    """k points drawn uniformly, without replacement."""
    order = rng.choice(distances.n, k, replace=False)
    widest = diameter(distances, threads=threads, ticker=ticker)
    return complete(distances, order, widest, threads=threads, ticker=ticker)


def central(distances: Distances, k: int, *, threads: int, ticker: Ticker) -> Picks:
    """The k points with the smallest sum of distances to their group, smallest first, ties to the lowest index."""
    widest = diameter(distances, threads=threads, ticker=ticker)
    sums = _ordered_sums(distances, k, widest, threads, ticker)
    order = np.argsort(sums, kind="stable")[:k]
    return complete(distances, order, widest, threads=threads, ticker=ticker)


def mean_distances(distances: Distances, *, threads: int, ticker: Ticker) -> np.ndarray:
    """The mean distance of each point to the others; sorted (stable), the order is that of `central`.

    A quotient keeps the order of the sums: they are at least a quantum apart, which is more than the last digit of any.
    """
    widest = diameter(distances, threads=threads, ticker=ticker)
    return _ordered_sums(distances, distances.n, widest, threads, ticker) / max(1, distances.n - 1)


def _ordered_sums(distances: Distances, k: int, widest: float, threads: int, ticker: Ticker) -> np.ndarray:
    """The sum of the distances of each point, such that the k smallest are in the order of the exact sums.

    All of them are exact where the distances are; else those that approximate distances cannot tell apart are. They
    do not depend on threads.
    """
    magic = magic_number(distances.n * widest)
    if not distances.exact:
        sums, errors = _bounded_sums(distances, magic, threads, ticker)
        rows = _undecided(sums, errors, k)
        if len(rows) <= distances.n // 2:
            return _settle(distances, sums, rows, magic, threads, ticker)
        distances.make_exact()  # both halves of the matrix in one go are cheaper then
    return _exact_sums(distances, magic, threads, ticker)


def _exact_sums(distances: Distances, magic: float, threads: int, ticker: Ticker) -> np.ndarray:
    parts = np.zeros((threads, distances.n))
    distances.each_tile(
        lambda tile, top, left, slot: kernels.exact_sums(tile, top, left, magic, parts[slot]), threads, ticker
    )
    return parts.sum(axis=0)


def _bounded_sums(distances: Distances, magic: float, threads: int, ticker: Ticker) -> tuple[np.ndarray, np.ndarray]:
    """Sums of approximate distances, and how far from the exact ones they may be."""
    n = distances.n
    sums, inverses = np.zeros((2, threads, n))
    floor = math.sqrt(distances.inverse)
    inverse_magic = magic_number(n / floor) if floor else 0.0

    def consume(tile, top, left, slot):
        _add_tile(tile, top, left, magic, sums[slot])
        if distances.inverse:
            kernels.invert(tile, floor)
            _add_tile(tile, top, left, inverse_magic, inverses[slot])

    distances.each_tile(consume, threads, ticker)
    total = sums.sum(axis=0)
    # the last term: both these sums and the exact ones are of numbers that were rounded to a quantum
    errors = (distances.relative + SUM_ERROR) * total + n * (distances.shift + np.spacing(magic))
    return total, errors + distances.inverse * inverses.sum(axis=0)


def _undecided(sums: np.ndarray, errors: np.ndarray, k: int) -> np.ndarray:
    """The points whose place among the k smallest sums the errors leave open."""
    order = np.argsort(sums, kind="stable")
    low, high = (sums - errors)[order], (sums + errors)[order]
    # a run ends where all that come later are surely larger than all that came before
    ends = np.append(np.maximum.accumulate(high)[:-1] < np.minimum.accumulate(low[::-1])[::-1][1:], True)
    run = np.append(0, np.cumsum(ends)[:-1])
    is_open = np.bincount(run)[run] > 1
    is_open[run > run[k - 1]] = False
    return order[is_open]


def _settle(
    distances: Distances, sums: np.ndarray, rows: np.ndarray, magic: float, threads: int, ticker: Ticker
) -> np.ndarray:
    """The sums, with exact ones at some rows."""
    settled = sums.copy()
    tiles = np.empty((threads, SETTLED_ROWS, distances.n), np.float32)

    def work(first: int, slot: int) -> None:
        block, tile = rows[first : first + SETTLED_ROWS], tiles[slot]
        kernels.exact_tile(distances.x, distances.xt, block, 0, distances.n, distances.root, distances.factor, tile)
        settled[block] = [kernels.snapped_sum(tile[r], magic) for r in range(len(block))]
        ticker.step(len(block) * distances.n)

    run_in_threads(range(0, len(rows), SETTLED_ROWS), work, threads, ticker)
    return settled


def _add_tile(tile: np.ndarray, top: int, left: int, magic: float, sums: np.ndarray) -> None:
    """Add the sums of a tile of the upper triangle and its mirror, in quanta: the order of tiles changes nothing."""
    rows, columns = np.zeros(tile.shape[0]), np.zeros(tile.shape[1])
    _tile_sums(tile, top, left, rows, columns)
    _add_snapped(rows, magic, sums[top : top + len(rows)])
    _add_snapped(columns, magic, sums[left : left + len(columns)])


@kernels.exact_kernel
def _add_snapped(values, magic, sums):
    for i in range(values.shape[0]):
        sums[i] += kernels.snap(values[i], magic)


@kernels.fast_kernel
def _tile_sums(tile, top, left, row_sums, columns):
    """Sums of approximate distances for a tile of the upper triangle and its mirror; eight terms begin in float32."""
    rows, width = tile.shape
    inner = max(0, min(width, top + rows - left))  # columns on the diagonal block count once
    whole = rows // 8 * 8
    for r in range(0, whole, 8):
        a, b, c, d = tile[r], tile[r + 1], tile[r + 2], tile[r + 3]
        e, f, g, h = tile[r + 4], tile[r + 5], tile[r + 6], tile[r + 7]
        for j in range(inner, width):
            columns[j] += np.float64(((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j])))
    for r in range(whole, rows):
        for j in range(inner, width):
            columns[j] += np.float64(tile[r, j])
    part = width // 8
    for r in range(rows):
        a, b, c, d = tile[r, :part], tile[r, part:], tile[r, 2 * part :], tile[r, 3 * part :]
        e, f, g, h = tile[r, 4 * part :], tile[r, 5 * part :], tile[r, 6 * part :], tile[r, 7 * part :]
        total = np.float64(0.0)
        for j in range(part):
            total += np.float64(((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j])))
        for j in range(8 * part, width):
            total += np.float64(tile[r, j])
        row_sums[r] = total
