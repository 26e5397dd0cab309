"""Neighbour lists of a group: whether they fit, building them, and picking from them to the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crust.selection import neighbours
from crust.selection.distances import Distances
from crust.selection.workers import Ticker, spread

ENTRY = 8  # bytes: who (int32) and how far (float32)
ENTRY_FROM_UPPER = 14  # half a pair of 12 bytes more, while they are built
SPARSE = 24  # lists pay off once they hold less than one pair in this many
SAMPLE = 256  # rows from which their size is estimated
ROWS = 32  # gone through at once, or fewer where they are long

Lists = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def rows_at_once(n: int) -> int:
    """So many that a buffer of them stays small."""
    return max(1, min(ROWS, 2**22 // n))


def capacity(distances: Distances, limits: NDArray[np.float32]) -> int:
    """Entries to make room for, judged by some of the rows."""
    n = distances.n
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    step = rows_at_once(n)
    buffer = np.empty(step * n, np.float32)
    found = 0
    for first in range(0, len(sample), step):
        rows = sample[first : first + step]
        tile = distances.tile(rows, 0, n, buffer) if distances.stored is None else distances.whole_rows(rows)
        found += neighbours.count_near(tile, rows, limits)
    return int(1.1 * found / len(sample) * n) + 32 * n


def worthwhile(entries: int, n: int, room: int) -> bool:
    """Whether lists of that many entries are sparse enough, and fit into `room` bytes."""
    sparse = entries <= n * n / SPARSE + 32 * n or n <= 4 * SPARSE
    return sparse and entries * ENTRY <= room


def build_from_upper(
    distances: Distances, nearest: NDArray[np.float32], limits: NDArray[np.float32], entries: int
) -> Lists | None:
    """The same from a stored upper triangle, on one thread."""
    matrix = distances.stored
    assert matrix is not None
    rows, columns = np.empty((2, entries // 2), np.int32)
    far = np.empty(entries // 2, np.float32)
    counts = np.zeros(distances.n, np.int64)
    found = neighbours.pairs_from_upper(
        matrix,
        distances.x,
        distances.exact,
        distances.root,
        distances.factor,
        nearest,
        limits,
        rows,
        columns,
        far,
        counts,
    )
    if found < 0:
        return None
    begins = np.cumsum(counts) - counts
    ends = begins.copy()
    names, lengths = np.empty(2 * found, np.int32), np.empty(2 * found, np.float32)
    neighbours.lists_from_pairs(rows[:found], columns[:found], far[:found], ends, names, lengths)
    return begins, ends, names, lengths


def build(
    distances: Distances,
    nearest: NDArray[np.float32],
    limits: NDArray[np.float32],
    entries: int,
    threads: int,
    ticker: Ticker,
) -> Lists | None:
    """The lists as (begins, ends, names, lengths); None where they need more room than estimated."""
    n = distances.n
    begins, ends = np.zeros((2, n), np.int64)
    names, lengths = np.empty(entries, np.int32), np.empty(entries, np.float32)
    share, step = entries // threads, rows_at_once(n)
    full: list[int] = []
    stored = None if distances.stored is None else distances.full()

    def work(slot: int, _: int) -> None:
        first, last = n * slot // threads, n * (slot + 1) // threads
        at, room = slot * share, slice(0, (slot + 1) * share)
        buffer = np.empty(0 if stored is not None else step * n, np.float32)
        for top in range(first, last, step):
            points = np.arange(top, min(last, top + step))
            if stored is not None:
                tile, tile_rows = stored, points
            else:
                tile, tile_rows = distances.tile(points, 0, n, buffer), points - top
            at = neighbours.append_lists(
                tile,
                tile_rows,
                points,
                distances.x,
                distances.exact,
                distances.root,
                distances.factor,
                nearest,
                limits,
                begins,
                ends,
                names[room],
                lengths[room],
                at,
            )
            if at < 0:
                full.append(slot)
                return
            ticker.step(len(points) * n)

    spread(range(threads), work, threads, ticker)
    return None if full else (begins, ends, names, lengths)
