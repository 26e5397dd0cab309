"""`verify_audit`: train once more with known wrong labels, and say how far a run's audit can be trusted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from torch import nn

from crust._util import seeding
from crust.audit.accuracy.confident_disagreement import Surest, contradicted, noticed
from crust.audit.accuracy.estimates_with_intervals import Judged, calibration, doubt_by_place
from crust.audit.accuracy.inject_errors import Plants, draw_plants
from crust.audit.accuracy.verified_file import write_calibration
from crust.errors import InputError
from crust.fitting import as_examples, fit
from crust.methods import METHODS
from crust.runs.audit_table import read_audit, read_table
from crust.training.recorder import History

__all__ = ["seconds_of", "verify_audit"]

FOLDER = "calibration"  # the second training, inside the run's folder


def verify_audit(
    run_dir: str | Path,
    train_set: Any,
    *,
    labels: Any = None,
    model: nn.Module | None = None,
    val_set: Any = None,
    train_eval_set: Any = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Say how many of a run's doubts are right: noise rate, precision and recall, each with a 90% interval.

    Some of the labels that the run takes for wrong are left out, others are made wrong on purpose, and the network is
    trained again with the run's own settings and another seed. This costs as much as the run. It can be stopped and
    called again: it goes on.

    Args:
        run_dir: the folder of a finished run.
        train_set: what it was trained on.
        labels: the labels it was given, where they are not the dataset's own.
        model: a network of the same kind, where the run was given one of the user's own.
        val_set: the validation set, where the run was given one.
        train_eval_set: the training set without augmentation, where the run was given one.
        report: called with the history's line after every epoch.

    Returns:
        What is left as `calibration.json` in the run's folder (`audit.accuracy.verified_file` says what it means).

    Example:
        >>> import tempfile
        >>> from crust import data, noise
        >>> digits = data.load("digits", limit=300).train
        >>> wrong = digits.with_labels(noise.make_noisy_labels(digits.labels, "symmetric:0.3", classes=10).labels)
        >>> folder = tempfile.mkdtemp()
        >>> _ = fit("mlp", wrong, epochs=6, batch_size=32, learning_rate=0.05, run_dir=folder)
        >>> found = verify_audit(folder, wrong)
        >>> 0.1 < found["noise_rate"]["value"] < 0.5, (Path(folder) / "calibration.json").exists()
        (True, True)
    """
    folder = Path(run_dir)
    table, classes = read_audit(folder)
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    _check(config, folder, model, val_set)
    train = as_examples(train_set, labels)
    if train.fingerprint() != config["data"]:
        raise InputError(f"the data is not what the run in {folder} was trained on: give the same data and labels")
    audit = judged(table, classes)
    seed = int(config["experiment"]["seed"])
    rng = seeding.numpy_rng(seed, "plants")
    plants = draw_plants(audit.doubt, audit.given, audit.suggested, audit.probability, len(classes), rng)
    planted = train.with_labels(plants.labels).subset(plants.kept)
    plain = (
        None
        if train_eval_set is None
        else as_examples(train_eval_set, train.decode(train.labels), like=train).subset(plants.kept)
    )
    second, seconds = _train_again(folder, config, planted, model, val_set, plain, report)
    found = from_plants(audit, judged(second, classes), plants, classes, seed)
    found["plants"] = {
        "count": len(plants.planted),
        "share": round(len(plants.planted) / len(audit.given), 5),
        "seed": seed,
        "seconds": round(seconds, 1),
    }
    write_calibration(folder, found)
    shutil.rmtree(folder / FOLDER / "checkpoint", ignore_errors=True)  # nothing can go on from it any more
    return found


def from_plants(audit: Judged, second: Judged, plants: Plants, classes: list[Any], seed: int) -> dict[str, Any]:
    """The calibration, from the audits of the run and of the training with planted labels."""
    planted = np.isin(plants.kept, plants.planted)
    return calibration(
        audit,
        second.rows(planted, doubt_by_place(audit.doubt, second.doubt, plants)),
        audit.given[plants.planted],
        classes,
        seeding.numpy_rng(seed, "calibration"),
        accidents=plants.accidents,
        dropped=len(plants.dropped) / len(audit.given),
        surest=Surest(
            *contradicted(audit.given, audit.suggested, audit.probability),
            *noticed(planted, second.given, second.suggested, second.probability),
        ),
    )


def judged(table: Any, classes: list[Any]) -> Judged:
    """An audit's table as numbers, in the order of the training set."""
    table = table.sort_values("index")
    position = {name: i for i, name in enumerate(classes)}
    given, suggested = (table[name].map(position) for name in ("given_label", "predicted_label"))
    if given.isna().any() or suggested.isna().any():
        raise InputError("the audit names classes that the run does not know: train again")
    doubt, probability = 1 - table["label_quality"].to_numpy(), table["predicted_prob"].to_numpy()
    return Judged(doubt, given.to_numpy(np.int64), suggested.to_numpy(np.int64), probability)


def seconds_of(run_dir: str | Path) -> float:
    """How long a run took, and so about how long its calibration will take.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "history.jsonl").write_text('{"epoch": 0, "seconds": {"epoch": 2.0, "selection": 1.0}}\\n')
        >>> seconds_of(folder)
        2.0
    """
    path = Path(run_dir) / "history.jsonl"
    if not path.is_file():
        raise InputError(f"{run_dir} holds no history: give the folder of a finished run")
    parts = [line.get("seconds", {}) for line in History.load(path).lines]
    # selection is a part of the epoch
    return float(sum(value for part in parts for name, value in part.items() if name != "selection"))


def _check(config: dict[str, Any], folder: Path, model: nn.Module | None, val_set: Any) -> None:
    method = config["method"]
    if METHODS[method].needs == "all true labels" or "true" in config["settings"].values():
        raise InputError(f"{method} was told the true labels, of which planted ones have none: calibrate another run")
    if model is None and not config["built"]:
        raise InputError(f"the run in {folder} trained a {config['model']} of yours: give such a network as model")
    if val_set is None and config.get("validation_data") is not None:
        raise InputError(f"the run in {folder} had a validation set of its own: give it as val_set")


def _train_again(
    folder: Path,
    config: dict[str, Any],
    examples: Any,
    model: nn.Module | None,
    val_set: Any,
    train_eval_set: Any,
    report: Callable[[dict[str, Any]], None] | None,
) -> tuple[Any, float]:
    """The audit of the second training, and what that took; one that is done already is not done again."""
    place = folder / FOLDER
    done = place / "audit.parquet"
    if done.is_file() and yaml.safe_load((place / "config.yaml").read_text())["data"] == examples.fingerprint():
        return read_table(done), seconds_of(place)
    experiment = {**config["experiment"], "seed": int(config["experiment"]["seed"]) + 1}
    result = fit(
        config["model"] if model is None else model,
        examples,
        method=config["method"],
        validation=config["validation"],
        val_set=val_set,
        augment=config["augment"],
        train_eval_set=train_eval_set,
        run_dir=place,
        resume=True,
        on_epoch_end=report,
        **experiment,
        **config["settings"],
    )
    return result.audit(), seconds_of(place)
