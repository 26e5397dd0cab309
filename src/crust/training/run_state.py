"""The stages of a run in their order: what must be estimated first, then the method's own.

What changes while a run goes on, beside the networks: optimizers, the kept model, the place in the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from crust._util.foreign import cannot_read
from crust.errors import InputError
from crust.training.context import Context
from crust.training.method import Method, Stage
from crust.training.settings import TrainSettings


class Plan:
    """A method, and before it the estimator of the noise where the method's settings ask for one."""

    def __init__(self, method: Method, estimator: Method | None = None):
        self.method, self.estimator = method, estimator

    def at(self, number: int) -> tuple[Method, Stage] | None:
        """Who acts in a stage of the run, and how it is trained; None after the last one.

        Example:
            >>> class Two(Method):
            ...     def stages(self):
            ...         return [Stage("first"), Stage("second")]
            >>> plan = Plan(Two(Method.Settings()))
            >>> plan.at(1)[1].name, plan.at(2)
            ('second', None)
        """
        before = 0
        if self.estimator is not None:
            first = self.estimator.stages()
            if number < len(first):
                return self.estimator, first[number]
            before = len(first)
        stage = self.method.next_stage(number - before)
        if stage is None:
            return None
        if before and number == before and stage.start == "keep":
            stage = replace(stage, start="initial")  # the method begins as if nothing had been estimated
        return self.method, stage


class RunState:
    """Optimizers, the model that is kept, and how far the run has come."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.begun = False
        self.stage = self.epoch = self.epochs_done = 0
        self.steps = 0  # of the stage
        self.optimizers: list[torch.optim.Optimizer] = []
        self.extra: list[Tensor] = []  # the method's own tensors in the first optimizer
        self.own_shares: list[list[float]] = []  # of the groups of an optimizer of the user's: rate over the settings'
        self.stopped = False  # by whoever listens to the history
        self.waiting: set[int] = set()  # optimizers with gradients of a step that is not full
        self.best_score = -math.inf
        self.best_epoch = -1
        self.better_epoch = 0  # when it was last better than before, where `patience` asks
        self.best: dict[str, Tensor] | None = None
        self.average: dict[str, Tensor] | None = None  # of the first network's weights, where `ema` is set
        self.averaged_steps = 0

    def begin(self, context: Context) -> None:
        """Let the method know the data and the experiment, once."""
        if not self.begun:
            self.begun = True
            self.plan.method.begin_run(context)

    def enter(self, context: Context) -> tuple[Method, Stage] | None:
        """The method that acts now and its stage, with the context brought to it; None where the run is over."""
        found = self.plan.at(self.stage)
        if found is not None:
            stage = found[1]
            context.stage, context.settings = self.stage, stage.settings(context.experiment)
            context.epochs = context.settings.epochs
            context.active = stage.networks or len(context.networks)
            context.own_optimizer = context.functions.optimizer if stage.optimizer is None else None
        return found

    # ------------------------------------------------------------ optimizers

    def new_optimizers(self, context: Context, extra: list[Tensor]) -> None:
        """One optimizer a network that is trained; tensors of the method go with the first, in a group of their own.

        The average of the weights begins anew with them.
        """
        self.optimizers, self.extra, self.own_shares = [], extra, []
        self.average, self.averaged_steps = None, 0
        if context.settings.ema is not None:
            self.average = _copied(context.processes.bare(context.networks[0]))
        for i, network in enumerate(context.networks[: context.active]):
            if context.own_optimizer is not None:
                optimizer = _made_by(context.own_optimizer, context.processes.bare(network))
                own = [float(group["lr"]) / context.settings.learning_rate for group in optimizer.param_groups]
                self.own_shares.append(own)
            else:
                groups = [{"params": [p for p in network.parameters() if p.requires_grad]}]
                optimizer = _optimizer(groups, context.settings)
            if i == 0 and extra:
                own_rate = {"lr": context.settings.learning_rate} if context.own_optimizer is not None else {}
                optimizer.add_param_group({"params": extra, "weight_decay": 0.0, **own_rate})
            self.optimizers.append(context.processes.prepare(optimizer))

    def set_rate(self, rate: float, extra: float | None = None) -> None:
        """The learning rate of the networks, and that of the method's own tensors where it has another.

        Groups of an optimizer that the user has made keep their proportions.
        """
        for i, optimizer in enumerate(self.optimizers):
            groups, mine = optimizer.param_groups, i == 0 and bool(self.extra)
            for number, group in enumerate(groups[: len(groups) - mine]):
                group["lr"] = rate * self.own_shares[i][number] if self.own_shares else rate
            if mine:
                groups[-1]["lr"] = rate if extra is None else extra

    def rate_shown(self, rate: float) -> float:
        """What a rate means to the first group of the first optimizer."""
        return rate * self.own_shares[0][0] if self.own_shares else rate

    # ------------------------------------------------------------ the model that is kept

    def update_average(self, network: nn.Module, decay: float | None) -> None:
        """After a step: the average follows the weights and the statistics of BatchNorm, faster in the beginning."""
        if self.average is None or decay is None:
            return
        self.averaged_steps += 1
        share = 1 - min(decay, self.averaged_steps / (self.averaged_steps + 9))
        with torch.no_grad():
            for name, value in network.state_dict().items():
                if value.is_floating_point():
                    self.average[name].lerp_(value.to(self.average[name]), share)
                else:
                    self.average[name].copy_(value)

    @contextmanager
    def averaged(self, network: nn.Module) -> Iterator[None]:
        """The averaged weights in the network, to measure and to keep; afterwards it has its own again."""
        if self.average is None:
            yield
            return
        own = _copied(network)
        try:
            _fill(network, self.average)
            yield
        finally:
            _fill(network, own)

    def consider(self, network: nn.Module, score: float) -> None:
        """Keep the weights if they are better than those kept; of equals the later ones."""
        if score > self.best_score:
            self.better_epoch = self.epochs_done
        if score >= self.best_score:
            self.best_score, self.best_epoch = score, self.epochs_done
            self.best = _copied(network)

    def restore_best(self, network: nn.Module) -> None:
        if self.best is not None:
            network.load_state_dict(self.best)

    def forget_best(self) -> None:
        """A new stage has its own measure."""
        self.best_score, self.better_epoch = -math.inf, self.epochs_done

    def out_of_patience(self, settings: TrainSettings) -> bool:
        """Whether nothing has become better for as many epochs as were to be waited."""
        return settings.patience is not None and self.epochs_done - self.better_epoch >= settings.patience

    # ------------------------------------------------------------ saving

    def state(self) -> dict[str, Any]:
        estimator = self.plan.estimator
        return {
            "stage": self.stage,
            "epoch": self.epoch,
            "epochs_done": self.epochs_done,
            "steps": self.steps,
            "best_score": self.best_score if math.isfinite(self.best_score) else None,
            "best_epoch": self.best_epoch,
            "better_epoch": self.better_epoch,
            "best": self.best,
            "average": self.average,
            "averaged_steps": self.averaged_steps,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "extra": [tensor.detach() for tensor in self.extra],
            "estimator": None if estimator is None else estimator.state(),
        }

    def load(self, state: dict[str, Any], context: Context) -> None:
        """Go back to a saved state; the method has loaded its own already."""
        self.stage, self.epoch, self.epochs_done = state["stage"], state["epoch"], state["epochs_done"]
        self.steps = state["steps"]
        score = state["best_score"]
        self.best_score = -math.inf if score is None else score
        self.best_epoch, self.best = state["best_epoch"], state["best"]
        self.better_epoch = state.get("better_epoch", state["best_epoch"])
        if self.plan.estimator is not None:
            self.plan.estimator.load_state(state["estimator"])
        found = self.enter(context)
        assert found is not None
        extra = found[0].extra_parameters()
        values = state.get("extra", [])
        assert len(extra) == len(values), "load_state has to make the extra parameters again"
        for tensor, saved in zip(extra, values, strict=True):
            with torch.no_grad():
                tensor.copy_(saved)
        self.new_optimizers(context, extra)
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        if self.average is not None:
            self.averaged_steps = state["averaged_steps"]
            for name, value in state["average"].items():
                self.average[name].copy_(value)


def _copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _fill(network: nn.Module, values: dict[str, Tensor]) -> None:
    """Put values where the weights are, bit for bit; no hook of the network's own is called."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            value.copy_(values[name])


def _made_by(function: Callable[[nn.Module], torch.optim.Optimizer], network: nn.Module) -> torch.optim.Optimizer:
    """The optimizer that the user's function makes for a network."""
    try:
        found = function(network)
    except Exception as error:
        raise cannot_read("the optimizer that the function given as optimizer makes", error) from error
    if not isinstance(found, torch.optim.Optimizer):
        raise InputError(
            f"the function given as optimizer makes a {type(found).__name__}: let it make one of torch.optim",
            code="not-an-optimizer",
        )
    mine = {id(weight) for weight in network.parameters()}
    if any(id(weight) not in mine for group in found.param_groups for weight in group["params"]):
        raise InputError(
            "the optimizer holds weights of another network: take them from the network that the function is called "
            "with, which is a copy of yours",
            code="other-network",
        )
    return found


def _optimizer(groups: list[dict[str, Any]], settings: TrainSettings) -> torch.optim.Optimizer:
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, rate, momentum=settings.momentum, weight_decay=decay, nesterov=settings.nesterov)
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, rate, weight_decay=decay)
