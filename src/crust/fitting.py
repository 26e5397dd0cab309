"""`fit`: the user's data, networks and method are put together, trained, and left in the run's folder."""

from __future__ import annotations

import copy
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust import defaults
from crust._util import seeding
from crust._util.foreign_files import path_of
from crust._util.large_arrays import kept_type
from crust._util.progress import LINE_EVERY, EpochProgress
from crust._util.torch_modules import (
    OutputForm,
    check_network,
    check_outputs,
    check_shape,
    output_form,
    unwrapped,
)
from crust.audit import audit_table, duplicates
from crust.audit.judged_by_features import input_columns
from crust.audit.label_quality import judged_probabilities
from crust.audit.reliability import mark
from crust.audit.training_dynamics import Watch
from crust.data import Examples, batches
from crust.data.mapped_array import MappedArray
from crust.data.pretrained_tokens import HF
from crust.data.torch_dataset import can_augment, root_of
from crust.data.user_data import Reading
from crust.errors import InputError, choices
from crust.methods import METHODS
from crust.models import build_model
from crust.models.build import model_name
from crust.runs.folder import RunFolder, versions
from crust.runs.result import Result
from crust.runs.training_data import TOKEN_MODEL, Split, fingerprints, made_by, prepare_data, reading_of, texts_to_show
from crust.training import loop, noise_estimation
from crust.training.context import Context
from crust.training.distributed import Processes, launched, own_accelerate_state
from crust.training.method import Method, Settings
from crust.training.objective import check_beside, check_takes_loss, checked_weights, make_objective, split_functions
from crust.training.recorder import Recorder
from crust.training.run_state import Plan, RunState
from crust.training.settings import TrainSettings, split_settings
from crust.training.trackers import TrackerOptions, Tracking, check_trackers

NOT_IN_CONFIG = ("stop_after", "keep_every", "device", "find_unused_parameters")  # how a run is carried out
EXCERPT = 280  # characters of a text that stand in the audit


def fit(
    model: nn.Module | str | Callable[[], nn.Module],
    train_set: Any,
    *more: Any,
    method: str | type[Method] | Method = "crust",
    labels: Any = None,
    true_labels: Any = None,
    test_set: Any = None,
    validation: float = 0.1,
    val_set: Any = None,
    augment: bool | None = None,
    train_eval_set: Any = None,
    label_column: str | None = None,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    sample_weight: Any = None,
    normalise: bool = True,
    show: Any = None,
    run_dir: str | Path | RunFolder | None = None,
    resume: bool = False,
    on_epoch_end: Callable[[dict[str, Any]], None] | None = None,
    trackers: Sequence[str] | Mapping[str, Any] = (),
    progress: bool = True,
    **settings: Any,
) -> Result:
    """Train a network on data with wrong labels.

    Args:
        model: any network that returns logits, the name of one (`crust.models`; `hf:NAME` or a folder for a pretrained
            one of transformers), "auto" for one that fits the data, or a function that makes one: it is called for
            every network of a method, so that a second one has pretrained weights too, where a network that is given
            itself is copied with new weights.
        train_set: a map-style dataset of (x, y) or of dicts, a `datasets.Dataset`, a DataFrame, a dict of arrays,
            arrays (x, y), texts (strings, y), a DataLoader of any of these, or `Examples`. An array or a tensor of
            whole numbers, (n, length), is token ids where the network has an embedding (or is `text`), and numbers
            like all others where it has none. Of a dict goes to the network what its forward takes by name; an x that
            is a tuple goes to it as several arguments.
        more: nothing; inputs and labels are one pair, `fit(model, (x, y))`.
        method: a name, see `crust methods`; or a `Method` of your own, the class or an instance (CONTRIBUTING.md).
        labels: one label an example, in place of the dataset's own; one-hot rows are taken, too.
        true_labels: for measuring only.
        test_set: clean data to measure on; or several sets by name, of which the first is the main one: the history
            has `test_accuracy` for it, `test_accuracy_NAME` for the others, and with `top=5` `test_top5` beside each.
        validation: share of the (noisy) training set that is held out to choose the model that is kept; or 0.
        val_set: a set of your own for that.
        augment: crop and mirror images at random: in memory shifted by an eighth at most, large folders as random
            resized crops; default: where they have 32 pixels or more a side. Only training sees it.
        train_eval_set: the training set without augmentation, where `train_set` augments by itself.
        label_column: the column, or the key of items, with the labels; default: the one with a usual name.
        collate_fn: what makes a batch of items, as for a DataLoader; default: rows of whole numbers of different
            lengths are filled up at their ends.
        sample_weight: what each example of the training set counts in the loss.
        normalise: standardise arrays and columns of numbers.
        show: texts, one an example, or the name of their column: they stand in audit, report and review.
        run_dir: where history and checkpoints go; default: nowhere.
        resume: go on with the run that is there.
        on_epoch_end: called with the history's line after every epoch; where it raises StopIteration, the run ends
            there, with the result that there is.
        trackers: what else shall hold the history, such as `["tensorboard"]`: any tracker that Accelerate knows; or
            with options, `{"wandb": {"project": "sorting", "name": "first"}}`.
        progress: show how far it is, on stderr: a live line on a terminal, elsewhere a line every ten seconds.
        settings: of the experiment (`crust.training.settings`) and of the method. `optimizer` may be a function of
            the network, `schedule` one of the step and how many there are, which the highest rate is multiplied by;
            `loss` is one of logits and targets, with one number an example, and `logits` one of what the network
            returns. Length, batch size, optimizer, its
            rate, decay and schedule follow kind and size of the data where they are not given (`crust.defaults`); with
            "auto" a line on stderr says what was chosen.

    Returns:
        The result.

    Example:
        >>> from crust import data, noise
        >>> digits = data.load("digits", limit=300)
        >>> wrong = noise.make_noisy_labels(digits.train.labels, "symmetric:0.4", classes=10).labels
        >>> result = fit("mlp", digits.train, labels=wrong, true_labels=digits.train.labels, epochs=2)
        >>> len(result.history), len(result.audit()), result.history["n_selected"]
        (2, 300, [270, 270])
    """
    if more:
        raise InputError("inputs and labels are one argument: fit(model, (x, y))", code="data-pair")
    with own_accelerate_state():
        run = prepare(
            model,
            train_set,
            method=method,
            labels=labels,
            true_labels=true_labels,
            test_set=test_set,
            validation=validation,
            val_set=val_set,
            augment=augment,
            train_eval_set=train_eval_set,
            label_column=label_column,
            collate_fn=collate_fn,
            sample_weight=sample_weight,
            normalise=normalise,
            show=show,
            run_dir=run_dir,
            resume=resume,
            on_epoch_end=on_epoch_end,
            trackers=trackers,
            progress=progress,
            **settings,
        )
        result = run.train()
    if progress and result.is_main_process:
        for line in result.warnings():
            sys.stderr.write(f"{line}\n")
    return result


@dataclass
class Run:
    """A run that is put together: the data, the networks in their context, and what it writes down."""

    data: Split
    context: Context
    state: RunState
    recorder: Recorder
    tracking: Tracking
    progress: EpochProgress
    fresh: Callable[[int], nn.Module]
    output: OutputForm
    config: dict[str, Any]
    folder: RunFolder | None
    reading: Reading
    texts: list[str] | None  # to be shown, one an example

    def train(self) -> Result:
        """To the end, and leave it in its folder."""
        try:
            with self.tracking, self.progress:
                self.tracking.begin(self.recorder.history)
                loop.train(self.context, self.state, fresh=self.fresh, record=self.recorder)
            return self.finish()
        finally:
            if self.folder is not None:
                self.folder.release()

    def finish(self) -> Result:
        """What stays: the kept model, the history, the audit."""
        context, state = self.context, self.state
        # A network of its own: under mixed precision Accelerate has wrapped the forward of the trained one.
        final = self.fresh(0).to(context.device)
        trained = context.processes.bare(context.networks[0]).state_dict() if state.best is None else state.best
        final.load_state_dict(trained)
        context.train_pass = None  # there may be gigabytes of it
        self.recorder.finish()
        judged = judged_probabilities(self._watched(), self._columns())
        cost = {"forward": context.cost.forward, "backward": context.cost.backward, "seconds": context.cost.seconds}
        result = Result(
            final.eval(),
            self.recorder.history,
            {**self.config, "noise_info": noise_estimation.described(context.noise_info)},
            self.data.train.classes,
            run_dir=None if self.folder is None else self.folder.path,
            audit_rows=mark(self._audit(judged), self.recorder.history.lines, state.best_epoch),
            label_probabilities=self._probabilities(judged),
            best_epoch=state.best_epoch,
            cost=cost,
            is_main_process=context.processes.first,
            output=self.output,
            reading=self.reading,
        )
        if self.folder is not None and context.processes.first:
            self.folder.finish(result)
        return result

    def _watched(self) -> list[tuple[Watch, NDArray[np.int64], NDArray[np.int64]]]:
        """Of those trained on and those held out: what was seen of them, their given labels, their positions."""
        context, data, recorder = self.context, self.data, self.recorder
        found = [(recorder.watch, context.labels, data.kept)]
        if recorder.watch_validation is not None and context.validation is not None and len(data.held):
            found.append((recorder.watch_validation, context.validation.labels, data.held))
        return found

    def _parts(self) -> list[tuple[Examples, NDArray[np.int64]]]:
        """Those trained on and those held out, and their positions, in the order of `_watched`."""
        found = [(self.context.plain, self.data.kept)]
        if len(self._watched()) > 1 and self.context.validation is not None:
            found.append((self.context.validation, self.data.held))
        return found

    def _in_memory(self) -> bool:
        return not any(part.kind == "dataset" or isinstance(part.inputs, MappedArray) for part, _ in self._parts())

    def _columns(self) -> NDArray[np.float32] | None:
        """The inputs as columns that neighbours are looked for by, where that is quick."""
        return input_columns([(part.inputs, part.kind) for part, _ in self._parts()]) if self._in_memory() else None

    def _probabilities(self, judged: list[NDArray[np.floating]]) -> NDArray[np.floating]:
        """Those that label quality goes by, a row an example of the training set."""
        n, classes = len(self.data.train), self.context.classes
        found = np.empty((n, classes), kept_type(n, classes))
        for (_, _, index), probabilities in zip(self._watched(), judged, strict=True):
            found[index] = probabilities
        return found

    def _audit(self, judged: list[NDArray[np.floating]]) -> Any:
        """One row a training example: what the run knows about its label."""
        data, recorder = self.data, self.recorder
        trained, *held = self._watched()
        same = None  # examples with the very same input as an earlier one; unknown where inputs are not in memory
        if self._in_memory():
            same = duplicates((examples.inputs, index) for examples, index in self._parts())
        table = audit_table(
            *trained,
            data.train.classes,
            held=held[0] if held else None,
            ids=data.train.ids,
            opinions=recorder.method.opinions(),
            same=same,
            judged=judged,
        )
        texts = self.texts
        return table if texts is None else table.assign(text=[text_excerpt(texts[i]) for i in table["index"]])


def prepare(
    model: nn.Module | str | Callable[[], nn.Module],
    train_set: Any,
    *,
    method: str | type[Method] | Method,
    labels: Any,
    true_labels: Any,
    test_set: Any,
    validation: float,
    val_set: Any,
    augment: bool | None,
    train_eval_set: Any,
    label_column: str | None,
    collate_fn: Callable[[list[Any]], Any] | None,
    sample_weight: Any,
    normalise: bool,
    show: Any,
    run_dir: str | Path | RunFolder | None,
    resume: bool,
    on_epoch_end: Callable[[dict[str, Any]], None] | None,
    trackers: Sequence[str] | Mapping[str, Any],
    progress: bool,
    **settings: Any,
) -> Run:
    """A run as `fit` was asked for it, ready to train: begun in its folder, or opened again there."""
    if not isinstance(model, str) and (not callable(model) or isinstance(model, type)):
        raise InputError(
            f"the model is a {type(model).__name__}: give a network that returns logits, or a name", code="model-type"
        )
    if isinstance(model, nn.Module):
        model = unwrapped(model)
    if isinstance(model, str):
        model = model_name(model)
    run_dir = _check_arguments(validation, augment, resume, normalise, run_dir, on_epoch_end)
    functions, settings = split_functions(settings)
    check_beside(functions, settings)
    chosen, experiment, method_name = build_method(method, settings)
    said = {name: value for name, value in launched().items() if name not in experiment.model_fields_set}
    experiment = experiment.model_copy(update=said)
    if experiment.patience is not None and not validation and val_set is None:
        raise InputError(
            "patience waits for a better model, which only held-out examples tell: give validation or a val_set",
            code="no-validation",
        )
    followers = TrackerOptions.of(trackers)
    check_trackers(followers.names, None if run_dir is None else Path(run_dir))
    if true_labels is None and chosen.uses_true_labels:
        raise InputError(
            f"{method_name} needs true labels: give true_labels, or use another method", code="missing-true-labels"
        )
    reading = reading_of(model, collate_fn, label_column, normalise)
    data = prepare_data(
        train_set,
        labels,
        true_labels,
        test_set,
        validation,
        val_set,
        train_eval_set,
        experiment.seed,
        reading,
        model if isinstance(model, str) and model.startswith(HF) else None,
    )
    shown_texts = texts_to_show(show, train_set, data.train)
    train, part = data.train, data.part
    name = model if isinstance(model, str) else None
    given = experiment.model_dump(include=experiment.model_fields_set)
    choice = defaults.choose(train.kind, train.shape, len(train), model=name, given=given)
    model, experiment = choice.model or model, experiment.model_copy(update=choice.settings)
    if isinstance(model, str):
        check_token_model(model, [part, *([data.validation] if data.validation else []), *data.tests.values()])
    if augment is None:
        augment = can_augment(part)
    cpu = not torch.cuda.is_available()
    processes = Processes(
        experiment.mixed_precision, cpu, followers.names, run_dir, experiment.device, experiment.find_unused_parameters
    )
    if name == defaults.AUTO and processes.first:
        hint = defaults.advice(train.kind, train.shape, len(train), choice.model)
        sys.stderr.write("".join(f"{line}\n" for line in (choice.sentence, hint) if line is not None))
    fresh = maker(model, part, experiment)
    networks = [fresh(i) for i in range(chosen.networks)]
    sample = next(batches(part, np.arange(min(2, len(part))), 2))[0]
    output = output_form(networks[0], sample, len(train.classes), functions.logits)
    networks = [output.put_on(network) for network in networks]
    check_outputs(networks[0], sample, len(train.classes))
    weights = None if sample_weight is None else checked_weights(sample_weight, len(train))[data.kept]
    objective = make_objective(functions, experiment, part.labels, len(train.classes), weights, device=processes.device)
    check_takes_loss(objective, chosen.takes_loss(), method_name)
    for what, others in {"validation set": data.validation, "plain set": data.plain, **data.tests}.items():
        if others is not None and len(others):
            sample = next(batches(others, np.arange(1), 1))[0]
            check_shape(networks[0], sample, len(train.classes), part.shape, f"the inputs of {what!r}")
    context = Context(
        part,
        len(train.classes),
        [processes.prepare(network) for network in networks],
        experiment,
        processes,
        augment=augment,
        validation=data.validation,
        plain=data.plain,
        true_labels=None if data.truth is None else data.truth[data.kept],
        tests=data.tests,
        functions=functions,
        objective=objective,
    )
    config = {
        "method": method_name,
        "model": model if isinstance(model, str) else type(networks[0]).__name__,
        "built": isinstance(model, str),
        "parameters": sum(p.numel() for p in networks[0].parameters()),
        "inputs": {
            "kind": part.kind,
            "shape": list(part.shape),
            "mean": part.mean,
            "std": part.std,
            **({"tokens": part.inputs.encoding} if part.kind == "tokens" else {}),
            **({"encoding": part.encoding} if part.encoding is not None else {}),
            **({"root": root} if (root := root_of(part.inputs)) is not None else {}),
        },
        "experiment": experiment.model_dump(mode="json", exclude=set(NOT_IN_CONFIG)),
        **({"functions": functions.names()} if functions.names() else {}),
        **({"one_logit": True} if output.one_logit else {}),
        **({} if weights is None else {"sample_weight": hashlib.sha256(weights.tobytes()).hexdigest()[:16]}),
        "settings": chosen.settings.model_dump(mode="json"),
        "validation": validation,
        "augment": augment,
        "classes": [c.item() if isinstance(c, np.generic) else c for c in train.classes],
        "data": data.fingerprint,
        "test_data": fingerprints(data.tests, isinstance(test_set, dict)),
        "validation_data": None if data.validation is None or len(data.held) else data.validation.fingerprint(),
        "true_labels": None if data.truth is None else hashlib.sha256(data.truth.tobytes()).hexdigest()[:16],
    }
    context.noise_info, unknown = noise_estimation.told(
        chosen.settings, part.labels, context.true_labels, context.classes, method_name
    )
    estimator = None
    if unknown and not chosen.estimates_itself:
        estimator = noise_estimation.Estimator(len(part), context.classes, experiment)
    state = RunState(Plan(chosen, estimator))
    epochs = sum(stage.epochs or experiment.epochs for stage in chosen.stages())
    shown = EpochProgress(epochs, quiet=not (progress and processes.first), every=LINE_EVERY)
    listeners: list[Callable[[dict[str, Any]], None]] = [] if on_epoch_end is None else [on_epoch_end]
    tracking = Tracking(processes, followers, config, [shown, *listeners] if progress else listeners)
    folder = None if run_dir is None else run_dir if isinstance(run_dir, RunFolder) else RunFolder(run_dir)
    recorder = Recorder(
        context,
        state,
        checkpoint_dir=None if folder is None else folder.checkpoint_dir,
        history_path=None if folder is None else folder.history_path,
        identity=config,
        report=tracking,
    )
    made_with = {"versions": versions()} if folder is None else folder.begin(config, recorder, resume)
    return Run(
        data,
        context,
        state,
        recorder,
        tracking,
        shown,
        fresh,
        output,
        {**config, **made_with},
        folder,
        reading,
        shown_texts,
    )


def _check_arguments(
    validation: Any, augment: Any, resume: Any, normalise: Any, run_dir: Any, on_epoch_end: Any
) -> str | Path | RunFolder | None:
    """Hold that each is of the kind that it must be; the folder of the run."""
    if isinstance(validation, bool) or not isinstance(validation, Real):
        raise InputError(
            f"validation is {validation!r:.100}: give a share from 0 on and below 1, such as 0.1", code="share-range"
        )
    for name, value in {
        "resume": resume,
        "normalise": normalise,
        **({} if augment is None else {"augment": augment}),
    }.items():
        if not isinstance(value, (bool, np.bool_)):
            raise InputError(f"{name} is {value!r:.100}: give True or False", code="not-yes-or-no")
    if resume and run_dir is None:
        raise InputError("resume does not know which run: give its folder as run_dir", code="no-run-folder")
    if on_epoch_end is not None and not callable(on_epoch_end):
        raise InputError(
            f"on_epoch_end is a {type(on_epoch_end).__name__}: give a function of a line of the history",
            code="not-a-function",
        )
    return run_dir if run_dir is None or isinstance(run_dir, RunFolder) else path_of(run_dir, "run_dir")


def build_method(method: str | type[Method] | Method, settings: dict[str, Any]) -> tuple[Method, TrainSettings, str]:
    """The method, the settings of the experiment, and the method's name for messages and the run's config.

    Example:
        >>> chosen, experiment, name = build_method("crust", {"epochs": 3, "fraction": 0.7})
        >>> name, chosen.settings.fraction, experiment.epochs
        ('crust', 0.7, 3)
    """
    if isinstance(method, Method):
        kind: type[Method] = type(method)
        given = sorted(set(settings) & set(kind.Settings.model_fields))
        if given:
            raise InputError(
                f"{given[0]} is a setting of the method, which is there already: give it to the method",
                code="setting-of-method",
            )
        experiment, _ = split_settings(settings, Settings)
        return copy.deepcopy(method), experiment, getattr(kind, "name", kind.__name__)
    if isinstance(method, str):
        kind = METHODS[choices(method, METHODS, "method")]
    elif isinstance(method, type) and issubclass(method, Method):
        kind = method
    else:
        raise InputError(
            f"method is a {type(method).__name__}: give a name, see crust methods, or a crust Method",
            code="method-type",
        )
    experiment, own = split_settings(settings, kind.Settings)
    return kind(own), experiment, getattr(kind, "name", kind.__name__)


def check_trainable(network: nn.Module) -> None:
    """Refuse networks that nothing can be learned by.

    Example:
        >>> check_trainable(nn.Linear(2, 2).requires_grad_(False))
        Traceback (most recent call last):
        ...
        crust.errors.InputError: no weight of the model can change: set requires_grad of those that shall learn
    """
    check_network(network)
    if not any(weight.requires_grad for weight in network.parameters()):
        raise InputError(
            "no weight of the model can change: set requires_grad of those that shall learn", code="frozen-model"
        )


def check_token_model(model: str, sets: Sequence[Examples]) -> None:
    """Texts and token ids go to the network for them, and nothing else does."""
    kinds = {examples.kind for examples in sets}
    if "tokens" in kinds and model != TOKEN_MODEL:
        raise InputError(
            f"the examples are texts or token ids, which {model} cannot take: use the model {TOKEN_MODEL}",
            code="model-for-tokens",
        )
    if model == TOKEN_MODEL and kinds != {"tokens"}:
        raise InputError(
            f"the model {TOKEN_MODEL} takes texts or token ids, but the examples are {', '.join(sorted(kinds))}: give "
            "strings or whole numbers, or use another model",
            code="model-for-tokens",
        )
    for examples in sets[1:] if "tokens" in kinds else ():
        if examples.inputs.vocabulary > sets[0].inputs.vocabulary:
            raise InputError(
                f"a test or validation set holds the token id {examples.inputs.vocabulary - 1:,}, but the largest that "
                f"is trained on is {sets[0].inputs.vocabulary - 1:,}: make the ids of all sets alike",
                code="token-id-range",
            )


def text_excerpt(text: str) -> str:
    """The beginning of a text in one line, for the audit.

    Example:
        >>> text_excerpt("so\\n good " + 300 * "!")[-4:], len(text_excerpt(300 * "a"))
        ('!!!…', 281)
    """
    line = " ".join(text[: 4 * EXCERPT].encode("utf-8", "replace").decode().split())  # half a character has no UTF-8
    return line if len(line) <= EXCERPT and len(text) <= 4 * EXCERPT else f"{line[:EXCERPT]}…"


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
                network = made_by(model)
                check_trainable(network)
                return network.to(memory_format=layout)
            check_trainable(model)
            try:
                network = copy.deepcopy(model)
            except Exception as error:  # scripted ones, and those that hold a file or a lock
                raise InputError(
                    f"the model cannot be copied ({' '.join(str(error).split())[:100]}): give a function that makes it",
                    code="model-copy",
                ) from None
            if i:
                for module in network.modules():
                    reset = getattr(module, "reset_parameters", None)
                    if callable(reset):
                        reset()
        return network.to(memory_format=layout)

    return fresh
