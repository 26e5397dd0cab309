"""`fit`: everything a run needs is put together, trained, and left in its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from crust.api.inputs import as_examples, check_labels, codes, fingerprints, test_sets
from crust.api.networks import maker
from crust.api.result import Result
from crust.api.run_folder import finish_run, open_run
from crust.data import batches, hold_out
from crust.data.datasets import can_augment
from crust.errors import InputError, choices
from crust.memory import keep_freed
from crust.methods import METHODS
from crust.networks import check_outputs
from crust.training import knowledge, loop, randomness
from crust.training.context import Context
from crust.training.plan import Plan
from crust.training.processes import Processes
from crust.training.record import Recorder
from crust.training.settings import split_settings
from crust.training.state import RunState
from crust.training.tracking import Tracking, check_trackers
from crust.training.versions import versions


def fit(
    model: nn.Module | str | Callable[[], nn.Module],
    train_set: Any,
    *,
    method: str = "crust",
    labels: Any = None,
    true_labels: Any = None,
    test_set: Any = None,
    validation: float = 0.1,
    val_set: Any = None,
    augment: bool | None = None,
    plain_set: Any = None,
    run_dir: str | Path | None = None,
    resume: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
    trackers: Sequence[str] = (),
    **settings: Any,
) -> Result:
    """Train a network on data with wrong labels.

    Args:
        model: any network that returns logits, the name of one (`crust.models`), or a function that makes one: it is
            called for every network of a method, so that a second one has pretrained weights too, where a network that
            is given itself is copied with new weights.
        train_set: a map-style dataset of (x, y), arrays (x, y), or `Examples`.
        method: see `crust methods`.
        labels: one label an example, in place of the dataset's own.
        true_labels: for measuring only.
        test_set: clean data to measure on; or several sets by name, of which the first is the main one: the history
            has `test_accuracy` for it, `test_accuracy_NAME` for the others, and with `top=5` `test_top5` beside each.
        validation: share of the (noisy) training set that is held out to choose the model that is kept; or 0.
        val_set: a set of your own for that.
        augment: crop and mirror images at random: in memory shifted by an eighth at most, large folders as random
            resized crops; default: where they have 32 pixels or more a side. Only training sees it.
        plain_set: the training set without augmentation, where `train_set` augments by itself.
        run_dir: where history and checkpoints go; default: nowhere.
        resume: go on with the run that is there.
        report: called with the history's line after every epoch.
        trackers: what else shall hold the history, such as `["tensorboard"]`: any tracker that Accelerate knows.
        settings: of the experiment (`crust.training.settings`) and of the method.

    Returns:
        The result.

    Example:
        >>> from crust import data, noise
        >>> digits = data.load("digits", limit=300)
        >>> wrong = noise.realise(digits.train.labels, "symmetric:0.4", classes=10).labels
        >>> result = fit("mlp", digits.train, labels=wrong, true_labels=digits.train.labels, epochs=2)
        >>> len(result.history), len(result.audit()), result.history["chosen"]
        (2, 300, [270, 135])
    """
    choices(method, METHODS, "method")
    kind = METHODS[method]
    if not isinstance(model, str) and (not callable(model) or isinstance(model, type)):
        raise InputError(f"the model is a {type(model).__name__}: give a network that returns logits, or a name")
    experiment, own = split_settings(settings, kind.Settings)
    check_trackers(trackers, None if run_dir is None else Path(run_dir))
    train = as_examples(train_set, labels)
    check_labels(train)
    truth = None if true_labels is None else codes(true_labels, train)
    if truth is None and kind.needs == "all true labels":
        raise InputError(f"{method} needs true labels: give true_labels, or use another method")
    plain = train if plain_set is None else as_examples(plain_set, train.decode(train.labels), like=train)
    tests = test_sets(test_set, train)
    kept, held = np.arange(len(train)), np.empty(0, np.int64)
    if val_set is None and validation:
        kept, held = hold_out(train.labels, validation, randomness.numpy_rng(experiment.seed, "validation"))
    validate = None if val_set is None else as_examples(val_set, like=train)
    if len(held):
        validate = plain.subset(held)
    part = train.subset(kept)
    if augment is None:
        augment = can_augment(part)
    keep_freed()
    processes = Processes(experiment.mixed_precision, not torch.cuda.is_available(), trackers, run_dir)
    fresh = maker(model, part, experiment)
    networks = [fresh(i) for i in range(kind.networks)]
    name = model if isinstance(model, str) else type(networks[0]).__name__
    check_outputs(networks[0], next(batches(part, np.arange(min(2, len(part))), 2))[0], len(train.classes))
    size = sum(p.numel() for p in networks[0].parameters())
    context = Context(
        part,
        len(train.classes),
        [processes.prepare(network) for network in networks],
        experiment,
        processes,
        augment=augment,
        validation=validate,
        plain=None if plain_set is None else plain.subset(kept),
        true_labels=None if truth is None else truth[kept],
    )
    config = {
        "method": method,
        "model": name,
        "built": isinstance(model, str),
        "parameters": size,
        "inputs": {"kind": part.kind, "shape": list(part.shape), "mean": part.mean, "std": part.std},
        "experiment": experiment.model_dump(mode="json", exclude={"stop_after", "keep_every"}),
        "settings": own.model_dump(mode="json"),
        "validation": validation,
        "augment": augment,
        "classes": [c.item() if isinstance(c, np.generic) else c for c in train.classes],
        "data": train.fingerprint(),
        "test_data": fingerprints(tests, isinstance(test_set, dict)),
        "validation_data": None if validate is None or len(held) else validate.fingerprint(),
        "true_labels": None if truth is None else hashlib.sha256(truth.tobytes()).hexdigest()[:16],
    }
    folder = None if run_dir is None else Path(run_dir)
    known, unknown = knowledge.told(own, part.labels, context.true_labels, context.classes, method)
    context.knowledge = known
    chosen = kind(own)
    unknown = unknown and not chosen.estimates_itself
    estimator = knowledge.Estimator(len(part), context.classes, experiment) if unknown else None
    state = RunState(Plan(chosen, estimator))
    tracking = Tracking(processes, trackers, config, report)
    recorder = Recorder(context, state, tests=tests, folder=folder, identity=config, report=tracking)
    made_with = {"versions": versions()} if folder is None else open_run(folder, config, recorder, resume)
    with tracking:
        tracking.begin(recorder.history)
        loop.train(context, state, fresh=fresh, after_epoch=recorder)
    config = {**config, **made_with, "knowledge": knowledge.described(context.knowledge)}
    # A network of its own: under mixed precision Accelerate has wrapped the forward of the trained one.
    final = fresh(0).to(processes.device)
    final.load_state_dict(processes.bare(context.networks[0]).state_dict() if state.best is None else state.best)
    result = Result(final, recorder.history, config, train.classes, recorder, folder, kept, held, train.ids)
    if folder is not None and processes.first:
        finish_run(folder, result)
    return result
