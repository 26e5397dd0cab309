"""`fit`, `Result` and `load`: where a method by name meets the loop and the audit."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from torch import nn

from crust.audit import audit_table, duplicates, read_table
from crust.data import Examples, batches, encode_labels, from_arrays, from_dataset, hold_out
from crust.data.datasets import can_augment
from crust.data.labels import check_classes
from crust.errors import InputError, choices
from crust.files import write_whole
from crust.methods import METHODS
from crust.models import build_model
from crust.networks import check_outputs, device_of, evaluating, run
from crust.training import checkpoint, knowledge, loop, randomness
from crust.training.context import Context
from crust.training.history import History
from crust.training.memory import keep_freed
from crust.training.plan import Plan
from crust.training.processes import Processes
from crust.training.record import Recorder
from crust.training.settings import TrainSettings, split_settings
from crust.training.state import RunState
from crust.training.tracking import Tracking, check_trackers
from crust.training.versions import versions, went_on

log = logging.getLogger("crust")


@dataclasses.dataclass
class Result:
    """What training leaves: the model, its history, and what it knows about the labels.

    Example:
        >>> from crust import data
        >>> digits = data.load("digits", limit=200)
        >>> result = fit("mlp", digits.train, test_set=digits.test, method="erm", epochs=1)
        >>> sorted(result.accuracy), result.predict(digits.test).shape
        (['best', 'last', 'last10'], (500,))
        >>> result.audit().columns[:4].tolist()
        ['index', 'label', 'suggested', 'probability']
    """

    model: nn.Module
    history: History
    config: dict[str, Any]
    classes: list[Any]
    recorder: Recorder | None = None
    run_dir: Path | None = None
    kept: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))  # trained on
    held: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))  # held out
    ids: Any = None

    def audit(self) -> Any:
        """One row a training example, as a pandas DataFrame: the given label, a better one, and how much to doubt."""
        if self.recorder is None:
            path = None if self.run_dir is None else self.run_dir / "audit.parquet"
            if path is None or not path.exists():
                raise InputError("this run has kept no audit: train it to the end")
            return read_table(path)
        recorder = self.recorder
        context = recorder.context
        held = None
        if recorder.watch_validation is not None and context.validation is not None and len(self.held):
            held = (recorder.watch_validation, context.validation.labels, self.held)
        return audit_table(
            recorder.watch,
            context.labels,
            self.kept,
            self.classes,
            held=held,
            ids=self.ids,
            opinions=recorder.method.opinions(),
            same=self._same(),
        )

    def _same(self) -> dict[int, int] | None:
        """Examples with the very same input as an earlier one; None where the inputs are not in memory."""
        assert self.recorder is not None
        context = self.recorder.context
        parts = [(context.plain, self.kept)]
        if context.validation is not None and len(self.held):
            parts.append((context.validation, self.held))
        if any(examples.kind == "dataset" for examples, _ in parts):
            return None
        return duplicates((examples.inputs, index) for examples, index in parts)

    def predict(self, data: Any, *, probabilities: bool = False, batch_size: int = 128) -> NDArray[Any]:
        """Predicted classes, in the user's own names; or the probabilities of all classes.

        Args:
            data: a dataset, an array of inputs, or `Examples`, in the form that the model was trained on.
            probabilities: return (n, classes) in float64 instead.
            batch_size: inputs at a time.
        """
        examples = self._inputs(data)
        device = device_of(self.model)
        found = []
        with evaluating(self.model), torch.no_grad():
            for x, _ in batches(examples, None, batch_size, device=device):
                found.append(torch.softmax(run(self.model, x).double(), dim=1).cpu().numpy())
        rows = np.concatenate(found)
        return rows if probabilities else np.array(self.classes)[rows.argmax(axis=1)]

    def _inputs(self, data: Any) -> Examples:
        if isinstance(data, Examples):
            return data
        if isinstance(data, np.ndarray | torch.Tensor):
            how = self.config.get("inputs") or {}
            return from_arrays(data, mean=how.get("mean"), std=how.get("std"), normalise=how.get("mean") is not None)
        return Examples(data, np.full(len(data), -1), self.classes, "dataset")

    @property
    def accuracy(self) -> dict[str, float | None]:
        """Test accuracy of the last epoch, the mean of the last ten, and the best."""
        return self.history.accuracy()


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
    _check_labels(train)
    truth = None if true_labels is None else _codes(true_labels, train)
    if truth is None and kind.needs == "all true labels":
        raise InputError(f"{method} needs true labels: give true_labels, or use another method")
    plain = train if plain_set is None else as_examples(plain_set, train.decode(train.labels), like=train)
    tests = _test_sets(test_set, train)
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
    fresh = _maker(model, part, experiment)
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
        "test_data": _fingerprints(tests, isinstance(test_set, dict)),
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
    made_with = {"versions": versions()} if folder is None else _open(folder, config, recorder, resume)
    with tracking:
        tracking.begin(recorder.history)
        loop.train(context, state, fresh=fresh, after_epoch=recorder)
    config = {**config, **made_with, "knowledge": knowledge.described(context.knowledge)}
    # A network of its own: under mixed precision Accelerate has wrapped the forward of the trained one.
    final = fresh(0).to(processes.device)
    final.load_state_dict(processes.bare(context.networks[0]).state_dict() if state.best is None else state.best)
    result = Result(final, recorder.history, config, train.classes, recorder, folder, kept, held, train.ids)
    if folder is not None and processes.first:
        _finish(folder, result)
    return result


def _finish(folder: Path, result: Result) -> None:
    """Leave the kept model and the audit in the run's folder."""
    from io import BytesIO

    from safetensors.torch import save

    trained = result.model.state_dict()
    weights = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in trained.items()}
    write_whole(folder / "model.safetensors", save(weights))
    write_whole(folder / "config.yaml", yaml.safe_dump(result.config, sort_keys=False).encode())
    buffer = BytesIO()
    result.audit().to_parquet(buffer)
    write_whole(folder / "audit.parquet", buffer.getvalue())


def load(run_dir: str | Path, model: nn.Module | None = None) -> Result:
    """A finished run again: the kept model, the history, the audit.

    Args:
        run_dir: the run's folder.
        model: a network of the same kind, where the run was given one of the user's own.

    Returns:
        The result, ready to predict. Opening it runs no code from the folder.

    Example:
        >>> import tempfile
        >>> from crust import data
        >>> digits = data.load("digits", limit=200)
        >>> folder = tempfile.mkdtemp()
        >>> trained = fit("mlp", digits.train, method="erm", epochs=1, run_dir=folder)
        >>> bool((load(folder).predict(digits.test) == trained.predict(digits.test)).all())
        True
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(run_dir)
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text())
        weights = load_file(folder / "model.safetensors")
    except (OSError, yaml.YAMLError, SafetensorError) as error:
        raise InputError(f"{folder} holds no finished run: {error}") from None
    if model is None:
        if not config["built"]:
            raise InputError(f"the run in {folder} trained a {config['model']} of yours: give such a network as model")
        shape = tuple(config["inputs"]["shape"])
        model = build_model(config["model"], in_shape=shape, classes=len(config["classes"]))
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"the weights in {folder} do not fit the model: {str(error).splitlines()[0]}") from None
    return Result(model, History.load(folder / "history.jsonl"), config, config["classes"], None, folder)


def as_examples(data: Any, labels: Any = None, like: Examples | None = None) -> Examples:
    """Whatever the user has as `Examples`; with the classes and the normalisation of others, where they are given."""
    if isinstance(data, Examples):
        return data if labels is None else data.with_labels(_codes(labels, data))
    classes = None if like is None else like.classes
    if isinstance(data, tuple) and len(data) == 2:
        given = data[1] if labels is None else labels
        if like is None:
            return from_arrays(data[0], given)
        return from_arrays(
            data[0], given, classes=classes, mean=like.mean, std=like.std, normalise=False, where="the labels"
        )
    return from_dataset(data, labels, classes)


def _test_sets(given: Any, train: Examples) -> dict[str, Examples]:
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


def _fingerprints(tests: dict[str, Examples], named: bool) -> dict[str, str] | str | None:
    found = {name: one.fingerprint() for name, one in tests.items()}
    return found if named else next(iter(found.values()), None)


def _check_labels(examples: Examples) -> None:
    if (examples.labels < 0).any():
        where = int(np.flatnonzero(examples.labels < 0)[0])
        raise InputError(f"example {where} has no label: training needs one for every example")
    check_classes(examples.labels, examples.classes)


def _codes(labels: Any, examples: Examples) -> NDArray[np.int64]:
    values = np.asarray(labels)
    if len(values) != len(examples):
        raise InputError(f"there are {len(values)} labels for {len(examples)} examples: give one label an example")
    return encode_labels(values, examples.classes)[0]


def _maker(
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
        with randomness.seeded(settings.seed, "weights", i):
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


def _open(folder: Path, config: dict[str, Any], recorder: Recorder, resume: bool) -> dict[str, Any]:
    """Begin a run in a folder, or go on with the one that is there; what it is made with, for the record."""
    processes = recorder.context.processes
    found = checkpoint.newest(folder / "checkpoint") if (folder / "checkpoint").exists() else None
    processes.wait()  # all have looked before the first one writes
    if found is not None and not resume:
        raise InputError(f"{folder} holds a run already: resume it, or choose another folder")
    if found is None:
        if processes.first:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        made_with = {"versions": versions()}
        _write_config(folder, {**config, **made_with}, processes)
        return made_with
    changed = _differences(found["identity"], json.loads(json.dumps(config)))
    if changed:
        raise InputError(f"the run in {folder} cannot go on, since this has changed: {', '.join(changed)}")
    try:
        recorder.load(found)
    except RuntimeError as error:
        raise InputError(f"the run in {folder} had another model: {str(error).splitlines()[0]}") from None
    begun = _written_config(folder)
    made_with = went_on(begun, folder) if processes.first else {}
    if any(begun.get(name) != value for name, value in made_with.items()):
        _write_config(folder, {**config, **made_with}, processes)
    return made_with


def _write_config(folder: Path, config: dict[str, Any], processes: Processes) -> None:
    if processes.first:
        write_whole(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False).encode())


def _written_config(folder: Path) -> dict[str, Any]:
    """The config.yaml of a run, or nothing: the checkpoint holds all that counts."""
    try:
        found = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key} (was {a}, is {b})")
    return found


def spec_hash(spec: dict[str, Any]) -> str:
    """A short name for a full specification."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
