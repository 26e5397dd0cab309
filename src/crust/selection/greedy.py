"""Exact greedy facility location for one group.

Gains g_e = sum_i max(0, nearest_i - d_ie) are kept up to date instead of being computed again: a new medoid changes
`nearest` for few points, and each such point lowers the gains of the candidates around it.

1. One pass over all pairs finds the first medoid, a second one the gains after it. Both use approximate distances;
   what their error bound leaves open is settled exactly.
2. While medoids are few, each pick is settled exactly among the candidates that the bound leaves, and the rows of the
   points that came nearer are gone through.
3. As soon as the pairs that still matter fit into lists, they are kept with exact distances, and the rest of the picks
   works on the lists alone (`neighbour_lists.py`). At a budget of half the points this is nearly all of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crust.selection import kernels, neighbour_lists
from crust.selection.assignment import Picks
from crust.selection.distances import Distances
from crust.selection.executors import Ticker
from crust.selection.kernels import REFINE_RATIO, magic_number

PICKS_AT_ONCE = 4096

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


class Room:
    """Memory for a square of distances, kept from one group to the next: fresh pages cost more than the distances."""

    def __init__(self) -> None:
        self._room = np.empty(0, np.float32)

    def square(self, n: int) -> NDArray[np.float32]:
        if self._room.size < n * n:
            self._room = np.empty(n * n, np.float32)
        return self._room[: n * n].reshape(n, n)


class _TooManyCandidates(Exception):
    """The error bound leaves so much open that exact distances are cheaper."""


class Greedy:
    """The state of one greedy run over one group."""

    def __init__(
        self, distances: Distances, k: int, *, room: Room | None, list_bytes: int, threads: int, ticker: Ticker
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
        widest = float(row.max()) if distances.matrix is None else distances.matrix_largest()
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

    def _sums(self, magic: float) -> tuple[Floats, Floats, Floats]:
        """Row sums, sums of inverses and maxima, from one pass; keeps the tiles where there is room."""
        distances, n = self.distances, self.n
        sums, inverses = np.zeros((2, self.threads, n))
        largest = np.zeros((self.threads, n), np.float32)
        square = self.room.square(n) if self.room is not None else None
        floor = math.sqrt(distances.inverse)

        def consume(tile: Floats, top: int, left: int, slot: int) -> None:
            kernels.column_maxima(tile, left, largest[slot])
            if distances.exact:
                kernels.exact_sums(tile, top, left, magic, sums[slot])
                return
            kernels.mirror_sums(tile, top, left, sums[slot])
            if distances.inverse:
                kernels.invert(tile, floor)
                kernels.mirror_sums(tile, top, left, inverses[slot])

        distances.each_tile(consume, self.threads, self.ticker, square)
        distances.stored, distances.mirrored = square, False
        return sums.sum(axis=0), inverses.sum(axis=0), largest.max(axis=0)

    def _settle_first(self, magic: float, sums: Floats, inverses: Floats, largest: Floats) -> tuple[int, float, float]:
        """The first medoid, its sum and the largest distance, exactly."""
        distances = self.distances
        error = (
            (distances.relative + kernels.SUM_ERROR) * sums + self.n * distances.shift + distances.inverse * inverses
        )
        candidates = np.flatnonzero(sums - error <= (sums + error).min()).tolist()
        self._count(len(candidates))
        exact = [kernels.snapped_sum(distances.exact_row(e), magic) for e in candidates]
        best = int(np.argmin(exact))
        top = largest.max()
        least = top - 3 * (distances.limits(np.array([top]))[0] - top)  # whoever is below cannot be the farthest
        peak = 0.0
        for i in np.flatnonzero(largest >= least).tolist():
            far = np.flatnonzero(distances.row(i) >= least).astype(np.int32)
            peak = max(peak, float(distances.exact_to(i, far).max(initial=0.0)))
        return candidates[best], float(exact[best]), peak

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
        e, gain, near = self._best()
        while gain <= self._least_gain():
            self._rescale()
            if self.bound == 0.0:
                return
            e, gain, near = self._best()
        self._take(e, gain)
        found, far = near if near is not None else self.distances.near(e, self.limits)
        changed = np.empty(len(found), np.int64)
        old, new = np.empty((2, len(found)), np.float32)
        count = kernels.update_nearest(found, far, e, self.picked, self.nearest, self.owner, changed, old, new)
        changed, old, new = changed[:count], old[:count], new[:count]
        self.owner[e] = e
        self.changes[changed] += 1
        self.limits[changed] = self.distances.limits(new)
        self._drop(changed, old, new)

    def _drop(self, changed: Ints, old: Floats, new: Floats) -> None:
        """Lower the gains of all candidates that the changed points would have come nearer to."""
        gains, magic, exact = self.gains, self.magic, self.distances.exact

        def consume(tile: Floats, tile_rows: Ints, offset: int, part: slice, columns: slice) -> None:
            if exact:
                kernels.drop_gains(tile, tile_rows, offset, old[part], new[part], magic, gains[columns])
            else:
                kernels.drop_approximate_gains(tile, tile_rows, offset, old[part], new[part], gains[columns])

        self.distances.each_strip(changed, consume, self.threads, self.ticker)

    def _best(self) -> tuple[int, float, tuple[Ints, Floats] | None]:
        """The best candidate, its exact gain and, where they had to be found, the points near it."""
        gains = np.where(self.picked, -np.inf, self.gains)
        if self.distances.exact:
            e = int(gains.argmax())
            return e, float(gains[e]), None
        error = self._gain_errors()
        candidates = np.flatnonzero(gains + error >= (gains - error).max()).tolist()
        self._count(len(candidates))
        best, best_gain, best_near = -1, -1.0, None
        for e in candidates:
            near = self.distances.near(e, self.limits)
            gain = kernels.total_gain(self.nearest[near[0]], near[1], self.magic)
            if gain > best_gain:
                best, best_gain, best_near = e, float(gain), near
        return best, best_gain, best_near

    def _gain_errors(self) -> Floats:
        """How far each approximate gain can be from the exact one."""
        distances = self.distances
        # tiles that are computed anew may differ in the last bit, so each change of a point can add to the error
        times = 1 if distances.stored is not None else 2 + 2 * int(self.changes.max())
        fixed = (distances.relative + kernels.SUM_ERROR) * self.total + self.n * distances.shift
        return times * (fixed + distances.inverse * self.inverses)

    def _count(self, candidates: int) -> None:
        self.settled += candidates
        if self.settled > 64 + self.n // 4:
            raise _TooManyCandidates

    def _take(self, e: int, gain: float) -> None:
        self.order[self.done], self.order_gains[self.done] = e, gain
        self.picked[e] = True
        self.owner[e] = e
        self.done += 1

    def _least_gain(self) -> float:
        """Below this the sums need a finer quantum."""
        return self.bound / (REFINE_RATIO * self.n)

    def _new_bound(self) -> None:
        self.bound = self.n * float(self.nearest.max())
        self.magic = magic_number(self.bound)

    def _rescale(self) -> None:
        """Choose the quantum of the sums by the largest distance left, and compute all gains with it."""
        self._new_bound()
        if self.bound == 0.0:
            return
        distances, nearest, magic = self.distances, self.nearest, self.magic
        self.total = float(nearest.sum(dtype=np.float64))
        self.limits = distances.limits(nearest)
        parts = np.zeros((self.threads, self.n))

        def consume(tile: Floats, top: int, left: int, slot: int) -> None:
            if distances.exact:
                kernels.mirror_gains(tile, top, left, nearest, magic, parts[slot])
            else:
                kernels.mirror_approximate_gains(tile, top, left, nearest, parts[slot])

        distances.each_tile(consume, self.threads, self.ticker)
        self.gains = parts.sum(axis=0)

    def _finish_with_ties(self) -> None:
        """All points coincide with a medoid: the lowest indices are next, and take over their own duplicates."""
        rest = np.flatnonzero(~self.picked)[: self.k - self.done]
        zero = self.distances.limits(np.zeros(self.n, np.float32))
        left_over = self.k < self.n
        for e in rest.tolist():
            self._take(e, 0.0)
            if left_over:
                found, far = self.distances.near(e, zero)
                same = found[(far == 0) & ~self.picked[found]]
                self.owner[same] = np.minimum(self.owner[same], e)
            self.ticker.step()

    # ------------------------------------------------------------ many medoids: neighbour lists

    def _sparse(self) -> bool:
        """Go on with neighbour lists to the end, if they fit; False if not."""
        entries = neighbour_lists.capacity(self.distances, self.limits)
        if not neighbour_lists.worthwhile(entries, self.n, self.list_bytes):
            return False
        fits = entries * neighbour_lists.ENTRY_FROM_UPPER <= self.list_bytes
        if fits and self.threads == 1 and self.distances.stored is not None and not self.distances.mirrored:
            built = neighbour_lists.build_from_upper(self.distances, self.nearest, self.limits, entries)
        else:
            built = neighbour_lists.build_lists(
                self.distances, self.nearest, self.limits, entries, self.threads, self.ticker
            )
        if built is None:
            return False
        neighbour_lists.list_gains(*built, self.nearest, self.picked, self.magic, self.gains)
        while self.done < self.k:
            self.ticker.step()
            self.done, state = neighbour_lists.pick_from_lists(
                *built, self.nearest, self.owner, self.picked, self.magic, self._least_gain(), self.gains,
                self.order, self.order_gains, self.done, min(self.k, self.done + PICKS_AT_ONCE),
            )  # fmt: skip
            if state == neighbour_lists.RESCALE:
                self._new_bound()
                if self.bound == 0.0:
                    self._finish_with_ties()
                    break
                neighbour_lists.list_gains(*built, self.nearest, self.picked, self.magic, self.gains)
        return True
