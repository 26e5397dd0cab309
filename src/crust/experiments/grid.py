"""A grid of runs on an engine: what is there is not run again, what failed only on request, nothing is lost."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crust.errors import InputError
from crust.experiments.outputs.setting_diff import grid_cells
from crust.experiments.outputs.table_summary import ResultIndex, Summary, summarise
from crust.experiments.results_file import append, find, read_results, write_pages
from crust.experiments.specs import fill_defaults, key, seedless
from crust.experiments.task import Event, GridEngine, Spec, Tell, Work, check_alone, failure, remove


def run_grid(
    specs: Iterable[Spec],
    engine: GridEngine,
    work: Work,
    tell: Tell,
    *,
    known: Sequence[dict[str, Any]] = (),
    retry_failed: bool = False,
    keep_runs: bool = True,
) -> None:
    """Run what has no result yet, and write down each result as its run ends.

    Args:
        specs: from `make`; one that is there twice counts once.
        engine: `LocalGrid()` or `RayGrid()`, entered.
        work: where results and runs go, and what runs need.
        tell: called with every event.
        known: result lines from elsewhere, which need not be run again.
        retry_failed: also run what has failed before.
        keep_runs: leave the folders of finished runs; else they go once the result is written down.

    Example:
        >>> import tempfile
        >>> from crust.experiments import LocalGrid, make
        >>> here = Path(tempfile.mkdtemp())
        >>> with LocalGrid() as engine:
        ...     run_grid(
        ...         [make("erm", "symmetric:0.2", scale="smoke", epochs=1)],
        ...         engine,
        ...         Work(here / "results.jsonl", here / "runs"),
        ...         lambda event: print(event.kind),
        ...     )
        begun
        epoch
        ended
    """
    check_alone()
    work = dataclasses.replace(_anywhere(work), retry_failed=retry_failed)
    held: list[Spec] = []

    def hear(event: Event, last: bool = False) -> None:
        if event.kind == "full":
            raise InputError(f"{event.error}: make room and start again, what is finished is kept", code="disk-full")
        if event.kind == "held" and not last:
            held.append(event.spec)
            return
        if event.kind == "ended":
            assert event.line is not None
            if find(read_results(work.results), event.spec) is None:
                append(work.results, event.line)
            if not keep_runs:
                remove(work.place(event.spec))
        tell(event)

    todo = without_result(specs, [*read_results(work.results), *known])
    if not retry_failed:
        failed = failures(todo, work.folder)
        todo = [spec for spec in todo if key(spec) not in failed]
    if todo:
        engine.run(todo, work, hear)
    if held:  # by now whoever had them may be done, or gone
        engine.run(list(held), work, lambda event: hear(event, last=True))


def without_result(specs: Iterable[Spec], lines: Sequence[dict[str, Any]]) -> list[Spec]:
    """The specifications without a result, each once."""
    there = {key(fill_defaults(line["spec"])) for line in lines}
    return [spec for name, spec in {key(spec): spec for spec in specs}.items() if name not in there]


def failures(specs: Iterable[Spec], folder: Path) -> dict[str, str]:
    """The errors of the runs that have failed, by key."""
    found = {key(spec): failure(spec, folder) for spec in specs}
    return {name: error for name, error in found.items() if error is not None}


def title(spec: Spec, run: str | None = None) -> str:
    """A run in a few words."""
    return f"{spec['data']} {spec['labels']} {run or spec['method']} seed {spec['experiment']['seed']}"


def titles(specs: Sequence[Spec]) -> list[str]:
    """Runs in a few words each, with the settings that tell them apart: `cifar10 true crust fraction=0.3 seed 0`."""
    names = {key(spec): name for name, some in by_seeds(specs) for spec in some}
    return [title(spec, names[key(spec)]) for spec in specs]


def by_seeds(specs: Sequence[Spec]) -> list[tuple[str, list[Spec]]]:
    """Runs that differ in their seed alone, together, called by their method and what tells it apart on the dataset."""
    groups: dict[str, list[Spec]] = {}
    datasets: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(seedless(spec), []).append(spec)
        datasets.setdefault(spec["data"], []).append(spec)
    return [(entry.row, groups[seedless(entry.spec(""))]) for some in datasets.values() for entry in grid_cells(some)]


def _anywhere(work: Work) -> Work:
    """The same with absolute paths: workers may stand in another folder."""
    data = work.data_dir or Path(os.environ.get("CRUST_DATA") or "data")
    paths = {"results": work.results, "folder": work.folder, "data_dir": data, "human_labels": work.human_labels}
    absolute = {name: None if path is None else path.absolute() for name, path in paths.items()}
    return dataclasses.replace(work, **absolute, here=Path.cwd())  # type: ignore[arg-type]


def write_grid(
    specs: Iterable[dict[str, Any]],
    lines: Iterable[dict[str, Any]],
    folder: str | Path,
    *,
    title: str = "Results of a grid",
) -> list[Path]:
    """Write a grid's results as Markdown, CSV and an HTML page; what is missing is shown as missing.

    Args:
        specs: from `make`.
        lines: from `read_results`; those of other runs do no harm.
        folder: made where it is not there.
        title: of the pages.

    Returns:
        The files: grid.md, grid.csv, results.html.
    """
    from crust.experiments.outputs.results_html import build
    from crust.experiments.outputs.table_markdown import table_csv, table_page

    asked, every = list(specs), list(lines)
    summary = _grid_summary(asked, ResultIndex(every), title)
    used = {id(line) for cell in summary.cells.values() for line in cell.lines.values()}
    about = f"{summary.wanted - summary.missing} of {summary.wanted} runs are there."
    runs = [line for line in every if id(line) in used]
    files = {
        "grid.md": table_page(summary),
        "grid.csv": table_csv(summary),
        "results.html": build(title, about, [summary], lines=runs),
    }
    return write_pages(folder, {name: content.encode() for name, content in files.items()})


def _grid_summary(specs: Sequence[dict[str, Any]], found: ResultIndex, title: str) -> Summary:
    seeds = sorted({spec["experiment"]["seed"] for spec in specs})
    same = {name: {str(spec.get(name)) for spec in specs} for name in ("data", "model")}
    epochs = {str(spec["experiment"]["epochs"]) for spec in specs}
    about = (
        f"Data: {', '.join(sorted(same['data']))}; network: {', '.join(sorted(same['model']))}; epochs: "
        f"{', '.join(sorted(epochs))}; seeds: {', '.join(map(str, seeds))}."
    )
    return summarise("grid", title, about, grid_cells(specs), found, "", seeds)
