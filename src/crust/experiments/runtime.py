"""How long a run will take: by results that are there, else by a few steps of its network on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

import torch

from crust.experiments.preflight import RunSize
from crust.experiments.specs import key
from crust.experiments.task import Spec
from crust.methods import METHODS
from crust.models import build_model
from crust.training.method import Stage
from crust.training.noise_estimation import NAMES, Estimator
from crust.training.settings import TrainSettings

ENOUGH = 1.0  # seconds of steps that are measured
START = 1.0  # seconds to load data and build a network
EPOCH = 0.05  # seconds to measure and to save, where only steps are timed
Line = dict[str, Any]


def seconds_of_run(line: Line) -> float:
    """The seconds of a run; what is a part of another part counts once.

    Example:
        >>> seconds_of_run({"cost": {"seconds": {"epoch": 3.0, "selection": 1.0, "evaluation": 0.5}}})
        3.5
    """
    return float(sum(value for name, value in line["cost"]["seconds"].items() if name != "selection"))


def work_of(line: Line) -> float:
    """The work of a run in passes forward; one backward is worth two.

    Example:
        >>> work_of({"cost": {"forward": 10, "backward": 3}})
        16.0
    """
    return float(line["cost"]["forward"] + 2 * line["cost"]["backward"])


def planned(spec: Spec, size: RunSize) -> float:
    """The work of a run by what its settings say, in passes forward: rough, since methods decide as they go.

    Example:
        >>> from crust.experiments import make
        >>> size = RunSize(400, 500, (1, 8, 8), 10, 5000)
        >>> one, two = (planned(make(name, "true", scale="smoke"), size) for name in ("erm", "co-teaching"))
        >>> one < two
        True
    """
    settings = TrainSettings(**spec["experiment"])
    share = spec["settings"].get("fraction")
    chosen = share if isinstance(share, float) else 1.0
    found = 0.0
    for stage in stages_of(spec, size):
        part = chosen if stage.subset is None else len(stage.subset) / size.examples
        steps = 3 * size.examples * part * (stage.networks or METHODS[spec["method"]].networks)
        epochs = stage.epochs or settings.epochs
        tested = sum(settings.test_due(epoch, epochs) for epoch in range(epochs))
        found += epochs * (steps + size.examples) + tested * size.tests  # and a look at all examples
    return found


def stages_of(spec: Spec, size: RunSize) -> list[Stage]:
    """The stages of a run, as far as they can be known before."""
    kind, settings = METHODS[spec["method"]], TrainSettings(**spec["experiment"])
    method = kind(kind.Settings(**spec["settings"]))
    before: list[Stage] = []
    if not method.estimates_itself and any(spec["settings"].get(name) == "estimate" for name in NAMES):
        trained = round(size.examples * (1 - spec["validation"]))
        before = Estimator(trained, size.classes, settings).stages()
    return [*before, *method.stages()]


def epochs_of(spec: Spec, size: RunSize) -> int:
    """The epochs of all stages of a run, as far as they can be known.

    Example:
        >>> from crust.experiments import make
        >>> epochs_of(make("erm", "true", scale="smoke", epochs=4), RunSize(400, 500, (1, 8, 8), 10, 5000))
        4
    """
    return sum(stage.epochs or int(spec["experiment"]["epochs"]) for stage in stages_of(spec, size))


class Estimates:
    """Seconds of runs that have not been made.

    Args:
        lines: results that are there.
        sizes: of the runs, from `checks.look`.

    Example:
        >>> from crust.experiments import make
        >>> spec = make("erm", "true")
        >>> line = {"spec": spec, "cost": {"forward": 900, "backward": 300, "seconds": {"epoch": 30.0}}}
        >>> Estimates([line], {}).seconds(make("erm", "true", seed=1, epochs=80))
        61.0
    """

    def __init__(self, lines: Iterable[Line], sizes: dict[str, RunSize]):
        self.sizes = sizes
        self.lines: dict[tuple[Any, ...], list[Line]] = {}
        for line in lines:
            if "spec" in line and line.get("cost", {}).get("seconds") and work_of(line):
                self.lines.setdefault(kind_of(line["spec"]), []).append(line)
        self._measured: dict[tuple[Any, ...], float] = {}

    def seconds(self, spec: Spec) -> float | None:
        """How long a run will take; None where nothing is known."""
        kind, work = kind_of(spec), self.work(spec)
        if work is None:
            return None
        if kind in self.lines:
            alike = self.lines[kind]
            return START + work * sum(map(seconds_of_run, alike)) / sum(map(work_of, alike))
        if kind not in self._measured:
            self._measured[kind] = step_seconds(spec, self.sizes[key(spec)])
        return START + EPOCH * epochs_of(spec, self.sizes[key(spec)]) + work * self._measured[kind]

    def work(self, spec: Spec) -> float | None:
        """Passes forward of a run: those of the same method, by the number of epochs, else by its settings."""
        alike = [line for line in self.lines.get(kind_of(spec), []) if _of(line["spec"]) == _of(spec)]
        if alike:
            same = [line for line in alike if line["spec"]["settings"] == spec["settings"]] or alike
            an_epoch = mean(work_of(line) / line["spec"]["experiment"]["epochs"] for line in same)
            return an_epoch * int(spec["experiment"]["epochs"])
        size = self.sizes.get(key(spec))
        return None if size is None else planned(spec, size)

    def source(self, specs: Sequence[Spec]) -> str:
        """Where the estimates for these runs are from, in words."""
        kinds = {kind_of(spec) for spec in specs if self.work(spec) is not None}
        known = sum(len(self.lines.get(kind, [])) for kind in kinds)
        words = []
        if known:
            words.append(f"{known} result{'s' * (known > 1)} of the same data and network")
        timed = sorted({kind[1] for kind in kinds if kind not in self.lines})
        if timed:
            words.append(f"a few timed steps of {', '.join(timed)} on this machine")
        return ", and ".join(words)


def kind_of(spec: Spec) -> tuple[Any, ...]:
    """What makes a pass cost what it costs."""
    return spec["data"], spec["model"], spec["augment"]


def _of(spec: Spec) -> tuple[str, int | None]:
    return spec["method"], spec["limit"]


def step_seconds(spec: Spec, size: RunSize) -> float:
    """Seconds of one pass forward of one example, by a few steps on noise; a step is worth three."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(spec["model"], in_shape=size.shape, classes=size.classes).to(device)
    examples, spent, rows = 0, 0.0, 4
    largest = int(spec["experiment"]["batch_size"])
    step(model, size, 4, device)  # the first one is slower
    while spent < ENOUGH:
        start = time.perf_counter()
        step(model, size, rows, device)
        took = time.perf_counter() - start
        if rows < largest and took < ENOUGH / 4:  # on the way to the size that training has
            rows = min(largest, 4 * rows)
            continue
        examples, spent = examples + rows, spent + took
    return spent / examples / 3


def step(model: torch.nn.Module, size: RunSize, rows: int, device: torch.device) -> None:
    """One step forward and backward."""
    x = torch.zeros(rows, *size.shape, device=device)
    y = torch.zeros(rows, dtype=torch.int64, device=device)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    if device.type == "cuda":
        torch.cuda.synchronize()
