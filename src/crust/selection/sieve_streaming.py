"""Sieves for a stream: each keeps what gains enough on a fixed set of measured points.

For a guess v of the best value that r picks can have, a sieve takes every point that gains at least v / 2r, until it
has r. If v is right, it ends with at least v / 2: either it is full, or whatever the best picks would still add is
below the threshold, r times. Guesses are powers of 1 + epsilon, so one of them is nearly right.

`sieve`, on arrays: gains are measured on a uniform sample. The first medoid is the point most central to it, and the
sieves choose the rest by what it adds. With F(S) the sum over the sample of d0 - d(i, S), d0 the largest distance, the
choice has at least 1/2 - epsilon of the best F that k points can have: the first alone has 1/k of it, and the sieves
bring at least 1/2 - epsilon of what the best k - 1 others add.

`sieve_stream`, of a stream that is read once and never kept: gains are measured on a reservoir, a uniform sample of
all points so far (algorithm R), and the choice between the sieves on the final one. Where the whole stream fits the
reservoir this is `sieve`, with its bound. In a longer one the bound holds for points in random order, up to the
sampling error: a stream that changes on its way has its first choices measured on what came before.

References:
    Badanidiyuru, Mirzasoleiman, Karbasi, Krause: Streaming submodular maximization (2014).
    Kazemi, Mitrovic, Zadimoghaddam, Lattanzi, Karbasi: Submodular streaming in all its glory (2019): the constant
    threshold, and guesses below what is reached already need no sieve.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.selection import input_checks, kernels
from crust.selection.assignment import WORTH_THREADS, Picks, complete, diameter, part_of
from crust.selection.distances import Distances, as_float64, directions
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.input_checks import check_options
from crust.selection.kernels import BLOCK, exact_kernel, magic_number, snapped_sum
from crust.selection.lazy_stochastic import Lazy, gain_of_row


@dataclass
class Sieve:
    """One guess: what it took, and how near that is to the measured points."""

    threshold: float
    nearest: NDArray[np.float32]
    picks: list[int] = field(default_factory=list)
    value: float = 0.0


class Sieves:
    """All sieves of one stream; gains count from `base`, the measured points' distances to the first medoid."""

    def __init__(self, base: NDArray[np.float32], room: int, epsilon: float, threads: int, ticker: Ticker):
        self.room, self.epsilon, self.threads, self.ticker = room, epsilon, threads, ticker
        self.sieves: dict[int, Sieve] = {}  # by the exponent of the guess
        self.top = 0.0  # the largest gain that any point had by itself
        self._measure(base)

    def _measure(self, base: NDArray[np.float32]) -> None:
        self.base = base
        self.magic = magic_number(len(base) * float(base.max()))
        self.whole = float(snapped_sum(base, self.magic))  # no choice can gain more

    def offer(self, tile: NDArray[np.float32], first: int) -> None:
        """Show the points first, first + 1, ... of the stream: one row each, their distances to the measured points."""
        if self.room == 0 or self.whole == 0.0:
            return
        gains = np.maximum.accumulate(np.maximum(_single_gains(tile, self.base, self.magic), self.top))
        self.top = float(gains[-1])
        if self.top == 0.0:
            return
        lowest = self._exponent(max(self.top, self._reached()))
        highest = self._exponent(min(2 * self.room * self.top, self.whole))
        begins = dict.fromkeys(self.sieves, 0)
        for exponent in range(lowest, highest + 1):
            if exponent not in self.sieves:
                threshold = (1 + self.epsilon) ** exponent / (2 * self.room)
                self.sieves[exponent] = Sieve(threshold, self.base.copy())
                begins[exponent] = int(np.searchsorted(gains, threshold))  # none before gains enough even by itself
        self._fill(tile, first, begins)
        # what the optimum surely exceeds is no guess any more; the best choice so far stays
        floor, best = self._exponent(max(self.top, self._reached())), self.best()
        self.sieves = {e: sieve for e, sieve in self.sieves.items() if e >= floor or sieve is best}

    def _fill(self, tile: NDArray[np.float32], first: int, begins: dict[int, int]) -> None:
        def work(exponent: int, slot: int) -> None:
            sieve = self.sieves[exponent]
            left = self.room - len(sieve.picks)
            taken = np.empty(min(left, len(tile)), np.int64)
            count, gain = _take(tile, begins[exponent], sieve.threshold, sieve.nearest, self.magic, taken)
            sieve.picks += (first + taken[:count]).tolist()
            sieve.value += gain

        busy = [exponent for exponent, sieve in self.sieves.items() if len(sieve.picks) < self.room]
        threads = self.threads if tile.size * len(busy) > WORTH_THREADS else 1
        run_in_threads(busy, work, threads, self.ticker)

    def _exponent(self, value: float) -> int:
        return math.floor(math.log(value) / math.log1p(self.epsilon))

    def _reached(self) -> float:
        return max((sieve.value for sieve in self.sieves.values()), default=0.0)

    def best(self) -> Sieve:
        """The sieve with the largest value; an empty one if none took anything."""
        ranked = sorted(self.sieves.items(), key=lambda item: (-item[1].value, item[0]))
        return ranked[0][1] if ranked else Sieve(0.0, self.base.copy())

    def replace(self, slots: NDArray[np.int64], base: NDArray[np.float32], far: dict[int, NDArray[np.float32]]) -> None:
        """Other points are measured in these slots from now on; `far` has each pick's distances to them."""
        changed = self.base.copy()
        changed[slots] = base
        self._measure(changed)
        for sieve in self.sieves.values():
            nearest = base.copy()
            for pick in sieve.picks:
                np.minimum(nearest, far[pick], out=nearest)
            sieve.nearest[slots] = nearest
            sieve.value = self.whole - float(snapped_sum(sieve.nearest, self.magic))


@exact_kernel
def _single_gains(tile, base, magic):
    terms, out = np.empty(BLOCK), np.empty(tile.shape[0])
    for r in range(tile.shape[0]):
        out[r] = gain_of_row(tile[r], base, magic, terms)
    return out


@exact_kernel
def _take(tile, begin, threshold, nearest, magic, taken):
    """Take the rows that gain enough, as long as there is room; returns how many, and what they gain together."""
    terms = np.empty(BLOCK)
    count, total = 0, 0.0
    for r in range(begin, tile.shape[0]):
        if count == taken.shape[0]:
            break
        gain = gain_of_row(tile[r], nearest, magic, terms)
        if gain >= threshold:
            taken[count] = r
            count += 1
            total += gain
            for j in range(nearest.shape[0]):
                nearest[j] = min(nearest[j], tile[r, j])
    return count, total


RESERVOIR = 2000
AT_ONCE = 512  # points shown to the sieves in one go
SPLIT = 64  # points a thread takes from them


def sieve(
    distances: Distances,
    k: int,
    *,
    epsilon: float,
    rng: np.random.Generator,
    threads: int,
    ticker: Ticker,
    reservoir: int = RESERVOIR,
) -> Picks:
    """Pick k points in one pass over them, then assign all points in a second one.

    Where the sieves end with fewer than k, greedy on the sample picks more of its points, then chance any others.
    """
    n = distances.n
    measured = np.sort(rng.choice(n, min(n, reservoir), replace=False))
    widest = diameter(distances, threads=threads, ticker=ticker)
    magic = magic_number(len(measured) * widest)
    sums = np.empty(n)
    tiles = _Tiles(distances, measured, threads, ticker)
    for left, tile in tiles:
        sums[left : left + len(tile)] = [kernels.snapped_sum(row, magic) for row in tile]
    first = int(sums.argmin())
    sieves = Sieves(tiles.rows(np.array([first]))[0], k - 1, epsilon, threads, ticker)
    for left, tile in tiles:
        sieves.offer(tile, left)
    best = sieves.best()
    order = [first, *best.picks]
    sample = part_of(distances, measured, approximate=False)
    order += measured[fill_up(sample, best.nearest, np.isin(measured, order), k - len(order), ticker)].tolist()
    if len(order) < k:
        rest = np.setdiff1d(np.arange(n), order)
        order += rng.choice(rest, k - len(order), replace=False).tolist()
    return complete(distances, np.array(order), widest, threads=threads, ticker=ticker)


class _Tiles:
    """Exact distances from all points of a group to the measured ones, a block of points at a time."""

    def __init__(self, distances: Distances, measured: NDArray[np.int64], threads: int, ticker: Ticker):
        self.distances, self.measured, self.threads, self.ticker = distances, measured, threads, ticker
        if distances.matrix is None:
            self.targets = np.ascontiguousarray(distances.x[measured].T)

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        distances = self.distances
        if distances.matrix is None:
            return exact_between(distances, distances.x[rows], self.targets, self.threads, self.ticker)
        out = np.empty((len(rows), len(self.measured)), np.float32)
        wanted, columns = rows[:, None], self.measured
        if distances.index is not None:
            wanted, columns = distances.index[wanted], distances.index[columns]
        out[:] = distances.matrix[np.minimum(wanted, columns), np.maximum(wanted, columns)]
        return out

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for left in range(0, self.distances.n, AT_ONCE):
            yield left, self.rows(np.arange(left, min(self.distances.n, left + AT_ONCE)))


def exact_between(
    distances: Distances, points: NDArray[np.float64], targets: NDArray[np.float64], threads: int, ticker: Ticker
) -> NDArray[np.float32]:
    """Exact distances from points (rows) to targets (columns)."""
    m = targets.shape[1]
    out = np.empty((len(points), m), np.float32)

    def work(first: int, slot: int) -> None:
        rows = np.arange(first, min(len(points), first + SPLIT))
        kernels.exact_tile(points, targets, rows, 0, m, distances.root, distances.factor, out[rows[0] : rows[-1] + 1])
        ticker.step(len(rows) * m)

    run_in_threads(range(0, len(points), SPLIT), work, threads if out.size * len(targets) > 2**20 else 1, ticker)
    return out


def fill_up(
    sample: Distances, nearest: NDArray[np.float32], picked: NDArray[np.bool_], count: int, ticker: Ticker
) -> NDArray[np.int64]:
    """Up to `count` more points of the sample, by greedy."""
    order = np.empty(min(count, int((~picked).sum())), np.int64)
    if len(order):
        run = Lazy(sample, 1, ticker)
        run.picked[:] = picked
        run.start(nearest.copy(), np.zeros(sample.n, np.int64))
        run.pick(order, np.empty(len(order)), 0)
    return order


@dataclass(frozen=True, eq=False)
class StreamPicks:
    """What `sieve_stream` chose: the vectors, and where in the stream they were.

    Args:
        vectors: (k, d) float64, in the order they were picked.
        positions: int64, the position of each in the stream, counted from 0.

    Example:
        >>> StreamPicks(np.array([[0.5]]), np.array([7])).positions.tolist()
        [7]
    """

    vectors: NDArray[np.float64]
    positions: NDArray[np.int64]


def sieve_stream(
    chunks: Iterable[Any],
    k: int,
    *,
    epsilon: float = 0.1,
    reservoir: int = RESERVOIR,
    metric: str = "euclidean",
    seed: int = 0,
    threads: int = 1,
) -> StreamPicks:
    """Choose k representative points of a stream that is read once and never kept.

    Memory holds the reservoir (at least k points), and for each of about ln(2k) / epsilon guesses up to k points.

    Args:
        chunks: 2-D arrays or tensors, one row a point; of any sizes, which make no difference.
        k: how many to choose, a count.
        epsilon: how far the choice may fall short of half the best value, as a share of it.
        reservoir: how many points the gains are measured on.
        metric: `euclidean`, `sqeuclidean` or `cosine`.
        seed: for the reservoir.
        threads: how many may work at once.

    Returns:
        The vectors and their positions.

    References:
        Badanidiyuru, Mirzasoleiman, Karbasi, Krause: Streaming submodular maximization (2014).

    Example:
        >>> stream = (np.array([[x], [x + 0.1]]) for x in (0.0, 5.0, 0.2, 9.0))
        >>> picks = sieve_stream(stream, 3)
        >>> sorted(round(float(x)) for x in picks.vectors[:, 0])
        [0, 5, 9]
    """
    options = check_options(algorithm="sieve", metric=metric, epsilon=epsilon, seed=seed, threads=threads)
    if metric == "precomputed":
        raise InputError(
            "a stream has no precomputed distances: give points, and metric 'euclidean'", code="stream-metric"
        )
    whole: list[tuple[Any, str]] = [(k, "k"), (reservoir, "reservoir")]
    for value, name in whole:
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError(
                f"{name} is {value!r}, but a stream needs a whole number of at least 1", code="whole-number"
            )
    rows = _Rows(chunks, metric)
    stream = _Stream(rows.take(max(reservoir, k)), int(k), int(reservoir), options.epsilon, metric, seed, threads)
    while len(block := rows.take(AT_ONCE)):
        stream.read(block)
    return stream.finish()


class _Rows:
    """A stream of chunks as a stream of rows, checked as they come."""

    def __init__(self, chunks: Iterable[Any], metric: str):
        self.pieces = self._checked(chunks, metric)
        self.left: NDArray[np.float64] | None = None

    @staticmethod
    def _checked(chunks: Iterable[Any], metric: str) -> Iterator[NDArray[np.float64]]:
        width = None
        for number, chunk in enumerate(chunks):
            if len(chunk) == 0:
                continue
            what = f"chunk {number}"
            table = input_checks.check_features(chunk, what)
            if metric == "cosine":
                input_checks.check_directions(table, what)
            width = width or table.shape[1]
            if table.shape[1] != width:
                raise InputError(
                    f"{what} has {table.shape[1]} columns, but those before it have {width}", code="columns-differ"
                )
            yield as_float64(table)

    def take(self, count: int) -> NDArray[np.float64]:
        """The next `count` rows, or as many as there still are."""
        pieces, missing = [], count
        while missing:
            piece = self.left if self.left is not None else next(self.pieces, None)
            if piece is None:
                break
            pieces.append(piece[:missing])
            self.left = piece[missing:] if len(piece) > missing else None
            missing -= len(pieces[-1])
        return np.concatenate(pieces) if pieces else np.empty((0, 0))


class _Stream:
    """The state of one stream: the reservoir, of which the first slots are measured, and the sieves."""

    def __init__(
        self, start: NDArray[np.float64], k: int, reservoir: int, epsilon: float, metric: str, seed: int, threads: int
    ):
        if len(start) < k:
            raise InputError(f"k is {k}, but the stream has only {len(start)} points", code="k-range")
        self.k, self.threads, self.ticker = k, threads, Ticker()
        self.rng = np.random.default_rng(seed)
        self.exponent = math.frexp(float(np.abs(start).max()))[1]
        self.metric = metric
        self.positions = self.rng.permutation(len(start))  # any slots are as good a sample as any others
        self.vectors = start[self.positions]
        self.kept: dict[int, NDArray[np.float64]] = {}
        self.measured = min(reservoir, len(start))
        self._measure()
        slot, _ = Lazy(self.sample, threads, self.ticker).first(None)
        self.first, self.first_vector = int(self.positions[slot]), self.vectors[slot].copy()
        self.sieves = Sieves(self.sample.exact_row(slot), k - 1, epsilon, threads, self.ticker)
        self.read_points = 0
        for left in range(0, len(start), AT_ONCE):
            self.read(start[left : left + AT_ONCE])

    def _prepared(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "cosine":
            return directions(vectors)  # type: ignore[no-any-return]
        return np.ldexp(vectors, -self.exponent)

    def _measure(self) -> None:
        points = self._prepared(self.vectors[: self.measured])
        self.sample = Distances.of_points(points, self.metric, approximate=False)

    def read(self, block: NDArray[np.float64]) -> None:
        """Show a block to the sieves, keep what they take, then let it into the reservoir."""
        first, sample = self.read_points, self.sample
        self.sieves.offer(exact_between(sample, self._prepared(block), sample.xt, self.threads, self.ticker), first)
        wanted = {pick for sieve in self.sieves.sieves.values() for pick in sieve.picks}
        self.kept = {pick: row for pick, row in self.kept.items() if pick in wanted}
        self.kept |= {pick: block[pick - first].copy() for pick in wanted if pick >= first}
        self.read_points += len(block)
        if self.read_points > len(self.positions):
            self._renew(block, first)

    def _renew(self, block: NDArray[np.float64], first: int) -> None:
        """Algorithm R: point t replaces a random one of the t + 1 so far, where that is in the reservoir."""
        new = np.arange(max(first, len(self.positions)), first + len(block))
        slots = self.rng.integers(0, new + 1)
        for point, slot in zip(new.tolist(), slots.tolist(), strict=True):
            if slot < len(self.positions):
                self.positions[slot], self.vectors[slot] = point, block[point - first]
        changed = np.unique(slots[slots < self.measured])
        if not len(changed):
            return
        self._measure()
        picks = list(self.kept)
        others = np.stack([self.first_vector, *(self.kept[pick] for pick in picks)])
        targets = np.ascontiguousarray(self._prepared(self.vectors[changed]).T)
        far = exact_between(self.sample, self._prepared(others), targets, self.threads, self.ticker)
        self.sieves.replace(changed, far[0], dict(zip(picks, far[1:], strict=True)))

    def finish(self) -> StreamPicks:
        """The best sieve's choice, made up to k from the reservoir."""
        best = self.sieves.best()
        positions = [self.first, *best.picks]
        vectors = [self.first_vector, *(self.kept[pick] for pick in best.picks)]
        picked = np.isin(self.positions[: self.measured], positions)
        more = fill_up(self.sample, best.nearest, picked, self.k - len(positions), self.ticker).tolist()
        spare = np.flatnonzero(~np.isin(self.positions, positions))
        spare = spare[spare >= self.measured][: self.k - len(positions) - len(more)].tolist()
        for slot in more + spare:
            positions.append(int(self.positions[slot]))
            vectors.append(self.vectors[slot])
        return StreamPicks(np.stack(vectors), np.array(positions, np.int64))
