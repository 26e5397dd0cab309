"""Exact greedy facility location for one group.

Gains g_e = sum_i max(0, nearest_i - d_ie) are kept up to date instead of being computed again: a new medoid changes
`nearest` for few points, and each such point lowers the gains of the candidates around it.

1. One pass over all pairs finds the first medoid, a second one the gains after it. Both use approximate distances;
   what their error bound leaves open is settled exactly.
2. While medoids are few, each pick is settled exactly among the candidates that the bound leaves, and the rows of the
   points that came nearer are gone through.
3. As soon as the pairs that still matter fit into lists, they are kept with exact distances, and the rest of the picks
   works on the lists alone (`neighbours.py`). At a budget of half the points this is nearly all of them.
"""

import math

import numpy as np

from crust.selection import kernels, neighbours
from crust.selection.distances import Distances
from crust.selection.picks import FINER, Picks, magic_number
from crust.selection.workers import Ticker, spread

LIST_ENTRY = 8  # bytes: who (int32) and how far (float32)
SPARSE = 24  # lists pay off once they hold less than one pair in this many
LIST_ROWS = 32
SAMPLE = 64  # rows from which the size of the lists is estimated
PICKS_AT_ONCE = 4096


class Room:
    """Memory for a square of distances, kept from one group to the next: fresh pages cost more than the distances."""

    def __init__(self) -> None:
        self._room = np.empty(0, np.float32)

    def square(self, n: int) -> np.ndarray:
        if self._room.size < n * n:
            self._room = np.empty(n * n, np.float32)
        return self._room[: n * n].reshape(n, n)


class _TooManyCandidates(Exception):
    """The error bound leaves so much open that exact distances are cheaper."""


class Greedy:
    """The state of one greedy run over one group."""

    def __init__(
        self,
        distances: Distances,
        k: int,
        *,
        room: Room | None,
        list_bytes: int,
        threads: int,
        ticker: Ticker,
    ):
        """`room`: where all distances of the group may be kept."""
        self.distances, self.k, self.n = distances, k, distances.n
        self.room, self.list_bytes = room, list_bytes
        self.threads, self.ticker = threads, ticker
        self.order = np.empty(k, np.int64)
        self.order_gains = np.empty(k)
        self.picked = np.zeros(self.n, np.bool_)
        self.owner = np.zeros(self.n, np.int64)
        self.nearest = np.empty(self.n, np.float32)
        self.done = 0
        self.bound = self.magic = 0.0
        self.settled = 0  # candidates looked at exactly
        self.most_changes = 0

    def run(self) -> Picks:
        try:
            self._first()
            self._dense()
        except _TooManyCandidates:
            self.distances.make_exact()
            self.done, self.picked[:] = 0, False
            self._first()
            self._dense()
        return Picks(self.order, self.order_gains, self.owner, self.nearest)

    # ------------------------------------------------------------ the first medoid

    def _first(self) -> None:
        distances = self.distances
        row = distances.exact_row(0)
        widest = float(row.max()) if distances.matrix is None else float(distances.matrix_largest())
        magic = magic_number(self.n * widest * distances.bound_factor)
        sums, inverses, largest = self._sums(magic)
        if distances.exact:
            first, total, peak = int(sums.argmin()), float(sums.min()), float(largest.max())
        else:
            first, total, peak = self._settle_first(magic, sums, inverses, largest)
        self.nearest[:] = distances.exact_row(first)
        self.owner[:] = first
        self._take(first, self.n * peak - total)
        self.nearest[first] = 0.0
        self.changes = np.zeros(self.n, np.int32)
        self.inverses = inverses
        self._rescale()

    def _sums(self, magic: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row sums, sums of inverses and maxima, from one pass; stores the tiles where asked to."""
        distances, n = self.distances, self.n
        parts = [(np.zeros(n), np.zeros(n), np.zeros(n, np.float32)) for _ in range(self.threads)]
        floor = math.sqrt(distances.inverse)
        matrix = None
        if self.room is not None and distances.stored is None:
            matrix = self.room.square(n)

        def consume(tile, top, left, slot):
            sums, inverses, largest = parts[slot]
            if matrix is not None:
                kernels.mirror_store(tile, top, left, matrix)
            kernels.column_maxima(tile, left, largest)
            if distances.exact:
                kernels.exact_sums(tile, top, left, magic, sums)
                return
            kernels.loose_sums(tile, top, left, sums)
            if distances.inverse:
                kernels.invert(tile, floor)
                kernels.loose_sums(tile, top, left, inverses)

        distances.each_tile(consume, self.threads, self.ticker)
        if matrix is not None:
            distances.stored = matrix
        sums, inverses, largest = zip(*parts, strict=True)
        return sum(sums), sum(inverses), np.maximum.reduce(largest)

    def _settle_first(self, magic, sums, inverses, largest) -> tuple[int, float, float]:
        distances = self.distances
        error = (distances.relative + kernels.LOOSE_SUM) * sums + self.n * distances.shift + distances.inverse * inverses
        candidates = np.flatnonzero(sums - error <= (sums + error).min())
        self._count(len(candidates))
        exact = [kernels.snapped_sum(distances.exact_row(e), magic) for e in candidates]
        best = int(np.argmin(exact))
        peak = np.float32(0.0)
        top = largest.max()
        wide = distances.limits(np.array([top]))[0] - top  # an upper bound of the error at the far end
        for i in np.flatnonzero(largest >= top - 2 * wide):
            row = distances.row(i)
            far = np.flatnonzero(row >= top - 2 * wide).astype(np.int32)
            out = np.empty(len(far), np.float32)
            kernels.exact_pairs(distances.x, distances.x[i], far, distances.root, distances.factor, out)
            peak = max(peak, out.max(initial=0.0))
        return int(candidates[best]), float(exact[best]), float(peak)

    # ------------------------------------------------------------ few medoids: whole rows

    def _dense(self) -> None:
        check = 1
        while self.done < self.k and self.bound > 0.0:
            if self.done >= check:
                check = 2 * self.done
                if self.k - self.done > 3 * self.done and self._sparse():
                    return
            self._pick()
        self._finish_with_ties()

    def _pick(self) -> None:
        """One pick, or none where all points coincide with a medoid: then the bound is 0."""
        while True:
            e, gain, near = self._best()
            if gain > self.bound / (FINER * self.n):
                break
            self._rescale()
            if self.bound == 0.0:
                return
        self._take(e, gain)
        found, far = near if near is not None else self.distances.near(e, self.limits)
        changed = np.empty(len(found), np.int64)
        old, new = np.empty((2, len(found)), np.float32)
        count = kernels.update_nearest(
            found, far, e, self.picked, self.nearest, self.owner, changed, old, new
        )
        self.owner[e] = e
        self.changes[changed[:count]] += 1
        self.most_changes = int(self.changes.max())
        self.limits[changed[:count]] = self.distances.limits(new[:count])
        self._drop(changed[:count], old[:count], new[:count])

    def _drop(self, changed: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
        """Lower the gains of all candidates that the changed points would have come nearer to."""
        distances, gains, magic = self.distances, self.gains, self.magic

        def consume(tile, tile_rows, offset, part, columns):
            if distances.exact:
                kernels.drop_gains(tile, tile_rows, offset, old[part], new[part], magic, gains[columns])
            else:
                kernels.loose_drop(tile, tile_rows, offset, old[part], new[part], gains[columns])

        distances.each_strip(changed, consume, self.threads, self.ticker)

    def _best(self) -> tuple[int, float, tuple[np.ndarray, np.ndarray] | None]:
        gains = np.where(self.picked, -np.inf, self.gains)
        if self.distances.exact:
            e = int(gains.argmax())
            return e, float(gains[e]), None
        distances = self.distances
        # tiles that are computed anew may differ in the last bit, so each change of a point can add to the error
        times = 1 if distances.stored is not None else 2 + 2 * self.most_changes
        total = float(self.nearest.sum(dtype=np.float64))
        error = times * (
            (distances.relative + kernels.LOOSE_SUM) * total + self.n * distances.shift + distances.inverse * self.inverses
        )
        candidates = np.flatnonzero(gains + error >= (gains - error).max())
        self._count(len(candidates))
        best = (-1, -1.0, None)
        for e in candidates:
            found, far = distances.near(e, self.limits)
            gain = kernels.total_gain(self.nearest[found], far, self.magic)
            if gain > best[1]:
                best = (int(e), gain, (found, far))
        return best

    def _count(self, candidates: int) -> None:
        self.settled += candidates
        if self.settled > 64 + self.n // 4:
            raise _TooManyCandidates

    def _take(self, e: int, gain: float) -> None:
        self.order[self.done], self.order_gains[self.done] = e, gain
        self.picked[e] = True
        self.owner[e] = e
        self.done += 1

    def _rescale(self) -> None:
        """Choose the quantum of the sums by the largest distance left, and compute all gains with it."""
        self.bound = self.n * float(self.nearest.max())
        self.magic = magic_number(self.bound)
        if self.bound == 0.0:
            return
        self.limits = self.distances.limits(self.nearest)
        self.gains = np.zeros(self.n)
        if self.distances.stored is not None:
            self._gains_from_rows()
        else:
            self._gains_from_tiles()

    def _gains_from_rows(self) -> None:
        nearest, magic, gains, exact = self.nearest, self.magic, self.gains, self.distances.exact

        def consume(tile, tile_rows, offset, part, columns):
            if exact:
                kernels.add_gains(tile, tile_rows, offset, nearest[part], magic, gains[columns])
            else:
                kernels.loose_add(tile, tile_rows, offset, nearest[part], gains[columns])

        self.distances.each_strip(np.arange(self.n), consume, self.threads, self.ticker)

    def _gains_from_tiles(self) -> None:
        parts = [np.zeros(self.n) for _ in range(self.threads)]

        def consume(tile, top, left, slot):
            if self.distances.exact:
                kernels.mirror_gains(tile, top, left, self.nearest, self.magic, parts[slot])
            else:
                kernels.loose_gains(tile, top, left, self.nearest, parts[slot])

        self.distances.each_tile(consume, self.threads, self.ticker)
        self.gains = sum(parts)

    def _finish_with_ties(self) -> None:
        """All points coincide with a medoid: the lowest indices are next, and take over their own duplicates."""
        rest = np.flatnonzero(~self.picked)[: self.k - self.done]
        zero = self.distances.limits(np.zeros(self.n, np.float32))
        left_over = self.k < self.n
        for e in rest:
            self._take(int(e), 0.0)
            if left_over:
                found, far = self.distances.near(e, zero)
                same = found[(far == 0) & ~self.picked[found]]
                self.owner[same] = np.minimum(self.owner[same], e)
            self.ticker.step()

    # ------------------------------------------------------------ many medoids: neighbour lists

    def _sparse(self) -> bool:
        """Go on with neighbour lists to the end, if they fit; False if not."""
        n, distances = self.n, self.distances
        sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        tile = distances.tile(sample, 0, n, np.empty(len(sample) * n, np.float32))
        expected = neighbours.count_near(tile, sample, self.limits) / len(sample) * n
        if expected > n * n / SPARSE and n > 4 * SPARSE:
            return False
        capacity = int(1.25 * expected) + 64 * n
        if capacity * LIST_ENTRY > self.list_bytes:
            return False
        lists = self._build(capacity)
        if lists is None:
            return False
        gains = np.empty(n)
        neighbours.list_gains(*lists, self.nearest, self.picked, self.magic, gains)
        while self.done < self.k:
            self.ticker.step()
            stop = min(self.k, self.done + PICKS_AT_ONCE)
            self.done, state = neighbours.pick_from_lists(
                *lists, self.nearest, self.owner, self.picked, self.magic, self.bound / (FINER * n), gains,
                self.order, self.order_gains, self.done, stop,
            )
            if state == neighbours.RESCALE:
                self.bound = n * float(self.nearest.max())
                if self.bound == 0.0:
                    self._finish_with_ties()
                    break
                self.magic = magic_number(self.bound)
                neighbours.list_gains(*lists, self.nearest, self.picked, self.magic, gains)
        return True

    def _build(self, capacity: int) -> tuple[np.ndarray, ...] | None:
        """The neighbour lists as (begins, ends, names, lengths); None where they need more than `capacity`."""
        n, distances = self.n, self.distances
        begins, ends = np.zeros((2, n), np.int64)
        names, lengths = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        share = capacity // self.threads
        full = []

        def work(slot: int, _: int) -> None:
            first, last = n * slot // self.threads, n * (slot + 1) // self.threads
            at, room = slot * share, slice(0, (slot + 1) * share)
            buffer = np.empty(0 if distances.stored is not None else LIST_ROWS * n, np.float32)
            for top in range(first, last, LIST_ROWS):
                points = np.arange(top, min(last, top + LIST_ROWS))
                if distances.stored is not None:
                    tile, tile_rows = distances.stored, points
                else:
                    tile, tile_rows = distances.tile(points, 0, n, buffer), points - top
                at = neighbours.append_lists(
                    tile, tile_rows, points, distances.x, distances.exact, distances.root, distances.factor,
                    self.nearest, self.limits, begins, ends, names[room], lengths[room], at,
                )
                if at < 0:
                    full.append(slot)
                    return
                self.ticker.step(len(points) * n)

        spread(range(self.threads), work, self.threads, self.ticker)
        return None if full else (begins, ends, names, lengths)
