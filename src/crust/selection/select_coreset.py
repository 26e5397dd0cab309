"""`select`: the one door to all algorithms. Each gets one group and returns its `Picks`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.progress import progress_bar
from crust.errors import InputError, choices
from crust.selection import input_checks
from crust.selection.assignment import Picks
from crust.selection.budget import resolve_k, split_budget
from crust.selection.central_points import central, mean_distances, random
from crust.selection.coreset import Coreset
from crust.selection.cost_model import SelectionPlan, expectation, group_bytes, list_bytes, make_plan
from crust.selection.distances import device_distances, group_distances
from crust.selection.executors import ENGINES, Ticker, one_blas_thread, open_engine, run_in_threads
from crust.selection.greedi import greedi
from crust.selection.greedi_files import select_files
from crust.selection.greedy import Greedy, Room
from crust.selection.greedy_torch import greedy_on_device
from crust.selection.input_checks import Options, check_groups, check_options, whole_number
from crust.selection.lazy_stochastic import lazy, stochastic
from crust.selection.npy_shards import are_files, mapped_file
from crust.selection.sampled_centrality import SMALL, sample_size, sampled_means
from crust.selection.sieve_streaming import sieve

log = logging.getLogger("crust")


def tensor_device(features: Any, options: Options) -> Any:
    """The device to work on where that is not the CPU; None: the CPU kernels."""
    device = options.device if options.device is not None else getattr(features, "device", None)
    return None if device is None or str(device).startswith("cpu") else device


def select(
    features: Any,
    k: float,
    *,
    groups: Any = None,
    algorithm: str = "greedy",
    metric: str = "euclidean",
    min_per_group: int = 1,
    epsilon: float = 0.1,
    device: Any = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    engine: Any = None,
    seed: int = 0,
    progress: bool = False,
) -> Coreset:
    """Choose the k points that represent all points best, and say whom each of them represents.

    Facility location: the sum of distances from every point to its nearest chosen point (its medoid) is made small by
    greedy selection, within each group. The answer does not depend on threads, memory or device.

    Args:
        features: (n, d) array, memory map or tensor; with `metric="precomputed"` an (n, n) matrix of distances. Or a
            folder of .npy files (or a list of such files), of which `greedi` reads one piece at a time.
        k: how many; an int is a count, a float a share of the points.
        groups: a name for each point; each group gets its share of k and is covered by its own points.
        algorithm: `greedy` (exact greedy), `lazy` (the same answer, another way), `stochastic`, `sieve`, `greedi`,
            `central` (smallest sum of distances to the group), `random`.
        metric: `euclidean`, `sqeuclidean`, `cosine` or `precomputed`.
        min_per_group: what a group gets at least, where k allows it.
        epsilon: how far `stochastic` and `sieve` may fall short of their bounds.
        device: a torch device such as `"cuda"`; default: where the features are.
        threads: default: all cores.
        memory_limit: bytes, or a string such as `"2GiB"`; default: a quarter of the free memory.
        engine: where `greedi` runs its shards: `"local"` for processes, `"ray"` for a Ray cluster, or an engine such as
            `crust.selection.Ray(address)`; there, too, files and memory maps of files are read a piece at a time.
        seed: for the algorithms that draw.
        progress: show a bar once it takes longer than two seconds.

    Returns:
        The coreset.

    References:
        Mirzasoleiman, Cao, Leskovec: Coresets for Robust Training of Neural Networks against Noisy Labels (2020).

    Example:
        >>> points = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [5.0, 5.0]])
        >>> coreset = select(points, 2)
        >>> coreset.indices.tolist(), coreset.weights.tolist()
        ([1, 3], [3, 1])
    """
    options = check_options(
        algorithm=algorithm, metric=metric, device=device, threads=threads, memory_limit=memory_limit,
        epsilon=epsilon, seed=seed,
    )  # fmt: skip
    if not hasattr(engine, "map") and engine is not None:
        choices(engine, ENGINES, "engine")
    if engine is not None and algorithm != "greedi":
        raise InputError(
            f"algorithm {algorithm!r} runs in this process only: use algorithm 'greedi' with an engine",
            code="engine-algorithm",
        )
    file = mapped_file(features) if engine is not None and metric != "precomputed" else None
    if file is not None or are_files(features):
        return select_files(file or features, k, groups, min_per_group, options, engine, progress)
    features = _check_features(features, metric)
    n, d = features.shape
    count = resolve_k(k, n)
    names, codes = _group_codes(groups, n)
    sizes = np.bincount(codes, minlength=1)
    budgets = split_budget(count, sizes, min_per_group)
    plan = make_plan(sizes, d, budgets, options)
    log.info("%s", expectation(sizes, d, budgets, options, plan))

    with progress_bar("selecting", progress) as report, open_engine(engine, plan.threads) as opened:
        work = _Work(features, codes, sizes, budgets, options, plan, opened)
        picks = work.run(report)
    return _gather(work, picks, names, {"algorithm": algorithm, "metric": metric, "k": count, "seed": seed})


def centrality(
    features: Any,
    groups: Any = None,
    *,
    metric: str = "euclidean",
    sample: int | None = None,
    device: Any = None,
    seed: int = 0,
    threads: int | None = None,
    memory_limit: int | str | None = None,
) -> NDArray[np.float64]:
    """The mean distance of each point to the others of its group: the smaller, the more central the point.

    Sorted within each group, ties to the lowest index, this is the order of `select(features, n, groups=groups,
    algorithm="central")`, to the last place and on any number of threads, at a third to a half of the cost: no
    point is assigned to another. The values are exact wherever the order asks for it, else good to about six digits.
    That takes time that grows with the square of a group; with `sample` large groups are measured against a sample of
    theirs, in time that grows with their size (docs/selection.md says how close that comes).

    Args:
        features: (n, d) numpy array or torch tensor; for metric "precomputed" an (n, n) matrix of distances.
        groups: a name for each point (strings, integers or booleans); None: all points are one group.
        metric: "euclidean", "sqeuclidean", "cosine" or "precomputed".
        sample: how many points, such as 1024 (rounded up to a power of two), groups of more than twice as many
            are measured against; None: everybody is measured against everybody. A given matrix is read whole.
        device: a torch device that measures points against a sample; default: where the features are.
        seed: for the sample.
        threads: default: all cores.
        memory_limit: bytes, or a string such as "2GiB"; default: a quarter of what is free.

    Returns:
        A number for each point; 0 for a point that is alone in its group.

    Example:
        >>> centrality(np.array([[0.0], [1.0], [4.0], [9.0]]), ["a", "a", "a", "b"]).tolist()
        [2.5, 2.0, 3.5, 0.0]
    """
    options = check_options(
        algorithm="central", metric=metric, device=device, threads=threads, memory_limit=memory_limit, seed=seed
    )
    place = tensor_device(features, options)
    features = _check_features(features, metric)
    n, d = features.shape
    _, codes = _group_codes(groups, n)
    sizes = np.bincount(codes, minlength=1)
    points = 0 if sample is None or metric == "precomputed" else sample_size(whole_number(sample, "sample", 1))
    measured = np.minimum(sizes, SMALL * points) if points else sizes  # a sampled group takes no more than a small one
    work = _Work(features, codes, sizes, sizes, options, make_plan(measured, d, measured, options), None)
    means, ticker = np.empty(n), Ticker()

    def measure(group: int, slot: int, crew: int, limit: int) -> None:
        index = work.index(group)
        if points and sizes[group] > SMALL * points:
            how: dict[str, Any] = {"seed": seed, "threads": crew, "ticker": ticker, "device": place}
            found, _ = sampled_means(features, index, metric, points, **how)
            means[slice(None) if index is None else index] = found
            return
        distances, unit = group_distances(features, index, metric, approximate=True)
        means[slice(None) if index is None else index] = mean_distances(distances, threads=crew, ticker=ticker) * unit

    work.each_group(measure, ticker)
    return means


def _check_features(features: Any, metric: str) -> Any:
    """The features, refused where they cannot be used."""
    if metric == "precomputed":
        return input_checks.check_precomputed(features)
    features = input_checks.check_features(features)
    if metric == "cosine":
        input_checks.check_directions(features)
    return features


def _group_codes(groups: Any, n: int) -> tuple[NDArray[Any] | None, NDArray[np.int64]]:
    """The names of the groups in order, None without groups; and for each point the position of its group's."""
    return check_groups(groups, n) or (None, np.zeros(n, np.int64))


class _Work:
    """All groups of one selection: who runs when, and with what."""

    def __init__(
        self,
        features: Any,
        codes: NDArray[np.int64],
        sizes: NDArray[np.int64],
        budgets: NDArray[np.int64],
        options: Options,
        plan: SelectionPlan,
        engine: Any,
    ):
        self.features, self.sizes, self.budgets = features, sizes, budgets
        self.options, self.plan, self.engine = options, plan, engine
        self.ends = np.cumsum(sizes)
        self.members = np.argsort(codes, kind="stable")
        self.units = np.ones(len(sizes))

    def index(self, group: int) -> NDArray[np.int64] | None:
        """The rows of a group, in rising order; None where that is all of them."""
        if len(self.sizes) == 1:
            return None
        return self.members[self.ends[group] - self.sizes[group] : self.ends[group]]

    def run(self, report: Callable[[float, float], None] | None) -> list[Picks | None]:
        picks: list[Picks | None] = [None] * len(self.sizes)
        squares = self.sizes.astype(np.float64) ** 2
        ticker = Ticker(2.0 * float(squares[self.budgets > 0].sum()), report)
        rooms = [Room() for _ in range(self.plan.together)]

        def work(group: int, slot: int, threads: int, limit: int) -> None:
            room = rooms[slot] if self.plan.stored[group] else None
            picks[group], self.units[group] = self._select(group, room, threads, limit, ticker)

        self.each_group(work, ticker)
        return picks

    def _select(self, group: int, room: Room | None, threads: int, limit: int, ticker: Ticker) -> tuple[Picks, float]:
        """Select from one group; returns the picks, and the factor for their distances and gains."""
        features, options, index, k = self.features, self.options, self.index(group), int(self.budgets[group])
        device = tensor_device(features, options)
        if device is not None and options.algorithm in ("greedy", "lazy"):
            on_device, unit = device_distances(features, index, options.metric, device, limit)
            return greedy_on_device(on_device, k, ticker), unit
        rng = np.random.default_rng([options.seed, group])
        means: dict[str, Any] = {"threads": threads, "ticker": ticker}
        approximate = options.algorithm != "lazy"
        distances, unit = group_distances(features, index, options.metric, approximate=approximate)
        match options.algorithm:
            case "greedy":
                left = limit - group_bytes(distances.n, distances.dims, options, room is not None, threads)
                lists = min(left, int(list_bytes(distances.n)))
                return Greedy(distances, k, room=room, list_bytes=lists, **means).run(), unit
            case "lazy":
                return lazy(distances, k, room=room, **means), unit
            case "stochastic":
                return stochastic(distances, k, epsilon=options.epsilon, rng=rng, **means), unit
            case "sieve":
                return sieve(distances, k, epsilon=options.epsilon, rng=rng, **means), unit
            case "greedi":
                memory = limit // (2 * threads)
                return greedi(distances, k, rng=rng, engine=self.engine, memory=memory, **means), unit
            case "central":
                return central(distances, k, **means), unit
            case "random":
                return random(distances, k, rng=rng, **means), unit
        raise AssertionError(options.algorithm)

    def each_group(self, work: Callable[[int, int, int, int], None], ticker: Ticker) -> None:
        """Call work(group, slot, threads, bytes) for every group with a budget, the largest first, as planned."""
        plan = self.plan
        order = [g for g in np.argsort(-self.sizes, kind="stable").tolist() if self.budgets[g] > 0]
        with one_blas_thread():
            for group in order:
                if plan.alone[group]:
                    work(group, 0, plan.threads, plan.limit)
            small = [g for g in order if not plan.alone[g]]
            share = plan.limit // plan.together
            run_in_threads(small, lambda group, slot: work(group, slot, 1, share), plan.together, ticker)


def _gather(work: _Work, picks: list[Picks | None], names: NDArray[Any] | None, info: dict[str, Any]) -> Coreset:
    """Put the groups together, in the order of their names."""
    n = len(work.members)
    indices, gains, labels = [], [], []
    medoid = np.full(n, -1, np.int64)
    nearest = np.zeros(n, np.float64)
    for group, found in enumerate(picks):
        if found is None:
            continue
        rows = work.index(group)
        rows = np.arange(n) if rows is None else rows
        indices.append(rows[found.order])
        gains.append(found.gains * work.units[group])
        labels.append(np.full(len(found.order), group))
        medoid[rows] = rows[found.owner]
        nearest[rows] = found.nearest.astype(np.float64) * work.units[group]
    left_over = np.flatnonzero(medoid < 0)
    if len(left_over):
        medoid[left_over], nearest[left_over] = _nearest_medoids(work, np.concatenate(indices), left_over)
    groups = None if names is None else names[np.concatenate(labels)]
    return Coreset.of_medoids(indices, medoid, nearest, gains, groups, {**info, "path": work.plan.path})


def _nearest_medoids(
    work: _Work, chosen: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Points of groups without a medoid (k was too small) go to the nearest medoid of any group."""
    medoids = np.sort(chosen)
    both = np.concatenate([medoids, rows])
    distances, unit = group_distances(work.features, both, work.options.metric, approximate=False)
    k = len(medoids)
    owner, far = np.empty(len(rows), np.int64), np.empty(len(rows))
    for first in range(0, len(rows), 256):
        part = np.arange(k + first, min(len(both), k + first + 256))
        tile = distances.tile(part, 0, k, np.empty(len(part) * k, np.float32))
        best = tile.argmin(axis=1)
        owner[part - k], far[part - k] = medoids[best], tile[np.arange(len(part)), best]
    return owner, far * unit
