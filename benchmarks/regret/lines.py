"""Result lines of the scoreboard: which run each is of, and what it says of the model that is delivered."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from typing import Any

from benchmarks.regret.conditions import Job
from crust.experiments import key
from crust.experiments.specs import fill_defaults

Line = dict[str, Any]


class Lines:
    """Result lines by what was run; of two of one run the one that knows the delivered model counts.

    Args:
        lines: of the scoreboard, and any others that were made with the same settings.

    Example:
        >>> from benchmarks.regret.conditions import jobs
        >>> first, second = jobs("vowel/true/mlp erm")[:2]
        >>> lines = Lines([{"spec": first.spec, "accuracy": {"delivered": 0.9}}])
        >>> lines.of(first)["accuracy"], lines.of(second)
        ({'delivered': 0.9}, None)
    """

    def __init__(self, lines: Iterable[Line]):
        self._lines: dict[str, Line] = {}
        for line in lines:
            self.add(line)

    def add(self, line: Line) -> None:
        """Take one more; it is passed over where it does not say what the delivered model reaches."""
        if delivered(line) is not None:
            self._lines[key(fill_defaults(line["spec"]))] = line

    def of(self, job: Job) -> Line | None:
        """The line of a run, or None."""
        return self._lines.get(key(job.spec))

    def __iter__(self) -> Any:
        return iter(self._lines.values())


def delivered(line: Line) -> float | None:
    """Test accuracy of the model that is delivered: recorded, else read off the curves of a run of one stage.

    The kept weights are those of the best accuracy on held-out noisy labels, the later ones of equals. Lines of
    `crust reproduce` tell their test accuracy every few epochs only, and then say nothing where that is not the epoch.

    Example:
        >>> spec = {"experiment": {"epochs": 3}}
        >>> curves = {"val_accuracy": [0.9, 0.1, 0.5, 0.5], "test_accuracy": [0.9, 0.2, None, 0.6]}
        >>> delivered({"spec": spec, "accuracy": {"last": 0.6}, "curves": curves})
        0.6
        >>> delivered({"spec": spec, "accuracy": {"last": 0.6, "delivered": 0.7}})
        0.7
    """
    if "delivered" in line["accuracy"]:
        return line["accuracy"]["delivered"]
    epochs, curves = line["spec"]["experiment"]["epochs"], line.get("curves") or {}
    held, tested = (curves.get(name, [])[-epochs:] for name in ("val_accuracy", "test_accuracy"))
    known = [(value, epoch) for epoch, value in enumerate(held) if value is not None]
    if not known or len(tested) != len(held):
        return None
    return tested[max(known)[1]]


def score(line: Line, balanced: bool, which: str = "delivered") -> float | None:
    """What counts of a line in its condition.

    Args:
        line: the line.
        balanced: whether balanced accuracy counts.
        which: `delivered` or `last`.

    Example:
        >>> line = {"accuracy": {"delivered": 0.9, "last": 0.8}, "balanced": {"delivered": 0.7, "last": None}}
        >>> score(line, True), score(line, False, "last")
        (0.7, 0.8)
    """
    if balanced:
        return line.get("balanced", {}).get(which)
    return delivered(line) if which == "delivered" else line["accuracy"][which]


def passes(line: Line) -> float:
    """Examples through all networks, forward and backward, every look and every estimate counted.

    Example:
        >>> passes({"cost": {"forward": 10, "backward": 4}})
        14
    """
    return line["cost"]["forward"] + line["cost"]["backward"]


def seconds(line: Line) -> float:
    """Seconds of a run; selection is a part of its epoch.

    Example:
        >>> seconds({"cost": {"seconds": {"epoch": 3.0, "selection": 1.0, "evaluation": 0.5}}})
        3.5
    """
    return sum(value for name, value in line["cost"]["seconds"].items() if name != "selection")


class Durations:
    """How long runs take, by lines that are there: of the same set and method, else of the same set.

    Example:
        >>> from benchmarks.regret.conditions import jobs
        >>> erm, other = jobs("vowel/true/mlp erm")[:2]
        >>> line = {"spec": erm.spec, "accuracy": {"delivered": 1.0}, "cost": {"seconds": {"epoch": 2.0}}}
        >>> Durations(Lines([line])).seconds(other), Durations(Lines([])).seconds(other)
        (2.0, None)
    """

    def __init__(self, lines: Lines):
        found: dict[tuple[str, ...], list[float]] = {}
        for line in lines:
            spec = line["spec"]
            for kind in ((spec["data"], spec["method"]), (spec["data"],)):
                found.setdefault(kind, []).append(seconds(line))
        self._mean = {kind: mean(values) for kind, values in found.items()}

    def seconds(self, job: Job) -> float | None:
        """An estimate; None where nothing is known of the set."""
        data = job.condition.data
        return self._mean.get((data, job.contender.method), self._mean.get((data,)))
