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

from crust.errors import CrustError, InputError
from crust.networks import run
from crust.training import randomness
from crust.training.batching import cut, walk
from crust.training.context import Context
from crust.training.method import Batch, Method, Output, Selection, Stage
from crust.training.state import RunState

log = logging.getLogger("crust")


class Diverged(CrustError):
    """The loss is no number any more."""


def train(
    context: Context,
    method: Method,
    state: RunState,
    *,
    fresh: Callable[[int], nn.Module],
    after_epoch: Callable[[Context, Selection, dict[str, Any]], None],
) -> None:
    """Run all stages of a method, from where `state` stands to the end.

    Args:
        context: data, settings and networks.
        method: what to train with.
        state: optimizers, the kept model and the place in the run; saved after every epoch by `after_epoch`.
        fresh: makes new weights for network number i (a stage that starts from scratch).
        after_epoch: measures, records and saves.
    """
    if state.epochs_done and _enough(context, state):
        return
    stages = method.stages()
    while state.stage < len(stages):
        stage = stages[state.stage]
        context.stage, context.epochs = state.stage, stage.epochs or context.settings.epochs
        if state.epoch == 0:
            _start(context, method, stage, state, fresh)
        while state.epoch < context.epochs:
            context.epoch, context.step = state.epoch, 0
            with clock(context, "epoch"):
                selection, facts = _epoch(context, method, stage, state)
            state.epoch += 1
            after_epoch(context, selection, {"stage": stage.name, "counts": stage.counts, **facts})
            if _enough(context, state):
                return
            stages = method.stages()  # a method may add stages as it learns more
        method.end_stage(context)
        state.stage, state.epoch = state.stage + 1, 0
        stages = method.stages()


def _start(context: Context, method: Method, stage: Stage, state: RunState, fresh: Callable[[int], nn.Module]) -> None:
    """Weights and optimizers at the beginning of a stage."""
    for i, network in enumerate(context.networks):
        bare = context.processes.bare(network)
        if stage.start == "scratch":
            bare.load_state_dict(fresh(i + state.stage * len(context.networks)).state_dict())
        elif stage.start == "best" and i == 0:
            state.restore_best(bare)
    context.forget_pass()
    method.begin_stage(context)
    state.new_optimizers(context, method.extra_parameters())
    state.forget_best()


def _epoch(context: Context, method: Method, stage: Stage, state: RunState) -> tuple[Selection, dict[str, Any]]:
    """One epoch: select, walk the selection in random order, step."""
    settings, processes = context.settings, context.processes
    with clock(context, "selection"):
        selection = method.begin_epoch(context)
    if selection is None:
        selection = Selection(np.arange(context.n) if stage.subset is None else stage.subset)
    rate = stage.learning_rate or settings.learning_rate
    if stage.schedule:
        rate = settings.rate_at(context.epoch, context.epochs, rate)
    state.set_rate(rate)
    order = context.rng("order").permutation(len(selection.indices))
    rounds = cut(order, settings.batch_size)
    for network in context.networks:
        network.train()
    losses, right, seen = 0.0, 0, 0
    with randomness.seeded(settings.seed, "network", context.stage, context.epoch, processes.rank):
        for number, batch in enumerate(_batches(context, selection, rounds)):
            active = processes.active(rounds, number)
            outputs, found = _step(context, method, state, batch, active)
            context.step += 1
            if batch is not None and outputs is not None:
                losses += found * len(batch.index)
                right += int((outputs[0].logits.argmax(1) == batch.y).sum())
                seen += len(batch.index)
    context.forget_pass()
    for network in context.networks:
        processes.share_buffers(network)
    parts = processes.gather((losses, right, seen))
    losses, right, seen = (sum(part[i] for part in parts) for i in range(3))
    facts = {"learning_rate": rate, "loss": losses / max(1, seen), "batch_accuracy": right / max(1, seen)}
    return selection, {**facts, "chosen": len(selection.indices), **selection.facts}


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


def _step(
    context: Context, method: Method, state: RunState, batch: Batch | None, active: int
) -> tuple[list[Output] | None, float]:
    """One step of every network; without a batch of our own we only keep the others company."""
    accelerator, settings = context.processes.accelerator, context.settings
    if batch is None:
        x = context.inputs(np.array([0, 0]))  # two, since BatchNorm refuses one
        for network, optimizer in zip(context.networks, state.optimizers, strict=True):
            accelerator.backward(run(network, x).sum() * 0.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return None, 0.0
    batch = method.prepare(batch, context)
    outputs = _forward(context, method, state, batch)
    losses = method.losses(outputs, batch, context)
    context.cost.forward += len(batch.index) * len(outputs) * active
    share = active / context.processes.count  # the wrapper divides by all processes, also by those without a batch
    for output, network, optimizer, loss in zip(outputs, context.networks, state.optimizers, losses, strict=True):
        if loss is None and context.processes.count == 1:
            continue
        loss = output.logits.sum() * 0.0 if loss is None else loss
        value = float(loss.detach())
        if not math.isfinite(value):
            raise Diverged(_likely_reason(context, batch, value))
        accelerator.backward(loss / share)
        if settings.clip_norm is not None:
            accelerator.clip_grad_norm_(network.parameters(), settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        context.cost.backward += len(batch.index) * active
    first = next((float(loss.detach()) for loss in losses if loss is not None), 0.0)
    return [Output(output.logits.detach()) for output in outputs], first


def _forward(context: Context, method: Method, state: RunState, batch: Batch) -> list[Output]:
    """What every network says of the batch, in float32."""
    autocast = context.processes.accelerator.autocast
    try:
        with state.features(context.networks, batch.x, method.wants_features) as features, autocast():
            outputs = [Output(run(network, batch.x), features(i)) for i, network in enumerate(context.networks)]
    except ValueError as error:
        if "more than 1 value per channel" in str(error):
            raise InputError(
                f"BatchNorm cannot be trained on the batch of {len(batch.index)} in epoch {context.epoch}: "
                "give more examples, or a batch_size of at least 2"
            ) from None
        raise
    return [Output(output.logits.float(), output.features) for output in outputs]


def _likely_reason(context: Context, batch: Batch, loss: float) -> str:
    x = batch.x if isinstance(batch.x, Tensor) else None
    if x is not None and x.is_floating_point() and not bool(torch.isfinite(x).all()):
        reason = "the inputs of this batch are not finite"
    elif context.settings.mixed_precision == "fp16":
        reason = "float16 overflowed, try mixed_precision bf16 or no"
    else:
        reason = f"the learning rate of {context.settings.learning_rate} is likely too large"
    return f"the loss is {loss} in epoch {context.epoch}, batch {context.step}: {reason}"


def _enough(context: Context, state: RunState) -> bool:
    settings = context.settings
    if settings.max_passes is not None and context.cost.passes >= settings.max_passes:
        log.info("stopped after %d passes on examples", context.cost.passes)
        return True
    return settings.stop_after is not None and state.epochs_done >= settings.stop_after


@contextmanager
def clock(context: Context, name: str) -> Iterator[None]:
    """Count the seconds of a part of the work."""
    start = time.perf_counter()
    yield
    context.cost.seconds[name] = context.cost.seconds.get(name, 0.0) + time.perf_counter() - start
