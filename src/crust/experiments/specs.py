"""What is to be run, as plain data: every setting in full, so that a result can be found again by it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from crust.errors import InputError, choices
from crust.methods import METHODS
from crust.training.settings import TrainSettings, checked, split_settings

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        "data": "digits", "limit": 400, "model": "mlp", "augment": False,
        "experiment": {"epochs": 6, "batch_size": 32, "learning_rate": 0.05},
    },
    "cpu": {
        "data": "cifar10", "limit": 10000, "model": "resnet8", "augment": False,
        "experiment": {"epochs": 40, "test_every": 5},
    },
    "full": {  # every image, at a length that two cores come through in some hours a run
        "data": "cifar10", "limit": None, "model": "resnet14", "augment": True,
        "experiment": {"epochs": 50},
    },
    "paper": {"data": "cifar10", "limit": None, "model": "resnet32", "augment": True, "experiment": {"epochs": 120}},
}  # fmt: skip

MOST_SEEDS = 10_000  # more are a slip of the hand, and a list of them might not fit into memory
HIGHEST_SEED = 2**63 // 1000 - 1  # networks get numbers of their own from a thousand times the seed
# How a run is carried out and measured, not what it is.
RUNTIME = {"device", "eval_batch_size", "stop_after", "workers", "keep_every", "top", "find_unused_parameters"}

# Which came when there were recorded lines already: at their defaults they are left out, so that names stay.
LATER = {"accumulate", "class_weight", "label_smoothing", "patience"}


def make(
    method: str,
    labels: str,
    *,
    scale: str = "cpu",
    seed: int = 0,
    data: str | None = None,
    limit: int | Literal["scale"] | None = "scale",
    model: str | None = None,
    augment: bool | None = None,
    validation: float = 0.1,
    tests: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """The full specification of one run.

    Args:
        method: its name.
        labels: `true`, a noise such as `symmetric:0.5`, people's labels such as `human:worse`, or `given`: the
            dataset's own, of which nobody knows which are right.
        scale: of `SCALES`, which has all that is not said here.
        seed: of the run and of the noise.
        data: another dataset, by name or path.
        limit: its first so many training examples; None: all.
        model: another network.
        augment: whether images are cropped and mirrored at random.
        validation: share of the training set that is held out.
        tests: test sets of the dataset, by name, for which top-1 and top-5 are measured in the end; `test` is the one
            that accuracy is measured on anyway.
        settings: of the method or of the experiment, where they differ from the scale's.

    Example:
        >>> spec = make("erm", "symmetric:0.5", seed=1)
        >>> spec["data"], spec["experiment"]["epochs"], spec["experiment"]["seed"]
        ('cifar10', 40, 1)
        >>> make("erm", "symmetric:0.5", data="cifar100", scale="paper", limit=500)["limit"]
        500
    """
    choices(method, METHODS, "method")
    choices(scale, SCALES, "scale")
    given = {"data": data, "limit": limit, "model": model, "augment": augment, "validation": validation, "tests": tests}
    for name, (good, hint) in VALUES.items():  # what would be found out only when a run begins, or never
        if not good(given[name]):
            raise InputError(f"setting {name} is {given[name]!r}: {hint}", code="bad-setting")
    if isinstance(seed, int) and seed > HIGHEST_SEED:
        raise InputError(f"seed {seed} is too large: give one up to {HIGHEST_SEED}", code="seed-range")
    base = SCALES[scale]
    experiment, own = split_settings({**base["experiment"], **settings, "seed": seed}, METHODS[method].Settings)
    for name, value in {**experiment.model_dump(), **own.model_dump()}.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"setting {name} is {value}: give a finite number", code="not-finite")
    spec = {
        "data": base["data"] if data is None else data,
        "limit": base["limit"] if limit == "scale" else limit,
        "labels": labels,
        "model": base["model"] if model is None else model,
        "augment": base["augment"] if augment is None else augment,
        "validation": validation,
        "method": method,
        "experiment": _said(experiment),
        "settings": own.model_dump(mode="json"),
    }
    return {**spec, "tests": list(tests)} if tests else spec  # runs from before there were any stay what they are


def _said(experiment: TrainSettings) -> dict[str, Any]:
    """The settings of a run as they stand in its specification."""
    found = experiment.model_dump(mode="json", exclude=RUNTIME)
    usual = TrainSettings.model_fields
    return {name: value for name, value in found.items() if name not in LATER or value != usual[name].default}


def _is_number(value: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is_name_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(value))


VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "data": (_is_name_or_none, "give a name such as digits, or a path"),
    "limit": (
        lambda value: value in (None, "scale") or (_is_number(value, int) and value >= 1),
        "give a number of examples, at least 1, or null for all",
    ),
    "model": (_is_name_or_none, "give a name such as resnet8 or timm:resnet18"),
    "augment": (lambda value: value is None or isinstance(value, bool), "write true or false"),
    "validation": (
        lambda value: _is_number(value, (int, float)) and 0 <= value < 1,
        "give a share from 0 to below 1, such as 0.1",
    ),
    "tests": (
        lambda value: isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value),
        "give a list of names such as [test, imagenet]",
    ),
}


def key(spec: dict[str, Any]) -> str:
    """A short name for a specification.

    Example:
        >>> key(make("erm", "true")) == key(make("erm", "true", epochs=40))
        True
    """
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


# Names that settings and results had when lines were recorded; everything that reads a line sees the present ones.
OLD_NAMES = {
    "experiment": {"drops": "lr_milestones"},
    "settings": {"share": "fraction", "every": "select_every", "rule": "selection", "schedule": "forgetting"},
    "curves": {"clean": "clean_fraction", "clean_weighted": "clean_fraction_weighted", "chosen": "n_selected"},
    "facts": {"share": "fraction", "knowledge": "noise_info"},
}
# Methods whose `warmup` is now `select_after`.
SELECTING = ("crust", "crust-half", "crust-paper", "crust-released", "random", "small-loss")


def with_present_names(line: dict[str, Any]) -> dict[str, Any]:
    """A recorded line, or a specification alone, with the present names of its settings, curves and facts.

    Example:
        >>> with_present_names({"method": "crust", "settings": {"share": 0.3, "warmup": 2}})
        {'method': 'crust-half', 'settings': {'fraction': 0.3, 'select_after': 2}}
    """
    if isinstance(line.get("spec"), dict):
        line = {**line, "spec": with_present_names(line["spec"])}
    settings = line.get("settings")
    if line.get("method") in ("crust", "crust-paper") and isinstance(settings, dict) and "others" not in settings:
        # What was `crust` when its coreset had a fixed size, or one minus the estimated noise rate.
        size = next((settings[name] for name in ("share", "fraction") if name in settings), 0.5)
        line = {**line, "settings": {**settings, **({"fraction": "noise-rate"} if size == "auto" else {})}}
        line["settings"].pop("share" if size == "auto" else "", None)
        if line["method"] == "crust":
            line["method"] = "crust-half"
    for part, names in OLD_NAMES.items():
        if part == "settings" and line.get("method") in SELECTING:
            names = {**names, "warmup": "select_after"}
        if isinstance(line.get(part), dict):
            line = {**line, part: {names.get(name, name): value for name, value in line[part].items()}}
    return line


def same_spec(old: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Whether a run that was made is the run that is asked for.

    A setting that did not exist when it was made counts as its default of today: new settings begin as what was before.
    """
    quick = all(old[name] == spec[name] for name in ("method", "data", "labels"))  # thousands of lines are compared
    return quick and fill_defaults(old) == spec


def fill_defaults(old: dict[str, Any]) -> dict[str, Any]:
    """A specification with the settings of today: those that did not exist when it was made have their defaults.

    Example:
        >>> old = {"method": "random", "experiment": {"epochs": 3}, "settings": {}}
        >>> fill_defaults(old)["settings"], fill_defaults(old)["experiment"]["batch_size"]
        ({'fraction': 0.5, 'select_after': 0}, 128)
    """
    if old["method"] not in METHODS:  # of another version of crust
        return old
    own = METHODS[old["method"]].Settings().model_dump(mode="json")
    common = _said(checked(TrainSettings, {}))
    said = {name: value for name, value in old["experiment"].items() if name not in RUNTIME}
    return {**old, "experiment": {**common, **said}, "settings": {**own, **old["settings"]}}


def seedless(spec: dict[str, Any]) -> str:
    """The key of a specification whatever its seed: runs that differ in nothing else have the same."""
    return key({**spec, "experiment": {**spec["experiment"], "seed": None}})
