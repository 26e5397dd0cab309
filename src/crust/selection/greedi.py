"""Two-round GreeDi: greedy on shards, then greedy on what they found.

Each shard picks k of its own points. A second greedy picks k of all these, measured on a sample of all points (on all
of them where they are few). The better of that choice and of the best single shard is kept.

References:
    Mirzasoleiman, Karbasi, Sarkar, Krause: Distributed submodular maximization (JMLR 2016).
    Barbosa, Ene, Nguyen, Ward: The power of randomization (2015): with random shards at least (1 - 1/e) / 2 of the
    optimum, in expectation.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.selection.assignment import Picks, complete, diameter, part_of
from crust.selection.distances import Distances
from crust.selection.executors import Executor, Ticker, run_in_threads
from crust.selection.greedy import Greedy, Room
from crust.selection.marginal_gains import Gains

SHARD_POINTS = 10_000
MEASURED_POINTS = 100_000  # what the second round is measured on, at the most
SHARD_MEMORY = 128 * 2**20  # bytes, for the distances a shard may keep


def greedi(
    distances: Distances,
    k: int,
    *,
    rng: np.random.Generator,
    threads: int,
    ticker: Ticker,
    shards: int | None = None,
    engine: Executor | None = None,
    memory: int = SHARD_MEMORY,
) -> Picks:
    """Pick k points by two rounds of greedy.

    Args:
        rng: deals the points to the shards, and draws the sample for the second round.
        threads: how many shards are worked on at once without an engine.
        shards: their number; by default shards of about 10,000 points, and of at least 2k.
        engine: for points, where to work on the shards; None: here. A matrix of distances is always worked on here.
        memory: bytes that the distances of one shard may take.
    """
    n = distances.n
    count = shards or shards_for(n, k)
    if count == 1:
        room = Room() if 4 * n * n <= memory else None
        return Greedy(distances, k, room=room, list_bytes=memory, threads=threads, ticker=ticker).run()
    members = dealt(n, count, rng)
    if engine is None or distances.matrix is not None:
        chosen = _round_one_here(distances, members, k, memory, threads, ticker)
    else:
        chosen = _round_one_on(engine, distances, members, k, memory, ticker)
    widest = diameter(distances, threads=threads, ticker=ticker)
    measured = measured_points(n, rng)
    rows = met(measured, chosen)
    part = distances if len(measured) == n else part_of(distances, rows)
    rivals = second_round(part, rows, len(measured), chosen, k, widest, threads, ticker)
    finals = [complete(distances, order, widest, threads=threads, ticker=ticker) for order in rivals]
    return min(finals, key=lambda picks: float(picks.nearest.sum(dtype=np.float64)))


def shards_for(n: int, k: int) -> int:
    """How many shards: of about 10,000 points each, and of at least 2k."""
    return max(1, min(-(-n // SHARD_POINTS), n // (2 * k)))


def dealt(n: int, count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """The points of each shard, at random, in rising order."""
    deal = rng.permutation(n)
    return [np.sort(deal[s::count]) for s in range(min(count, n))]


# ---------------------------------------------------------------- the first round


@dataclass(frozen=True)
class ArrayShard:
    """One shard's work, small enough to be sent around where the points are shared."""

    points: Any  # an array of this shard alone, or a handle of all of them
    rows: slice
    k: int
    metric: str
    memory: int


def solve_array_shard(shard: ArrayShard) -> NDArray[np.int64]:
    """Greedy on one shard: the chosen points, as indices within it."""
    points = shard.points.open() if hasattr(shard.points, "open") else shard.points
    distances = Distances.of_points(np.ascontiguousarray(points[shard.rows]), shard.metric)
    return greedy_order(distances, shard.k, shard.memory, Room(), Ticker())


def greedy_order(distances: Distances, k: int, memory: int, room: Room, ticker: Ticker) -> NDArray[np.int64]:
    small = 4 * distances.n**2 <= memory
    greedy = Greedy(
        distances, min(k, distances.n), room=room if small else None, list_bytes=memory, threads=1, ticker=ticker
    )
    return greedy.run().order


def _round_one_here(
    distances: Distances, members: list[NDArray[np.int64]], k: int, memory: int, threads: int, ticker: Ticker
) -> list[NDArray[np.int64]]:
    chosen: list[NDArray[np.int64]] = [rows[:0] for rows in members]
    rooms = [Room() for _ in range(threads)]

    def work(s: int, slot: int) -> None:
        rows = members[s]
        chosen[s] = rows[greedy_order(part_of(distances, rows), k, memory, rooms[slot], ticker)]

    run_in_threads(range(len(members)), work, threads, ticker)
    return chosen


def _round_one_on(
    engine: Executor, distances: Distances, members: list[NDArray[np.int64]], k: int, memory: int, ticker: Ticker
) -> list[NDArray[np.int64]]:
    dealt = distances.x[np.concatenate(members)]
    ends = np.cumsum([len(rows) for rows in members]).tolist()
    spans = [slice(end - len(rows), end) for end, rows in zip(ends, members, strict=True)]
    share = getattr(engine, "share", None)
    with share(dealt) if share is not None else nullcontext() as handle:
        if handle is not None:
            shards = [ArrayShard(handle, span, k, distances.metric, memory) for span in spans]
        else:
            shards = [ArrayShard(dealt[span], slice(None), k, distances.metric, memory) for span in spans]
        chosen = []
        for rows, found in zip(members, engine.map(solve_array_shard, shards), strict=True):
            chosen.append(rows[found])
            ticker.step(len(rows) ** 2)
    return chosen


# ---------------------------------------------------------------- the second round


def measured_points(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The points that the second round is measured on, in rising order."""
    return np.sort(rng.choice(n, MEASURED_POINTS, replace=False)) if n > MEASURED_POINTS else np.arange(n)


def met(measured: NDArray[np.int64], chosen: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All points of the second round: those that are measured, then the others that a shard chose."""
    return np.concatenate([measured, np.setdiff1d(np.concatenate(chosen), measured)])


def second_round(
    part: Distances,
    rows: NDArray[np.int64],
    measured: int,
    chosen: list[NDArray[np.int64]],
    k: int,
    widest: float,
    threads: int,
    ticker: Ticker,
) -> list[NDArray[np.int64]]:
    """The choice among all that the shards chose, and that of the shard which suits the measured points best.

    Args:
        part: the distances among the points `rows` (see `met`), of which the first `measured` ones are measured on.
        chosen: what each shard chose.
    """
    order_of_rows = np.argsort(rows)

    def places(points: NDArray[np.int64]) -> NDArray[np.int64]:
        return order_of_rows[np.searchsorted(rows, points, sorter=order_of_rows)]

    gains = Gains(part, widest, points=measured, threads=threads, ticker=ticker)
    candidates = np.sort(places(np.concatenate(chosen)))
    order = np.empty(k, np.int64)
    for step in range(k):
        order[step], _ = gains.pick(candidates)
        candidates = candidates[candidates != order[step]]

    def objective(shard: NDArray[np.int64]) -> float:
        picks = complete(part, places(shard), widest, threads=threads, ticker=ticker)
        return float(picks.nearest[:measured].sum(dtype=np.float64))

    full = [shard for shard in chosen if len(shard) == k]
    return [rows[order], *([min(full, key=objective)] if full else [])]
