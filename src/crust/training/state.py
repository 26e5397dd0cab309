"""What changes while a run goes on, beside the networks: optimizers, the kept model, the place in the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from crust.networks import last_linear
from crust.training.context import Context


class RunState:
    """Optimizers, the model that is kept, and how far the run has come."""

    def __init__(self) -> None:
        self.stage = self.epoch = self.epochs_done = 0
        self.optimizers: list[torch.optim.Optimizer] = []
        self.best_score = -1.0
        self.best_epoch = -1
        self.best: dict[str, Tensor] | None = None

    # ------------------------------------------------------------ optimizers

    def new_optimizers(self, context: Context, extra: list[Tensor]) -> None:
        """One optimizer a network; tensors of the method go with the first."""
        self.optimizers = []
        for i, network in enumerate(context.networks):
            parameters = [p for p in network.parameters() if p.requires_grad] + (extra if i == 0 else [])
            self.optimizers.append(context.processes.prepare(_optimizer(parameters, context.settings)))

    def set_rate(self, rate: float) -> None:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate

    # ------------------------------------------------------------ the model that is kept

    def consider(self, network: nn.Module, score: float) -> None:
        """Keep the weights if they are better than those kept; of equals the later ones."""
        if score >= self.best_score:
            self.best_score, self.best_epoch = score, self.epochs_done
            self.best = {name: value.detach().clone() for name, value in network.state_dict().items()}

    def restore_best(self, network: nn.Module) -> None:
        if self.best is not None:
            network.load_state_dict(self.best)

    def forget_best(self) -> None:
        """A new stage has its own measure."""
        self.best_score = -1.0

    # ------------------------------------------------------------ features

    @contextmanager
    def features(
        self, networks: list[nn.Module], sample: Any, wanted: bool
    ) -> Iterator[Callable[[int], Tensor | None]]:
        """Catch the inputs of the last layers during a forward pass, where the method wants them."""
        if not wanted:
            yield lambda i: None
            return
        caught: dict[int, Tensor] = {}

        def catcher(i: int) -> Callable[[nn.Module, Any], None]:
            return lambda module, inputs: caught.__setitem__(i, inputs[0])

        hooks = [last_linear(net, sample)[1].register_forward_pre_hook(catcher(i)) for i, net in enumerate(networks)]
        try:
            yield caught.get
        finally:
            for hook in hooks:
                hook.remove()

    # ------------------------------------------------------------ saving

    def state(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "epoch": self.epoch,
            "epochs_done": self.epochs_done,
            "best_score": self.best_score,
            "best_epoch": self.best_epoch,
            "best": self.best,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def load(self, state: dict[str, Any], context: Context, extra: list[Tensor]) -> None:
        self.stage, self.epoch, self.epochs_done = state["stage"], state["epoch"], state["epochs_done"]
        self.best_score, self.best_epoch, self.best = state["best_score"], state["best_epoch"], state["best"]
        self.new_optimizers(context, extra)
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)


def _optimizer(parameters: list[Tensor], settings: Any) -> torch.optim.Optimizer:
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, rate, momentum=settings.momentum, weight_decay=decay, nesterov=settings.nesterov
        )
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(parameters, rate, weight_decay=decay)
