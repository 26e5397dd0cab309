"""A grid of a user's own as a table: a row a method with what varies in its settings, a column a kind of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from crust._util.atomic_write import write_atomic
from crust.experiments.outputs.results_html import build
from crust.experiments.outputs.table_markdown import as_csv, as_markdown
from crust.experiments.outputs.table_summary import Summary, summarise
from crust.experiments.table_cells import Entry, Found
from crust.methods import METHODS

__all__ = ["entries_of", "write_grid"]

LONG = 12  # digits of a number from which a fraction is easier to read, and its largest denominator
COLUMN = ("labels", "data", "limit")  # what a column may differ in; everything else makes a row


@dataclass(frozen=True)
class Given(Entry):
    """An entry whose specification is there already.

    Example:
        >>> from crust.experiments.specs import make
        >>> spec = make("erm", "true", epochs=3)
        >>> Given("erm", "true", "erm", "true", given=spec).spec("any", 7)["experiment"]["seed"]
        7
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, scale: str, seed: int = 0) -> dict[str, Any]:
        """The specification with this seed."""
        return {**self.given, "experiment": {**self.given["experiment"], "seed": seed}}


def entries_of(specs: Sequence[dict[str, Any]]) -> list[Given]:
    """Where each specification stands; seeds share a place.

    A row is called by its method, what varies within that, and what is not the same in all methods: else rows would be
    compared that differ in more than their names say.

    Example:
        >>> from crust.experiments.specs import make
        >>> specs = [make("crust", "true", fraction=share, seed=seed) for share in (0.3, 0.5) for seed in (0, 1)]
        >>> [(entry.row, entry.column) for entry in entries_of(specs)]
        [('crust fraction=0.3', 'true'), ('crust fraction=0.5', 'true')]
        >>> [entry.row for entry in entries_of([make("erm", "true", epochs=1), make("mixup", "true", epochs=3)])]
        ['erm epochs=1', 'mixup epochs=3']
    """
    flat = [_flat(spec) for spec in specs]
    several = [name for name in COLUMN[1:] if name in _varied(flat)]
    between, own_between = _varied([_common(spec) for spec in specs]), _own_between(specs)
    methods = {own["method"] for own in flat}
    varied = {method: between | _varied([own for own in flat if own["method"] == method]) for method in methods}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    seeds: dict[tuple[str, str], set[int]] = {}
    for spec, own in zip(specs, flat, strict=True):
        said = varied[own["method"]] | (own_between & _given(spec))
        names = [name for name in own if name in said and name not in ("method", *COLUMN)]
        row = " ".join([own["method"], *(f"{name}={_said(own[name])}" for name in names)])
        column = " ".join([own["labels"], *(f"{name}={own[name]}" for name in several)])
        found.setdefault((row, column), spec)
        seeds.setdefault((row, column), set()).add(spec["experiment"]["seed"])
    return [
        Given(row, column, spec["method"], spec["labels"], seeds=tuple(sorted(seeds[row, column])), given=spec)
        for (row, column), spec in found.items()
    ]


def _said(value: Any) -> str:
    """A setting in words that no other value has.

    Example:
        >>> _said([1 / 3, 0.9]), _said(["test", "imagenet"]), _said(0.3), _said(True)
        ('1/3,0.9', 'test,imagenet', '0.3', 'True')
    """
    if isinstance(value, (list, tuple)) and value:
        return ",".join(map(_said, value))
    if isinstance(value, float) and len(str(value)) > LONG:
        part = Fraction(value).limit_denominator(LONG)
        return str(part) if float(part) == value else str(value)
    return str(value)


def _varied(flat: Sequence[dict[str, Any]]) -> set[str]:
    """What is not the same in all of them."""
    values: dict[str, set[str]] = {}
    for own in flat:
        for name, value in own.items():
            values.setdefault(name, set()).add(str(value))
    return {name for name, some in values.items() if len(some) > 1 or any(name not in own for own in flat)}


def _own_between(specs: Sequence[dict[str, Any]]) -> set[str]:
    """Settings of methods that are not the same in all methods that have them."""
    values: dict[str, set[str]] = {}
    for spec in specs:
        for name, value in spec["settings"].items():
            values.setdefault(name, set()).add(str(value))
    return {name for name, some in values.items() if len(some) > 1}


def _given(spec: dict[str, Any]) -> set[str]:
    """The method's settings that are not its defaults, which go without saying."""
    default = METHODS[spec["method"]].Settings().model_dump(mode="json")
    return {name for name, value in spec["settings"].items() if value != default.get(name)}


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
        lines: from `read`; those of other runs do no harm.
        folder: made where it is not there.
        title: of the pages.

    Returns:
        The files: grid.md, grid.csv, results.html.

    Example:
        >>> import tempfile
        >>> from crust.experiments.specs import make
        >>> [path.name for path in write_grid([make("erm", "true")], [], tempfile.mkdtemp())]
        ['grid.md', 'grid.csv', 'results.html']
    """
    asked, every = list(specs), list(lines)
    summary = _summary(asked, Found(every), title)
    used = {id(line) for cell in summary.cells.values() for line in cell.lines.values()}
    about = f"{summary.wanted - summary.missing} of {summary.wanted} runs are there."
    runs = [line for line in every if id(line) in used]
    files = {
        "grid.md": as_markdown(summary),
        "grid.csv": as_csv(summary),
        "results.html": build(title, about, [summary], lines=runs),
    }
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomic(place / name, content.encode())
    return [place / name for name in files]


def _summary(specs: Sequence[dict[str, Any]], found: Found, title: str) -> Summary:
    seeds = sorted({spec["experiment"]["seed"] for spec in specs})
    same = {name: {str(spec.get(name)) for spec in specs} for name in ("data", "model")}
    epochs = {str(spec["experiment"]["epochs"]) for spec in specs}
    about = (
        f"Data: {', '.join(sorted(same['data']))}; network: {', '.join(sorted(same['model']))}; epochs: "
        f"{', '.join(sorted(epochs))}; seeds: {', '.join(map(str, seeds))}."
    )
    return summarise("grid", title, about, entries_of(specs), found, "", seeds)


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    """All settings side by side, without the seed."""
    return {**_common(spec), **spec["settings"]}


def _common(spec: dict[str, Any]) -> dict[str, Any]:
    """Those that every method has."""
    outer = {name: value for name, value in spec.items() if name not in ("experiment", "settings")}
    inner = {name: value for name, value in spec["experiment"].items() if name != "seed"}
    return {**outer, **inner}
