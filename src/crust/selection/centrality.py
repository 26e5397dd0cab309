"""Two plain choices to compare with: the most central points, and random ones."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math

import numpy as np

from crust.selection import kernels_exact, kernels_float32
from crust.selection.assignment import complete, diameter
from crust.selection.distances import Distances
from crust.selection.picks import Picks, magic_number
from crust.selection.threads import Ticker, run_in_threads

HEIGHT = 16  # rows that are settled in one go
SUM_ERROR = 8 * 2.0**-24  # relative, of sums that add up to eight numbers in float32


def random(distances: Distances, k: int, *, rng: np.random.Generator, threads: int, ticker: Ticker) -> Picks:
    """k points drawn uniformly, without replacement."""
    order = rng.choice(distances.n, k, replace=False)
    widest = diameter(distances, threads=threads, ticker=ticker)
    return complete(distances, order, widest, threads=threads, ticker=ticker)


def central(distances: Distances, k: int, *, threads: int, ticker: Ticker) -> Picks:
    """The k points with the smallest sum of distances to their group, smallest first, ties to the lowest index."""
    widest = diameter(distances, threads=threads, ticker=ticker)
    magic = magic_number(distances.n * widest)
    if distances.exact:
        sums = _exact_sums(distances, magic, threads, ticker)
        order = np.argsort(sums, kind="stable")[:k]
    else:
        sums, errors = _bounded_sums(distances, threads, ticker)
        order = _settle(distances, sums, errors, k, magic, threads, ticker)
    return complete(distances, order, widest, threads=threads, ticker=ticker)


def _exact_sums(distances: Distances, magic: float, threads: int, ticker: Ticker) -> np.ndarray:
    parts = np.zeros((threads, distances.n))
    distances.each_tile(
        lambda tile, top, left, slot: kernels_exact.exact_sums(tile, top, left, magic, parts[slot]), threads, ticker
    )
    return parts.sum(axis=0)


def _bounded_sums(distances: Distances, threads: int, ticker: Ticker) -> tuple[np.ndarray, np.ndarray]:
    """Sums of approximate distances, and how far from the exact ones they may be."""
    n = distances.n
    sums, inverses = np.zeros((2, threads, n))
    floor = math.sqrt(distances.inverse)

    def consume(tile, top, left, slot):
        _add_sums(tile, top, left, sums[slot])
        if distances.inverse:
            kernels_float32.invert(tile, floor)
            _add_sums(tile, top, left, inverses[slot])

    distances.each_tile(consume, threads, ticker)
    total = sums.sum(axis=0)
    errors = (distances.relative + SUM_ERROR) * total + n * distances.shift
    return total, errors + distances.inverse * inverses.sum(axis=0)


def _settle(
    distances: Distances, sums: np.ndarray, errors: np.ndarray, k: int, magic: float, threads: int, ticker: Ticker
) -> np.ndarray:
    """The first k in the order of the exact sums, which are computed only where the errors leave the order open."""
    order = np.argsort(sums, kind="stable")
    low, high = (sums - errors)[order], (sums + errors)[order]
    # a run ends where all that come later are surely larger than all that came before
    ends = np.append(np.maximum.accumulate(high)[:-1] < np.minimum.accumulate(low[::-1])[::-1][1:], True)
    run = np.append(0, np.cumsum(ends)[:-1])
    open_runs = np.bincount(run)[run] > 1
    open_runs[run > run[k - 1]] = False
    rows = order[open_runs]
    if len(rows) > distances.n // 2:  # both halves of the matrix in one go are cheaper then
        distances.make_exact()
        return np.argsort(_exact_sums(distances, magic, threads, ticker), kind="stable")[:k]
    exact = sums.copy()
    tiles = np.empty((threads, HEIGHT, distances.n), np.float32)

    def work(first: int, slot: int) -> None:
        some, tile = rows[first : first + HEIGHT], tiles[slot]
        kernels_exact.exact_tile(
            distances.x, distances.xt, some, 0, distances.n, distances.root, distances.factor, tile
        )
        exact[some] = [kernels_exact.snapped_sum(tile[r], magic) for r in range(len(some))]
        ticker.step(len(some) * distances.n)

    run_in_threads(range(0, len(rows), HEIGHT), work, threads, ticker)
    return order[np.lexsort((order, exact[order], run))][:k]


@kernels_float32.fast_kernel
def _add_sums(tile, top, left, sums):
    """Sums of approximate distances for a tile of the upper triangle and its mirror; eight terms begin in float32."""
    rows, width = tile.shape
    inner = max(0, min(width, top + rows - left))  # columns on the diagonal block count once
    columns = sums[left : left + width]
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
        sums[top + r] += total
