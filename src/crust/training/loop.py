"""The loop. It knows no method by name; what it asks one is written down in `method.py`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crust._util import seeding
from crust._util.torch_modules import forward_logits, slice_batch
from crust.data.batches import split_batches, walk
from crust.errors import InputError
from crust.training import evaluation
from crust.training.context import Context
from crust.training.evaluation import Diverged, EpochEvaluation
from crust.training.method import Batch, Method, Output, Selection, Stage
from crust.training.objective import rate_of_function
from crust.training.run_state import RunState

log = logging.getLogger("crust")


class Record(Protocol):
    """Keeps what an epoch has brought; `look` is for a run that ends before its time."""

    def __call__(self, selection: Selection, facts: dict[str, Any], evaluated: EpochEvaluation) -> None: ...

    def look(self, evaluated: EpochEvaluation) -> None: ...


CHECK_EVERY = 100  # steps after which the host asks whether the loss is still a number; each time a GPU is waited for


def train(
    context: Context,
    state: RunState,
    *,
    fresh: Callable[[int], nn.Module],
    record: Record,
) -> None:
    """Run all stages of a method, from where `state` stands to the end.

    Args:
        context: data, settings and networks.
        state: the plan, optimizers, the kept model and the place in the run; saved after every epoch by `record`.
        fresh: makes new weights for network number i (a stage that starts from scratch).
        record: keeps what an epoch has brought.
    """
    state.begin(context)
    if state.epochs_done and enough(context, state):
        return
    while (found := state.enter(context)) is not None:
        method, stage = found
        if state.epoch == 0:
            context.epoch, context.step = 0, 0
            with clock(context, "stage"):
                _begin_stage(context, method, stage, state, fresh)
        while state.epoch < context.epochs and not state.out_of_patience(context.settings):
            _epoch(context, method, stage, state, record)
            if enough(context, state):
                return
        context.epoch, context.step = context.epochs, 0  # also where a run is resumed just here
        with clock(context, "stage"):
            if stage.end == "best":
                state.restore_best(context.processes.bare(context.networks[0]))
                context.weights_changed()
            method.end_stage(context)
        state.stage, state.epoch, state.steps = state.stage + 1, 0, 0


def _epoch(
    context: Context,
    method: Method,
    stage: Stage,
    state: RunState,
    record: Record,
) -> None:
    """One epoch: select by the pass over the training set, train on the selection, evaluate, record.

    The pass over the training set comes at the end, with the weights that the epoch has made: the audit and the next
    epoch's selection look at one and the same. A method whose first epoch selects makes it at the beginning.
    """
    context.epoch, context.step = state.epoch, 0
    with clock(context, "epoch"):
        with clock(context, "selection"):
            selection = method.begin_epoch(context)  # by context.evaluate_train_set()
        if selection is None:
            selection = Selection(np.arange(context.n) if stage.subset is None else stage.subset)
        facts = _train_on(selection, context, method, stage, state)
    state.epoch, state.epochs_done = state.epoch + 1, state.epochs_done + 1
    evaluated = _evaluate(context, method, stage, state)
    record(selection, {"stage": stage.name, "counts": stage.counts, **facts}, evaluated)
    if state.stopped and evaluated.train is None:
        evaluated.train = context.evaluate_train_set("logits")
        record.look(evaluated)


def _evaluate(context: Context, method: Method, stage: Stage, state: RunState) -> EpochEvaluation:
    """Test sets; the validation set, by which the best weights are kept; and the training set where it is asked for.

    What is kept and measured are the averaged weights, where there are such. Who is trained on, and what the audit
    says, goes by the network that is trained.
    """
    found, epoch, settings = EpochEvaluation(), context.epoch, context.settings
    with clock(context, "evaluation"):
        found.validation = context.evaluate_validation()
        network = context.processes.bare(context.networks[0])
        with state.averaged(network):
            if settings.test_due(epoch, context.epochs):
                found.metrics = evaluation.accuracies(context, context.tests)
            held = found.validation
            if state.average is not None and context.validation is not None:
                held = evaluation.evaluate(context, context.validation)
            score, seen = evaluation.score(context, method, stage, held)
            found.metrics |= seen
            state.consider(network, score)
    over = spent(context) or state.out_of_patience(settings)
    due = stage.counts and settings.audit_due(epoch, context.epochs)
    kind = method.train_set_pass(epoch + 1, context.epochs) if stage.counts and epoch + 1 < context.epochs else None
    if due or kind or over:
        with clock(context, "gradients"):
            found.train = context.evaluate_our_part(kind or "logits")
        if context.validation is not None:
            context.cost.forward += len(context.validation)  # the audit looks at it, too
    return found


def _begin_stage(
    context: Context, method: Method, stage: Stage, state: RunState, fresh: Callable[[int], nn.Module]
) -> None:
    """Weights and optimizers at the beginning of a stage."""
    for i, network in enumerate(context.networks[: context.active]):
        bare = context.processes.bare(network)
        if stage.start in ("scratch", "initial"):
            number = state.stage * len(context.networks) if stage.start == "scratch" else 0
            bare.load_state_dict(fresh(i + number).state_dict())
        elif stage.start == "best" and i == 0:
            state.restore_best(bare)
    context.weights_changed()
    method.begin_stage(context)
    state.new_optimizers(context, method.extra_parameters())
    state.forget_best()
    if stage.keep_initial:
        held = None if context.validation is None else evaluation.evaluate(context, context.validation)
        state.consider(context.processes.bare(context.networks[0]), evaluation.score(context, method, stage, held)[0])


def _train_on(selection: Selection, context: Context, method: Method, stage: Stage, state: RunState) -> dict[str, Any]:
    """Walk the selection in random order, a step a batch; what the epoch's line says of it."""
    settings, processes = context.settings, context.processes
    order = context.rng("order").permutation(len(selection.indices))
    rounds = split_batches(order, settings.batch_size)
    if stage.full_batches and len(rounds) > 1 and len(rounds[-1]) < settings.batch_size:
        rounds = rounds[:-1]
    sizes = [0 if rows is None else len(rows) for rows in processes.deal(rounds)]
    parts = _parts_of_steps(sizes, settings.accumulate)
    rate_at = partial(stage.rate_at, context.epoch, settings, own=_own_schedule(context))
    first_rate = state.rate_shown(rate_at(0.0, state.steps))
    for network in context.networks[: context.active]:
        network.train()
    totals = _Totals(context)
    with seeding.seeded(settings.seed, "network", context.stage, context.epoch, processes.rank):
        for batch, part in zip(_batches(context, selection, rounds), parts, strict=True):
            state.set_rate(rate_at(part.begun, state.steps), stage.extra_learning_rate)
            outputs, losses = _step(context, method, state, batch, part)
            if batch is not None:
                totals.add(batch, outputs[0].logits, losses)
            context.step, state.steps = context.step + 1, state.steps + part.last
            if context.step % CHECK_EVERY == 0:
                totals.check()
            if settings.max_passes is not None and part.last:  # every process comes by here
                context.cost.settle(processes)
                if context.cost.passes >= settings.max_passes:
                    break
    totals.check()
    context.cost.settle(processes)
    context.weights_changed()
    for network in context.networks[: context.active]:
        processes.share(processes.bare(network).buffers())
    processes.share((state.average or {}).values())
    method.end_epoch(context)
    loss, seen, right, shown, skipped = map(float, sum(processes.gather(totals.values())))
    facts = {"learning_rate": first_rate, "loss": loss / max(1, seen)}
    if shown:
        facts["batch_accuracy"] = right / shown
    if skipped:
        facts["skipped"] = int(skipped)  # batches without a loss
    return {**facts, "n_selected": len(selection.indices), **selection.facts}


@dataclass(frozen=True)
class _Part:
    """Where a batch stands among those that make a step together; mostly it is the only one."""

    share: float  # of the examples of the step, in this process
    last: bool
    begun: float  # how much of the epoch is done before the step


def _parts_of_steps(sizes: list[int], accumulate: int) -> list[_Part]:
    """The place of each batch of an epoch: so many make a step, the last ones of the epoch as many as there are.

    Example:
        >>> [(part.share, part.last) for part in _parts_of_steps([6, 2, 4], 2)]
        [(0.75, False), (0.25, True), (1.0, True)]
    """
    found = []
    for first in range(0, len(sizes), accumulate):
        of_step = sizes[first : first + accumulate]
        for i, size in enumerate(of_step):
            found.append(_Part(size / max(1, sum(of_step)), i == len(of_step) - 1, first / len(sizes)))
    return found


def _own_schedule(context: Context) -> Callable[[float], float] | None:
    """The user's own schedule by how much of the stage is done, asked by the step that this is in plain training."""
    schedule, settings = context.functions.schedule, context.settings
    if schedule is None:
        return None
    batches = len(list(context.processes.deal(split_batches(np.arange(context.n), settings.batch_size))))
    steps = context.epochs * math.ceil(batches / settings.accumulate)
    return lambda done: rate_of_function(schedule, min(steps - 1, int(done * steps + 1e-6)), steps)


class _Totals:
    """What the steps of an epoch add up to. Losses and hits stay on the device, so that it never waits for the host."""

    def __init__(self, context: Context):
        wide = torch.float32 if context.device.type == "mps" else torch.float64
        self.context = context
        self.sums = torch.zeros(2, dtype=wide, device=context.device)  # losses, right predictions
        self.bad = torch.full((2,), -1.0, dtype=wide, device=context.device)  # first step without a finite loss; loss
        self.seen = self.shown = self.skipped = 0
        self.batches: list[Batch] = []  # since the last check

    def add(self, batch: Batch, logits: Tensor, losses: list[Tensor]) -> None:
        """A step: its losses, none where it was skipped, and what the first network said."""
        n = len(batch.y)
        self.batches.append(batch)
        for loss in losses:
            now = torch.stack([torch.full_like(self.bad[0], self.context.step), loss.to(self.bad)])
            self.bad = torch.where((self.bad[0] < 0) & ~torch.isfinite(loss), now, self.bad)
        if losses:
            self.sums[0] += losses[0].to(self.sums) * n
            self.seen += n
        else:
            self.skipped += 1
        if len(logits) == n:  # else a network with inputs of its own, which have no labels here
            self.sums[1] += (logits.argmax(1) == batch.y).sum()
            self.shown += n

    def check(self) -> None:
        """Ask the device whether all losses were finite."""
        step, loss = self.bad.tolist()
        if step >= 0:
            first = self.context.step - len(self.batches)
            raise Diverged(
                _likely_reason(self.context, self.batches[int(step) - first], int(step), loss), code="diverged"
            )
        self.batches.clear()

    def values(self) -> NDArray[np.float64]:
        """Loss, on how many; right ones, of how many; batches without a loss."""
        loss, right = self.sums.tolist()
        return np.array([loss, self.seen, right, self.shown, self.skipped])


def _batches(context: Context, selection: Selection, rounds: list[NDArray[np.int64]]) -> Iterator[Batch | None]:
    """Our batches of the epoch; None where the last round has none for us."""
    settings = context.settings
    mine = list(context.processes.deal(rounds))
    held = [rows for rows in mine if rows is not None]
    if not held:
        yield from (None for _ in mine)
        return
    # Of a dataset the partners for mixing are read with the batch, by the same workers.
    partners = selection.partners if context.train.kind == "dataset" else None
    inputs = walk(
        context.train,
        [_with_partners(selection.indices[rows], partners, rows) for rows in held],
        augment=context.augment,
        generator=context.torch_rng("augment"),
        device=context.device,
        workers=settings.workers,
        channels_last=settings.channels_last,
    )
    for rows, (x, index) in zip(held, inputs, strict=True):
        weight = None if selection.weights is None else context.tensor(selection.weights[rows], torch.float32)
        n, partner_x = len(rows), None
        if partners is not None:
            x, partner_x = slice_batch(x, 0, n), slice_batch(x, n, 2 * n)
        yield Batch(x, context.tensor(context.labels[index[:n]]), index[:n], rows, weight, partner_x=partner_x)
    if len(held) < len(mine):
        yield None


def _with_partners(
    index: NDArray[np.int64], partners: NDArray[np.int64] | None, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    return index if partners is None else np.concatenate([index, partners[rows]])


def _step(
    context: Context, method: Method, state: RunState, batch: Batch | None, part: _Part
) -> tuple[list[Output], list[Tensor]]:
    """One step of every network that has a loss in any process; where none has one nothing at all is changed.

    A process without a loss, or without a batch, takes part with a loss of zero, and the mean is over the processes
    that have one. Of several batches of one step each counts as many examples as it has, and the last makes the step.
    Returns the outputs, and the losses of ours, all of it without a way back.
    """
    processes, networks = context.processes, context.networks[: context.active]
    outputs: list[Output] = []
    losses: list[Tensor | None] = [None for _ in networks]
    if batch is not None:
        batch = method.prepare(batch, context)
        outputs = _forward(context, method, batch)
        losses = method.losses(outputs, batch, context)
    elif processes.count > 1:
        outputs = [Output(_zero_loss_forward(context, network)) for network in networks]
    having = processes.sums([loss is not None for loss in losses])
    for i, (network, optimizer, loss) in enumerate(zip(networks, state.optimizers, losses, strict=True)):
        if having[i]:
            if loss is not None:
                context.cost.spend(backward=len(outputs[i].logits))
            else:
                loss = outputs[i].logits.sum() * 0.0
            if not loss.requires_grad:
                raise InputError(
                    "the loss does not depend on any weight of the model: let forward return logits as it has computed "
                    "them, without detach or no_grad",
                    code="no-gradient",
                )
            # The wrapper divides by all processes, also by those without a loss.
            processes.accelerator.backward(loss * (processes.count / having[i]) * part.share)
            if i == 0:
                processes.average_gradients(state.extra)
            state.waiting.add(i)
        if not part.last or i not in state.waiting:
            continue
        state.waiting.discard(i)
        if context.settings.clip_norm is not None:
            processes.accelerator.unscale_gradients(optimizer)
            nn.utils.clip_grad_norm_(network.parameters(), context.settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if i == 0:
            state.update_average(processes.bare(network), context.settings.ema)
    return [Output(output.logits.detach()) for output in outputs], [x.detach() for x in losses if x is not None]


def _zero_loss_forward(context: Context, network: nn.Module) -> Tensor:
    """No outputs, but with a way back to every weight: other processes wait for our part of the gradient."""
    x = context.inputs(np.array([0, 0]))  # two, since BatchNorm refuses one
    return forward_logits(network, x)[:0]


def _forward(context: Context, method: Method, batch: Batch) -> list[Output]:
    """What every network says of the batch, in float32."""
    found = []
    try:
        for i, network in enumerate(context.networks[: context.active]):
            x = batch.x if batch.inputs is None else batch.inputs[i]
            if x is None:
                alone = context.processes.count == 1
                found.append(Output(torch.zeros(0, context.classes) if alone else _zero_loss_forward(context, network)))
                continue
            tap = context.tap(i, x) if method.wants_features else None
            with context.processes.accelerator.autocast():
                logits = forward_logits(network, x).float()
            context.cost.spend(forward=len(logits))
            found.append(Output(logits, None if tap is None else tap.take()))
    except ValueError as error:
        if "more than 1 value per channel" in str(error):
            raise InputError(
                f"BatchNorm cannot be trained on the batch of {len(batch.index)} in epoch {context.epoch}: "
                "give more examples, or a batch_size of at least 2",
                code="batch-of-one",
            ) from None
        raise
    except RuntimeError as error:
        if "find_unused_parameters" in str(error):
            raise InputError(
                "the model has weights that had no part in the loss of a step, which several processes have to know: "
                "set find_unused_parameters=True",
                code="unused-parameters",
            ) from None
        raise
    return found


def _likely_reason(context: Context, batch: Batch, step: int, loss: float) -> str:
    x = batch.x if isinstance(batch.x, Tensor) else None
    if x is not None and x.is_floating_point() and not bool(torch.isfinite(x).all()):
        reason = "the inputs of this batch are not finite"
    elif context.settings.mixed_precision == "fp16":
        reason = "float16 overflowed, try mixed_precision bf16 or no"
    else:
        reason = f"the learning rate of {context.settings.learning_rate} is likely too large"
    return f"the loss is {loss} in epoch {context.epoch}, batch {step}: {reason}"


def enough(context: Context, state: RunState) -> bool:
    """Whether the run ends here: its passes are used up, or it is to stop after this epoch."""
    settings = context.experiment
    if state.stopped:
        return True
    if spent(context):
        log.info("stopped after %d passes on examples", context.cost.passes)
        return True
    return settings.stop_after is not None and state.epochs_done >= settings.stop_after


def spent(context: Context) -> bool:
    """Whether the passes that were allowed are used up."""
    allowed = context.experiment.max_passes
    return allowed is not None and context.cost.passes >= allowed


@contextmanager
def clock(context: Context, name: str) -> Iterator[None]:
    """Count the seconds of a part of the work."""
    start = time.perf_counter()
    yield
    context.cost.seconds[name] = context.cost.seconds.get(name, 0.0) + time.perf_counter() - start
