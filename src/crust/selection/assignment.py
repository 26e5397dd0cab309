"""What any choice of medoids means: nearest medoids, marginal gains, and the largest distance of a group."""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math
from dataclasses import dataclass

import numpy as np

from crust.selection.distances import TILE_COLUMNS, Distances
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.kernels import exact_kernel, exact_pairs, magic_number, snap

WORTH_THREADS = 2**19  # pairs; fewer are done before a second thread has woken up


@dataclass
class Picks:
    """Medoids of one group; all indices count within the group."""

    order: np.ndarray  # the medoids in the order they were picked
    gains: np.ndarray  # marginal gains, in the same order
    owner: np.ndarray  # the medoid of each point
    nearest: np.ndarray  # its distance, float32


def complete(
    distances: Distances,
    order: np.ndarray,
    widest: float,
    *,
    threads: int,
    ticker: Ticker,
    first: int = 0,
    total: int | None = None,
) -> Picks:
    """Owners, distances and marginal gains for medoids that were chosen in this order, as indices within the group.

    Approximate distances only decide which points a medoid may be nearest to; there the exact ones are computed.

    Args:
        widest: the largest distance of the group (`diameter`), from which the first gain counts.
        first: only the points from this one on count; the others keep `widest`, but for the medoids.
        total: how many points the group has, where these are some of them: gains of all parts then add up exactly.
    """
    n, k, height = distances.n, len(order), distances.tile_rows
    order = np.ascontiguousarray(order, np.int64)
    nearest = np.full(n, widest, np.float32)
    owner = np.full(n, n, np.int64)
    limits = distances.limits(nearest).copy()
    error = error_terms(distances)
    magic = magic_number((total or n) * widest)
    parts = np.zeros((threads, k))
    buffers = np.empty((threads, height * min(n, TILE_COLUMNS)), np.float32)

    def work(left: int, slot: int) -> None:
        columns = slice(left, min(n, left + TILE_COLUMNS))
        for first in range(0, k, height):
            rows = order[first : first + height]
            tile = distances.tile(rows, columns.start, columns.stop, buffers[slot])
            _take_nearer(
                tile, rows, left, distances.x, distances.exact, distances.root, distances.factor, error, magic,
                nearest[columns], limits[columns], owner[columns], parts[slot, first : first + height],
            )  # fmt: skip
            ticker.step(tile.size)

    run_in_threads(range(first, n, TILE_COLUMNS), work, threads if n * k > WORTH_THREADS else 1, ticker)
    owner[order] = order
    nearest[order] = 0.0
    return Picks(order, parts.sum(axis=0), owner, nearest)


def part_of(distances: Distances, rows: np.ndarray, *, approximate: bool = True) -> Distances:
    """The distances among some of the points."""
    if distances.matrix is None:
        return Distances.of_points(distances.x[rows], distances.metric, approximate)
    return Distances.of_matrix(distances.matrix, rows if distances.index is None else distances.index[rows])


def error_terms(distances: Distances) -> tuple[float, float, float]:
    """What `limit` needs to know about the error of approximate distances."""
    if distances.exact:
        return 0.0, 0.0, 0.0
    return float(distances.root_relative), float(distances.move), float(distances.squared)


@exact_kernel
def limit(value, root, factor, error):
    """`Distances.limits` for one approximate distance."""
    relative, move, squared = error
    straight = np.float64(value) if root else math.sqrt(np.float64(value) / factor)
    moved = straight * (1.0 + relative) + move
    square = moved * moved + squared
    upper = math.sqrt(square) if root else square * factor
    return np.nextafter(np.float32(upper * (1.0 + 1e-6)), np.float32(np.inf))


@exact_kernel
def _take_nearer(tile, medoids, left, x, exact, root, factor, error, magic, nearest, limits, owner, gains):
    """Medoids one after another take the points that they are nearer to, or as near with a lower index.

    `nearest`, `limits` and `owner` belong to the tile's columns, which are the points from `left` on.
    """
    width = tile.shape[1]
    mask = np.zeros((width + 7) // 8 * 8, np.uint8)
    words = mask.view(np.uint64)
    candidates = np.empty(width + 8, np.int32)
    far = np.empty(width, np.float32)
    for r in range(tile.shape[0]):
        row, medoid = tile[r], medoids[r]
        for j in range(width):
            mask[j] = row[j] <= limits[j]
        count = 0
        for word in range(words.shape[0]):
            if words[word] != 0:  # eight points at once that are nearer to another
                for j in range(8 * word, 8 * word + 8):
                    candidates[count] = left + j
                    count += mask[j]
        if exact:
            for t in range(count):
                far[t] = row[candidates[t] - left]
        else:
            exact_pairs(x, x[medoid], candidates[:count], root, factor, far)
        total = 0.0
        for t in range(count):
            j, d = candidates[t] - left, far[t]
            if d < nearest[j]:
                total += snap(nearest[j], magic) - snap(d, magic)
                nearest[j] = d
                owner[j] = medoid
                limits[j] = d if exact else limit(d, root, factor, error)
            elif d == nearest[j]:
                owner[j] = min(owner[j], medoid)
        gains[r] += total


def diameter(distances: Distances, *, threads: int, ticker: Ticker) -> float:
    """The largest distance of the group, exactly.

    Two points within r and s of the middle are at most r + s apart: with the outermost points first, most of the pairs
    need not be looked at.
    """
    n = distances.n
    if distances.matrix is not None:
        far, radii = distances, np.full(n, np.inf)
    else:
        offsets = distances.x - distances.x.mean(axis=0)
        radii = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        order = np.argsort(-radii, kind="stable")
        far, radii = Distances.of_points(distances.x[order], distances.metric), radii[order]
    height, error = far.tile_rows, error_terms(far)
    buffers = np.empty((threads, height * min(n, TILE_COLUMNS)), np.float32)
    start = int(far.exact_row(0).argmax())
    farthest = [float(far.exact_row(start).max())] * threads

    def work(top: int, slot: int) -> None:
        rows = np.arange(top, min(n, top + height))
        for left in range(top, n, TILE_COLUMNS):
            known, reach = max(farthest), radii[top] + radii[left]
            if (reach if far.root else reach**2 * far.factor) * (1 + 1e-6) < known:
                return
            tile = far.tile(rows, left, min(n, left + TILE_COLUMNS), buffers[slot])
            if far.exact:
                farthest[slot] = max(known, float(tile.max()))
            else:
                farthest[slot] = _farthest(tile, top, left, far.x, far.root, far.factor, error, known)
            ticker.step()

    run_in_threads(range(0, n, height), work, threads, ticker)
    return max(farthest)


@exact_kernel
def _farthest(tile, top, left, x, root, factor, error, known):
    """The larger of `known` and the largest exact distance of a tile of approximate ones."""
    pair, out = np.empty(1, np.int64), np.empty(1, np.float32)
    # An error at the far end is at most limit(known) - known; twice as much covers both directions of it
    least = 3.0 * known - 2.0 * limit(known, root, factor, error)
    for r in range(tile.shape[0]):
        row = tile[r]
        peak = np.float32(0.0)
        for j in range(row.shape[0]):
            peak = max(peak, row[j])
        if peak < least:
            continue
        for j in range(row.shape[0]):
            if row[j] >= least:
                pair[0] = left + j
                exact_pairs(x, x[top + r], pair, root, factor, out)
                if out[0] > known:
                    known = np.float64(out[0])
                    least = 3.0 * known - 2.0 * limit(known, root, factor, error)
    return known
