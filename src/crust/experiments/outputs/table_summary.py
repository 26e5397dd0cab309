"""From result lines to what a table shows: the runs of each row and column, their numbers, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any, NamedTuple

from crust.experiments.specs import fill_defaults, key, make, seedless
from crust.methods import METHODS


class Reported(NamedTuple):
    """What a paper reports: a mean in percent, and the standard deviation where one is given."""

    mean: float
    deviation: float | None = None


@dataclass(frozen=True)
class TableCellSpec:
    """One place in a table: a run for every seed, and the number of it that is shown.

    Args:
        row: its row.
        column: its column.
        method: the method that is run.
        labels: the labels it is trained on.
        options: everything else that `make` takes.
        measure: where the number stands in a result line.
        optional: shown where there are runs of it, but not asked for.
        seeds: those that are asked for, where they are not the table's.
    """

    row: str
    column: str
    method: str
    labels: str
    options: Mapping[str, Any] = field(default_factory=dict)
    measure: tuple[str, ...] = ("accuracy", "last")
    optional: bool = False
    seeds: tuple[int, ...] | None = None

    def spec(self, scale: str, seed: int = 0) -> dict[str, Any]:
        """The specification of its run with this seed."""
        return make(self.method, self.labels, scale=scale, seed=seed, **self.options)


def specs_of(entries: Iterable[TableCellSpec], scale: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """The runs that entries ask for, seed after seed; what two of them share is there once."""
    wanted = [entry for entry in entries if not entry.optional]
    made = (entry.spec(scale, seed) for seed in seeds for entry in wanted)
    return list({key(spec): spec for spec in made}.values())


class ResultIndex:
    """Result lines by what was run, all seeds together."""

    def __init__(self, lines: Iterable[dict[str, Any]]):
        self._lines: dict[str, dict[int, dict[str, Any]]] = {}
        for line in lines:
            spec = line.get("spec")
            if "accuracy" in line and isinstance(spec, dict) and {"method", "experiment", "settings"} <= spec.keys():
                self._lines.setdefault(seedless(fill_defaults(spec)), {})[spec["experiment"].get("seed", 0)] = line

    def runs(self, spec: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """The results of a specification by their seeds, in order, whatever its own seed."""
        some = self._lines.get(seedless(spec), {})
        return {seed: some[seed] for seed in sorted(some)}


CLOCKS = ("stage", "epoch", "evaluation", "gradients")  # selection is a part of the epoch


@dataclass(frozen=True)
class TableCell:
    """One place in a table.

    Args:
        entry: what was asked for.
        lines: the results by their seeds.
        missing: seeds that are asked for and have no result.
        reported: what the paper has here.
        passes: examples forward and backward, relative to `erm` on the same labels with the same seeds.
        seconds: the same for time, of runs on machines of one kind that were not made beside others.
    """

    entry: TableCellSpec
    lines: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    missing: Sequence[int] = ()
    reported: Reported | None = None
    passes: float | None = None
    seconds: float | None = None

    @property
    def values(self) -> list[float]:
        """The numbers in percent, seed after seed."""
        return self.percent(*self.entry.measure)

    @property
    def n(self) -> int:
        """How many runs there are."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Of the runs, in percent."""
        return mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the runs; None for fewer than two."""
        return stdev(self.values) if self.n > 1 else None

    def percent(self, *path: str) -> list[float]:
        """A number of each run, in percent, where it is there."""
        return [100 * value for value in (number_of(line, *path) for line in self.lines.values()) if value is not None]

    @property
    def truth(self) -> bool:
        """Whether the method was told something true that nobody would know in earnest."""
        if METHODS[self.entry.method].uses_true_labels:
            return True
        return any(known.get("source") == "true" for line in self.lines.values() for known in _known(line).values())

    def knowledge(self) -> dict[str, str]:
        """What the method used, and where it had it from: estimated, given or true."""
        if METHODS[self.entry.method].uses_true_labels:
            return {"all labels": "true"}
        asked = METHODS[self.entry.method].Settings.model_fields
        found: dict[str, str] = {}
        for line in self.lines.values():
            for name, known in _known(line).items():
                if name in asked or known.get("source") != "estimated":
                    found[name.replace("_", " ")] = str(known.get("source"))
        return found


@dataclass(frozen=True)
class Summary:
    """A table: rows and columns in order, and a cell wherever something is asked for or there."""

    name: str
    title: str
    about: str
    scale: str
    cells: Mapping[tuple[str, str], TableCell]
    wanted: int  # runs that are asked for
    missing: int  # those of them that are not there
    digits: int = 1

    @property
    def rows(self) -> list[str]:
        """Their names, in order."""
        return list(dict.fromkeys(row for row, _ in self.cells))

    @property
    def columns(self) -> list[str]:
        """Their names, in order."""
        return list(dict.fromkeys(column for _, column in self.cells))

    def row(self, name: str) -> list[TableCell]:
        """The cells of a row."""
        return [cell for (row, _), cell in self.cells.items() if row == name]

    @property
    def timed(self) -> bool:
        """Whether any time can be compared."""
        return any(cell.seconds is not None for cell in self.cells.values())

    def best(self, column: str) -> set[str]:
        """The rows with the largest mean as it is shown, among those that know nothing true.

        Empty where fewer than two can be compared.
        """
        shown = {
            row: round(cell.mean, self.digits)
            for (row, name), cell in self.cells.items()
            if name == column and cell.mean is not None and not cell.truth
        }
        return {row for row, value in shown.items() if value == max(shown.values())} if len(shown) > 1 else set()

    def best_reported(self, column: str) -> set[str]:
        """The same of what the paper reports."""
        known = {row: cell.reported.mean for (row, at), cell in self.cells.items() if at == column and cell.reported}
        return {row for row, value in known.items() if value == max(known.values())} if len(known) > 1 else set()


def summarise(
    name: str,
    title: str,
    about: str,
    entries: Iterable[TableCellSpec],
    found: ResultIndex,
    scale: str,
    seeds: Sequence[int],
    reported: Mapping[tuple[str, str], Reported] | None = None,
    digits: int = 1,
) -> Summary:
    """Fill a table, with the paper's numbers by row and column. Runs with seeds beyond those asked for count too."""
    cells: dict[tuple[str, str], TableCell] = {}
    wanted: dict[str, bool] = {}
    for entry in entries:
        spec = entry.spec(scale)
        lines = found.runs(spec)
        if entry.optional and not lines:
            continue
        asked = () if entry.optional else seeds if entry.seeds is None else entry.seeds
        missing = [seed for seed in asked if seed not in lines]
        wanted |= {key(entry.spec(scale, seed)): seed in missing for seed in asked}  # two cells may share a run
        plain = found.runs({**spec, "method": "erm", "settings": {}})
        cells[entry.row, entry.column] = TableCell(
            entry,
            lines,
            missing,
            (reported or {}).get((entry.row, entry.column)),
            _relative_cost(lines, plain, passes_of_line),
            _relative_cost(lines, plain, _seconds_of_line, alike=True),
        )
    return Summary(name, title, about, scale, cells, len(wanted), sum(wanted.values()), digits)


def number_of(line: dict[str, Any], *path: str) -> float | None:
    """A number inside a line, or None."""
    value: Any = line
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def _known(line: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return (line.get("facts") or {}).get("noise_info") or {}


def passes_of_line(line: dict[str, Any]) -> float | None:
    """Examples that went forward or backward through a network, where the line says so."""
    forward, backward = (number_of(line, "cost", name) for name in ("forward", "backward"))
    return None if forward is None or backward is None else forward + backward


def _seconds_of_line(line: dict[str, Any]) -> float | None:
    some = [number_of(line, "cost", "seconds", name) for name in CLOCKS]
    known = [value for value in some if value is not None]
    return sum(known) if known else None


def _relative_cost(
    lines: Mapping[int, dict[str, Any]], plain: Mapping[int, dict[str, Any]], cost: Any, alike: bool = False
) -> float | None:
    """The mean over the seeds that both have; `alike`: only where their times can be compared."""
    found = []
    for seed in lines.keys() & plain.keys():
        ours, theirs = cost(lines[seed]), cost(plain[seed])
        if ours is not None and theirs and (not alike or comparable(lines[seed], plain[seed])):
            found.append(ours / theirs)
    return mean(found) if found else None


def comparable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the seconds of two result lines can be compared: one kind of machine, which they had to themselves.

    Lines from before there was more than processor, threads and PyTorch are compared by these.
    """
    ours, theirs = one.get("machine"), other.get("machine")
    return ours == theirs and not (isinstance(ours, dict) and ours.get("shared"))
