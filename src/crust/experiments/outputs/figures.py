"""Curves over epochs with their spread over seeds: as numbers, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from crust._util.plot_style import png
from crust.experiments.outputs.table_summary import Cell, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#b45309", "#1d6fb8", "#3f7d20", "#7b3fa0", "#b42318", "#52606d")
STYLES = ("-", "--", ":", "-.")  # for those who do not see colours


@dataclass(frozen=True)
class Curve:
    """One quantity over the epochs: its mean, and how far runs lie from it; None where it was not measured.

    Example:
        >>> Curve([0.5, None], [0.1, None]).points()
        [(1, 0.5, 0.1)]
    """

    middle: Sequence[float | None]
    deviation: Sequence[float | None]  # 0 where there is one run

    def points(self) -> list[tuple[int, float, float]]:
        """Epoch, mean, standard deviation, where they are known."""
        both = zip(self.middle, self.deviation, strict=True)
        return [(i, m, d or 0.0) for i, (m, d) in enumerate(both, 1) if m is not None]


def curve(cell: Cell, name: str) -> Curve | None:
    """The curve of a cell's runs; None where they have none.

    Only as many epochs as the experiment has, from the end: what methods do before, to estimate or to prepare, is no
    part of it.

    Example:
        >>> from crust.experiments.table_cells import Entry
        >>> lines = {0: {"curves": {"clean_fraction": [0.5, 0.6]}}, 1: {"curves": {"clean_fraction": [0.5, 0.8]}}}
        >>> found = curve(Cell(Entry("crust", "30%", "crust", "true"), lines), "clean_fraction")
        >>> [(i, round(m, 2), round(d, 2)) for i, m, d in found.points()]
        [(1, 0.5, 0.0), (2, 0.7, 0.14)]
    """
    some: list[list[Any]] = [_tail(line, (line.get("curves") or {}).get(name) or []) for line in cell.lines.values()]
    longest = max(map(len, some), default=0)
    epochs = [[values[i] for values in some if i < len(values) and values[i] is not None] for i in range(longest)]
    if not any(epochs):
        return None
    return Curve(
        [mean(values) if values else None for values in epochs],
        [stdev(values) if len(values) > 1 else 0.0 if values else None for values in epochs],
    )


def _tail(line: dict[str, Any], values: list[Any]) -> list[Any]:
    epochs = number_of(line, "spec", "experiment", "epochs")
    return values if epochs is None else values[-int(epochs) :]


def picture(panels: Mapping[str, Mapping[str, Curve | None]], tones: Mapping[str, int] | None = None) -> bytes:
    """Panels side by side as a PNG: a line for the mean, a band of one standard deviation around it.

    Args:
        panels: by title, then by the name of the curve.
        tones: the number of a curve's colour by its name; by default in the order in which names come.
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
