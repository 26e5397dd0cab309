"""What can be known before hours are spent: data, labels and networks that are not there, a disk without room."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crust.data import Bundle, load
from crust.errors import CrustError, InputError
from crust.experiments.run_spec import named_tests
from crust.experiments.specs import key
from crust.experiments.task import Spec, Work, free_space
from crust.methods import METHODS
from crust.models import build_model
from crust.runs.data import labels_of_spec

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
    """How large a run is: training and test examples, the shape of one, classes, and parameters of a network.

    Example:
        >>> RunSize(100, 50, (1, 8, 8), 10, 5000).examples
        100
    """

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

    Args:
        specs: from `make`.
        work: where the data is.
        download: whether a dataset that is not there may be fetched; where not, its runs have their published size.

    Example:
        >>> from crust.experiments import make
        >>> spec = make("erm", "human:worse", scale="smoke")
        >>> look([spec], Work(Path("r.jsonl"), Path("runs"))).problems[key(spec)]
        "labels human:worse need people's labels: name their .npz with --human-labels"
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
        if _size_kind(spec) not in found:
            names = spec.get("tests") or ["test"]
            try:
                weights = _weights(spec, shape, classes)
            except CrustError:  # told when the data is here, or with --skip-missing
                found[_size_kind(spec)] = None
                continue
            measured = sum(tests.get(name, 0) for name in names)
            found[_size_kind(spec)] = RunSize(min(examples, limit or examples), measured, shape, classes, weights)
    return {key(spec): size for spec in specs if (size := found[_size_kind(spec)]) is not None}


def _refuse_absent(data: str, work: Work) -> None:
    from crust.data.named.cifar import FOLDERS

    folder = Path(work.data_dir or os.environ.get("CRUST_DATA") or "data")
    if data in FOLDERS and not (folder / FOLDERS[data]).is_dir() and not (folder / f"{data}.npz").is_file():
        raise InputError(f"{data} is not in {folder}, and will be downloaded")


def need(size: RunSize, method: str) -> int:
    """Bytes that the folder of a run takes at most: its newest two checkpoints and one that is being written.

    Example:
        >>> need(RunSize(45000, 10000, (3, 32, 32), 10, 466906), "crust") < 100e6
        True
    """
    networks = METHODS[method].networks
    weights = 4 * size.parameters * (2 * networks + 2)  # with the optimizer's momentum, the kept and an averaged model
    examples = size.examples * (24 * size.classes + 200)  # what is remembered of every example
    return 3 * (weights + examples) + (1 << 20)


def check_room(specs: Sequence[Spec], sizes: dict[str, RunSize], folder: Path, at_once: int, keep_runs: bool) -> None:
    """Refuse to begin where the disk will be full before the end.

    Args:
        specs: what is to be run.
        sizes: from `look`.
        folder: where the runs' folders go.
        at_once: how many runs are under way at the same time.
        keep_runs: whether the folders of finished runs stay.
    """
    needs = sorted((need(sizes[key(spec)], spec["method"]) for spec in specs), reverse=True)
    wanted, free = sum(needs if keep_runs else needs[:at_once]), free_space(folder)
    if wanted > free:
        hint = "make room, or choose another folder with -o"
        if keep_runs and sum(needs[:at_once]) <= free:
            hint = "leave out --keep-runs, make room, or choose another folder with -o"
        raise InputError(
            f"the runs need about {gigabytes(wanted)} in {folder}, and {gigabytes(free)} are free there: {hint}"
        )


def gigabytes(number: float) -> str:
    """Bytes as people read them.

    Example:
        >>> gigabytes(2.5e9), gigabytes(3e6)
        ('2.5 GB', '3 MB')
    """
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
