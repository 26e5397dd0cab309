"""`select` for points in files: `greedi`, with whatever engine there is."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from crust.errors import InputError
from crust.selection.budget import resolve_k, split_budget
from crust.selection.coreset import Coreset
from crust.selection.engines import open_engine
from crust.selection.group_names import check_groups
from crust.selection.options import Options
from crust.selection.progress import progress_bar
from crust.selection.shard_files import find_files
from crust.selection.workers import Ticker

log = logging.getLogger("crust")


class Here:
    """The engine that is none: one piece after another, in this process."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        return map(function, items)


def select_files(
    features: Any, k: float, groups: Any, min_per_group: int, options: Options, engine: Any, progress: bool
) -> Coreset:
    """Choose points from files; the arguments are those of `select`, and its rows count through all files."""
    if options.algorithm != "greedi":
        raise InputError(f"algorithm {options.algorithm!r} needs all points at once: use algorithm 'greedi' for files")
    if options.metric == "precomputed":
        raise InputError("a matrix of distances cannot be read from several files: give the points, or one array")
    if options.device not in (None, "cpu"):
        raise InputError(f"files are worked on by the CPU only: leave out the device {options.device!r}")
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
        found = _run(files, codes, budgets, sizes, options, place, threads, report)
    chosen = np.concatenate(found.indices)
    position = np.empty(n, np.int64)
    position[chosen] = np.arange(len(chosen))
    assignment = position[found.medoid]
    which = np.repeat(np.flatnonzero(budgets), budgets[budgets > 0])
    return Coreset(
        indices=chosen,
        weights=np.bincount(assignment, minlength=len(chosen)),
        assignment=assignment,
        gains=np.concatenate(found.gains),
        objective=float(found.nearest.sum()),
        distances=np.minimum(found.nearest, np.finfo(np.float32).max).astype(np.float32),
        groups=None if names is None else names[which],
        info={
            "algorithm": options.algorithm,
            "metric": options.metric,
            "k": count,
            "seed": options.seed,
            "path": f"greedi, {found.shards} shard{'s' * (found.shards > 1)} of {many}",
            "files": [[file.path, file.rows] for file in files.files],
        },
    )


def _run(
    files: Any, codes: Any, budgets: Any, sizes: Any, options: Options, engine: Any, threads: int, report: Any
) -> Any:
    # The kernels need numba, which is imported only where they are used.
    from crust.selection.distributed import shards_for
    from crust.selection.entry import one_blas_thread
    from crust.selection.sharded import greedi_on_files

    busy = [(int(n), int(k)) for n, k in zip(sizes, budgets, strict=True) if k]
    # A shard looks at all its pairs once, and the assignment of two rivals at all pairs of a point and a medoid.
    total = sum(n * n / shards_for(n, k) + 2 * n * k for n, k in busy)
    ticker = Ticker(float(total), report)
    with one_blas_thread():
        return greedi_on_files(files, codes, budgets, options, engine=engine, threads=threads, ticker=ticker)
