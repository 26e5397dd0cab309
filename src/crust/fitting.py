"""`fit`: everything a run needs is put together, trained, and left in its folder.

What users give to `fit`, checked and as `Examples`.

The networks of a method: the user's own, or those that a name or a function makes.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust._util import seeding
from crust._util.malloc import keep_freed
from crust._util.torch_modules import check_outputs
from crust.data import Examples, batches, encode_labels, from_arrays, from_dataset, hold_out
from crust.data.labels import check_classes
from crust.data.torch_dataset import can_augment
from crust.errors import InputError, choices
from crust.methods import METHODS
from crust.models import build_model
from crust.runs.folder import RunFolder, versions
from crust.runs.result import Result
from crust.training import loop, noise_estimation
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.recorder import Recorder
from crust.training.run_state import Plan, RunState
from crust.training.settings import TrainSettings, split_settings
from crust.training.trackers import Tracking, check_trackers


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
    train_eval_set: Any = None,
    run_dir: str | Path | RunFolder | None = None,
    resume: bool = False,
    on_epoch_end: Callable[[dict[str, Any]], None] | None = None,
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
        train_eval_set: the training set without augmentation, where `train_set` augments by itself.
        run_dir: where history and checkpoints go; default: nowhere.
        resume: go on with the run that is there.
        on_epoch_end: called with the history's line after every epoch.
        trackers: what else shall hold the history, such as `["tensorboard"]`: any tracker that Accelerate knows.
        settings: of the experiment (`crust.training.settings`) and of the method.

    Returns:
        The result.

    Example:
        >>> from crust import data, noise
        >>> digits = data.load("digits", limit=300)
        >>> wrong = noise.make_noisy_labels(digits.train.labels, "symmetric:0.4", classes=10).labels
        >>> result = fit("mlp", digits.train, labels=wrong, true_labels=digits.train.labels, epochs=2)
        >>> len(result.history), len(result.audit()), result.history["n_selected"]
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
    plain = train if train_eval_set is None else as_examples(train_eval_set, train.decode(train.labels), like=train)
    tests = test_sets(test_set, train)
    kept, held = np.arange(len(train)), np.empty(0, np.int64)
    if val_set is None and validation:
        kept, held = hold_out(train.labels, validation, seeding.numpy_rng(experiment.seed, "validation"))
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
        plain=None if train_eval_set is None else plain.subset(kept),
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
    folder = None if run_dir is None else run_dir if isinstance(run_dir, RunFolder) else RunFolder(run_dir)
    known, unknown = noise_estimation.told(own, part.labels, context.true_labels, context.classes, method)
    context.noise_info = known
    chosen = kind(own)
    unknown = unknown and not chosen.estimates_itself
    estimator = noise_estimation.Estimator(len(part), context.classes, experiment) if unknown else None
    state = RunState(Plan(chosen, estimator))
    tracking = Tracking(processes, trackers, config, on_epoch_end)
    recorder = Recorder(
        context,
        state,
        tests=tests,
        checkpoint_dir=None if folder is None else folder.checkpoint_dir,
        history_path=None if folder is None else folder.history_path,
        identity=config,
        report=tracking,
    )
    made_with = {"versions": versions()} if folder is None else folder.begin(config, recorder, resume)
    with tracking:
        tracking.begin(recorder.history)
        loop.train(context, state, fresh=fresh, after_epoch=recorder)
    config = {**config, **made_with, "noise_info": noise_estimation.described(context.noise_info)}
    # A network of its own: under mixed precision Accelerate has wrapped the forward of the trained one.
    final = fresh(0).to(processes.device)
    final.load_state_dict(processes.bare(context.networks[0]).state_dict() if state.best is None else state.best)
    place = None if folder is None else folder.path
    result = Result(final, recorder.history, config, train.classes, recorder, place, kept, held, train.ids)
    if folder is not None and processes.first:
        folder.finish(result)
    return result


def as_examples(data: Any, labels: Any = None, like: Examples | None = None) -> Examples:
    """Whatever the user has as `Examples`; with the classes and the normalisation of others, where they are given.

    Args:
        data: a map-style dataset of (x, y), a pair of arrays, or `Examples`.
        labels: one an example, in place of the data's own.
        like: examples whose classes and normalisation hold for these too.

    Example:
        >>> as_examples((np.zeros((4, 2), np.float32), ["a", "b", "a", "b"])).classes
        ['a', 'b']
    """
    if isinstance(data, Examples):
        return data if labels is None else data.with_labels(codes(labels, data))
    classes = None if like is None else like.classes
    if isinstance(data, tuple) and len(data) == 2:
        given = data[1] if labels is None else labels
        if like is None:
            return from_arrays(data[0], given)
        return from_arrays(
            data[0], given, classes=classes, mean=like.mean, std=like.std, normalise=False, where="the labels"
        )
    return from_dataset(data, labels, classes)


def test_sets(given: Any, train: Examples) -> dict[str, Examples]:
    """The test sets by name; one alone is just `test`."""
    if given is None:
        return {}
    sets = given if isinstance(given, dict) else {"test": given}
    if not sets:
        raise InputError("test_set is an empty dict: give at least one set by name, or None")
    for name in sets:
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
            raise InputError(f"a test set has the name {name!r}: use letters, digits, - and _, such as 'imagenet'")
    return {name: as_examples(one, like=train) for name, one in sets.items()}


def fingerprints(tests: dict[str, Examples], named: bool) -> dict[str, str] | str | None:
    found = {name: one.fingerprint() for name, one in tests.items()}
    return found if named else next(iter(found.values()), None)


def check_labels(examples: Examples) -> None:
    if (examples.labels < 0).any():
        where = int(np.flatnonzero(examples.labels < 0)[0])
        raise InputError(f"example {where} has no label: training needs one for every example")
    check_classes(examples.labels, examples.classes)


def codes(labels: Any, examples: Examples) -> NDArray[np.int64]:
    values = np.asarray(labels)
    if len(values) != len(examples):
        raise InputError(f"there are {len(values)} labels for {len(examples)} examples: give one label an example")
    return encode_labels(values, examples.classes)[0]


def maker(
    model: nn.Module | str | Callable[[], nn.Module], examples: Examples, settings: TrainSettings
) -> Callable[[int], nn.Module]:
    """A function that makes network number i: the given one first, others with weights of their own."""
    classes = len(examples.classes)
    pixels = settings.channels_last and examples.kind == "images"
    layout = torch.channels_last if pixels else torch.preserve_format

    def fresh(i: int) -> nn.Module:
        if isinstance(model, str):
            network = build_model(model, in_shape=examples.shape, classes=classes, seed=settings.seed * 1000 + i)
            return network.to(memory_format=layout)
        with seeding.seeded(settings.seed, "weights", i):
            if not isinstance(model, nn.Module):
                network = model()
                if not isinstance(network, nn.Module):
                    raise InputError(
                        f"the function given as model makes a {type(network).__name__}: let it make a network"
                    )
                return network.to(memory_format=layout)
            network = copy.deepcopy(model)
            if i:
                for module in network.modules():
                    reset = getattr(module, "reset_parameters", None)
                    if callable(reset):
                        reset()
        return network.to(memory_format=layout)

    return fresh
