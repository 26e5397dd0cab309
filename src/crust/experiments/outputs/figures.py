"""Curves over epochs with their spread over seeds: as numbers, as pictures, and as pages in Markdown and CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from crust._util.plot_style import png
from crust.experiments.outputs.table_markdown import markdown, mean_sd, missing_words, value
from crust.experiments.outputs.table_summary import Summary, TableCell, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#b45309", "#1d6fb8", "#3f7d20", "#7b3fa0", "#b42318", "#52606d")
STYLES = ("-", "--", ":", "-.")  # for those who do not see colours


@dataclass(frozen=True)
class Curve:
    """One quantity over the epochs: its mean, and how far runs lie from it; None where it was not measured."""

    middle: Sequence[float | None]
    deviation: Sequence[float | None]  # 0 where there is one run

    def points(self) -> list[tuple[int, float, float]]:
        """Epoch, mean, standard deviation, where they are known."""
        both = zip(self.middle, self.deviation, strict=True)
        return [(i, m, d or 0.0) for i, (m, d) in enumerate(both, 1) if m is not None]


def curve(cell: TableCell, name: str) -> Curve | None:
    """The curve of a cell's runs; None where they have none.

    Only as many epochs as the experiment has, from the end: what methods do before, to estimate or to prepare, is no
    part of it.
    """
    some: list[list[Any]] = []
    for line in cell.lines.values():
        values, last = (line.get("curves") or {}).get(name) or [], number_of(line, "spec", "experiment", "epochs")
        some.append(values if last is None else values[-int(last) :])
    longest = max(map(len, some), default=0)
    epochs = [[values[i] for values in some if i < len(values) and values[i] is not None] for i in range(longest)]
    if not any(epochs):
        return None
    return Curve(
        [mean(values) if values else None for values in epochs],
        [stdev(values) if len(values) > 1 else 0.0 if values else None for values in epochs],
    )


def picture(panels: Mapping[str, Mapping[str, Curve | None]], tones: Mapping[str, int] | None = None) -> bytes:
    """Panels side by side as a PNG: a line for the mean, a band of one standard deviation around it.

    `panels` are by title, then by the name of the curve; `tones` has the number of a curve's colour by its name, by
    default in the order in which names come.
    """
    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    chosen = {name: number for number, name in enumerate(names)} if tones is None else tones
    draws = [partial(_panel, title=title, curves=curves, tones=chosen) for title, curves in panels.items()]
    return png(draws, width=4.2, height=3.6, sharex=True)


def _panel(axes: Axes, title: str, curves: Mapping[str, Curve | None], tones: Mapping[str, int]) -> None:
    from matplotlib.ticker import MaxNLocator

    for name, found in curves.items():
        if found is None:
            continue
        number = tones[name]
        colour = COLOURS[number % len(COLOURS)]
        points = found.points()
        epochs, middle = [x for x, _, _ in points], [100 * y for _, y, _ in points]
        axes.plot(epochs, middle, STYLES[number % len(STYLES)], color=colour, linewidth=1.8, label=name)
        low, high = ([100 * (y + sign * d) for _, y, d in points] for sign in (-1, 1))
        axes.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.set_title(title, loc="left", color="#1f2933")
    axes.set_xlabel("epoch")
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.yaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter("{x:.0f}%")
    if any(curves.values()):
        axes.legend(frameon=False)
    else:
        axes.text(0.5, 0.5, "no runs yet", ha="center", va="center", transform=axes.transAxes)


Panels = Mapping[str, str]  # the name of a curve in a result line, and its title


def panels_of(summary: Summary, row: str, panels: Panels) -> dict[str, dict[str, Curve | None]]:
    """The curves of a row, by the title of the panel and by the column."""
    cells = summary.row(row)
    return {title: {cell.entry.column: curve(cell, name) for cell in cells} for name, title in panels.items()}


def tones_of(summary: Summary) -> dict[str, int]:
    """The colours of a figure's columns: the same in every row, also where a row has only some of them."""
    return {column: number for number, column in enumerate(summary.columns)}


def figure_pngs(summary: Summary, panels: Panels) -> dict[str, bytes]:
    """A PNG for each row that has runs, by the name of its file; for the first row in any case."""
    return {
        f"{_stem(summary, row)}.png": picture(panels_of(summary, row, panels), tones_of(summary))
        for row in summary.rows
        if row == summary.rows[0] or any(cell.n for cell in summary.row(row))
    }


def figure_page(summary: Summary, panels: Panels) -> str:
    """The page of a figure: its pictures, and their numbers at some epochs."""
    parts = [f"# {summary.title}", summary.about]
    for row in summary.rows:
        cells = summary.row(row)
        if row != summary.rows[0] and not any(cell.n for cell in cells):
            continue
        parts += [f"## `{row}`", f"![{row}: {', '.join(panels.values())}]({_stem(summary, row)}.png)"]
        parts += [f"{title}, percent:\n\n{_epoch_table(cells, name)}" for name, title in panels.items()]
    parts.append("A line is the mean over seeds, its band one standard deviation.")
    return "\n\n".join([*parts, missing_words(summary)]) + "\n"


def _epoch_table(cells: list[TableCell], name: str) -> str:
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
            mean_sd(100 * known[epoch][0], 100 * known[epoch][1] if cell.n > 1 else None) if epoch in known else "–"
            for epoch in epochs
        ]
        rows.append([column, *texts, value(cell)[1]])
    return markdown(["coreset", *(f"epoch {epoch}" for epoch in epochs), "runs"], rows)


def figure_csv(summary: Summary, panels: Panels) -> str:
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
