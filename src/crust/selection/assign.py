"""What any choice of medoids means: nearest medoids, marginal gains, and the largest distance of a group."""

import numpy as np

from crust.selection import kernels
from crust.selection.distances import TILE_COLUMNS, TILE_ROWS, Distances
from crust.selection.picks import Picks, magic_number
from crust.selection.workers import Ticker, spread


def complete(distances: Distances, order: np.ndarray, widest: float, *, threads: int, ticker: Ticker) -> Picks:
    """Owners, distances and marginal gains for medoids that were chosen in this order.

    Args:
        distances: exact distances of the group.
        order: the medoids, as indices within the group.
        widest: the largest distance of the group (`diameter`), from which the first gain counts.
    """
    n, k = distances.n, len(order)
    nearest = np.full(n, np.float32(widest))
    owner = np.full(n, n, np.int64)
    magic = magic_number(n * widest)
    parts = np.zeros((threads, k))
    buffers = np.empty((threads, TILE_ROWS * min(n, TILE_COLUMNS)), np.float32)

    def work(left: int, slot: int) -> None:
        right = min(n, left + TILE_COLUMNS)
        for first in range(0, k, TILE_ROWS):
            rows = order[first : first + TILE_ROWS]
            tile = distances.tile(rows, left, right, buffers[slot])
            columns = slice(left, right)
            kernels.marginal_gains(
                tile, rows, magic, nearest[columns], owner[columns], parts[slot, first : first + TILE_ROWS]
            )
        ticker.step(k * (right - left))

    spread(range(0, n, TILE_COLUMNS), work, threads, ticker)
    owner[order] = order
    nearest[order] = 0.0
    return Picks(order, parts.sum(axis=0), owner, nearest)


def diameter(distances: Distances, *, threads: int, ticker: Ticker) -> float:
    """The largest distance of the group, exactly.

    Points are met in the order of their distance from the middle, farthest first: two points within r and s of it are
    at most r + s apart, so most of the pairs need not be looked at.
    """
    n = distances.n
    if distances.matrix is not None:
        return float(distances.matrix_largest())
    offsets = distances.x - distances.x.mean(axis=0)
    radii = np.sqrt(np.einsum("ij,ij->i", offsets, offsets)) * (1 + 1e-9)
    order = np.argsort(-radii, kind="stable")
    far = Distances.of_points(distances.x[order], distances.metric)
    radii = radii[order]
    best = float(far.exact_row(0).max())
    start = int(far.exact_row(0).argmax())
    best = max(best, float(far.exact_row(start).max()))
    buffers = np.empty((threads, TILE_ROWS * min(n, TILE_COLUMNS)), np.float32)
    found = [best] * threads

    def work(top: int, slot: int) -> None:
        bottom = min(n, top + TILE_ROWS)
        for left in range(top, n, TILE_COLUMNS):
            right = min(n, left + TILE_COLUMNS)
            reach = radii[top] + radii[left]
            if (reach if far.root else reach**2 * far.factor) < max(found) * (1 - 1e-6):
                return
            tile = far.tile(np.arange(top, bottom), left, right, buffers[slot])
            low = far.limits(np.array([max(found)], np.float32))[0]
            least = np.float32(max(found)) - 2 * (low - np.float32(max(found)))
            for r, c in np.argwhere(tile >= least).tolist() if not far.exact else ():
                out = np.empty(1, np.float32)
                kernels.exact_pairs(far.x, far.x[top + r], np.array([left + c]), far.root, far.factor, out)
                found[slot] = max(found[slot], float(out[0]))
            if far.exact:
                found[slot] = max(found[slot], float(tile.max()))
        ticker.step()

    spread(range(0, n, TILE_ROWS), work, threads, ticker)
    return max(found)
