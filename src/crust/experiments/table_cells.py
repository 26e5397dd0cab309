"""Entries of tables and figures: which runs stand in which row and column, and the results that are there for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crust.experiments.specs import key, make, today


class Reported(NamedTuple):
    """What a paper reports: a mean in percent, and the standard deviation where one is given.

    Example:
        >>> Reported(91.1, 0.2).mean
        91.1
    """

    mean: float
    deviation: float | None = None


@dataclass(frozen=True)
class Entry:
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

    Example:
        >>> entry = Entry("erm", "half wrong", "erm", "symmetric:0.5")
        >>> entry.spec("cpu", 3)["experiment"]["seed"]
        3
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


def specs_of(entries: Iterable[Entry], scale: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """The runs that entries ask for, seed after seed; what two of them share is there once.

    Example:
        >>> erm = Entry("erm", "a", "erm", "true")
        >>> [spec["experiment"]["seed"] for spec in specs_of([erm, Entry("erm", "b", "erm", "true")], "cpu", (0, 1))]
        [0, 1]
    """
    wanted = [entry for entry in entries if not entry.optional]
    made = (entry.spec(scale, seed) for seed in seeds for entry in wanted)
    return list({key(spec): spec for spec in made}.values())


class Found:
    """Result lines by what was run, all seeds together.

    Example:
        >>> lines = [{"key": "x", "spec": make("erm", "true", seed=4), "accuracy": {"last": 0.5}}]
        >>> found = Found(lines)
        >>> list(found.runs(make("erm", "true"))), list(found.runs(make("mixup", "true")))
        ([4], [])
    """

    def __init__(self, lines: Iterable[dict[str, Any]]):
        self._lines: dict[str, dict[int, dict[str, Any]]] = {}
        for line in lines:
            spec = line.get("spec")
            if "accuracy" in line and isinstance(spec, dict) and {"method", "experiment", "settings"} <= spec.keys():
                self._lines.setdefault(_seedless(today(spec)), {})[spec["experiment"].get("seed", 0)] = line

    def runs(self, spec: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """The results of a specification by their seeds, in order, whatever its own seed."""
        some = self._lines.get(_seedless(spec), {})
        return {seed: some[seed] for seed in sorted(some)}


def _seedless(spec: dict[str, Any]) -> str:
    return key({**spec, "experiment": {**spec["experiment"], "seed": None}})
