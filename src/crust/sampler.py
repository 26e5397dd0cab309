"""CRUST in a training loop that is not ours: who is trained on, as a torch `Sampler`; mixing, as a collate function.

An epoch of a sampler has one length, always: Lightning keeps the first epoch's number of batches, and a schedule of
Trainer is planned by it. What a method gives a weight is visited that often, so that no loss has to know of weights.
"""

from __future__ import annotations

import copy
import math
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Sampler, default_collate

from crust._util import seeding
from crust._util.foreign import as_typed, is_sequence, whole_number
from crust._util.torch_modules import (
    check_network,
    check_outputs,
    device_of,
    evaluating,
    forward_logits,
    unwrapped,
)
from crust.audit import audit_table
from crust.data import Examples, batches, encode_labels, hold_out
from crust.data.labels import MOST_CLASSES, check_classes, check_codes, one_each, plain_labels
from crust.data.torch_dataset import check_dataset
from crust.data.user_data import labels_and_names
from crust.errors import InputError, choices
from crust.fitting import build_method
from crust.gradients import GradientPass
from crust.methods.crust import Crust
from crust.runs.audit_source import AuditSource, open_audit
from crust.runs.review_session import review_labels
from crust.training import coreset_rules, noise_estimation, sampler_state
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.evaluation import EpochEvaluation
from crust.training.loop import clock
from crust.training.losses import target_rows, towards_sce
from crust.training.method import Method, Selection
from crust.training.mixing_collate import MixingCollate
from crust.training.recorder import Recorder
from crust.training.run_state import Plan, RunState

if TYPE_CHECKING:
    import pandas as pd

    from crust.selection import Coreset

OWN = ("batch_size", "eval_batch_size", "workers", "seed", "audit_every")  # of the experiment; the rest is the loop's


class CoresetSampler(Sampler[int]):
    """Who is trained on, for any loop: looks at all examples when an epoch begins, and selects as `crust.fit` does.

    The length is the same in every epoch. A coreset that is smaller is gone through again, each time in a fresh order;
    of one that is larger the next epoch takes what is left. So every member comes equally often, and a rule that gives
    weights gets visits in proportion. Where batches come from several processes, all must go through the sampler.

    Asked again before the weights have changed, as by a look at the first batch, it gives the same epoch again.

    Args:
        dataset: map-style, as the loader has it.
        labels: the given labels: one an example, as the loss gets them (numbers count the outputs of the model), or
            their names; or the column or key of the items that has them; None: those of the dataset.
        model: the network that is trained, whether it is wrapped or not. Where another one takes its place, set
            `sampler.model`.
        epochs: how many are planned, by which looks are placed and weighed.
        method: `crust`, or another whose whole work is to select, such as `crust-half`, `small-loss` or `random`.
        length: examples an epoch; None: as many as are trained on, or the fixed `fraction` of them.
        collate_fn: that of the loader, where it has one.
        eval_dataset: the same examples without augmentation, for the look.
        classes: names in the order of the model's outputs; None: the dataset's own, or numbers.
        validation: share of the examples that the sampler holds out, since the noise is known by them; or 0.
        val_set: a labelled set of your own for that, with the noise of the training set.
        val_labels: its labels, as `labels`.
        shard: hand each process its part only, where nothing else divides the batches among them.
        settings: of the method, such as `fraction`; and `batch_size` (of an update; 32), `eval_batch_size` and
            `workers` of the look, `seed`, `audit_every`.

    Example:
        >>> x, y = torch.randn(60, 4), torch.arange(60) % 3
        >>> data = torch.utils.data.TensorDataset(x, y)
        >>> model = nn.Linear(4, 3)
        >>> sampler = CoresetSampler(data, y, model, epochs=2)
        >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
        >>> for epoch in range(2):
        ...     for inputs, labels in torch.utils.data.DataLoader(data, 18, sampler=sampler):
        ...         optimizer.zero_grad()
        ...         torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        ...         optimizer.step()
        >>> len(sampler), len(sampler.audit())
        (54, 60)
    """

    def __init__(
        self,
        dataset: Any,
        labels: Any,
        model: nn.Module,
        *,
        epochs: int,
        method: str | type[Method] | Method = "crust",
        length: int | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        eval_dataset: Any = None,
        classes: Sequence[Any] | None = None,
        validation: float = 0.1,
        val_set: Any = None,
        val_labels: Any = None,
        shard: bool = False,
        **settings: Any,
    ):
        self.method, experiment, self.method_name = build_method(
            method, {"batch_size": 32, **settings, "epochs": epochs}
        )
        _check(self.method, self.method_name, settings)
        check_network(model)
        _check_collate(collate_fn)
        if not (classes is None or is_sequence(classes)):
            raise InputError(f"classes are a {type(classes).__name__}: give a list of names", code="classes-type")
        if classes is not None and len({str(name) for name in classes}) < len(classes):
            raise InputError("classes name one twice: name each once", code="classes-type")
        for one in (dataset, eval_dataset, val_set):
            if one is not None:
                check_dataset(one)
        collate = default_collate if collate_fn is None else collate_fn
        values, names = labels_and_names(dataset, labels)
        values = plain_labels(one_each(values, len(dataset)), "the labels")
        self.classes = _classes(model, dataset, collate, values, names if classes is None else classes)
        codes = encode_labels(values, self.classes)[0]
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise InputError(f"example {row} has no label: training needs one for every example", code="no-label")
        check_classes(codes, self.classes)
        seen = dataset if eval_dataset is None else eval_dataset
        if len(seen) != len(codes):
            raise InputError(
                f"eval_dataset has {len(seen)} examples, but there are {len(codes)} labels: give the same examples in "
                "the same order, without augmentation",
                code="eval-dataset-length",
            )
        examples = Examples(seen, codes, self.classes, "dataset", collate_fn=collate)
        if eval_dataset is not None:
            self._check_model(model, examples)
        self.kept, self.held = np.arange(len(codes)), np.empty(0, np.int64)
        held_out: Examples | None = None
        if val_set is not None:
            own = encode_labels(labels_and_names(val_set, val_labels)[0], self.classes, "the labels of val_set")[0]
            held_out = Examples(val_set, own, self.classes, "dataset", collate_fn=collate)
        elif validation:
            self.kept, self.held = hold_out(codes, validation, seeding.numpy_rng(experiment.seed, "validation"))
            held_out = examples.subset(self.held) if len(self.held) else None
        self.processes = _Ranks(model)
        self.context = Context(
            examples.subset(self.kept),
            len(self.classes),
            [unwrapped(model)],
            experiment,
            self.processes,
            augment=False,
            validation=held_out,
        )
        self.context.noise_info, unknown = noise_estimation.told(
            self.method.settings, codes, None, len(self.classes), self.method_name
        )
        if unknown and not self.method.estimates_itself:
            raise InputError(
                "the noise rate would be estimated by two trainings, which only crust.fit can make: give noise_rate, "
                "or fraction=auto",
                code="sampler-estimate",
            )
        self.state = RunState(Plan(self.method))
        self.state.begin(self.context)
        self.recorder = Recorder(self.context, self.state, checkpoint_dir=None, history_path=None, identity={})
        fraction = getattr(self.method.settings, "fraction", None)
        share = fraction if isinstance(fraction, float) else 1.0
        self.length = (
            max(1, round(share * len(self.kept)))
            if length is None
            else whole_number(length, "length", 1, "length-range")
        )
        self.shard, self.dataset = shard, dataset
        self.epoch = -1  # that was begun last
        self.selection = Selection(np.arange(len(self.kept)))
        self.order = self._rest = np.empty(0, np.int64)  # of the epoch, and what it has left of the last round
        self.handed_out = False  # all of the epoch's order
        self._weights: list[float] | None = None  # what the model's weights were like when the epoch began
        self._again, self._unchanged = False, 0

    def __len__(self) -> int:
        if not self.shard:
            return self.length
        self.processes.ask(self.model)
        return math.ceil(self.length / self.processes.count)

    def __repr__(self) -> str:
        place = f"epoch {self.epoch} of {self.context.epochs}" if self.epoch >= 0 else "not begun"
        return f"CoresetSampler({self.method_name}, {len(self)} of {len(self.kept)} examples an epoch, {place})"

    @property
    def model(self) -> nn.Module:
        """The network that is looked at."""
        return self.context.networks[0]

    @model.setter
    def model(self, model: nn.Module) -> None:
        check_network(model)
        self._check_model(model, self.context.plain)
        self.context.networks[0], self._weights = unwrapped(model), None

    def _check_model(self, model: nn.Module, examples: Examples) -> None:
        sample = next(batches(examples, np.arange(min(2, len(examples))), 2, device=device_of(model)))[0]
        check_outputs(unwrapped(model), sample, len(self.classes))

    @property
    def coreset(self) -> NDArray[np.int64]:
        """Positions in the dataset of those that are trained on; without the others that count less than a whole."""
        weights = self.selection.weights
        full = isinstance(self.method, Crust) and self.method.sized is not None and weights is not None
        rows = self.selection.indices[weights == 1] if full else self.selection.indices
        return self.kept[np.unique(rows)]

    @property
    def history(self) -> list[dict[str, Any]]:
        """A line for every epoch that is over: how many were chosen, what was seen of the noise."""
        return list(self.recorder.history)

    # ------------------------------------------------------------ epochs

    def __iter__(self) -> Iterator[int]:
        if self.epoch < 0 or not self._repeats():
            self.processes.ask(self.model)
            if self.epoch >= 0:
                self._end_epoch(self.recorder, look=False)
            self._begin_epoch()
        return self._walk()

    def set_epoch(self, epoch: int) -> None:
        """What frameworks say before an epoch: the number of the one that goes on means this one again."""
        self._again = self._again or (epoch == self.epoch and self.handed_out)

    def _repeats(self) -> bool:
        """Whether the epoch that was begun is asked for again."""
        if self._again:
            self._again, self._weights, self._unchanged = False, self._weights_now(), 0
            return True
        if self._weights is None or self._weights != self._weights_now():
            self._unchanged = 0
            return False
        if self.handed_out:
            self._unchanged += 1
            what = (
                "the weights of the model that CoresetSampler has have not changed in a whole epoch: give it the very "
                "network that is trained, or set sampler.model to it"
            )
            if self._unchanged > 1:
                raise InputError(what, code="model-unchanged")
            warnings.warn(what, stacklevel=3)
        return True

    def _walk(self) -> Iterator[int]:
        self.handed_out = False
        order = self.order
        if self.shard:
            order = np.resize(order, len(self) * self.processes.count)[self.processes.rank :: self.processes.count]
        for place, row in enumerate(self.kept[order].tolist(), 1):
            self.handed_out = place == len(order)
            yield row

    def _begin_epoch(self) -> None:
        context, before = self.context, self.selection
        self._weights = self._weights_now()
        self.epoch = context.epoch = self.epoch + 1
        with clock(context, "selection"):
            found = self.method.begin_epoch(context)
        self.selection = Selection(np.arange(context.n)) if found is None else found
        if not _same(before, self.selection):
            self._rest = np.empty(0, np.int64)
        self.order = self._next_order()

    def _next_order(self) -> NDArray[np.int64]:
        """As many visits as an epoch has: what the last round has left, and further rounds in fresh orders."""
        rng, parts, have = self.context.rng("order"), [self._rest], len(self._rest)
        while have < self.length:
            parts.append(rng.permutation(_visits(self.selection, rng)))
            have += len(parts[-1])
        rows = np.concatenate(parts)
        self._rest = rows[self.length :]
        return rows[: self.length]

    def _end_epoch(self, recorder: Recorder, look: bool) -> None:
        """Look at everything where audit or method want it, with the weights that the epoch has made, and note it."""
        context, evaluated = self.context, EpochEvaluation()
        context.weights_changed()
        kind = self.method.train_set_pass(self.epoch + 1, context.epochs)
        if look or kind or context.settings.audit_due(self.epoch, context.epochs):
            with clock(context, "gradients"):
                evaluated.train = context.evaluate_our_part(kind or "logits")
                evaluated.validation = context.evaluate_validation()
        self.state.epochs_done = self.epoch + 1
        facts = {"stage": "train", "counts": True, "n_selected": len(self.coreset), **self.selection.facts}
        recorder(self.selection, facts, evaluated)

    def _weights_now(self) -> list[float]:
        """A number for each trained tensor, so that a step of the optimizer shows."""
        trained = [p.detach() for p in self.model.parameters() if p.requires_grad]
        if not trained:
            raise InputError(
                "no weight of the model is trained, since requires_grad is False everywhere: give CoresetSampler the "
                "network that your loop trains",
                code="frozen-model",
            )
        wide = torch.float32 if trained[0].device.type == "mps" else torch.float64
        return torch.stack([torch.linalg.vector_norm(p, dtype=wide) for p in trained]).tolist()

    # ------------------------------------------------------------ with mixing and with noise

    def loss(self, logits: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy, or the nearer to symmetric cross-entropy, the more labels seem to be wrong: that of `crust`.

        Args:
            logits: of a batch.
            target: labels as numbers, or as rows of shares, as `mixing` makes them.

        Example:
            >>> y = torch.arange(12) % 3
            >>> data = torch.utils.data.TensorDataset(torch.randn(12, 4), y)
            >>> sampler = CoresetSampler(data, y, nn.Linear(4, 3), epochs=2)
            >>> z = torch.randn(12, 3)
            >>> bool(torch.isclose(sampler.loss(z, y), torch.nn.functional.cross_entropy(z, y)))  # no noise as yet
            True
        """
        if not isinstance(logits, Tensor) or logits.dim() != 2 or not logits.is_floating_point():
            shape = f" of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else ""
            raise InputError(
                f"the logits are a {type(logits).__name__}{shape}: give a tensor of floats, a row an example",
                code="model-output",
            )
        bounds = torch.full((len(logits),), self.bound, device=logits.device)
        return towards_sce(logits.float(), target_rows(target, *logits.shape), bounds)

    @property
    def bound(self) -> float:
        """How far the members' loss is from cross-entropy (0) to symmetric cross-entropy (1)."""
        sized = getattr(self.method, "sized", None)
        if sized is None:
            return 0.0
        own = getattr(self.method.settings, "bound", 0.0)
        return float(sized.bound if own == "auto" else own)

    # ------------------------------------------------------------ what is known of the labels

    def audit(self) -> pd.DataFrame:
        """One row an example, as the result of `crust.fit` has it: the given label, a better one, and how good it is.

        Where the weights have changed since the last look there is one more, by this process alone: the first of
        several may ask without the others.
        """
        recorder = self.recorder
        if self.epoch >= 0 and self._weights != self._weights_now():
            recorder = copy.copy(recorder)
            for name in ("watch", "watch_validation", "history"):
                setattr(recorder, name, copy.deepcopy(getattr(recorder, name)))
            with self.processes.alone():
                self._end_epoch(recorder, look=True)
        if not recorder.watch.looks:
            raise InputError(
                "the sampler has not looked at the examples yet: train an epoch with a loader that has it as sampler",
                code="not-looked",
            )
        validation, held = self.context.validation, None
        if recorder.watch_validation is not None and validation is not None and len(self.held):
            held = (recorder.watch_validation, validation.labels, self.held)
        opinions = self.method.opinions()
        return audit_table(recorder.watch, self.context.labels, self.kept, self.classes, held=held, opinions=opinions)

    def report(self, path: str | Path, *, show: Any = None) -> Path:
        """Write the audit as one HTML page; see `crust.review_labels` for what `show` takes.

        Args:
            path: where it goes.
            show: what is shown of the examples; default: texts or images of the dataset itself, where it has such.
        """
        return self._source(show).report(path)

    def review(self, *, show: Any = None, **options: Any) -> pd.DataFrame:
        """Open the review page, and return what was decided once somebody has finished: `crust.review_labels`."""
        return review_labels(self._source(show), **options)

    def _source(self, show: Any) -> AuditSource:
        source = open_audit(self.audit(), show=self.dataset if show is None else show)
        try:
            source.looks()
        except InputError:
            if show is not None:
                raise
            source = open_audit(self.audit())  # the dataset itself is nothing to look at
        return source

    # ------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """All that a run which goes on needs: plain values and tensors, for `torch.save` beside the model's weights."""
        watch = self.recorder.watch_validation
        content = {
            "identity": self._identity(),
            "epoch": self.epoch,
            "handed_out": self.handed_out,
            "order": self.order,
            "rest": self._rest,
            "indices": self.selection.indices,
            "weights": self.selection.weights,
            "facts": self.selection.facts,
            "method": self.method.state(),
            "watch": self.recorder.watch.state(),
            "watch_validation": None if watch is None else watch.state(),
            "history": self.recorder.history.lines,
            "passes": [self.context.cost.forward, self.context.cost.backward],
        }
        return sampler_state.packed(content)

    def load_state_dict(self, state: Mapping[str, Any], *, again: bool | None = None) -> None:
        """Go on from `state_dict`, with the model's weights put back beside it.

        Args:
            state: from a sampler of the same data and settings.
            again: whether the loader goes through the saved epoch again, as one that skips what was trained on before
                a stop in the middle does; None: where that epoch was not handed out to its end.
        """
        found = sampler_state.unpacked(state, len(self.kept), self._identity())
        if (found["watch_validation"] is None) != (self.recorder.watch_validation is None):
            raise sampler_state.not_a_state()
        try:
            self.method.load_state(found["method"])
            self.recorder.watch.load(found["watch"])
            if self.recorder.watch_validation is not None:
                self.recorder.watch_validation.load(found["watch_validation"])
        except (ValueError, TypeError, LookupError, AttributeError, AssertionError):
            raise sampler_state.not_a_state() from None
        self.epoch, self.handed_out = found["epoch"], found["handed_out"]
        self.order, self._rest = found["order"], found["rest"]
        self.selection = Selection(found["indices"], found["weights"], None, found["facts"])
        self.context.epoch = max(0, self.epoch)
        self.recorder.history.lines = found["history"]
        self.context.cost.forward, self.context.cost.backward = found["passes"]
        self._weights = None
        self._again = self.epoch >= 0 and (not self.handed_out if again is None else again)

    def _identity(self) -> list[Any]:
        settings = self.method.settings.model_dump(mode="json")
        experiment = self.context.experiment
        labels = zlib.crc32(np.ascontiguousarray(self.context.labels, "<i8").tobytes())
        return [self.method_name, settings, experiment.seed, experiment.epochs, self.length, len(self.held), labels]


class _Ranks(Processes):
    """The processes that train now, without an Accelerator: the user may have one, or none."""

    splits = False  # any of them may ask for the audit without the others

    def __init__(self, model: nn.Module):
        self.ask(model)

    def ask(self, model: nn.Module) -> None:
        """Who trains now: a framework may start its processes, and move the model, after the sampler was made."""
        several = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if several else 0
        self.count = torch.distributed.get_world_size() if several else 1
        self.device, self.first, self.sent = device_of(model), True, 0

    def bare(self, network: nn.Module) -> nn.Module:
        return unwrapped(network)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else takes part."""
        before = self.rank, self.count
        self.rank, self.count = 0, 1
        try:
            yield
        finally:
            self.rank, self.count = before


def _check(method: Method, name: str, settings: Mapping[str, Any]) -> None:
    """A sampler says who is trained on: what more a method does, and other settings, need another place."""
    own = (Method, Crust)
    selects = all(getattr(type(method), what) in {getattr(one, what) for one in own} for what in ("losses", "prepare"))
    if not selects or method.networks > 1 or method.uses_true_labels or method.next_stage(1) is not None:
        raise InputError(
            f"{name} does more than select: use crust.fit, or a method such as crust, crust-half or small-loss",
            code="sampler-method",
        )
    for setting in settings:
        if setting not in OWN and setting not in type(method.settings).model_fields:
            raise InputError(
                f"{setting} is an affair of your own loop: set it there, and give the sampler {', '.join(OWN)} and "
                f"what {name} has",
                code="sampler-setting",
            )


def check_sampler(sampler: Any) -> CoresetSampler:
    """Hold that it is one of ours."""
    if not isinstance(sampler, CoresetSampler):
        raise InputError(f"the sampler is a {type(sampler).__name__}: give a CoresetSampler", code="not-a-sampler")
    return sampler


def _check_collate(collate_fn: Any) -> None:
    if not (collate_fn is None or callable(collate_fn)):
        raise InputError(f"collate_fn is a {type(collate_fn).__name__}: give a function", code="not-a-function")


def _same(one: Selection, other: Selection) -> bool:
    mine, its = (np.ones(len(each.indices)) if each.weights is None else each.weights for each in (one, other))
    return np.array_equal(one.indices, other.indices) and np.array_equal(mine, its)


def _visits(selection: Selection, rng: np.random.Generator) -> NDArray[np.int64]:
    """One round through a selection: each row as often as it weighs, the parts of a whole by chance.

    Example:
        >>> rows = _visits(Selection(np.arange(3), np.array([1, 2, 0.5], np.float32)), np.random.default_rng(0))
        >>> np.bincount(rows)[:2].tolist()
        [1, 2]
    """
    if selection.weights is None:
        return selection.indices
    whole = np.floor(selection.weights)
    times = whole + (rng.random(len(whole)) < selection.weights - whole)
    return np.repeat(selection.indices, times.astype(np.int64))


def _classes(model: nn.Module, dataset: Any, collate: Any, values: Any, names: Sequence[Any] | None) -> list[Any]:
    """The names of the model's outputs, in their order; the model has to take the examples, and have as many."""
    probe = Examples(dataset, np.zeros(len(dataset), np.int64), [0], "dataset", collate_fn=collate)
    x = next(batches(probe, np.arange(min(2, len(dataset))), 2, device=device_of(model)))[0]
    inner = unwrapped(model)
    if names is None and values.dtype.kind == "U":
        names = sorted(set(values.tolist()))
    if names is None:
        check_codes(values, len(values), MOST_CLASSES)
        most = int(values.max())
        try:
            with evaluating(inner):
                outputs = forward_logits(inner, x).shape[-1]
        except InputError:
            raise
        except Exception:
            outputs = 0  # check_outputs says why
        names = range(max(outputs, most + 1))
    check_outputs(inner, x, len(names))
    return list(names)


# ------------------------------------------------------------ functions


def mixing(
    collate_fn: Callable[[list[Any]], Any] | None, sampler: CoresetSampler, *, alpha: float = 1.0
) -> Callable[[list[Any]], Any]:
    """A collate function whose batches are mixed: each example with another of its batch, and their labels too.

    All float inputs are mixed, share ~ Beta(alpha, alpha); the labels become rows of shares, which
    `torch.nn.functional.cross_entropy` takes as they are. The shares follow from the batch and the sampler's seed, so
    that workers and a resumed epoch draw the same, and no random number of yours is used up.

    Args:
        collate_fn: that of the loader; None: torch's own.
        sampler: of the loader.
        alpha: of the Beta distribution; 1 is any share alike.

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
        >>> sampler = CoresetSampler(data, None, nn.Linear(4, 3), epochs=2)
        >>> x, y = mixing(None, sampler)([data[i] for i in range(6)])
        >>> x.shape, y.shape, bool(torch.allclose(y.sum(1), torch.ones(6)))
        (torch.Size([6, 4]), torch.Size([6, 3]), True)
    """
    asked: Any = alpha
    if isinstance(asked, bool) or not isinstance(asked, Real) or not 0 < float(asked) < math.inf:
        raise InputError(f"alpha is {as_typed(alpha)}: give a number above 0", code="alpha-range")
    check_sampler(sampler)
    _check_collate(collate_fn)
    seed = sampler.context.experiment.seed
    return MixingCollate(default_collate if collate_fn is None else collate_fn, len(sampler.classes), alpha, seed)


def choose(
    seen: GradientPass,
    labels: Any,
    fraction: float = 0.5,
    *,
    grouping: coreset_rules.Grouping = "prediction",
    selection: coreset_rules.Rule = "central",
    budget: Literal["label", "group"] = "label",
    seed: int = 0,
) -> Coreset:
    """A coreset of a given share by what `crust.proxies` has seen: the rule of `crust-half`.

    Args:
        seen: of all examples, in their order.
        labels: the given labels, as numbers.
        fraction: of all examples.
        grouping: in which examples are compared: by predicted class, by given label, or `none`.
        selection: who is chosen: the most `central`, by `greedy` facility location, `small-loss`, or at `random`.
        budget: what is divided in proportion: the part of every given `label`, or that of every `group`.
        seed: for `random`.

    Returns:
        The coreset: `indices` are positions in the data, `weights` how many examples each stands for.

    Example:
        >>> from crust import gradients
        >>> x, labels = torch.randn(60, 4), np.arange(60) % 3
        >>> seen = gradients.proxies(nn.Linear(4, 3), torch.utils.data.DataLoader(x, 20), labels)
        >>> len(choose(seen, labels, 0.5).indices)
        30
    """
    if not isinstance(seen, GradientPass):
        raise InputError(f"seen is a {type(seen).__name__}: give what crust.proxies returns", code="not-a-pass")
    codes = check_codes(labels, len(seen.predictions), MOST_CLASSES)
    for value, valid, what in (
        (grouping, get_args(coreset_rules.Grouping), "grouping"),
        (selection, get_args(coreset_rules.Rule), "selection"),
        (budget, ("label", "group"), "budget"),
    ):
        choices(value, valid, what)
    return coreset_rules.choose(
        seen.proxies,
        seen.predictions,
        seen.losses,
        codes,
        fraction,
        grouping=grouping,
        selection=selection,
        seed=seed,
        budget=budget,
    )
