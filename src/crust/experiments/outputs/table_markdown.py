"""A table as Markdown and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from statistics import mean

from crust.experiments.outputs.cell_format import TRUTH, cost, informed, knows, legend, missing, number, reported, value
from crust.experiments.outputs.table_summary import Cell, Summary


def as_markdown(summary: Summary, source: str = "") -> str:
    """The page of a table.

    Args:
        summary: the table.
        source: where the paper's numbers are from.
    """
    parts = [
        f"# {_safe(summary.title)}",
        _safe(summary.about),
        table(summary),
        legend(summary),
    ]
    parts += [_safe(missing(summary)), f"The paper: {source}." if source else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(summary: Summary) -> str:
    """The table alone."""
    pairs = {name: any(summary.cells[at].reported for at in summary.cells if at[1] == name) for name in summary.columns}
    header = [""]
    for column, paired in pairs.items():
        header += [_safe(column), "paper"] if paired else [_safe(column)]
    header += ["passes", "seconds"] if summary.timed else ["passes"]
    rows = []
    for row in summary.rows:
        line = [f"`{row}`"]
        for column, paired in pairs.items():
            cell = summary.cells.get((row, column))
            line.append(_ours(cell, row in summary.best(column), summary.digits))
            if paired:
                theirs = reported(None if cell is None else cell.reported, summary.digits)
                line.append(f"**{theirs}**" if row in summary.best_reported(column) else theirs)
        cells = summary.row(row)
        line += [_times(cost(cells, of)) for of in (("passes", "seconds") if summary.timed else ("passes",))]
        rows.append([*line, knows(cells)] if informed(summary) else line)
    return markdown([*header, "knows"] if informed(summary) else header, rows)


def _ours(cell: Cell | None, best: bool, digits: int) -> str:
    text, runs = value(cell, digits)
    text = f"**{text}**" if best else text
    return f"{text}{TRUTH if cell is not None and cell.n and cell.truth else ''}{f' ({runs})' if runs else ''}"


def _safe(text: str) -> str:
    """Names that users give are no HTML."""
    return text.replace("<", "&lt;")


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


COLUMNS = (
    "experiment", "scale", "row", "column", "method", "labels", "n", "mean", "sd", "last10", "best_epoch",
    "audit_auroc", "passes_relative", "seconds_relative", "paper_mean", "paper_sd", "noise_info", "true_noise_info",
    "missing_seeds",
)  # fmt: skip


def as_csv(summary: Summary) -> str:
    """One line a cell; numbers in percent but for the ratios and the AUROC, empty where there is none."""
    buffer = StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for (row, column), cell in summary.cells.items():
        aurocs = cell.percent("audit", "auroc")
        paper = cell.reported
        writer.writerow(
            {
                "experiment": summary.name,
                "scale": summary.scale,
                "row": row,
                "column": column,
                "method": cell.entry.method,
                "labels": cell.entry.labels,
                "n": cell.n,
                "mean": _plain(cell.mean),
                "sd": _plain(cell.deviation),
                "last10": _plain(_mean(cell.percent(*cell.entry.measure[:-1], "last10"))),
                "best_epoch": _plain(_mean(cell.percent(*cell.entry.measure[:-1], "best"))),
                "audit_auroc": _plain(_mean([value / 100 for value in aurocs]), 4),
                "passes_relative": _plain(cell.passes, 4),
                "seconds_relative": _plain(cell.seconds, 4),
                "paper_mean": None if paper is None else paper.mean,
                "paper_sd": None if paper is None else paper.deviation,
                "noise_info": "; ".join(f"{name} {source}" for name, source in cell.knowledge().items()),
                "true_noise_info": "yes" if cell.truth else "no",
                "missing_seeds": " ".join(map(str, cell.missing)),
            }
        )
    return buffer.getvalue()


def _mean(values: list[float]) -> float | None:
    return mean(values) if values else None


def _plain(value: float | None, digits: int = 3) -> str:
    return "" if value is None else number(value, digits=digits)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; a bar in a cell does not end it.

    Example:
        >>> print(markdown(["method", "last"], [["erm|x", "33.4"]]))
        | method | last |
        |---|---|
        | erm\\|x | 33.4 |
    """
    whole = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in (header, *rows)]
    lines = [whole[0], ["---"] * len(header), *whole[1:]]
    return "\n".join(("|" + "|".join(line) + "|") if line[0] == "---" else f"| {' | '.join(line)} |" for line in lines)
