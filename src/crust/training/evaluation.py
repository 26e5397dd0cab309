"""Passes over a dataset that change nothing: predictions, gradient proxies, accuracies, the score of the weights."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust import gradients
from crust._util import seeding
from crust._util.torch_modules import evaluate_batches, forward_logits, last_linear
from crust.data import batches
from crust.data.batches import split_batches, walk
from crust.errors import CrustError

if TYPE_CHECKING:
    from crust.data import Examples
    from crust.training.context import Context
    from crust.training.distributed import Processes
    from crust.training.method import Method, Stage


@dataclass
class Prediction:
    """What a network says of some examples; row i is about the example `index[i]`."""

    index: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    predictions: NDArray[np.int64]
    losses: NDArray[np.float32]  # of the given labels
    features: NDArray[np.float32] | None = None  # input of the last layer


class Tap:
    """Catches the input of a network's last layer in every forward pass; the layer is looked for once.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> tap, x = Tap(model, torch.randn(2, 4)), torch.randn(5, 4)
        >>> bool(model(x).equal(model[2](tap.take())))
        True
    """

    def __init__(self, network: nn.Module, sample: Any):
        self._caught: Tensor | None = None
        self._hook = last_linear(network, sample)[1].register_forward_pre_hook(self._catch)

    def _catch(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._caught = inputs[0]

    def take(self) -> Tensor | None:
        """What the last pass has brought; kept no longer, since a whole graph may hang on it."""
        caught, self._caught = self._caught, None
        return caught


def predict(
    context: Context, index: NDArray[np.int64] | None, network: int, examples: Examples | None, features: bool
) -> Prediction:
    """Each process evaluates its part of the examples; everyone gets everything."""
    seen = context.plain if examples is None else examples
    wanted = np.arange(len(seen)) if index is None else np.asarray(index, np.int64)
    model = context.processes.bare(context.networks[network])
    settings = context.settings
    rows: list[Tensor] = []
    inner: list[Tensor] = []
    pieces = batches(
        seen,
        wanted[context.processes.slice(len(wanted))],
        settings.examples_at_once(seen.kind),
        device=context.device,
        workers=settings.workers,
        channels_last=settings.channels_last,
    )

    def forward(model: nn.Module, x: Any) -> Tensor:
        tap = context.tap(network, x) if features else None
        logits = forward_logits(model, x)
        caught = None if tap is None else tap.take()
        if caught is not None:
            inner.append(caught.float().flatten(1).cpu())
        return logits

    evaluate_batches(model, pieces, lambda x, index, logits: rows.append(logits.float().cpu()), forward=forward)
    parts = context.processes.gather((_joined(rows), _joined(inner)))
    every = torch.cat([part[0].reshape(-1, context.classes) for part in parts])
    labels = torch.from_numpy(seen.labels[wanted])
    return Prediction(
        wanted,
        every.softmax(1).numpy(),
        every.argmax(1).numpy(),
        F.cross_entropy(every, labels, reduction="none").numpy(),
        torch.cat([part[1] for part in parts if len(part[1])]).numpy() if features and len(wanted) else None,
    )


def probabilities_of(model: nn.Module, pieces: Iterable[tuple[Any, Any]]) -> NDArray[np.float64]:
    """The probabilities of all classes for the inputs of some batches, in their order: (n, classes) in float64."""
    found: list[NDArray[np.float64]] = []
    evaluate_batches(model, pieces, lambda x, index, logits: found.append(logits.double().softmax(1).cpu().numpy()))
    return np.concatenate(found)


def _joined(rows: list[Tensor]) -> Tensor:
    return torch.cat(rows) if rows else torch.empty(0)


def evaluate(
    context: Context,
    examples: Examples,
    kind: str = "logits",
    *,
    network: int = 0,
    train_mode: bool = False,
    augment: bool = False,
    whole: bool = True,
) -> gradients.GradientPass:
    """One pass over a dataset: gradient proxies, predictions, probabilities and losses of the given labels.

    This is the pass that selection, the audit and the choice of the kept weights go by. Each process sees its part;
    `whole`: everyone gets everything, else each keeps its own. Nothing is counted here.
    """
    mine, settings = context.processes.slice(len(examples)), context.settings
    options: dict[str, Any] = {
        "augment": augment,
        "generator": context.torch_rng("look") if augment else None,
        "device": context.device,
        "workers": settings.workers,
        "channels_last": settings.channels_last,
    }
    if train_mode:
        pieces = walk(examples, split_batches(mine, settings.batch_size), **options)
    else:
        pieces = batches(examples, mine, settings.examples_at_once(examples.kind), **options)
    place = (settings.seed, "look", context.stage, context.epoch, context.processes.rank)
    with seeding.seeded(*place) if train_mode else nullcontext():  # for dropout
        found = gradients.proxies(
            context.processes.bare(context.networks[network]),
            pieces,
            examples.labels,
            kind=kind,
            device=context.device,
            train_mode=train_mode,
            probabilities=True,
            partial=True,
        )
    bad = int(context.processes.add(np.array([(~np.isfinite(found.losses)).sum()]))[0])
    if bad:
        raise Diverged(
            f"the network has no finite loss for {bad} of {len(examples)} examples in epoch {context.epoch}: the "
            f"learning rate of {settings.learning_rate} is likely too large, or inputs are not finite",
            code="diverged",
        )
    return gather_pass(found, len(examples), context.processes) if whole else found


def gather_pass(found: gradients.GradientPass, n: int, processes: Processes) -> gradients.GradientPass:
    """What each process has seen of its examples, for everyone; what nobody has seen is no row."""
    if processes.count == 1:
        return gradients.merge_passes([found], n)
    return gradients.merge_passes(processes.gather(found), n)


class Diverged(CrustError):
    """The loss is no number any more."""


@dataclass
class EpochEvaluation:
    """What was measured after an epoch."""

    metrics: dict[str, float] = field(default_factory=dict)  # for the history
    train: gradients.GradientPass | None = None  # where the audit or the next selection asks for it
    validation: gradients.GradientPass | None = None


def accuracies(context: Context, tests: dict[str, Examples]) -> dict[str, float]:
    """The share of examples that the first network gets right, each counted once by one process.

    The first set's goes by the name `test_accuracy`, that of another one by `test_accuracy_NAME`. Where a `top` is set
    and there are more classes than that, `test_top5` and `test_top5_NAME` stand beside them.
    """
    found, top = {}, context.settings.top
    for number, (name, examples) in enumerate(tests.items()):
        end = f"_{name}" if number else ""
        seen = predict(context, None, 0, examples, False)
        found[f"test_accuracy{end}"] = float((seen.predictions == examples.labels).mean())
        if top is not None and top < context.classes:
            found[f"test_top{top}{end}"] = float((ranks(seen.probabilities, examples.labels) < top).mean())
    return found


def ranks(probabilities: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many classes come before the labels; of equal ones the first comes first, as for predictions."""
    own = probabilities[np.arange(len(labels)), labels][:, None]
    before = np.arange(probabilities.shape[1]) < labels[:, None]
    found: NDArray[np.int64] = ((probabilities > own) | ((probabilities == own) & before)).sum(axis=1)
    return found


def score(
    context: Context, method: Method, stage: Stage, validation: gradients.GradientPass | None
) -> tuple[float, dict[str, float]]:
    """What the present weights are worth by the stage's measure, larger is better; and what the history shows of it.

    Without a set to select on the later weights are the better ones.
    """
    found: dict[str, float] = {}
    probabilities: NDArray[np.float64] | None = None
    labels = context.labels
    if context.validation is not None and validation is not None:
        labels = context.validation.labels
        found["val_accuracy"] = float((validation.predictions == labels).mean())
        assert validation.probabilities is not None
        probabilities = validation.probabilities.astype(np.float64)
    if stage.held is not None and len(stage.held):
        # A part of the training set is the method's own choice, so that its passes count as the method's.
        seen, labels = context.predict(stage.held), context.labels[stage.held]
        found["held_accuracy"] = float((seen.predictions == labels).mean())
        probabilities = seen.probabilities.astype(np.float64)
    if probabilities is None or stage.select_by == "last":
        return float(context.epoch), found
    if stage.select_by == "val_loss":
        own = probabilities[np.arange(len(labels)), labels]
        found["val_loss"] = float(-np.log(np.maximum(own, 1e-12)).mean())
        return -found["val_loss"], found
    if stage.select_by == "method":
        found["score"] = float(method.score(probabilities, labels))
        return found["score"], found
    return found["held_accuracy" if stage.held is not None and len(stage.held) else "val_accuracy"], found
