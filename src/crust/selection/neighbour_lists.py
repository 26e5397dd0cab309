"""Greedy on neighbour lists: once every point is near a medoid, only close pairs can still change a gain.

After a few medoids, `max(0, nearest_i - d_ie)` is zero for almost all pairs. What is left is kept as one list per
point: all others at a distance of at most the larger of the two `nearest`, with their exact distances. The list of a
new medoid then names every point it can take over, and the list of such a point every candidate whose gain drops.

Neighbour lists of a group: whether they fit, building them, and picking from them to the end.
"""

import numpy as np
from numpy.typing import NDArray

from crust.selection.distances import Distances
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.kernels import LEAF, exact_kernel, exact_pairs, snap

DONE, RESCALE = 0, 1


@exact_kernel
def count_near(tile, rows, limits):
    """How many entries a list of these rows would hold, at the most."""
    total = 0
    for r in range(rows.shape[0]):
        row = tile[r]
        own = limits[rows[r]]
        for j in range(row.shape[0]):
            total += row[j] <= max(own, limits[j])
    return total


@exact_kernel
def _near_columns(row, limits, own, mask, words, found):
    """Positions where the row is at most the larger of the two limits; eight columns without one are one step."""
    for j in range(row.shape[0]):
        mask[j] = row[j] <= max(own, limits[j])
    count = 0
    for word in range(words.shape[0]):
        if words[word] != 0:
            for j in range(8 * word, 8 * word + 8):
                found[count] = j
                count += mask[j]
    return count


@exact_kernel
def append_lists(tile, tile_rows, points, x, exact, root, factor, nearest, limits, begins, ends, names, lengths, start):
    """Append the neighbour lists of `points` (their rows of the tile: `tile_rows`); returns the end, or -1 if full.

    `names` and `lengths` hold the lists, one after another: who, and how far.
    """
    n = tile.shape[1]
    capacity = names.shape[0]
    mask = np.zeros((n + 7) // 8 * 8, np.uint8)
    words = mask.view(np.uint64)
    found = np.empty(n + 8, np.int32)
    far = np.empty(n, np.float32)
    at = start
    for r in range(points.shape[0]):
        i = points[r]
        row = tile[tile_rows[r]]
        count = _near_columns(row, limits, limits[i], mask, words, found)
        if exact:
            for t in range(count):
                far[t] = row[found[t]]
        else:
            exact_pairs(x, x[i], found[:count], root, factor, far)
        if at + count > capacity:
            return -1
        begins[i] = at
        mine = nearest[i]
        for t in range(count):
            j = found[t]
            widest = max(mine, nearest[j])
            if j != i and far[t] <= widest and widest > 0:
                names[at] = j
                lengths[at] = far[t]
                at += 1
        ends[i] = at
    return at


@exact_kernel
def pairs_from_upper(matrix, x, exact, root, factor, nearest, limits, rows, columns, lengths, counts):
    """All pairs that belong into lists, from the upper triangle of all distances, each settled once.

    Returns how many, or -1 if there is no room for them; `counts` gets the length of each point's list.
    """
    n = matrix.shape[0]
    mask = np.zeros((n + 7) // 8 * 8, np.uint8)
    words = mask.view(np.uint64)
    found = np.empty(n + 8, np.int32)
    far = np.empty(n, np.float32)
    at = 0
    for i in range(n):
        row = matrix[i]
        first = i // 8 * 8  # a whole word; what is not above the diagonal is left out below
        count = _near_columns(row[first:], limits[first:], limits[i], mask[first:], words[first // 8 :], found)
        kept = 0
        for t in range(count):
            j = found[t] + first
            if j > i:
                found[kept] = j
                far[kept] = row[j]
                kept += 1
        if not exact:
            exact_pairs(x, x[i], found[:kept], root, factor, far)
        if at + kept > rows.shape[0]:
            return -1
        mine = nearest[i]
        for t in range(kept):
            j = found[t]
            widest = max(mine, nearest[j])
            if far[t] <= widest and widest > 0:
                rows[at] = i
                columns[at] = j
                lengths[at] = far[t]
                at += 1
                counts[i] += 1
                counts[j] += 1
    return at


@exact_kernel
def lists_from_pairs(rows, columns, pair_lengths, ends, names, lengths):
    """Put every pair into the lists of both its points; `ends` come as the beginnings."""
    for t in range(rows.shape[0]):
        i, j = rows[t], columns[t]
        names[ends[i]] = j
        lengths[ends[i]] = pair_lengths[t]
        ends[i] += 1
        names[ends[j]] = i
        lengths[ends[j]] = pair_lengths[t]
        ends[j] += 1


@exact_kernel
def list_gains(begins, ends, names, lengths, nearest, picked, magic, gains):
    """Gains of all candidates from their lists; those that are picked already get -1."""
    for e in range(begins.shape[0]):
        total = snap(nearest[e], magic)
        for t in range(begins[e], ends[e]):
            total += max(0.0, snap(nearest[names[t]], magic) - snap(lengths[t], magic))
        gains[e] = -1.0 if picked[e] else total


@exact_kernel
def _refresh(gains, leaf, peaks):
    top = -1.0
    for j in range(leaf * LEAF, min(gains.shape[0], leaf * LEAF + LEAF)):
        top = max(top, gains[j])
    peaks[leaf] = top


@exact_kernel
def pick_from_lists(
    begins, ends, names, lengths, nearest, owner, picked, magic, threshold, gains, picks, pick_gains, done, stop
):
    """Pick greedily from pick number `done` to `stop`; returns (picks done, DONE or RESCALE).

    RESCALE: the best gain fell to `threshold`, below which sums need a finer quantum.
    Gains only fall, so a stale maximum of a leaf is still a bound: only the leaf on top is looked at again.
    """
    n = gains.shape[0]
    leaves = (n + LEAF - 1) // LEAF
    peaks = np.empty(leaves)
    stale = np.zeros(leaves, np.bool_)
    for leaf in range(leaves):
        _refresh(gains, leaf, peaks)
    while done < stop:
        while True:
            leaf = 0
            for other in range(1, leaves):
                if peaks[other] > peaks[leaf]:
                    leaf = other
            if not stale[leaf]:
                break
            _refresh(gains, leaf, peaks)
            stale[leaf] = False
        top = peaks[leaf]
        if top <= threshold:
            return done, RESCALE
        e = leaf * LEAF
        while gains[e] != top:
            e += 1
        picks[done] = e
        pick_gains[done] = top
        done += 1
        picked[e] = True
        gains[e] = -1.0
        stale[leaf] = True
        before = snap(nearest[e], magic)
        nearest[e] = np.float32(0.0)
        owner[e] = e
        if before > 0.0:
            for t in range(begins[e], ends[e]):
                gain = before - snap(lengths[t], magic)
                if gain > 0.0 and not picked[names[t]]:
                    gains[names[t]] -= gain
                    stale[names[t] // LEAF] = True
        for t in range(begins[e], ends[e]):
            i = names[t]
            d = lengths[t]
            if d < nearest[i]:
                before = snap(nearest[i], magic)
                step = before - snap(d, magic)
                nearest[i] = d
                owner[i] = e
                if step > 0.0:
                    if not picked[i]:
                        gains[i] -= step
                        stale[i // LEAF] = True
                    for s in range(begins[i], ends[i]):
                        gain = before - snap(lengths[s], magic)
                        if gain > 0.0 and not picked[names[s]]:
                            gains[names[s]] -= min(step, gain)
                            stale[names[s] // LEAF] = True
            elif d == nearest[i] and e < owner[i] and not picked[i]:
                owner[i] = e
    return done, DONE


ENTRY_BYTES = 8  # bytes: who (int32) and how far (float32)
ENTRY_FROM_UPPER = 14  # half a pair of 12 bytes more, while they are built
SPARSE_RATIO = 24  # lists pay off once they hold less than one pair in this many
SAMPLE_ROWS = 256  # rows from which their size is estimated
BLOCK_ROWS = 32  # gone through at once, or fewer where they are long

Lists = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def rows_at_once(n: int) -> int:
    """So many that a buffer of them stays small."""
    return max(1, min(BLOCK_ROWS, 2**22 // n))


def capacity(distances: Distances, limits: NDArray[np.float32]) -> int:
    """Entries to make room for, judged by some of the rows."""
    n = distances.n
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(np.int64))
    step = rows_at_once(n)
    buffer = np.empty(step * n, np.float32)
    near_pairs = 0
    for first in range(0, len(sample), step):
        rows = sample[first : first + step]
        tile = distances.tile(rows, 0, n, buffer) if distances.stored is None else distances.whole_rows(rows)
        near_pairs += count_near(tile, rows, limits)
    return int(1.1 * near_pairs / len(sample) * n) + 32 * n


def worthwhile(entries: int, n: int, room: int) -> bool:
    """Whether lists of that many entries are sparse enough, and fit into `room` bytes."""
    sparse = entries <= n * n / SPARSE_RATIO + 32 * n or n <= 4 * SPARSE_RATIO
    return sparse and entries * ENTRY_BYTES <= room


def build_from_upper(
    distances: Distances, nearest: NDArray[np.float32], limits: NDArray[np.float32], entries: int
) -> Lists | None:
    """The same from a stored upper triangle, on one thread."""
    matrix = distances.stored
    assert matrix is not None
    rows, columns = np.empty((2, entries // 2), np.int32)
    far = np.empty(entries // 2, np.float32)
    counts = np.zeros(distances.n, np.int64)
    found = pairs_from_upper(
        matrix, distances.x, distances.exact, distances.root, distances.factor, nearest, limits,
        rows, columns, far, counts,
    )  # fmt: skip
    if found < 0:
        return None
    begins = np.cumsum(counts) - counts
    ends = begins.copy()
    names, lengths = np.empty(2 * found, np.int32), np.empty(2 * found, np.float32)
    lists_from_pairs(rows[:found], columns[:found], far[:found], ends, names, lengths)
    return begins, ends, names, lengths


def build_lists(
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
            at = append_lists(
                tile, tile_rows, points, distances.x, distances.exact, distances.root, distances.factor,
                nearest, limits, begins, ends, names[room], lengths[room], at,
            )  # fmt: skip
            if at < 0:
                full.append(slot)
                return
            ticker.step(len(points) * n)

    run_in_threads(range(threads), work, threads, ticker)
    return None if full else (begins, ends, names, lengths)
