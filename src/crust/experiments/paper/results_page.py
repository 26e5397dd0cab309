"""All experiments of a scale on one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crust._util.atomic_write import write_atomic
from crust.experiments.outputs.results_html import build
from crust.experiments.paper.experiment import Experiment
from crust.experiments.paper.published import SOURCE
from crust.experiments.table_cells import Found


def page_of(
    experiments: Mapping[str, Experiment],
    lines: Iterable[dict[str, Any]],
    scale: str,
    path: str | Path,
    seeds: int | Iterable[int] | None,
) -> Path:
    """Write the page; those of the experiments that are not defined at the scale are left out."""
    every = list(lines)
    there = {name: each for name, each in experiments.items() if scale in each.scales}
    found = Found(every)
    kept = list(seeds) if isinstance(seeds, Iterable) else seeds
    summaries = [each.summary(found, scale, kept) for each in there.values()]
    used = {id(line) for summary in summaries for cell in summary.cells.values() for line in cell.lines.values()}
    done = sum(summary.wanted - summary.missing for summary in summaries)
    asked = sum(summary.wanted for summary in summaries)
    about = f"At scale {scale}; {done} of {asked} runs are there, counting those that two tables share twice."
    text = build(
        "CRUST: the paper's experiments",
        about,
        summaries,
        panels={name: each.panels for name, each in there.items() if each.panels},
        lines=[line for line in every if id(line) in used],
        source=SOURCE,
    )
    write_atomic(path, text.encode())
    return Path(path)
