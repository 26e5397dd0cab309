"""One run of the scoreboard, from its data to its result line."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crust
from benchmarks.regret.conditions import SETS, Job
from benchmarks.regret.splits import Split, labels_of, split_of
from crust.experiments import key
from crust.experiments.run_spec import CURVES, FACTS, audit_quality, machine
from crust.runs.folder import versions


def run(job: Job, data_dir: Path, runs: Path) -> dict[str, Any]:
    """Train, and measure the delivered model and the last epoch.

    Args:
        job: what to run.
        data_dir: where the sets are.
        runs: a folder for runs of many minutes: they go on from their last epoch when they are begun again.

    Returns:
        The result line.
    """
    spec, condition = job.spec, job.condition
    split = split_of(condition, job.seed, data_dir)
    given = labels_of(condition, split, job.seed, data_dir)
    long = SETS[condition.data].form == "cifar10"
    folder = runs / key(spec)
    result = crust.fit(
        spec["model"],
        split.train_set(given),
        method=spec["method"],
        true_labels=split.labels,
        test_set=split.test_sets(by_class=condition.balanced and not long),
        validation=spec["validation"],
        augment=spec["augment"],
        run_dir=folder if long else None,
        resume=long,
        **spec["experiment"],
        **spec["settings"],
    )
    wrong = given != split.labels
    line = {
        "key": key(spec),
        "condition": condition.name,
        "spec": spec,
        **_measured(result, split, long),
        "audit": audit_quality(result, wrong),
        "cost": {
            "forward": result.cost["forward"],
            "backward": result.cost["backward"],
            "seconds": {name: round(value, 2) for name, value in result.cost["seconds"].items()},
        },
        "facts": {name: value for name, value in result.history.lines[-1].items() if name in FACTS},
        "wrong": round(float(wrong.mean()), 4),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "versions": {name: value for name, value in versions().items() if name in ("crust", "torch", "numpy")},
    }
    if long:  # the pages of CIFAR-10 read these, too
        curves = {name: [_rounded(value) for value in result.history[name]] for name in CURVES}
        known = {name: values for name, values in curves.items() if any(value is not None for value in values)}
        line |= {"curves": known, "machine": machine(next(result.model.parameters()).device)}
        shutil.rmtree(folder, ignore_errors=True)
    return line


def _measured(result: crust.Result, split: Split, equal: bool) -> dict[str, Any]:
    """Accuracy and balanced accuracy on the test set, delivered and last; accuracy on held-out noisy labels."""
    predicted = result.predict_proba(split.test).argmax(axis=1)
    right = predicted == split.test_labels
    by_class = [result.history.accuracy(f"test_accuracy_class{c}")["last"] for c in range(split.classes)]
    last = result.accuracy["last"] if equal else None  # where the test set has as many of each class
    if not equal and None not in by_class:
        last = float(np.mean(by_class))
    held, kept = result.history["val_accuracy"], result.best_epoch
    return {
        "accuracy": {
            **{name: _rounded(value) for name, value in result.accuracy.items()},
            "delivered": _rounded(float(right.mean())),
        },
        "balanced": {"delivered": _rounded(_balanced(right, split.test_labels)), "last": _rounded(last)},
        "val": {"delivered": None if kept is None else _rounded(held[kept - 1]), "last": _rounded(held[-1])},
        "kept_epoch": kept,
    }


def _balanced(right: NDArray[np.bool_], labels: NDArray[np.int64]) -> float:
    """The mean of the classes' own accuracies.

    Example:
        >>> _balanced(np.array([True, True, True, False]), np.array([0, 0, 0, 1]))
        0.5
    """
    return float(np.mean([right[labels == c].mean() for c in np.unique(labels)]))


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value
