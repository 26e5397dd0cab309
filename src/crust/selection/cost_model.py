"""What a selection will do and cost, decided before it starts."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import whole_number
from crust.errors import InputError
from crust.selection.budget import resolve_k, split_budget
from crust.selection.input_checks import Options, check_options

MIB = 2**20
ALONE_POINTS = 8192  # groups from here on get all threads for themselves
THREAD_OVERHEAD_BYTES = 2**16  # small things, a thread
QUICK_PAIR_OPERATIONS = 6e9  # pairs times (10 + dimensions): below, a selection takes less than a second anyway
LEAST_LISTS = 64 * 8  # bytes a point for neighbour lists, below which they are not worth having
RESERVOIR = 2000
MOST_POINTS = 10**12  # more are a slip of the hand


@dataclass(frozen=True)
class SelectionPlan:
    """How the groups will be run."""

    threads: int
    limit: int  # bytes
    together: int  # how many small groups run at once, one thread each
    stored: NDArray[np.bool_]  # per group: whether all its distances may be kept
    alone: NDArray[np.bool_]  # per group: whether it gets all threads
    memory: int  # bytes, at the most
    path: str


@dataclass(frozen=True)
class CostEstimate:
    """What a selection will cost: what `estimate_cost` returns.

    Args:
        memory: bytes above what the features take, at the most.
        seconds: expected time on this machine.
        path: what `select` will do.

    Example:
        >>> print(CostEstimate(2**20, 2.5, "stored distances"))
        about 2.5 s and at most 1.0 MiB; stored distances
    """

    memory: int
    seconds: float
    path: str

    def __str__(self) -> str:
        return f"{show_seconds(self.seconds)} and at most {show_bytes(self.memory)}; {self.path}"


def estimate_cost(
    n: int, d: int, k: float, groups: int | Sequence[int] | None = None, *, min_per_group: int = 1, **options: Any
) -> CostEstimate:
    """Say what `select` will cost on this machine, and which path it takes.

    The speed is measured here and now, in a fraction of a second.

    Args:
        n: number of points.
        d: their dimensions.
        k: a count, or a share as a float.
        groups: a number of equal groups, or their sizes.
        min_per_group: as in `select`.
        options: `algorithm`, `metric`, `epsilon`, `device`, `threads`, `memory_limit`, `seed`, as in `select`.

    Returns:
        Memory in bytes, seconds, and the path.

    Example:
        >>> cost = estimate_cost(5000, 10, 0.5)
        >>> cost.memory < 2**30 and cost.seconds < 60
        True
    """
    for name, value in (("n", n), ("d", d)):
        if whole_number(value, name, 1, "empty") > MOST_POINTS:
            raise InputError(f"{name} is {value}: give at most {MOST_POINTS:,}", code="whole-number")
    checked = check_options(**options)
    sizes = _group_sizes(n, groups)
    budgets = split_budget(resolve_k(k, n), sizes, min_per_group)
    plan = make_plan(sizes, d, budgets, checked)
    return CostEstimate(plan.memory, _expected_seconds(sizes, d, budgets, checked, plan), plan.path)


def expectation(
    sizes: NDArray[np.int64], d: int, budgets: NDArray[np.int64], options: Options, plan: SelectionPlan
) -> CostEstimate:
    """The estimate that `select` logs; the speed is measured only where it will take long enough to be worth it."""
    pairs = float((sizes.astype(np.float64) ** 2).sum())
    quick = pairs * (10 + d) < QUICK_PAIR_OPERATIONS
    seconds = 0.0 if quick else _expected_seconds(sizes, d, budgets, options, plan)
    return CostEstimate(plan.memory, seconds, plan.path)


def make_plan(sizes: NDArray[np.int64], d: int, budgets: NDArray[np.int64], options: Options) -> SelectionPlan:
    """Decide which groups run together, and which distances are kept, within the memory limit."""
    threads = options.threads or os.cpu_count() or 1
    limit = options.memory_limit or free_memory() // 4
    n = sizes.astype(np.float64)
    alone = (sizes >= ALONE_POINTS) | ((budgets > 0).sum() < threads)

    def bare(group: int, crew: int) -> int:
        return group_bytes(int(sizes[group]), d, options, False, crew if alone[group] else 1)

    largest = int(sizes.argmax())
    while threads > 1 and bare(largest, threads) > limit:
        threads -= 1  # each has tiles and sums of its own
    base = np.array([bare(group, threads) for group in range(len(sizes))], np.float64)
    square = 4.0 * n * n
    wants = np.zeros(len(sizes), bool)
    if options.algorithm in ("greedy", "lazy"):
        wants = keeps_distances(sizes, d, options.metric)
    small = np.flatnonzero(~alone & (budgets > 0))
    if base.max() > limit:
        raise InputError(
            f"a memory limit of {show_bytes(limit)} cannot be met: the largest group of {int(sizes.max()):,} points "
            f"needs {show_bytes(base.max())}; raise memory_limit, or use smaller groups",
            code="memory-limit",
        )
    together = threads
    if len(small):
        together = max(1, min(threads, len(small), int(limit // base[small].max())))
    room = np.where(alone, limit, limit / together)
    stored = wants & (base + square + n * LEAST_LISTS <= room)
    need = np.minimum(base + np.where(stored, square, 0) + _lists(n, budgets, options), room)
    memory = max(need[alone].max(initial=0.0), np.sort(need[small])[-together:].sum() if len(small) else 0.0)
    path = _describe(sizes, budgets, stored, options, threads)
    return SelectionPlan(threads, int(limit), together, stored, alone, int(memory), path)


def keeps_distances(sizes: NDArray[np.int64], d: int, metric: str) -> NDArray[np.bool_]:
    """Whether keeping all distances of a group beats computing them again: not in few dimensions."""
    from crust.selection.distances import ALL_EXACT, FEW_DIMENSIONS

    return (sizes <= ALL_EXACT) | (d > FEW_DIMENSIONS) | (metric == "precomputed")


def group_bytes(n: int, d: int, options: Options, stored: bool, threads: int) -> int:
    """Bytes that a group needs without its neighbour lists.

    The points in two layouts and precisions and the state; sums and tiles for each thread.
    """
    points = 0 if options.metric == "precomputed" else 32 * d
    tiles = 4 * max(min(n, 2000) * min(n, 512), min(32 * n, 2**22 + n))
    return n * (points + 100) + threads * (28 * n + tiles + THREAD_OVERHEAD_BYTES) + (4 * n * n if stored else 0)


def list_bytes(n: float) -> float:
    """What the neighbour lists of a group may take at the most: they are built once a pair in 24 is left."""
    return min((n * n / 24 + 32 * n) * 14, max(n * LEAST_LISTS, 2.0**31))


def free_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


def _lists(n: NDArray[np.float64], budgets: NDArray[np.int64], options: Options) -> NDArray[np.float64]:
    if options.algorithm != "greedy":
        return np.zeros(len(n))
    return np.where(budgets > 4, [list_bytes(m) for m in n], 0.0)


def _describe(
    sizes: NDArray[np.int64], budgets: NDArray[np.int64], stored: NDArray[np.bool_], options: Options, threads: int
) -> str:
    busy = budgets > 0
    where = f"on {options.device}" if options.device not in (None, "cpu") else f"{threads} thread{'s' * (threads > 1)}"
    count = int(busy.sum())
    groups = f"{count:,} group{'s' * (count != 1)}"
    how = ""
    if options.algorithm in ("greedy", "lazy"):
        kept = int((stored & busy).sum())
        how = "stored distances, " if kept == count else "recomputed distances, " if kept == 0 else "mixed, "
    return f"{options.algorithm}, {how}{groups}, {where}"


def _group_sizes(n: int, groups: int | Sequence[int] | None) -> NDArray[np.int64]:
    if groups is None or isinstance(groups, (int, np.integer)):
        count = 1 if groups is None else int(groups)
        if not 1 <= count <= n:
            raise InputError(f"{n} points cannot form {count} groups: give between 1 and {n}", code="groups-count")
        return np.array([n // count + (g < n % count) for g in range(count)], np.int64)
    sizes = np.asarray(groups)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or sizes.sum() != n:
        raise InputError(f"groups must be a number of groups, or sizes that sum to n = {n}", code="groups-count")
    return sizes.astype(np.int64)


def _expected_seconds(
    sizes: NDArray[np.int64], d: int, budgets: NDArray[np.int64], options: Options, plan: SelectionPlan
) -> float:
    """Pairs of points that the algorithm looks at, by the time that one pair takes."""
    n, k = sizes.astype(np.float64), budgets.astype(np.float64)
    rows, exact = n * n, _pair_seconds(d, options.metric)
    speedup = 0.5 + 0.5 * plan.threads if plan.threads > 1 else 1.0
    if options.algorithm == "greedy":
        return float(rows.sum()) * _greedy_seconds(d, options.metric) / speedup
    pairs = {
        "lazy": 4.0 * rows,
        "stochastic": rows * min(1.0, math.log(1 / options.epsilon)) + n * k,
        "central": rows / 2 + n * k,
        "random": n * k + rows / 4,
        "sieve": n * RESERVOIR * 4 + n * k,
        "greedi": rows / max(1, plan.threads) + n * k,
    }[options.algorithm]
    return float(pairs.sum()) * exact / speedup


@lru_cache(maxsize=32)
def _greedy_seconds(d: int, metric: str) -> float:
    """Seconds a pair of points for a whole greedy run, from a small one."""
    from crust.selection.distances import group_distances
    from crust.selection.executors import Ticker
    from crust.selection.greedy import Greedy, Room

    m = int(np.clip(math.sqrt(2e8 / d), 500, 2000))
    rng = np.random.default_rng(0)
    points = rng.normal(size=(m, d))
    data = np.abs(points[:, :1] - points[:, 0]) if metric == "precomputed" else points
    best = math.inf
    for _ in range(2):
        start = time.perf_counter()
        distances, _ = group_distances(data, None, metric, approximate=True)
        room = Room() if keeps_distances(np.array([m]), d, metric)[0] else None
        Greedy(distances, m // 2, room=room, list_bytes=1024 * MIB, threads=1, ticker=Ticker()).run()
        best = min(best, time.perf_counter() - start)
    return best / m**2


@lru_cache(maxsize=32)
def _pair_seconds(d: int, metric: str) -> float:
    """Seconds for one exact distance."""
    from crust.selection.distances import Distances

    m = int(np.clip(2e6 / d, 64, 2048))
    points = np.random.default_rng(0).normal(size=(m, d))
    distances = Distances.of_points(points, "euclidean" if metric == "precomputed" else metric, approximate=False)
    out, rows = np.empty(64 * m, np.float32), np.arange(min(m, 64))
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        distances.tile(rows, 0, m, out)
        best = min(best, time.perf_counter() - start)
    return best / (len(rows) * m)


def show_bytes(size: float) -> str:
    """A number of bytes for people.

    Example:
        >>> show_bytes(1536)
        '1.5 KiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def show_seconds(seconds: float) -> str:
    """A time span for people.

    Example:
        >>> show_seconds(75)
        'about 1.2 min'
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 60:
        return f"about {seconds:.1f} s"
    return f"about {seconds / 60:.1f} min" if seconds < 3600 else f"about {seconds / 3600:.1f} h"
