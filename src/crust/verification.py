"""`verify_audit`: train once more with injected label errors, and say how far a run's audit can be trusted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from crust._util import seeding
from crust._util.atomic_write import remove_drafts
from crust._util.foreign import whole_number
from crust.audit.accuracy.estimates_with_intervals import AuditArrays, check_injected, estimate_accuracy
from crust.audit.accuracy.inject_errors import inject_errors
from crust.audit.accuracy.verified_file import write_verified
from crust.audit.noise_rate import noise_rate
from crust.data.user_data import as_examples
from crust.errors import InputError, choices
from crust.fitting import fit
from crust.methods import METHODS
from crust.runs.data import training_examples
from crust.runs.folder import RunFolder

__all__ = ["verify_audit"]


def verify_audit(
    run: str | Path | RunFolder,
    train_set: Any = None,
    *,
    labels: Any = None,
    model: nn.Module | None = None,
    val_set: Any = None,
    train_eval_set: Any = None,
    on_epoch_end: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Say how many of a run's label issues are errors: noise rate, precision and recall, each with a 90% interval.

    Some of the labels that the run takes for wrong are left out, errors are injected into others, and the network is
    trained again with the run's own settings and another seed. This costs as much as the run. It can be stopped and
    called again: it goes on.

    Args:
        run: the folder of a finished run.
        train_set: what it was trained on; default: the data that its recipe names, as `crust train` has read it.
        labels: the labels it was given, where they are not the dataset's own.
        model: a network of the same kind, where the run was given one of the user's own.
        val_set: the validation set, where the run was given one.
        train_eval_set: the training set without augmentation, where the run was given one.
        on_epoch_end: called with the history's line after every epoch.

    Returns:
        What is left as `verified.json` in the run's folder (`audit.accuracy.verified_file` says what it means).

    Example:
        >>> import tempfile
        >>> from crust import data, noise
        >>> digits = data.load("digits", limit=300).train
        >>> noisy = noise.make_noisy_labels(digits.labels, "symmetric:0.3", classes=10, seed=1)
        >>> wrong = digits.with_labels(noisy.labels)
        >>> folder = tempfile.mkdtemp()
        >>> _ = fit("mlp", wrong, epochs=6, batch_size=32, learning_rate=0.05, run_dir=folder)
        >>> found = verify_audit(folder, wrong)
        >>> found["noise_rate"]["low"] < 0.3 < found["noise_rate"]["high"], (Path(folder) / "verified.json").exists()
        (True, True)
    """
    folder = RunFolder(run)
    table, classes = folder.audit()
    config = folder.config()
    _check_verifiable(config, folder, model, val_set)
    train = as_examples(training_examples(folder) if train_set is None else train_set, labels)
    if train.fingerprint() != config["data"]:
        raise InputError(
            f"the data is not what the run in {folder} was trained on: give the same data and labels", code="other-data"
        )
    audit = audit_arrays(table, classes)
    seed = whole_number(config["experiment"].get("seed"), f"the seed in {folder.config_path}", 0)
    rng = seeding.numpy_rng(seed, "plants")  # this word and "calibration" below decide what is drawn: they stay
    first = noise_rate(table, len(classes)).value
    differ = float((audit.given != audit.suggested).mean())
    errors = inject_errors(
        audit.error_score, audit.given, audit.suggested, differ if first is None else first, len(classes), rng
    )
    check_injected(errors)
    with_errors = train.with_labels(errors.labels).subset(errors.kept)
    plain = (
        None
        if train_eval_set is None
        else as_examples(train_eval_set, train.decode(train.labels), like=train).subset(errors.kept)
    )
    second = folder.verification
    with second.claimed():
        remove_drafts(folder.verified_path)
        trained, seconds = _train_again(second, config, with_errors, model, val_set, plain, on_epoch_end)
        draws = seeding.numpy_rng(seed, "calibration")
        found = estimate_accuracy(audit, audit_arrays(trained, classes), errors, classes, draws)
        found["injected"] = {
            "count": len(errors.injected),
            "share": round(len(errors.injected) / len(audit.given), 5),
            "seed": seed,
            "seconds": round(seconds, 1),
        }
        write_verified(folder.verified_path, found)
        shutil.rmtree(second.checkpoint_dir, ignore_errors=True)  # nothing can go on from it any more
    return found


def audit_arrays(table: Any, classes: list[Any]) -> AuditArrays:
    """An audit's table as numbers, in the order of the training set."""
    table = table.sort_values("index")
    position = {name: i for i, name in enumerate(classes)}
    given, suggested = (table[name].map(position) for name in ("given_label", "predicted_label"))
    if given.isna().any() or suggested.isna().any():
        raise InputError("the audit names classes that the run does not know: train again", code="unknown-class")
    error_score, probability = 1 - table["label_quality"].to_numpy(), table["predicted_prob"].to_numpy()
    held = table["is_held_out"].to_numpy(bool)
    return AuditArrays(error_score, given.to_numpy(np.int64), suggested.to_numpy(np.int64), probability, held)


def _check_verifiable(config: dict[str, Any], folder: RunFolder, model: nn.Module | None, val_set: Any) -> None:
    method = choices(config["method"], METHODS, "method")
    if METHODS[method].uses_true_labels or "true" in config["settings"].values():
        raise InputError(
            f"{method} was told the true labels, of which injected errors have none: verify another run",
            code="true-labels",
        )
    if model is None and not config["built"]:
        raise InputError(
            f"the run in {folder} trained a {config['model']} of yours: give such a network as model",
            code="missing-model",
        )
    if val_set is None and config.get("validation_data") is not None:
        raise InputError(
            f"the run in {folder} had a validation set of its own: give it as val_set", code="missing-validation"
        )


def _train_again(
    second: RunFolder,
    config: dict[str, Any],
    examples: Any,
    model: nn.Module | None,
    val_set: Any,
    train_eval_set: Any,
    on_epoch_end: Callable[[dict[str, Any]], None] | None,
) -> tuple[Any, float]:
    """The audit of the second training, and what that took; one that is done already is not done again."""
    if second.audit_path.is_file() and second.config()["data"] == examples.fingerprint():
        return second.audit_table(), second.seconds()
    experiment = {**config["experiment"], "seed": int(config["experiment"]["seed"]) + 1}
    result = fit(
        config["model"] if model is None else model,
        examples,
        method=config["method"],
        validation=config["validation"],
        val_set=val_set,
        augment=config["augment"],
        train_eval_set=train_eval_set,
        run_dir=second,
        resume=True,
        on_epoch_end=on_epoch_end,
        progress=on_epoch_end is None,
        **experiment,
        **config["settings"],
    )
    return result.audit(), second.seconds()
