"""A running average of a network's weights: steadier than the network itself while the learning rate is high."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """The exponential average of all weights and statistics of a network.

    The first steps count more (at step t at most t / (t + 10) of the average is kept), so that it does not drag the
    initial weights along.

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> average = WeightAverage(0.5)
        >>> for value in (1.0, 3.0, 3.0):
        ...     _ = nn.init.constant_(model.weight, value)
        ...     average.update(model)
        >>> [round(float(value), 3) for value in average.weights.values()]
        [2.97]
    """

    def __init__(self, decay: float):
        self.decay = decay
        self.steps = 0
        self.weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Count the weights as they are now."""
        now = model.state_dict()
        if not self.weights:
            self.weights = {name: value.detach().clone() for name, value in now.items()}
        self.weights = {name: value.to(now[name].device) for name, value in self.weights.items()}
        keep = min(self.decay, self.steps / (self.steps + 10))
        for name, value in now.items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, 1 - keep)
            else:
                self.weights[name].copy_(value)
        self.steps += 1

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps, "weights": self.weights}

    def load(self, state: dict[str, Any]) -> None:
        self.steps, self.weights = state["steps"], dict(state["weights"])


@contextmanager
def wearing(model: nn.Module, weights: dict[str, Tensor] | None) -> Iterator[None]:
    """The network with other weights for a while; then with its own again, to the last bit.

    Example:
        >>> model = nn.Linear(1, 1)
        >>> before = model.weight.item()
        >>> with wearing(model, {"weight": torch.ones(1, 1), "bias": torch.zeros(1)}):
        ...     print(model.weight.item())
        1.0
        >>> model.weight.item() == before
        True
    """
    if weights is None:
        yield
        return
    own = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    try:
        yield
    finally:
        model.load_state_dict(own)
