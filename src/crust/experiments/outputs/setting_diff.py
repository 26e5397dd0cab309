"""What tells runs apart: the settings in which the runs of a grid differ, or that are not those of their scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from crust.experiments.outputs.table_summary import TableCellSpec
from crust.experiments.specs import SCALES, fill_defaults, make
from crust.methods import METHODS

APART = ("method", "data", "labels", "seed")  # these are always said, in columns of their own
NOTHING = object()
LONG = 12  # digits of a number from which a fraction is easier to read, and its largest denominator
COLUMN = ("labels", "data", "limit")  # what a column may differ in; everything else makes a row
_scale_spec = cache(lambda method, scale: make(method, "true", scale=scale))


def differing(specs: Sequence[Mapping[str, Any]], scales: Iterable[str] = SCALES) -> tuple[str, list[str]]:
    """The scale that runs were made at, and in words what differs from it, run after run.

    Specifications do not say their scale: it is the one that the least differs from.
    """
    found = {scale: [_unusual(spec, scale) for spec in specs] for scale in scales}
    best = min(found, key=lambda scale: sum(map(len, found[scale])))
    return best, [" ".join(f"{name}={_in_short(value)}" for name, value in some.items()) for some in found[best]]


def _unusual(spec: Mapping[str, Any], scale: str) -> dict[str, Any]:
    inner = (spec.get("experiment"), spec.get("settings"))
    if spec.get("method") not in METHODS or not all(isinstance(each, dict) for each in inner):
        return {}  # of another version of crust
    usual, own = _flat(_scale_spec(spec["method"], scale)), _flat(fill_defaults(dict(spec)))
    return {name: value for name, value in own.items() if name not in APART and usual.get(name, NOTHING) != value}


def _in_short(value: Any) -> str:
    """A setting in short, for people.

    Example:
        >>> _in_short([1 / 3, 2 / 3]), _in_short(None), _in_short("mlp")
        ('0.3333,0.6667', 'none', 'mlp')
    """
    if isinstance(value, (list, tuple)):
        return ",".join(map(_in_short, value))
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class GivenCellSpec(TableCellSpec):
    """A cell whose specification is there already."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, scale: str, seed: int = 0) -> dict[str, Any]:
        """The specification with this seed."""
        return {**self.given, "experiment": {**self.given["experiment"], "seed": seed}}


def grid_cells(specs: Sequence[dict[str, Any]]) -> list[GivenCellSpec]:
    """Where each specification stands; seeds share a place.

    A row is called by its method, what varies within that, and what is not the same in all methods: else rows would be
    compared that differ in more than their names say.

    Example:
        >>> from crust.experiments.specs import make
        >>> specs = [make("crust", "true", fraction=share, seed=seed) for share in (0.3, 0.5) for seed in (0, 1)]
        >>> [(entry.row, entry.column) for entry in grid_cells(specs)]
        [('crust fraction=0.3', 'true'), ('crust fraction=0.5', 'true')]
        >>> [entry.row for entry in grid_cells([make("erm", "true", epochs=1), make("mixup", "true", epochs=3)])]
        ['erm epochs=1', 'mixup epochs=3']
    """
    flat = [_flat(spec) for spec in specs]
    several = [name for name in COLUMN[1:] if name in _varied(flat)]
    between = _varied([_common(spec) for spec in specs])
    own_between = _several_values([spec["settings"] for spec in specs])
    defaults = {spec["method"]: METHODS[spec["method"]].Settings().model_dump(mode="json") for spec in specs}
    methods = {own["method"] for own in flat}
    varied = {method: between | _varied([own for own in flat if own["method"] == method]) for method in methods}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    seeds: dict[tuple[str, str], set[int]] = {}
    for spec, own in zip(specs, flat, strict=True):
        usual = defaults[own["method"]]  # goes without saying
        given = {name for name, value in spec["settings"].items() if value != usual.get(name)}
        said = varied[own["method"]] | (own_between & given)
        names = [name for name in own if name in said and name not in ("method", *COLUMN)]
        row = " ".join([own["method"], *(f"{name}={_in_full(own[name])}" for name in names)])
        column = " ".join([own["labels"], *(f"{name}={own[name]}" for name in several)])
        found.setdefault((row, column), spec)
        seeds.setdefault((row, column), set()).add(spec["experiment"]["seed"])
    return [
        GivenCellSpec(row, column, spec["method"], spec["labels"], seeds=tuple(sorted(seeds[row, column])), given=spec)
        for (row, column), spec in found.items()
    ]


def _in_full(value: Any) -> str:
    """A setting in words that no other value has.

    Example:
        >>> _in_full([1 / 3, 0.9]), _in_full(["test", "imagenet"]), _in_full(0.3), _in_full(True)
        ('1/3,0.9', 'test,imagenet', '0.3', 'True')
    """
    if isinstance(value, (list, tuple)) and value:
        return ",".join(map(_in_full, value))
    if isinstance(value, float) and len(str(value)) > LONG:
        part = Fraction(value).limit_denominator(LONG)
        return str(part) if float(part) == value else str(value)
    return str(value)


def _varied(flat: Sequence[dict[str, Any]]) -> set[str]:
    """What is not the same in all of them."""
    names = {name for own in flat for name in own}
    return _several_values(flat) | {name for name in names if any(name not in own for own in flat)}


def _several_values(flat: Sequence[dict[str, Any]]) -> set[str]:
    """What is not the same in all of them that have it."""
    values: dict[str, set[str]] = {}
    for own in flat:
        for name, value in own.items():
            values.setdefault(name, set()).add(str(value))
    return {name for name, some in values.items() if len(some) > 1}


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    """All settings side by side, without the seed."""
    return {**_common(spec), **spec["settings"]}


def _common(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Those that every method has."""
    outer = {name: value for name, value in spec.items() if name not in ("experiment", "settings")}
    inner = {name: value for name, value in spec["experiment"].items() if name != "seed"}
    return {**outer, **inner}
