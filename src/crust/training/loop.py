"""The loop. It knows no method by name; what it asks one is written down in `method.py`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crust._util import seeding
from crust._util.torch_modules import forward_logits
from crust.data.batches import split_batches, walk
from crust.errors import CrustError, InputError
from crust.training import evaluation
from crust.training.context import Context
from crust.training.method import Batch, Method, Output, Selection, Stage
from crust.training.run_state import RunState

log = logging.getLogger("crust")


class Diverged(CrustError):
    """The loss is no number any more."""


def train(
    context: Context,
    state: RunState,
    *,
    fresh: Callable[[int], nn.Module],
    after_epoch: Callable[[Context, Selection, dict[str, Any]], None],
) -> None:
    """Run all stages of a method, from where `state` stands to the end.

    Args:
        context: data, settings and networks.
        state: the plan, optimizers, the kept model and the place in the run; saved after every epoch by `after_epoch`.
        fresh: makes new weights for network number i (a stage that starts from scratch).
        after_epoch: measures, records and saves.
    """
    state.begin(context)
    if state.epochs_done and enough(context, state):
        return
    while (found := state.enter(context)) is not None:
        method, stage = found
        if state.epoch == 0:
            context.epoch, context.step = 0, 0
            with clock(context, "stage"):
                _start(context, method, stage, state, fresh)
        while state.epoch < context.epochs:
            context.epoch, context.step = state.epoch, 0
            with clock(context, "epoch"):
                selection, facts = _epoch(context, method, stage, state)
            state.epoch += 1
            after_epoch(context, selection, {"stage": stage.name, "counts": stage.counts, **facts})
            if enough(context, state):
                return
        context.epoch, context.step = context.epochs, 0  # also where a run is resumed just here
        with clock(context, "stage"):
            if stage.end == "best":
                state.restore_best(context.processes.bare(context.networks[0]))
                context.forget_pass()
            method.end_stage(context)
        state.stage, state.epoch = state.stage + 1, 0


def _start(context: Context, method: Method, stage: Stage, state: RunState, fresh: Callable[[int], nn.Module]) -> None:
    """Weights and optimizers at the beginning of a stage."""
    for i, network in enumerate(context.networks[: context.active]):
        bare = context.processes.bare(network)
        if stage.start in ("scratch", "initial"):
            number = state.stage * len(context.networks) if stage.start == "scratch" else 0
            bare.load_state_dict(fresh(i + number).state_dict())
        elif stage.start == "best" and i == 0:
            state.restore_best(bare)
    context.forget_pass()
    method.begin_stage(context)
    state.new_optimizers(context, method.extra_parameters())
    state.forget_best()
    if stage.keep_initial:
        state.consider(context.processes.bare(context.networks[0]), evaluation.score(context, method, stage)[0])


def _epoch(context: Context, method: Method, stage: Stage, state: RunState) -> tuple[Selection, dict[str, Any]]:
    """One epoch: select, walk the selection in random order, step."""
    settings, processes = context.settings, context.processes
    with clock(context, "selection"):
        selection = method.begin_epoch(context)
    if selection is None:
        selection = Selection(np.arange(context.n) if stage.subset is None else stage.subset)
    rate = stage.rate_at(context.epoch, settings)
    state.set_rate(rate, stage.extra_learning_rate)
    order = context.rng("order").permutation(len(selection.indices))
    rounds = split_batches(order, settings.batch_size)
    if stage.full_batches and len(rounds) > 1 and len(rounds[-1]) < settings.batch_size:
        rounds = rounds[:-1]
    for network in context.networks[: context.active]:
        network.train()
    told = np.zeros(5)
    with seeding.seeded(settings.seed, "network", context.stage, context.epoch, processes.rank):
        for batch in _batches(context, selection, rounds):
            outputs, found = _step(context, method, state, batch)
            context.step += 1
            if batch is not None:
                told += _told(batch, outputs[0].logits, found)
            if settings.max_passes is not None:  # every process comes by here
                context.cost.settle(processes)
                if context.cost.passes >= settings.max_passes:
                    break
    context.cost.settle(processes)
    context.forget_pass()
    for network in context.networks[: context.active]:
        processes.share_buffers(network)
    method.end_epoch(context)
    loss, seen, right, shown, skipped = map(float, sum(processes.gather(told)))
    facts = {"learning_rate": rate, "loss": loss / max(1, seen)}
    if shown:
        facts["batch_accuracy"] = right / shown
    if skipped:
        facts["skipped"] = int(skipped)  # batches without a loss
    return selection, {**facts, "n_selected": len(selection.indices), **selection.facts}


def _told(batch: Batch, logits: Tensor, loss: float | None) -> NDArray[np.float64]:
    """What a batch adds to the epoch's line: loss, on how many; right ones, of how many; whether it had no loss."""
    n = len(batch.y)
    counted = [0.0, 0.0] if loss is None else [loss * n, n]
    own = len(logits) != n  # a network with inputs of its own, which have no labels here
    return np.array([*counted, *([0, 0] if own else [int((logits.argmax(1) == batch.y).sum()), n]), loss is None])


def _batches(context: Context, selection: Selection, rounds: list[NDArray[np.int64]]) -> Iterator[Batch | None]:
    """Our batches of the epoch; None where the last round has none for us."""
    settings = context.settings
    mine = list(context.processes.deal(rounds))
    held = [rows for rows in mine if rows is not None]
    if not held:
        yield from (None for _ in mine)
        return
    inputs = walk(
        context.train,
        [selection.indices[rows] for rows in held],
        augment=context.augment,
        generator=context.torch_rng("augment"),
        device=context.device,
        workers=settings.workers,
        channels_last=settings.channels_last,
    )
    for rows, (x, index) in zip(held, inputs, strict=True):
        weight = None if selection.weights is None else context.tensor(selection.weights[rows], torch.float32)
        yield Batch(x, context.tensor(context.labels[index]), index, rows, weight)
    if len(held) < len(mine):
        yield None


def _step(context: Context, method: Method, state: RunState, batch: Batch | None) -> tuple[list[Output], float | None]:
    """One step of every network that has a loss in any process; where none has one nothing at all is changed.

    A process without a loss, or without a batch, keeps the others company with a loss of zero, and the mean is over
    the processes that have one. Returns the outputs, and the first loss of ours.
    """
    processes, networks = context.processes, context.networks[: context.active]
    outputs: list[Output] = []
    losses: list[Tensor | None] = [None for _ in networks]
    if batch is not None:
        batch = method.prepare(batch, context)
        outputs = _forward(context, method, batch)
        losses = method.losses(outputs, batch, context)
    elif processes.count > 1:
        outputs = [Output(_company(context, network)) for network in networks]
    having = processes.sums([loss is not None for loss in losses])
    for i, (network, optimizer, loss) in enumerate(zip(networks, state.optimizers, losses, strict=True)):
        if not having[i]:
            continue
        if loss is not None:
            assert batch is not None
            value = float(loss.detach())
            if not math.isfinite(value):
                raise Diverged(_likely_reason(context, batch, value))
            context.cost.spend(backward=len(outputs[i].logits))
        else:
            loss = outputs[i].logits.sum() * 0.0
        # The wrapper divides by all processes, also by those without a loss.
        processes.accelerator.backward(loss * (processes.count / having[i]))
        if i == 0:
            processes.average_gradients(state.extra)
        if context.settings.clip_norm is not None:
            processes.accelerator.clip_grad_norm_(network.parameters(), context.settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    first = next((float(loss.detach()) for loss in losses if loss is not None), None)
    return [Output(output.logits.detach()) for output in outputs], first


def _company(context: Context, network: nn.Module) -> Tensor:
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
                found.append(Output(torch.zeros(0, context.classes) if alone else _company(context, network)))
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
                "give more examples, or a batch_size of at least 2"
            ) from None
        raise
    return found


def _likely_reason(context: Context, batch: Batch, loss: float) -> str:
    x = batch.x if isinstance(batch.x, Tensor) else None
    if x is not None and x.is_floating_point() and not bool(torch.isfinite(x).all()):
        reason = "the inputs of this batch are not finite"
    elif context.settings.mixed_precision == "fp16":
        reason = "float16 overflowed, try mixed_precision bf16 or no"
    else:
        reason = f"the learning rate of {context.settings.learning_rate} is likely too large"
    return f"the loss is {loss} in epoch {context.epoch}, batch {context.step}: {reason}"


def enough(context: Context, state: RunState) -> bool:
    """Whether the run ends here: its passes are used up, or it is to stop after this epoch."""
    settings = context.experiment
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
