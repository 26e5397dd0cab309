"""A figure as Markdown, CSV and PNG: rows are what gets a picture of its own, columns are its curves."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO

from crust.experiments.outputs.cell_format import missing, number, value
from crust.experiments.outputs.figures import Curve, curve, picture
from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.outputs.table_summary import Cell, Summary

Panels = Mapping[str, str]  # the name of a curve in a result line, and its title


def panels_of(summary: Summary, row: str, panels: Panels) -> dict[str, dict[str, Curve | None]]:
    """The curves of a row, by the title of the panel and by the column."""
    cells = summary.row(row)
    return {title: {cell.entry.column: curve(cell, name) for cell in cells} for name, title in panels.items()}


def tones_of(summary: Summary) -> dict[str, int]:
    """The colours of a figure's columns: the same in every row, also where a row has only some of them."""
    return {column: number for number, column in enumerate(summary.columns)}


def pictures(summary: Summary, panels: Panels) -> dict[str, bytes]:
    """A PNG for each row that has runs, by the name of its file; for the first row in any case."""
    return {
        f"{_stem(summary, row)}.png": picture(panels_of(summary, row, panels), tones_of(summary))
        for row in summary.rows
        if row == summary.rows[0] or any(cell.n for cell in summary.row(row))
    }


def as_markdown(summary: Summary, panels: Panels) -> str:
    """The page of a figure: its pictures, and their numbers at some epochs."""
    parts = [f"# {summary.title}", summary.about]
    for row in summary.rows:
        cells = summary.row(row)
        if row != summary.rows[0] and not any(cell.n for cell in cells):
            continue
        parts += [f"## `{row}`", f"![{row}: {', '.join(panels.values())}]({_stem(summary, row)}.png)"]
        parts += [f"{title}, percent:\n\n{_numbers(cells, name)}" for name, title in panels.items()]
    parts.append("A line is the mean over seeds, its band one standard deviation.")
    return "\n\n".join([*parts, missing(summary)]) + "\n"


def _numbers(cells: list[Cell], name: str) -> str:
    curves = {cell.entry.column: (cell, curve(cell, name)) for cell in cells}
    longest = max((len(found.middle) for _, found in curves.values() if found is not None), default=0)
    epochs = [epoch for epoch in (1, 2, 5, 10, 20, 30, 40, 60, 80, 100, 120) if epoch < longest] + [longest] * (
        longest > 0
    )
    rows = []
    for column, (cell, found) in curves.items():
        if found is None:
            rows.append([column, *("–" for _ in epochs), "missing"])
            continue
        known = {epoch: (middle, deviation) for epoch, middle, deviation in found.points()}
        texts = [
            number(100 * known[epoch][0], 100 * known[epoch][1] if cell.n > 1 else None) if epoch in known else "–"
            for epoch in epochs
        ]
        rows.append([column, *texts, value(cell)[1]])
    return markdown(["coreset", *(f"epoch {epoch}" for epoch in epochs), "runs"], rows)


def as_csv(summary: Summary, panels: Panels) -> str:
    """One line an epoch, a curve and a coreset; numbers in percent."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["experiment", "scale", "row", "column", "curve", "epoch", "n", "mean", "sd"])
    for (row, column), cell in summary.cells.items():
        for name in panels:
            found = curve(cell, name)
            for epoch, middle, deviation in [] if found is None else found.points():
                spread = f"{100 * deviation:.3f}" if cell.n > 1 else ""
                line = [summary.name, summary.scale, row, column, name, epoch, cell.n, f"{100 * middle:.3f}", spread]
                writer.writerow(line)
    return buffer.getvalue()


def _stem(summary: Summary, row: str) -> str:
    return summary.name if row == summary.rows[0] else f"{summary.name}-{row}"
