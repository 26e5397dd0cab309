"""`select` for points in files: GreeDi, of which this process sees the chosen points and a sample only.

The same two rounds as in `greedi.py`: with one file it is the same answer. Each file has shards of its own, so that a
shard is read from one file by one worker. A file of fewer than 2k points gives four times its share of k instead
of k of them, so that what is brought together stays small. The largest distance of all points, from which the first
gain counts, is not looked for: twice the largest distance to the first point is taken, which is at least as large.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.progress import progress_bar
from crust.errors import InputError
from crust.selection import input_checks
from crust.selection.assignment import complete
from crust.selection.budget import resolve_k, split_budget
from crust.selection.coreset import Coreset
from crust.selection.distances import Distances, power_of_two
from crust.selection.executors import Ticker, one_blas_thread, open_engine
from crust.selection.greedi import SHARD_MEMORY, dealt, greedy_order, measured_points, met, second_round, shards_for
from crust.selection.greedy import Room
from crust.selection.input_checks import Options, check_groups
from crust.selection.npy_shards import Form, ShardFile, ShardFiles, ShardRows, fetch, find_files, survey

log = logging.getLogger("crust")
SPAN_ROWS = 20_000  # rows that are looked at, or assigned, in one go
OVERSAMPLING = 4  # how many more than their share small files give: on proxies within 6% of greedy, and 2 within 23%
NO_MEDOID = -1  # in place of a group that has no medoid of its own


@dataclass
class Group:
    """One group on its way: its rows of all, its budget, and what was found."""

    rows: NDArray[np.int64]
    k: int
    rng: np.random.Generator
    chosen: list[NDArray[np.int64]] = field(default_factory=list)  # by each shard
    rivals: list[NDArray[np.int64]] = field(default_factory=list)  # medoids in the order of the picks
    points: list[NDArray[np.float64]] = field(default_factory=list)  # of each rival, in the order of its picks


@dataclass
class FilePicks:
    """The answer, with rows that count through all files; distances and gains in the user's units."""

    indices: list[NDArray[np.int64]]  # a group each, those without a medoid left out
    gains: list[NDArray[np.float64]]
    medoid: NDArray[np.int64]  # of every point
    nearest: NDArray[np.float64]
    shards: int


# ---------------------------------------------------------------- what workers are asked


Parts = list[tuple[int, NDArray[np.int64], int]]


@dataclass(frozen=True)
class FileShard:
    """Rows of one file: for each group which ones, and how many to pick of them."""

    file: ShardFile
    parts: Parts
    form: Form
    memory: int
    anchor: NDArray[np.float64]

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.file.nodes


def solve_file_shard(shard: FileShard) -> tuple[list[tuple[int, NDArray[np.int64]]], float]:
    """What greedy picks of each group, as rows of the file; and the largest distance to the anchor."""
    found, farthest, room = [], 0.0, Room()
    for group, rows, k in shard.parts:
        points = shard.form.read(shard.file, rows)
        farthest = max(farthest, float(np.sqrt(((points - shard.anchor) ** 2).sum(axis=1)).max()))
        if k:
            distances = Distances.of_points(points, shard.form.metric)
            found.append((group, rows[greedy_order(distances, k, shard.memory, room, Ticker())]))
    return found, farthest


@dataclass(frozen=True)
class Medoids:
    """Some medoids among all of them: whose group they serve, where they stand, and how many points the group has."""

    group: int
    span: slice  # in the table of all medoids, where they stand by rising row
    total: int


@dataclass(frozen=True)
class Span:
    """Points to be assigned to the medoids of their group."""

    file: ShardFile
    rows: slice
    start: int  # of the first one, counted through all files
    codes: NDArray[np.int32]
    form: Form
    medoids: list[Medoids]
    points: Any  # of all medoids, an array or a handle
    table: Any  # (medoids, 2): the row of each, and its place in the order of the picks
    widest: float

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.file.nodes


def assign(span: Span) -> list[tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float64]]]:
    """For each set of medoids: which one every point of its group goes to, how far it is, and the medoids' gains."""
    points, table = _opened(span.points), _opened(span.table)
    assigned = []
    for medoids in span.medoids:
        mine = np.flatnonzero(span.codes == medoids.group)
        rows, order = table[medoids.span].T
        k = len(rows)
        if not len(mine):
            assigned.append((np.empty(0, np.int32), np.empty(0, np.float32), np.zeros(k)))
            continue
        own = span.form.read(span.file, mine + span.rows.start)
        distances = Distances.of_points(np.concatenate([points[medoids.span], own]), span.form.metric)
        picks = complete(
            distances, np.argsort(order), span.widest, threads=1, ticker=Ticker(), first=k, total=medoids.total
        )
        owner, nearest = picks.owner[k:].astype(np.int32), picks.nearest[k:]
        place = np.searchsorted(rows, mine + span.start)
        chosen = rows[np.minimum(place, k - 1)] == mine + span.start
        owner[chosen], nearest[chosen] = place[chosen], 0.0  # a medoid belongs to itself
        assigned.append((owner, nearest, picks.gains))
    return assigned


def _opened(array: Any) -> NDArray[Any]:
    found: NDArray[Any] = array.open() if hasattr(array, "open") else array
    return found


# ---------------------------------------------------------------- the rounds


class FileGreedi:
    """One selection from files."""

    def __init__(
        self, files: ShardFiles, codes: NDArray[np.int64], options: Options, engine: Any, threads: int, ticker: Ticker
    ):
        self.files, self.codes, self.options = files, codes, options
        self.engine, self.threads, self.ticker = engine, threads, ticker

    def run(self, budgets: NDArray[np.int64]) -> FilePicks:
        """Pick so many medoids of every group."""
        codes, options = self.codes, self.options
        self.form, unit = self._find_form()
        members = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(budgets)))
        self.groups = {}
        for g in np.flatnonzero(budgets).tolist():
            rows = members[(ends[g - 1] if g else 0) : ends[g]]
            self.groups[g] = Group(rows, int(budgets[g]), np.random.default_rng([options.seed, g]))
        self.lost = np.flatnonzero(budgets[codes] == 0)  # of groups for which k was too small
        shards = self._first_round(SHARD_MEMORY if options.memory_limit is None else options.memory_limit // 2)
        for group in self.groups.values():
            self._second_round(group)
        return self._assign(unit, shards)

    def _find_form(self) -> tuple[Form, float]:
        """How points are to be scaled; refuses values that cannot be used."""
        files, metric = self.files, self.options.metric
        form, largest = Form(metric), 0.0
        spans = list(files.spans(SPAN_ROWS))
        looks = self.engine.map(survey, (ShardRows(files.files[number], rows, form) for number, rows in spans))
        bad: dict[tuple[str, str], list[int]] = {}
        for (number, _), seen in zip(spans, looks, strict=True):
            self.ticker.step()
            largest = max(largest, seen.largest)
            for kind, rows in (("with NaN or infinite values", seen.not_finite), ("of zeros only", seen.zero)):
                if len(rows):
                    bad.setdefault((files.files[number].name, kind), []).extend(rows.tolist())
        for (name, kind), rows in bad.items():
            it = input_checks.it_or_them(rows)
            advice, code = f": drop {it} or fill {it} in", "not-finite"
            if kind == "of zeros only":
                code = "zero-rows"
                advice = f", without a direction for metric 'cosine': drop {it} or use metric 'euclidean'"
            raise InputError(f"{name} has {input_checks.rows_in_words(kind, rows)}{advice}", code=code)
        if metric == "cosine":
            return form, 1.0
        exponent, unit = power_of_two(largest, metric)
        return Form(metric, exponent), unit

    def _first_round(self, memory: int) -> int:
        """All shards pick; returns how many there were. `widest`: a bound on the largest distance of all points."""
        files, form, engine = self.files, self.form, self.engine
        anchor = next(iter(engine.map(fetch, [ShardRows(files.files[0], slice(0, 1), form)])))
        shards = [(i, FileShard(files.files[i], parts, form, memory, anchor)) for i, parts in self._dealt()]
        farthest = 0.0
        solved = engine.map(solve_file_shard, (shard for _, shard in shards))
        for (number, shard), (found, far) in zip(shards, solved, strict=True):
            farthest = max(farthest, far)
            for g, rows in found:
                self.groups[g].chosen.append(rows + files.start(number))
            self.ticker.step(sum(float(len(rows)) ** 2 for _, rows, _ in shard.parts))
        widest = 2.0 * farthest * (1 + 1e-6)
        if form.metric != "euclidean":
            widest = widest**2 * (0.5 if form.metric == "cosine" else 1.0)
        self.widest = float(np.nextafter(np.float32(widest), np.float32(np.inf)))
        return len(shards)

    def _dealt(self) -> Iterator[tuple[int, Parts]]:
        """The shards of all files, which the groups of a file share; of lost points only the distance is asked."""
        work: dict[int, list[Parts]] = {number: [] for number in range(len(self.files.files))}
        for g, group in self.groups.items():
            n, count = len(group.rows), shards_for(len(group.rows), group.k)
            for number, _, rows in self.files.split(group.rows):
                for s, part in enumerate(dealt(len(rows), max(1, round(count * len(rows) / n)), group.rng)):
                    if s == len(work[number]):
                        work[number].append([])
                    k = group.k if len(part) >= 2 * group.k else math.ceil(OVERSAMPLING * group.k * len(part) / n)
                    k = group.k if count == 1 and len(part) == n else min(k, group.k, len(part))
                    work[number][s].append((g, rows[part], k))
        for number, _, rows in self.files.split(self.lost):
            for first in range(0, len(rows), SPAN_ROWS):
                work[number].append([(NO_MEDOID, rows[first : first + SPAN_ROWS], 0)])
        for number, shards in work.items():
            for parts in shards:
                yield number, parts

    def _second_round(self, group: Group) -> None:
        """Decide between what the shards chose, on a sample of the group."""
        if len(group.chosen) == 1:
            group.rivals = group.chosen
            group.points = [self._fetch(group.chosen[0])]
            return
        measured = group.rows[measured_points(len(group.rows), group.rng)]
        rows = met(measured, group.chosen)
        points = self._fetch(rows)
        part = Distances.of_points(points, self.form.metric)
        group.rivals = second_round(
            part, rows, len(measured), group.chosen, group.k, self.widest, self.threads, self.ticker
        )
        order = np.argsort(rows)
        group.points = [points[order[np.searchsorted(rows, rival, sorter=order)]] for rival in group.rivals]

    def _fetch(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some points of all files, in the order of the rows."""
        parts = [
            (where[span], ShardRows(self.files.files[number], inside[span], self.form))
            for number, where, inside in self.files.split(rows)
            for span in (slice(first, first + SPAN_ROWS) for first in range(0, len(where), SPAN_ROWS))
        ]
        points = np.empty((len(rows), self.files.shape[1]))
        for (where, _), found in zip(parts, self.engine.map(fetch, (wanted for _, wanted in parts)), strict=True):
            points[where] = found
        return points

    def _assign(self, unit: float, shards: int) -> FilePicks:
        """The better rival of each group, and the medoid of every point."""
        groups, codes, lost = self.groups, self.codes, self.lost
        tried = [(g, *both) for g, group in groups.items() for both in zip(group.rivals, group.points, strict=True)]
        outcomes = self._all_spans(codes, [(g, rival, points, len(groups[g].rows)) for g, rival, points in tried])
        best: dict[int, int] = {}
        objectives = [float(nearest.sum(dtype=np.float64)) for _, nearest, _ in outcomes]
        for number, (g, _, _) in enumerate(tried):
            if g not in best or objectives[number] < objectives[best[g]]:
                best[g] = number
        medoid, far = np.empty(len(codes), np.int64), np.empty(len(codes))
        for g, number in best.items():
            owner, nearest, _ = outcomes[number]
            medoid[groups[g].rows], far[groups[g].rows] = owner, nearest
        if len(lost):  # they go to the nearest medoid of any group
            chosen = np.concatenate([tried[number][1] for number in best.values()])
            points = np.concatenate([tried[number][2] for number in best.values()])
            only = codes.copy()
            only[lost] = NO_MEDOID
            ((owner, nearest, _),) = self._all_spans(only, [(NO_MEDOID, chosen, points, len(codes))])
            medoid[lost], far[lost] = owner, nearest
        return FilePicks(
            [tried[number][1] for number in best.values()],
            [outcomes[number][2] * unit for number in best.values()],
            medoid,
            far * unit,
            shards,
        )

    def _all_spans(
        self, codes: NDArray[np.int64], sets: list[tuple[int, NDArray[np.int64], NDArray[np.float64], int]]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64]]]:
        """For each set of medoids (group, rows, points, size of the group): the medoid's row and the distance of every
        point of the group, and the gains of the medoids, in the order of the picks."""
        files, engine = self.files, self.engine
        orders = [np.argsort(rows) for _, rows, _, _ in sets]
        ends = np.cumsum([0, *(len(order) for order in orders)])
        table = np.concatenate(
            [np.stack([rows[o], o], axis=1) for (_, rows, _, _), o in zip(sets, orders, strict=True)]
        )
        points = np.concatenate([p[o] for (_, _, p, _), o in zip(sets, orders, strict=True)])
        medoids = [Medoids(g, slice(ends[i], ends[i + 1]), total) for i, (g, _, _, total) in enumerate(sets)]
        found: list[list[Any]] = [[] for _ in sets]
        gains = [np.zeros(len(order)) for order in orders]
        with ExitStack() as stack:
            shared: list[Any] = [points, table]
            if hasattr(engine, "share"):
                shared = [stack.enter_context(engine.share(array)) for array in shared]

            def spans() -> Iterator[Span]:
                for number, rows in files.spans(SPAN_ROWS):
                    start = files.start(number) + rows.start
                    own = codes[start : start + rows.stop - rows.start].astype(np.int32)
                    file, widest = files.files[number], self.widest
                    yield Span(file, rows, start, own, self.form, medoids, shared[0], shared[1], widest)

            for outcome in engine.map(assign, spans()):
                for i, (owner, nearest, part) in enumerate(outcome):
                    found[i].append((table[medoids[i].span, 0][owner], nearest))
                    gains[i] += part
                self.ticker.step(sum(float(len(owner)) * len(part) for owner, _, part in outcome))
        return [
            (np.concatenate([owner for owner, _ in parts]), np.concatenate([near for _, near in parts]), gain)
            for parts, gain in zip(found, gains, strict=True)
        ]


class Here:
    """The engine that is none: one piece after another, in this process."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        return map(function, items)


def select_files(
    features: Any, k: float, groups: Any, min_per_group: int, options: Options, engine: Any, progress: bool
) -> Coreset:
    """Choose points from files; the arguments are those of `select`, and its rows count through all files."""
    if options.algorithm != "greedi":
        raise InputError(
            f"algorithm {options.algorithm!r} needs all points at once: use algorithm 'greedi' for files",
            code="files-algorithm",
        )
    if options.metric == "precomputed":
        raise InputError(
            "a matrix of distances cannot be read from several files: give the points, or one array",
            code="files-metric",
        )
    if options.device not in (None, "cpu"):
        raise InputError(
            f"files are worked on by the CPU only: leave out the device {options.device!r}", code="files-device"
        )
    threads = options.threads or os.cpu_count() or 1
    with progress_bar("selecting", progress) as report, open_engine(engine, threads) as opened:
        place = opened or Here()
        files = find_files(features, place)
        n, d = files.shape
        count = resolve_k(k, n)
        grouping = check_groups(groups, n)
        names, codes = (None, np.zeros(n, np.int64)) if grouping is None else grouping
        sizes = np.bincount(codes, minlength=1)
        budgets = split_budget(count, sizes, min_per_group)
        many = f"{len(files.files):,} file{'s' * (len(files.files) > 1)}"
        log.info("%s points of %s dimensions in %s", f"{n:,}", f"{d:,}", many)
        # A shard looks at all its pairs once, and the assignment of two rivals at all pairs of a point and a medoid.
        busy = [(int(m), int(b)) for m, b in zip(sizes, budgets, strict=True) if b]
        ticker = Ticker(float(sum(m * m / shards_for(m, b) + 2 * m * b for m, b in busy)), report)
        with one_blas_thread():
            picks = FileGreedi(files, codes, options, place, threads, ticker).run(budgets)
    which = np.repeat(np.flatnonzero(budgets), budgets[budgets > 0])
    info = {
        "algorithm": options.algorithm,
        "metric": options.metric,
        "k": count,
        "seed": options.seed,
        "path": f"greedi, {picks.shards} shard{'s' * (picks.shards > 1)} of {many}",
        "files": [[file.path, file.rows] for file in files.files],
    }
    groups = None if names is None else names[which]
    return Coreset.of_medoids(picks.indices, picks.medoid, picks.nearest, picks.gains, groups, info)
