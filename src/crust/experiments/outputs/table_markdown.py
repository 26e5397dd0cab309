"""Cells in words, the same on every page; tables as Markdown and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from statistics import mean

from crust.experiments.outputs.table_summary import Reported, Summary, TableCell
from crust.methods import METHODS

TRUTH = "‡"


def mean_sd(middle: float | None, deviation: float | None = None, digits: int = 1, sign: str = "") -> str:
    """Mean ± standard deviation; with `sign="+"` the mean has a plus where it is positive.

    Example:
        >>> mean_sd(51.04, 1.42), mean_sd(50), mean_sd(None)
        ('51.0 ± 1.4', '50.0', '–')
    """
    if middle is None:
        return "–"
    return f"{middle:{sign}.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def value(cell: TableCell | None, digits: int = 1) -> tuple[str, str]:
    """Our number and how many runs it is from: a number is never shown without them."""
    if cell is None:
        return "–", ""
    if not cell.n:
        return "missing", ""
    asked = cell.n + len(cell.missing)
    return mean_sd(cell.mean, cell.deviation, digits), f"{cell.n} of {asked}" if cell.missing else str(cell.n)


def reported(of: Reported | None, digits: int = 1) -> str:
    """The paper's number."""
    return "–" if of is None else mean_sd(of.mean, of.deviation, digits)


def knows(cells: Iterable[TableCell]) -> str:
    """What the method of a row was told, as far as runs say so; else what it needs."""
    some = list(cells)
    found: dict[str, list[str]] = {}
    for cell in some:
        for name, source in cell.knowledge().items():
            found.setdefault(name, []).append(source)
    if found:
        return ", ".join(f"{name} ({' and '.join(sorted(set(sources)))})" for name, sources in found.items())
    if any(cell.n for cell in some):
        return "nothing"
    return METHODS[some[0].entry.method].needs


def informed(summary: Summary) -> bool:
    """Whether any method of a table knows anything."""
    return any(knows(summary.row(row)) != "nothing" for row in summary.rows)


def cost(cells: Iterable[TableCell], of: str) -> float | None:
    """Passes or seconds relative to `erm`: the mean over a row's columns, each relative to its own `erm`."""
    known = [each for each in (getattr(cell, of) for cell in cells) if each is not None]
    return mean(known) if known else None


def legend(summary: Summary) -> str:
    """How to read a table."""
    words = (
        "Percent in the last epoch: mean ± standard deviation over seeds, and the number of runs. The best "
        "of each column is bold. "
    )
    if any(cell.reported for cell in summary.cells.values()):
        words += "Columns headed *paper* are what the paper reports. "
    words += (
        "Passes: examples that went forward or backward through a network, preparation and evaluation passes included, "
        "relative to `erm` on the same labels"
    )
    words += "; seconds likewise. " if summary.timed else ". "
    if informed(summary):
        words += (
            "Knows: what a method was told about the noise, and where that is from: estimated from the data, given by "
            f"the user, or true; {TRUTH} marks numbers that rest on true knowledge, which is not to be had in earnest, "
            "and they are never the best. "
        )
    return words + "A run that has not been made is missing; a dash is a place where nothing is defined."


def missing_words(summary: Summary) -> str:
    """Which runs are not there, in one paragraph."""
    if not summary.missing:
        return "No run is missing."
    parts = []
    for column in summary.columns:
        asked = {row: cell for (row, name), cell in summary.cells.items() if name == column and not cell.entry.optional}
        gone = {row: cell.missing for row, cell in asked.items() if cell.missing}
        if gone and len(gone) == len(asked) and all(not cell.n for cell in asked.values()):
            parts.append(f"{column}: all")
        elif gone:
            seeds = {row: f" (seed {', '.join(map(str, gone[row]))})" if asked[row].n else "" for row in gone}
            parts.append(f"{column}: {', '.join(f'`{row}`{words}' for row, words in seeds.items())}")
    return f"Missing: {summary.missing} of {summary.wanted} runs. {'; '.join(parts)}."


def table_page(summary: Summary, source: str = "") -> str:
    """The page of a table; `source` is where the paper's numbers are from."""
    parts = [f"# {_safe(summary.title)}", _safe(summary.about), accuracy_table(summary), legend(summary)]
    parts += [_safe(missing_words(summary)), f"The paper: {source}." if source else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def accuracy_table(summary: Summary) -> str:
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
            line.append(_our_cell(cell, row in summary.best(column), summary.digits))
            if paired:
                theirs = reported(None if cell is None else cell.reported, summary.digits)
                line.append(f"**{theirs}**" if row in summary.best_reported(column) else theirs)
        cells = summary.row(row)
        ratios = [cost(cells, of) for of in ("passes", "seconds")[: 1 + summary.timed]]
        line += ["–" if ratio is None else f"{ratio:.2f}×" for ratio in ratios]
        rows.append([*line, knows(cells)] if informed(summary) else line)
    return markdown([*header, "knows"] if informed(summary) else header, rows)


def _our_cell(cell: TableCell | None, best: bool, digits: int) -> str:
    text, runs = value(cell, digits)
    text = f"**{text}**" if best else text
    return f"{text}{TRUTH if cell is not None and cell.n and cell.truth else ''}{f' ({runs})' if runs else ''}"


def _safe(text: str) -> str:
    """Names that users give are no HTML."""
    return text.replace("<", "&lt;")


COLUMNS = (
    "experiment", "scale", "row", "column", "method", "labels", "n", "mean", "sd", "last10", "best_epoch",
    "audit_auroc", "passes_relative", "seconds_relative", "paper_mean", "paper_sd", "noise_info", "true_noise_info",
    "missing_seeds",
)  # fmt: skip


def table_csv(summary: Summary) -> str:
    """One line a cell; numbers in percent but for the ratios and the AUROC, empty where there is none."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (row, column), cell in summary.cells.items():
        aurocs = [value / 100 for value in cell.percent("audit", "auroc")]
        others = [_mean(cell.percent(*cell.entry.measure[:-1], name)) for name in ("last10", "best")]
        paper = cell.reported
        writer.writerow([
            summary.name, summary.scale, row, column, cell.entry.method, cell.entry.labels, cell.n,
            *map(_csv_number, (cell.mean, cell.deviation, *others)),
            *(_csv_number(value, 4) for value in (_mean(aurocs), cell.passes, cell.seconds)),
            None if paper is None else paper.mean, None if paper is None else paper.deviation,
            "; ".join(f"{name} {source}" for name, source in cell.knowledge().items()),
            "yes" if cell.truth else "no", " ".join(map(str, cell.missing)),
        ])  # fmt: skip
    return buffer.getvalue()


def _mean(values: list[float]) -> float | None:
    return mean(values) if values else None


def _csv_number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else mean_sd(value, digits=digits)


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
