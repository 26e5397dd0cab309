"""Points by their medoid, farthest first: most of them are out of a candidate's reach.

A point i at distance r from its medoid m can only come nearer by a candidate e with d(e, m) < 2r: otherwise
d(e, i) >= d(e, m) - r >= r. So one distance to each medoid tells which few points of its cluster have to be looked at.
Later medoids only make r smaller, so the clusters of an earlier moment still serve.

Gains of candidates one by one: cheap upper bounds, and exact values where a bound could win.

A candidate's gain never rises while medoids are added, so what it was at an earlier pick is an upper bound. A tighter
one comes from approximate distances, each lowered by its possible error. Most candidates are ruled out by one or the
other; of the few that are left, the exact gain is computed.
"""

import math

import numpy as np

from crust.selection import kernels

# mypy: allow-untyped-defs, allow-incomplete-defs
from crust.selection.assignment import WORTH_THREADS
from crust.selection.distances import TILE_COLUMNS, UNIT, Distances
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.kernels import REFINE_RATIO, exact_kernel, exact_pairs, magic_number, snap, update_nearest


class Clusters:
    """The clusters of one moment of a selection.

    Args:
        distances: approximate ones, of points.
        rows: the points as `Distances` has them in float32, one a row.
        nearest: how far from its medoid each point is; may be the first few of the points only.
        owner: which medoid that is.
    """

    def __init__(self, distances: Distances, rows: np.ndarray, nearest: np.ndarray, owner: np.ndarray):
        self.distances, self.rows = distances, rows
        # all lengths here are in the unit of the rows
        unit = float(distances.scale) if distances.root else math.sqrt(float(distances.scale) / distances.factor)
        straight = nearest.astype(np.float64) if distances.root else np.sqrt(nearest / np.float64(distances.factor))
        self.order = np.lexsort((-straight, owner))
        self.reach = (straight[self.order] * ((1 + 1e-6) / unit)).astype(np.float32)
        starts = np.flatnonzero(np.diff(owner[self.order], prepend=-1))
        self.begins = np.append(starts, len(owner))
        self.medoids = rows[owner[self.order[starts]]]
        self._sorted: np.ndarray | None = None
        # half the smallest distance that an approximate one may stand for
        self.shrink = np.float32(0.5 * (1 - 1e-6) / (1 + relative_error(distances)))
        self.less = np.float32(1.01 * distances.move / unit)

    def share(self, candidates: np.ndarray) -> float:
        """The share of the points that these candidates have to look at."""
        seen = _count_pairs(self.rows, candidates, self.medoids, self.begins, self.reach, self.shrink, self.less)
        return float(seen) / (len(candidates) * len(self.order))

    @property
    def sorted(self) -> np.ndarray:
        """The rows of the points, cluster after cluster."""
        if self._sorted is None:
            self._sorted = self.rows[self.order]
        return self._sorted

    def bounds(self, candidates: np.ndarray, raised: np.ndarray, out: np.ndarray) -> None:
        """Upper bounds of the gains: sums of max(0, raised - distance)."""
        _cluster_bounds(
            self.rows, candidates, self.medoids, self.begins, self.reach, self.shrink, self.less, self.sorted,
            self.order, self.distances.root, self.distances.scale, raised, out,
        )  # fmt: skip

    def near(
        self, candidate: int, limits: np.ndarray, nearest: np.ndarray, magic: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The points within their limits, their exact distances, and the exact gain."""
        distances = self.distances
        found, far = np.empty(len(self.order), np.int32), np.empty(len(self.order), np.float32)
        count, gain = _near_clusters(
            self.rows, candidate, self.medoids, self.begins, self.reach, self.shrink, self.less, self.sorted,
            self.order, distances.root, distances.scale, distances.factor, distances.x, limits, nearest, magic,
            found, far,
        )  # fmt: skip
        return found[:count].copy(), far[:count].copy(), gain


def relative_error(distances: Distances) -> float:
    """Of a float32 distance from differences, whatever the number of dimensions (see `distances.py`)."""
    return 1.05 * (0.5 * distances.dims + 6.0) * UNIT


@kernels.fast_kernel
def _square(a, b):
    total = np.float32(0.0)
    for t in range(a.shape[0]):
        step = a[t] - b[t]
        total += step * step
    return total


@exact_kernel
def _count_pairs(rows, candidates, medoids, begins, reach, shrink, less):
    seen = 0
    for e in candidates:
        for c in range(medoids.shape[0]):
            half = math.sqrt(_square(rows[e], medoids[c])) * shrink - less
            t, end = begins[c], begins[c + 1]
            while t < end and reach[t] >= half:
                t += 1
            seen += t - begins[c]
    return seen


@exact_kernel
def _cluster_bounds(
    rows, candidates, medoids, begins, reach, shrink, less, sorted_rows, order, root, scale, raised, out
):
    for r in range(candidates.shape[0]):
        query = rows[candidates[r]]
        total = 0.0
        for c in range(medoids.shape[0]):
            half = math.sqrt(_square(query, medoids[c])) * shrink - less
            t, end = begins[c], begins[c + 1]
            while t < end and reach[t] >= half:
                square = _square(query, sorted_rows[t])
                far = (math.sqrt(square) if root else square) * scale
                total += max(np.float32(0.0), raised[order[t]] - far)
                t += 1
        out[r] = total


@exact_kernel
def _near_clusters(
    rows, candidate, medoids, begins, reach, shrink, less, sorted_rows, order, root, scale, factor, x, limits, nearest,
    magic, found, far,
):  # fmt: skip
    query = rows[candidate]
    count = 0
    for c in range(medoids.shape[0]):
        half = math.sqrt(_square(query, medoids[c])) * shrink - less
        t, end = begins[c], begins[c + 1]
        while t < end and reach[t] >= half:
            square = _square(query, sorted_rows[t])
            if (math.sqrt(square) if root else square) * scale <= limits[order[t]]:
                found[count] = order[t]
                count += 1
            t += 1
    exact_pairs(x, x[candidate], found[:count], root, factor, far)
    gain = 0.0
    for t in range(count):
        gain += max(0.0, snap(nearest[found[t]], magic) - snap(far[t], magic))
    return count, gain


TILE_CANDIDATES = 256  # candidates of one tile
FIRST_LOOK, SETTLE = 16, 4  # how many stale bounds are renewed, how many gains settled, in one go
CLUSTERED, GROWTH = 32, 1.2  # from how many medoids on, and how often, clusters are made
WORTH_CLUSTERS = 1 / 6  # of the points: above this share, all of them in tiles are looked at faster


class Gains:
    """Medoids picked one by one, by their gains over the first `points` points of a group.

    Args:
        distances: those of the group; candidates may be any of its points.
        widest: the largest distance of the group: how far from a medoid all points are before the first pick.
        points: how many count; all of them if None.
    """

    def __init__(self, distances: Distances, widest: float, *, points: int | None = None, threads: int, ticker: Ticker):
        n = distances.n
        self.distances, self.points = distances, n if points is None else points
        self.threads, self.ticker = threads, ticker
        self.nearest = np.full(self.points, widest, np.float32)
        self.owner = np.full(self.points, n, np.int64)
        self.picked = np.zeros(n, np.bool_)
        self.limits, self.raised = np.empty((2, self.points), np.float32)
        self.bounds = np.full(n, np.inf)  # nothing is known yet
        self.looked = np.full(n, -1, np.int64)  # at which pick the bound was last computed
        self.done = 0
        self._products = not distances.exact and not distances.few and distances.root
        self._buffers = np.empty((threads, TILE_CANDIDATES * min(self.points, TILE_COLUMNS)), np.float32)
        self._clusters: Clusters | None = None
        self._next_clusters = CLUSTERED
        self._rows: np.ndarray | None = None  # the points in float32, one a row
        self._see(slice(None))
        self._set_bound()

    def pick(self, candidates: np.ndarray) -> tuple[int, float]:
        """Take the best of the candidates (rising indices), the lowest among equals; returns it and its gain."""
        if self.done >= self._next_clusters and not self.distances.exact:
            self._make_clusters(candidates)
        if self.bound == 0.0:  # all points coincide with a medoid
            best, gain, near = int(candidates[0]), 0.0, self._settle(candidates[:1])[1]
        else:
            best, gain, near = self._best(candidates)
            if gain <= self.bound / (REFINE_RATIO * self.points) and self._rescale():
                best, gain, near = self._best(candidates)
        self._take(best, near[best])
        return best, gain

    def _best(self, candidates):
        bounds = self.bounds[candidates]
        unknown = candidates[bounds == np.inf]
        if len(unknown):
            self._look(unknown)
        best, gain = -1, -1.0
        near: dict[int, list] = {}
        settled = np.zeros(len(candidates), np.bool_)
        size = FIRST_LOOK
        while True:
            bounds = self.bounds[candidates]
            live = np.flatnonzero(~settled & ((bounds > gain) | ((bounds == gain) & (candidates < best))))
            if not len(live):
                return best, gain, near
            if len(live) > size:
                live = live[np.argpartition(-bounds[live], size)[:size]]
            live = live[np.argsort(-bounds[live], kind="stable")]
            stale = self.looked[candidates[live]] != self.done
            if stale[0]:
                self._look(candidates[live[stale]])
                size *= 2
                continue
            live = live[: min(SETTLE, int(stale.argmax()) if stale.any() else SETTLE)]
            settled[live] = True
            some = np.sort(candidates[live])
            gains, found = self._settle(some)
            self.bounds[some] = gains
            top = int(gains.argmax())
            if gains[top] > gain or (gains[top] == gain and some[top] < best):
                best, gain, near = int(some[top]), float(gains[top]), found

    # ------------------------------------------------------------ bounds

    def _look(self, candidates: np.ndarray) -> None:
        """Renew the upper bounds, from approximate distances."""
        for first in range(0, len(candidates), TILE_CANDIDATES):
            block = candidates[first : first + TILE_CANDIDATES]
            # the slack: gains are compared as sums of rounded distances
            sums = self._sums(block) if self._clusters is None else self._cluster_sums(block, self._clusters)
            upper = sums * (1 + 2 * kernels.SUM_ERROR) + 2 * self.slack
            self.bounds[block] = np.minimum(self.bounds[block], upper)
            self.looked[block] = self.done

    def _sums(self, some: np.ndarray) -> np.ndarray:
        distances = self.distances
        parts = np.zeros((self.threads, len(some)))
        if self._products:
            # taking the error off the squared distance costs nothing; a tenth more covers this very subtraction
            norms = distances.norms[some] - np.float32(1.1 * distances.squared / float(distances.scale) ** 2)
            rows = distances.y[some]

        def work(left: int, slot: int) -> None:
            columns = slice(left, min(self.points, left + TILE_COLUMNS))
            raised, buffer = self.raised[columns], self._buffers[slot]
            if self._products:
                tile = buffer[: len(some) * len(raised)].reshape(len(some), len(raised))
                np.matmul(rows, distances.y[columns].T, out=tile)
                _product_bounds(tile, norms, distances.norms[columns], distances.scale, raised, parts[slot])
            else:
                _add_gain_bounds(distances.tile(some, columns.start, columns.stop, buffer), raised, parts[slot])

        self._share_out(range(0, self.points, TILE_COLUMNS), work, len(some))
        return parts.sum(axis=0)

    def _cluster_sums(self, some: np.ndarray, clusters: Clusters) -> np.ndarray:
        sums = np.empty(len(some))

        def work(part: slice, slot: int) -> None:
            clusters.bounds(some[part], self.raised, sums[part])

        size = max(1, len(some) // (4 * self.threads))
        parts = [slice(first, first + size) for first in range(0, len(some), size)]
        self._share_out(parts, work, len(some))
        return sums

    def _settle(self, candidates: np.ndarray) -> tuple[np.ndarray, dict[int, list]]:
        """Exact gains, and for each candidate who is near it and how far, in pieces."""
        if self._clusters is not None:
            near, gains = {}, []
            for e in candidates.tolist():
                found, far, gain = self._clusters.near(e, self.limits, self.nearest, self.magic)
                near[e] = [(found, far)]
                gains.append(gain)
            return np.array(gains), near
        return self._settle_in_tiles(candidates)

    def _settle_in_tiles(self, candidates: np.ndarray) -> tuple[np.ndarray, dict[int, list]]:
        distances, m = self.distances, len(candidates)
        parts = np.zeros((self.threads, m))
        near: dict[int, list] = {int(e): [] for e in candidates}

        def work(left: int, slot: int) -> None:
            columns = slice(left, min(self.points, left + TILE_COLUMNS))
            tile = distances.tile(candidates, columns.start, columns.stop, self._buffers[slot])
            found, far = np.empty(tile.size + 1, np.int32), np.empty(tile.size, np.float32)
            ends = np.empty(m, np.int64)
            _near(
                tile, candidates, left, distances.x, distances.exact, distances.root, distances.factor, self.magic,
                self.limits[columns], self.nearest[columns], found, far, ends, parts[slot],
            )  # fmt: skip
            begin = 0
            for e, end in zip(candidates.tolist(), ends.tolist(), strict=True):
                if end > begin:
                    near[e].append((found[begin:end], far[begin:end]))
                begin = end

        self._share_out(range(0, self.points, TILE_COLUMNS), work, m)
        return parts.sum(axis=0), near

    def _share_out(self, units, work, rows: int) -> None:
        run_in_threads(units, work, self.threads if rows * self.points > WORTH_THREADS else 1, self.ticker)
        self.ticker.step(rows * self.points)

    # ------------------------------------------------------------ state

    def _take(self, e: int, pieces: list) -> None:
        self.picked[e] = True
        self.bounds[e] = -1.0
        self.done += 1
        for found, far in pieces:
            changed = np.empty(len(found), np.int64)
            old, new = np.empty((2, len(found)), np.float32)
            count = update_nearest(found, far, e, self.picked, self.nearest, self.owner, changed, old, new)
            self._see(changed[:count])
        if e < self.points:
            self.owner[e] = e

    def _see(self, where) -> None:
        """Bring up to date what follows from `nearest`.

        `limits`: approximate distances from here on leave a point where it is. `raised`: as far above `nearest` as an
        approximate distance can be above the exact one, where that is below `nearest`.
        """
        distances, nearest = self.distances, self.nearest[where]
        self.limits[where] = distances.limits(nearest)
        if distances.exact:
            self.raised[where] = nearest
            return
        if distances.root:
            relative, shift = max(distances.root_relative, relative_error(distances)), distances.move
        else:
            relative, shift = max(distances.relative, 2.1 * relative_error(distances)), distances.shift
        above = nearest + relative * self.limits[where].astype(np.float64) + shift
        self.raised[where] = np.nextafter((above * (1 + 4 * UNIT)).astype(np.float32), np.float32(np.inf))

    def _make_clusters(self, candidates: np.ndarray) -> None:
        """Sort the points into clusters, if these candidates would then have to look at few of them."""
        distances = self.distances
        if self._rows is None:
            self._rows = np.ascontiguousarray(distances.yt.T) if distances.few else distances.y
        clusters = Clusters(distances, self._rows, self.nearest, self.owner)
        few = candidates[:: max(1, len(candidates) // 16)]
        self._clusters = clusters if clusters.share(few) < WORTH_CLUSTERS else None
        self._next_clusters = int(GROWTH * self.done) + 1

    def _set_bound(self) -> None:
        self.bound = self.points * float(self.nearest.max())
        self.magic = magic_number(self.bound)
        self.slack = self.points * math.ulp(self.magic)

    def _rescale(self) -> bool:
        """A finer quantum, where the largest distance has fallen; bounds hold for it once they are raised."""
        before, slack = self.magic, self.slack
        self._set_bound()
        if self.magic == before:
            return False
        self.bounds += 2 * slack  # infinite ones stay so, and nobody asks for those of medoids
        self.looked[:] = -1
        return True


@kernels.fast_kernel
def _add_gain_bounds(tile, raised, gains):
    """Add the sums of max(0, raised - distance) of each row; up to 64 terms are added in float32."""
    zero = np.float32(0.0)
    width = tile.shape[1]
    whole = width // 64 * 64
    for r in range(tile.shape[0]):
        row = tile[r]
        total = np.float64(0.0)
        for begin in range(0, whole, 64):
            part = np.float32(0.0)
            for j in range(begin, begin + 64):
                part += max(zero, raised[j] - row[j])
            total += np.float64(part)
        for j in range(whole, width):
            total += np.float64(max(zero, raised[j] - row[j]))
        gains[r] += total


@kernels.fast_kernel
def _product_bounds(tile, row_norms, column_norms, scale, raised, gains):
    """The same from inner products."""
    zero, two = np.float32(0.0), np.float32(2.0)
    width = tile.shape[1]
    whole = width // 64 * 64
    for r in range(tile.shape[0]):
        row, norm = tile[r], row_norms[r]
        total = np.float64(0.0)
        for begin in range(0, whole, 64):
            part = np.float32(0.0)
            for j in range(begin, begin + 64):
                far = math.sqrt(max(zero, norm + column_norms[j] - two * row[j])) * scale
                part += max(zero, raised[j] - far)
            total += np.float64(part)
        for j in range(whole, width):
            far = math.sqrt(max(zero, norm + column_norms[j] - two * row[j])) * scale
            total += np.float64(max(zero, raised[j] - far))
        gains[r] += total


@exact_kernel
def _near(tile, candidates, left, x, exact, root, factor, magic, limits, nearest, found, far, ends, gains):
    """For each row the points within their limit, with their exact distances, and the exact gain."""
    width = tile.shape[1]
    at = 0
    for r in range(tile.shape[0]):
        row = tile[r]
        begin = at
        for j in range(width):
            found[at] = left + j
            at += row[j] <= limits[j]
        if exact:
            for t in range(begin, at):
                far[t] = row[found[t] - left]
        else:
            exact_pairs(x, x[candidates[r]], found[begin:at], root, factor, far[begin:at])
        total = 0.0
        for t in range(begin, at):
            total += max(0.0, snap(nearest[found[t] - left], magic) - snap(far[t], magic))
        gains[r] += total
        ends[r] = at
