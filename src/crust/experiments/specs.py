"""What is to be run, as plain data: every setting in full, so that a result can be found again by it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from crust.errors import choices
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
    "paper": {"data": "cifar10", "limit": None, "model": "resnet32", "augment": True, "experiment": {"epochs": 120}},
}  # fmt: skip

RUNTIME = {"stop_after", "workers", "keep_every"}  # how a run is carried out, not what it is


def make(method: str, labels: str, *, scale: str = "cpu", seed: int = 0, **settings: Any) -> dict[str, Any]:
    """The full specification of one run.

    Args:
        method: its name.
        labels: `true`, a noise such as `symmetric:0.5`, or people's labels such as `human:worse`.
        scale: of `SCALES`.
        seed: of the run and of the noise.
        settings: of the method or of the experiment, where they differ from the scale's.

    Example:
        >>> spec = make("erm", "symmetric:0.5", seed=1)
        >>> spec["data"], spec["experiment"]["epochs"], spec["experiment"]["seed"]
        ('cifar10', 40, 1)
    """
    choices(method, METHODS, "method")
    choices(scale, SCALES, "scale")
    base = SCALES[scale]
    experiment, own = split_settings({**base["experiment"], **settings, "seed": seed}, METHODS[method].Settings)
    return {
        "data": base["data"],
        "limit": base["limit"],
        "labels": labels,
        "model": base["model"],
        "augment": base["augment"],
        "validation": 0.1,
        "method": method,
        "experiment": experiment.model_dump(mode="json", exclude=RUNTIME),
        "settings": own.model_dump(mode="json"),
    }


def key(spec: dict[str, Any]) -> str:
    """A short name for a specification.

    Example:
        >>> key(make("erm", "true")) == key(make("erm", "true", epochs=40))
        True
    """
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


def same(old: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Whether a run that was made is the run that is asked for.

    A setting that did not exist when it was made counts as its default of today: new settings begin as what was before.

    Example:
        >>> new = make("crust", "true")
        >>> old = {**new, "settings": {name: new["settings"][name] for name in ("share", "rule")}}
        >>> same(old, new), same(old, make("crust", "true", share=0.3))
        (True, False)
    """
    if old["method"] != spec["method"]:
        return False
    own = METHODS[spec["method"]].Settings().model_dump(mode="json")
    common = checked(TrainSettings, {}).model_dump(mode="json")
    full = {
        **old,
        "experiment": {**{name: common[name] for name in spec["experiment"]}, **old["experiment"]},
        "settings": {**own, **old["settings"]},
    }
    return full == spec
