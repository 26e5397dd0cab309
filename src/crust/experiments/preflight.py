"""What can be known before hours are spent: data and networks that are not there, a disk without room, and how long.

Times come from results that are there, else from a few steps of the network on this machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from crust.data import Bundle, load
from crust.errors import CrustError, InputError
from crust.experiments.run_spec import named_tests
from crust.experiments.specs import key
from crust.experiments.task import Spec, Work, free_space
from crust.methods import METHODS
from crust.models import build_model
from crust.runs.data import labels_of_spec
from crust.training.method import Stage
from crust.training.noise_estimation import NAMES, Estimator
from crust.training.settings import TrainSettings

# What named datasets hold, so that a dry run knows times before they are here: training examples, test sets, the shape
# of an example, classes.
PUBLISHED: dict[str, tuple[int, dict[str, int], tuple[int, ...], int]] = {
    "cifar10": (50_000, {"test": 10_000}, (3, 32, 32), 10),
    "cifar100": (50_000, {"test": 10_000}, (3, 32, 32), 100),
    "webvision": (65_944, {"test": 2_500, "imagenet": 2_500}, (3, 299, 299), 50),
}
TESTS = "give an .npz with x_test and y_test, or a folder with train and test"


@dataclass(frozen=True)
class RunSize:
    """How large a run is: training and test examples, the shape of one, classes, and parameters of a network."""

    examples: int
    tests: int
    shape: tuple[int, ...]
    classes: int
    parameters: int


@dataclass(frozen=True)
class Checked:
    """By the key of the run: how large it is, and why it cannot be made here; a dry run may know both."""

    sizes: dict[str, RunSize]
    problems: dict[str, str]


def look(specs: Sequence[Spec], work: Work, *, download: bool = True) -> Checked:
    """Read the data of all runs once, draw their labels and build their networks.

    With `download=False` nothing is fetched: runs on a dataset that is not there have its published size.
    """
    sizes: dict[str, RunSize] = {}
    problems: dict[str, str] = {}
    bundles: dict[tuple[str, int | None], list[Spec]] = {}
    for spec in specs:
        bundles.setdefault((spec["data"], spec["limit"]), []).append(spec)
    for (data, limit), some in bundles.items():
        try:
            if not download:
                _refuse_absent(data, work)
            bundle = load(data, data_dir=work.data_dir, limit=limit, skip_broken=work.skip_broken)
        except CrustError as error:
            problems |= {key(spec): str(error) for spec in some}
            if not download:
                sizes |= _published_sizes(some)
            continue
        kinds: dict[tuple[Any, ...], RunSize | str] = {}
        for spec in some:
            kind = (spec["labels"], *_size_kind(spec))
            if kind not in kinds:
                kinds[kind] = _run_size(spec, bundle, work)
            found = kinds[kind]
            if isinstance(found, RunSize):
                sizes[key(spec)] = found
            else:
                problems[key(spec)] = found
    return Checked(sizes, problems)


def _run_size(spec: Spec, bundle: Bundle, work: Work) -> RunSize | str:
    """How large a run is, or what is wrong with it."""
    train = bundle.train
    try:
        if spec["labels"].startswith("human:") and work.human_labels is None:
            return f"labels {spec['labels']} need people's labels: name their .npz with --human-labels"
        labels_of_spec(bundle, spec["labels"], spec["experiment"]["seed"], work.human_labels)
        tests = named_tests(bundle, spec) or ({} if bundle.test is None else {"test": bundle.test})
        if not tests:
            return f"{spec['data']} has no test set, which accuracy is measured on: {TESTS}"
        weights = _weights(spec, train.shape, len(train.classes))
    except CrustError as error:
        return str(error)
    return RunSize(len(train), sum(map(len, tests.values())), tuple(train.shape), len(train.classes), weights)


def _size_kind(spec: Spec) -> tuple[Any, ...]:
    """What makes the size of a run, beside its data."""
    return spec["model"], tuple(spec.get("tests", ()))


def _weights(spec: Spec, shape: Sequence[int], classes: int) -> int:
    """The number of parameters of a run's network."""
    return sum(each.numel() for each in build_model(spec["model"], in_shape=shape, classes=classes).parameters())


def _published_sizes(specs: Sequence[Spec]) -> dict[str, RunSize]:
    """How large runs on one dataset will be when it is here, where that is known."""
    data, limit = specs[0]["data"], specs[0]["limit"]
    if data not in PUBLISHED:
        return {}
    examples, tests, shape, classes = PUBLISHED[data]
    found: dict[tuple[Any, ...], RunSize | None] = {}
    for spec in specs:
        kind = _size_kind(spec)
        if kind not in found:
            measured = sum(tests.get(name, 0) for name in spec.get("tests") or ["test"])
            found[kind] = None  # of a network that cannot be built: told when the data is here, or with --skip-missing
            with suppress(CrustError):
                weights = _weights(spec, shape, classes)
                found[kind] = RunSize(min(examples, limit or examples), measured, shape, classes, weights)
    return {key(spec): size for spec in specs if (size := found[_size_kind(spec)]) is not None}


def _refuse_absent(data: str, work: Work) -> None:
    from crust.data.cifar import FOLDERS

    folder = Path(work.data_dir or os.environ.get("CRUST_DATA") or "data")
    if data in FOLDERS and not (folder / FOLDERS[data]).is_dir() and not (folder / f"{data}.npz").is_file():
        raise InputError(f"{data} is not in {folder}, and will be downloaded", code="missing-data")


def need(size: RunSize, method: str) -> int:
    """Bytes that the folder of a run takes at most: its newest two checkpoints and one that is being written."""
    networks = METHODS[method].networks
    weights = 4 * size.parameters * (2 * networks + 2)  # with the optimizer's momentum, the kept and an averaged model
    examples = size.examples * (24 * size.classes + 200)  # what is remembered of every example
    return 3 * (weights + examples) + (1 << 20)


def check_room(specs: Sequence[Spec], sizes: dict[str, RunSize], folder: Path, at_once: int, keep_runs: bool) -> None:
    """Refuse to begin where the disk will be full before the end; `at_once` runs are under way at the same time."""
    needs = sorted((need(sizes[key(spec)], spec["method"]) for spec in specs), reverse=True)
    wanted, free = sum(needs if keep_runs else needs[:at_once]), free_space(folder)
    if wanted > free:
        hint = "make room, or choose another folder with -o"
        if keep_runs and sum(needs[:at_once]) <= free:
            hint = "leave out --keep-runs, make room, or choose another folder with -o"
        raise InputError(
            f"the runs need about {gigabytes(wanted)} in {folder}, and {gigabytes(free)} are free there: {hint}",
            code="disk-room",
        )


def gigabytes(number: float) -> str:
    """Bytes as people read them."""
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"


ENOUGH = 1.0  # seconds of steps that are measured
START = 1.0  # seconds to load data and build a network
EPOCH = 0.05  # seconds to measure and to save, where only steps are timed
Line = dict[str, Any]


def seconds_of_run(line: Line) -> float:
    """The seconds of a run; what is a part of another part counts once."""
    return float(sum(value for name, value in line["cost"]["seconds"].items() if name != "selection"))


def work_of(line: Line) -> float:
    """The work of a run in passes forward; one backward is worth two."""
    return float(line["cost"]["forward"] + 2 * line["cost"]["backward"])


def planned(spec: Spec, size: RunSize) -> float:
    """The work of a run by what its settings say, in passes forward: rough, since methods decide as they go."""
    settings = TrainSettings(**spec["experiment"])
    share = spec["settings"].get("fraction")
    chosen = share if isinstance(share, float) else 1.0
    found = 0.0
    for stage in stages_of(spec, size):
        part = chosen if stage.subset is None else len(stage.subset) / size.examples
        steps = 3 * size.examples * part * (stage.networks or METHODS[spec["method"]].networks)
        epochs = stage.epochs or settings.epochs
        tested = sum(settings.test_due(epoch, epochs) for epoch in range(epochs))
        found += epochs * (steps + size.examples) + tested * size.tests  # and an evaluation pass
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
    """The epochs of all stages of a run, as far as they can be known."""
    return sum(stage.epochs or int(spec["experiment"]["epochs"]) for stage in stages_of(spec, size))


class Estimates:
    """Seconds of runs that have not been made."""

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
