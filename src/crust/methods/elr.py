"""ELR (Liu et al. 2020): every example is held to what the network said of it early on."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings
from crust.training.noise_estimation import NoiseType

FLOOR = 1e-4  # probabilities stay this far from 0 and 1, else the logarithm has no end
MANY = 100  # classes from which on the authors' values for CIFAR-100 are taken


class ElrSettings(Settings):
    noise_type: NoiseType = Field("estimate", description="chooses strength and memory, where they are auto")
    strength: Annotated[float, Field(ge=0)] | Literal["auto"] = Field(
        "auto", description="lambda: weight of the regularisation"
    )
    memory: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        "auto", description="beta: how much of a target is kept"
    )


class Elr(Method):
    name = "elr"
    summary = "cross-entropy, and a pull towards each example's averaged earlier predictions"
    needs = "the noise type (estimated)"
    Settings = ElrSettings
    settings: ElrSettings
    state_names = ("targets", "labels")

    def __init__(self, settings: ElrSettings):
        super().__init__(settings)
        self.estimates_itself = "auto" not in (settings.strength, settings.memory)  # the type then chooses nothing
        self.targets: Tensor | None = None  # (n, classes)
        self.labels: NDArray[np.int64] | None = None

    def begin_stage(self, context: Context) -> None:
        self.targets = torch.zeros(context.n, context.classes, device=context.device)

    def begin_epoch(self, context: Context) -> Selection | None:
        assert self.targets is not None
        self.targets = self.targets.to(context.device)
        self.labels = context.labels
        self._seen: list[NDArray[np.int64]] = []  # in this epoch, by this process
        known = context.noise_info.get("noise_type")
        strength, memory = published("symmetric" if known is None else known.value, context.classes)
        self.strength = strength if self.settings.strength == "auto" else self.settings.strength
        self.memory = memory if self.settings.memory == "auto" else self.settings.memory
        return Selection(np.arange(context.n), facts={"strength": self.strength, "memory": self.memory})

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        assert self.targets is not None
        logits, where = outputs[0].logits, context.tensor(batch.index)
        targets = averaged(self.targets[where], logits, self.memory)
        self.targets[where] = targets
        self._seen.append(batch.index)
        return [elr_loss(logits, batch.y, targets, self.strength)]

    def end_epoch(self, context: Context) -> None:
        if context.processes.count == 1 or self.targets is None:
            return
        mine = np.unique(np.concatenate([np.empty(0, np.int64), *self._seen]))
        rows = self.targets[context.tensor(mine)].cpu().numpy()
        for index, values in context.processes.gather((mine, rows)):
            self.targets[context.tensor(index)] = context.tensor(values)

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """One minus the given label's share of the target: what the network said of it early on."""
        if self.targets is None or self.labels is None:
            return {}
        targets = self.targets.double().cpu().numpy()
        mass = targets.sum(axis=1)
        given = targets[np.arange(len(self.labels)), self.labels]
        return {"target": np.where(mass > 0, 1 - given / np.where(mass > 0, mass, 1), np.nan)}


def published(noise_type: str, classes: int) -> tuple[float, float]:
    """The authors' strength and memory: CIFAR-100's for many classes, else CIFAR-10's for the type of the noise.

    Example:
        >>> published("symmetric", 10), published("asymmetric", 10), published("symmetric", 100)
        ((3.0, 0.7), (1.0, 0.9), (7.0, 0.9))
    """
    if classes >= MANY:
        return 7.0, 0.9
    return (3.0, 0.7) if noise_type == "symmetric" else (1.0, 0.9)


def averaged(targets: Tensor, logits: Tensor, memory: float) -> Tensor:
    """The targets of a batch moved towards what the network says now; no gradient goes through them."""
    p = logits.detach().softmax(dim=1).clamp(FLOOR, 1 - FLOOR)
    p = p / p.sum(dim=1, keepdim=True)
    return memory * targets + (1 - memory) * p.to(targets.dtype)


def elr_loss(logits: Tensor, y: Tensor, targets: Tensor, strength: float) -> Tensor:
    """Cross-entropy plus strength * log(1 - <p, t>), the mean over the examples."""
    p = logits.softmax(dim=1).clamp(FLOOR, 1 - FLOOR)
    return cross_entropy(logits, y) + strength * (1 - (p * targets).sum(dim=1)).log().mean()
