"""Sieve-streaming over a stream that is read once and never kept.

Gains are measured on a reservoir, a uniform sample of all points so far (algorithm R); the choice between the sieves is
made on the final one. Where the whole stream fits the reservoir this is what `streaming.sieve` does, with its bound. In
a longer one the bound holds for points in random order, up to the sampling error: a stream that changes on its way has
its first choices measured on what came before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.selection import checks, prepare
from crust.selection.approximate import Lazy
from crust.selection.distances import Distances
from crust.selection.options import check_options
from crust.selection.sieves import Sieves
from crust.selection.streaming import AT_ONCE, RESERVOIR, exact_between, fill_up
from crust.selection.workers import Ticker


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
        raise InputError("a stream has no precomputed distances: give points, and metric 'euclidean'")
    whole: list[tuple[Any, str]] = [(k, "k"), (reservoir, "reservoir")]
    for value, name in whole:
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name} is {value!r}, but a stream needs a whole number of at least 1")
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
            table = checks.check_features(chunk, what)
            if metric == "cosine":
                checks.check_directions(table, what)
            width = width or table.shape[1]
            if table.shape[1] != width:
                raise InputError(f"{what} has {table.shape[1]} columns, but those before it have {width}")
            yield prepare.as_float64(table)

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
            raise InputError(f"k is {k}, but the stream has only {len(start)} points")
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
            return prepare.directions(vectors)  # type: ignore[no-any-return]
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
