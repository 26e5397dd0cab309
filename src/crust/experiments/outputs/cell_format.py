"""Cells in words, the same on every page."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean

from crust.experiments.outputs.table_summary import Cell, Summary
from crust.experiments.table_cells import Reported
from crust.methods import METHODS

TRUTH = "‡"


def number(middle: float | None, deviation: float | None = None, digits: int = 1) -> str:
    """Mean ± standard deviation.

    Example:
        >>> number(51.04, 1.42), number(50), number(None)
        ('51.0 ± 1.4', '50.0', '–')
    """
    if middle is None:
        return "–"
    return f"{middle:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def value(cell: Cell | None, digits: int = 1) -> tuple[str, str]:
    """Our number and how many runs it is from: a number is never shown without them.

    Example:
        >>> from crust.experiments.table_cells import Entry
        >>> entry = Entry("erm", "a", "erm", "true")
        >>> value(Cell(entry, {0: {"accuracy": {"last": 0.5}}}, [1]), digits=1)
        ('50.0', '1 of 2')
        >>> value(Cell(entry, {}, [0, 1])), value(None)
        (('missing', ''), ('–', ''))
    """
    if cell is None:
        return "–", ""
    if not cell.n:
        return "missing", ""
    asked = cell.n + len(cell.missing)
    return number(cell.mean, cell.deviation, digits), f"{cell.n} of {asked}" if cell.missing else str(cell.n)


def reported(of: Reported | None, digits: int = 1) -> str:
    """The paper's number.

    Example:
        >>> reported(Reported(91.1, 0.2)), reported(None)
        ('91.1 ± 0.2', '–')
    """
    return "–" if of is None else number(of.mean, of.deviation, digits)


def knows(cells: Iterable[Cell]) -> str:
    """What the method of a row was told, as far as runs say so; else what it needs.

    Example:
        >>> from crust.experiments.table_cells import Entry
        >>> knows([Cell(Entry("incv", "a", "incv", "true"))]), knows([Cell(Entry("erm", "a", "erm", "true"))])
        ('the noise type (estimated)', 'nothing')
    """
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


def cost(cells: Iterable[Cell], of: str) -> float | None:
    """Passes or seconds relative to `erm`: the mean over a row's columns, each relative to its own `erm`.

    Example:
        >>> from crust.experiments.table_cells import Entry
        >>> entry = Entry("erm", "a", "erm", "true")
        >>> cost([Cell(entry, passes=1.0), Cell(entry, passes=2.0), Cell(entry)], "passes")
        1.5
    """
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
        "Passes: examples that went forward or backward through a network, preparation and looks included, relative to "
        "`erm` on the same labels"
    )
    words += "; seconds likewise. " if summary.timed else ". "
    if informed(summary):
        words += (
            "Knows: what a method was told about the noise, and where that is from: estimated from the data, given by "
            f"the user, or true; {TRUTH} marks numbers that rest on true knowledge, which is not to be had in earnest, "
            "and they are never the best. "
        )
    return words + "A run that has not been made is missing; a dash is a place where nothing is defined."


def missing(summary: Summary) -> str:
    """Which runs are not there, in one paragraph.

    Example:
        >>> from crust.experiments.table_cells import Entry, Found
        >>> from crust.experiments.outputs.table_summary import summarise
        >>> entries = [Entry(row, "a", row, "true") for row in ("erm", "mixup")]
        >>> missing(summarise("t", "T", "", entries, Found([]), "cpu", [0]))
        'Missing: 2 of 2 runs. a: all.'
    """
    if not summary.missing:
        return "No run is missing."
    parts = []
    for column in summary.columns:
        asked = {row: cell for (row, name), cell in summary.cells.items() if name == column and not cell.entry.optional}
        gone = {row: cell.missing for row, cell in asked.items() if cell.missing}
        if gone and len(gone) == len(asked) and all(not cell.n for cell in asked.values()):
            parts.append(f"{column}: all")
        elif gone:
            names = [f"`{row}`" + (f" (seed {_list(seeds)})" if asked[row].n else "") for row, seeds in gone.items()]
            parts.append(f"{column}: {', '.join(names)}")
    return f"Missing: {summary.missing} of {summary.wanted} runs. {'; '.join(parts)}."


def _list(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, seeds))
