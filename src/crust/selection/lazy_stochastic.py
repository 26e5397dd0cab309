"""Two classics: lazy greedy, which gives the exact greedy answer, and stochastic greedy, which looks at samples.

References:
    Minoux: Accelerated greedy algorithms for maximizing submodular set functions (1978).
    Mirzasoleiman, Badanidiyuru, Karbasi, Vondrák, Krause: Lazier than lazy greedy (2015).
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

import math

import numpy as np

from crust.selection import kernels
from crust.selection.assignment import Picks, diameter
from crust.selection.distances import Distances
from crust.selection.executors import Ticker
from crust.selection.greedy import Room
from crust.selection.kernels import BLOCK, LEAF, REFINE_RATIO, exact_block, exact_kernel, magic_number, snap
from crust.selection.marginal_gains import Gains

PICKS_AT_ONCE = 64
DONE, RESCALE, NEEDS_ROW = 0, 1, 2


def stochastic(
    distances: Distances, k: int, *, epsilon: float, rng: np.random.Generator, threads: int, ticker: Ticker
) -> Picks:
    """Greedy where every pick is the best of a random sample of the points that are left.

    With samples of n / k * ln(1 / epsilon) points the expected value is at least 1 - 1/e - epsilon of the optimum's.
    """
    n = distances.n
    size = math.ceil(n / k * math.log(1 / epsilon))
    gains = Gains(distances, diameter(distances, threads=threads, ticker=ticker), threads=threads, ticker=ticker)
    order, order_gains = np.empty(k, np.int64), np.empty(k)
    for step in range(k):
        rest = np.flatnonzero(~gains.picked)
        sample = rest if size >= len(rest) else np.sort(rng.choice(rest, size, replace=False, shuffle=False))
        order[step], order_gains[step] = gains.pick(sample)
    return Picks(order, order_gains, gains.owner, gains.nearest)


def lazy(distances: Distances, k: int, *, threads: int, ticker: Ticker, room: Room | None = None) -> Picks:
    """Exact greedy that computes a gain again only where its last value could still be the largest.

    Approximate distances are made exact. All of the group may be kept in `room`. The picks themselves follow one
    another: threads share only the passes over all pairs.
    """
    if not distances.exact:
        distances.make_exact()
    n = distances.n
    run = Lazy(distances, threads, ticker)
    first, gain = run.first(room)
    order, gains = np.empty(k, np.int64), np.empty(k)
    order[0], gains[0] = first, gain
    run.picked[first] = True
    run.start(distances.exact_row(first), np.full(n, first, np.int64))
    run.pick(order, gains, 1)
    return Picks(order, gains, run.owner, run.nearest)


class Lazy:
    """The state of one lazy run: stale gains as upper bounds, and who is nearest to whom."""

    def __init__(self, distances: Distances, threads: int, ticker: Ticker):
        self.distances, self.n = distances, distances.n
        self.threads, self.ticker = threads, ticker
        self.picked = np.zeros(self.n, np.bool_)

    def first(self, room: Room | None) -> tuple[int, float]:
        """The point with the smallest sum of distances, and its gain; keeps all distances where there is room."""
        distances, n = self.distances, self.n
        widest = float(distances.exact_row(0).max()) if distances.matrix is None else float(distances.matrix_largest())
        magic = magic_number(n * widest * distances.bound_factor)
        parts = [(np.zeros(n), np.zeros(n, np.float32)) for _ in range(self.threads)]
        square = room.square(n) if room is not None and distances.stored is None else None

        def consume(tile, top, left, slot):
            sums, largest = parts[slot]
            kernels.exact_sums(tile, top, left, magic, sums)
            kernels.column_maxima(tile, left, largest)
            if square is not None:
                kernels.store(tile, top, left, square)

        distances.each_tile(consume, self.threads, self.ticker)
        if square is not None:
            distances.stored, distances.mirrored = square, False
            distances.full()
        sums = np.sum([part[0] for part in parts], axis=0)
        peak = max(float(part[1].max()) for part in parts)
        best = int(sums.argmin())
        return best, n * peak - float(sums[best])

    def start(self, nearest: np.ndarray, owner: np.ndarray) -> None:
        """Go on from the medoids there are, and compute all gains once."""
        self.nearest, self.owner = nearest, owner
        self._set_bound()
        parts = [np.zeros(self.n) for _ in range(self.threads)]

        def consume(tile, top, left, slot):
            kernels.mirror_gains(tile, top, left, self.nearest, self.magic, parts[slot])

        if self.bound > 0.0:
            self.distances.each_tile(consume, self.threads, self.ticker)
        self.bounds = np.where(self.picked, -1.0, np.sum(parts, axis=0))

    def pick(self, order: np.ndarray, gains: np.ndarray, done: int) -> None:
        """Fill `order` and `gains` from pick number `done` on."""
        distances, n, k = self.distances, self.n, len(order)
        looked = np.full(n, -1, np.int64)  # at which pick a gain was last computed
        has_stored, has_points = distances.stored is not None, distances.matrix is None
        stored = np.asarray(distances.stored) if has_stored else np.empty((0, 0), np.float32)
        xt = distances.xt if has_points and not has_stored else np.empty((0, 0))
        row, owner_of_row = np.empty(n, np.float32), -1
        while done < k and self.bound > 0.0:
            stop = min(k, done + PICKS_AT_ONCE)
            done, state, e, looks, owner_of_row = _lazy_picks(
                stored, distances.x, xt, has_stored, has_points, distances.root, distances.factor, row, owner_of_row,
                self.nearest, self.owner, self.picked, self.magic, self.bound / (REFINE_RATIO * n), self.bounds, looked,
                order, gains, done, stop,
            )  # fmt: skip
            self.ticker.step(looks * n)
            if state == NEEDS_ROW:
                row[:], owner_of_row = distances.row(e), e
            elif state == RESCALE:
                slack = n * math.ulp(self.magic)
                self._set_bound()
                self.bounds[~self.picked] += 2 * slack  # they are sums of rounded numbers, now rounded more finely
                looked[:] = -1
        if done < k:
            self._finish_with_ties(order, gains, done)

    def _set_bound(self) -> None:
        self.bound = self.n * float(self.nearest.max())
        self.magic = magic_number(self.bound)

    def _finish_with_ties(self, order: np.ndarray, gains: np.ndarray, done: int) -> None:
        """All points coincide with a medoid: the lowest indices are next, and take over their own duplicates."""
        rest = np.flatnonzero(~self.picked)[: len(order) - done]
        order[done:], gains[done:] = rest, 0.0
        for e in rest:
            self.picked[e], self.owner[e] = True, e
            if len(order) < self.n:
                same = (self.distances.row(e) == 0) & ~self.picked
                self.owner[same] = np.minimum(self.owner[same], e)
            self.ticker.step()


@kernels.fast_kernel
def total(values):
    """A sum in any order: for numbers that add up exactly."""
    result = 0.0
    for j in range(values.shape[0]):
        result += values[j]
    return result


@exact_kernel
def gain_of_row(row, nearest, magic, terms):
    """Sum of max(0, nearest - distance) over one row."""
    gain = 0.0
    for left in range(0, row.shape[0], BLOCK):
        right = min(row.shape[0], left + BLOCK)
        here, there = row[left:right], nearest[left:right]
        for j in range(right - left):
            terms[j] = max(0.0, snap(there[j], magic) - snap(here[j], magic))
        gain += total(terms[: right - left])
    return gain


@exact_kernel
def _come_nearer(row, e, picked, nearest, owner):
    for j in range(row.shape[0]):
        if row[j] < nearest[j]:
            nearest[j] = row[j]
            owner[j] = e
        elif row[j] == nearest[j] and e < owner[j] and not picked[j]:
            owner[j] = e


@exact_kernel
def _peak(bounds, leaf):
    top = -1.0
    for j in range(leaf * LEAF, min(bounds.shape[0], leaf * LEAF + LEAF)):
        top = max(top, bounds[j])
    return top


@exact_kernel
def _lazy_picks(
    stored, x, xt, has_stored, has_points, root, factor, row, owner_of_row,
    nearest, owner, picked, magic, threshold, bounds, looked, order, gains, done, stop,
):  # fmt: skip
    """Pick from number `done` to `stop`; returns (picks done, state, candidate, gains computed, whose row is in `row`).

    Of equal bounds the lowest index is looked at first: it may still turn out to have the larger claim.
    RESCALE: the best gain fell to `threshold`, below which sums need a finer quantum. NEEDS_ROW: the caller has to
    fill `row` with the distances of the candidate.
    """
    n = bounds.shape[0]
    leaves = (n + LEAF - 1) // LEAF
    peaks = np.empty(leaves)
    for leaf in range(leaves):
        peaks[leaf] = _peak(bounds, leaf)
    sums = np.empty(BLOCK)
    looks = 0
    while done < stop:
        leaf = 0
        for other in range(1, leaves):
            if peaks[other] > peaks[leaf]:
                leaf = other
        e = leaf * LEAF
        while bounds[e] != peaks[leaf]:
            e += 1
        fresh = looked[e] == done
        if fresh and bounds[e] <= threshold:
            return done, RESCALE, e, looks, owner_of_row
        if not has_stored and owner_of_row != e:
            if not has_points:
                return done, NEEDS_ROW, e, looks, owner_of_row
            for left in range(0, n, BLOCK):
                right = min(n, left + BLOCK)
                exact_block(xt, x[e], left, right, root, factor, sums, row[left:right])
            owner_of_row = e
        if fresh:
            order[done] = e
            gains[done] = bounds[e]
            picked[e] = True
            if has_stored:
                _come_nearer(stored[e], e, picked, nearest, owner)
            else:
                _come_nearer(row, e, picked, nearest, owner)
            owner[e] = e
            bounds[e] = -1.0
            done += 1
        else:
            if has_stored:
                bounds[e] = gain_of_row(stored[e], nearest, magic, sums)
            else:
                bounds[e] = gain_of_row(row, nearest, magic, sums)
            looked[e] = done
            looks += 1
        peaks[leaf] = _peak(bounds, leaf)
    return done, DONE, -1, looks, owner_of_row
