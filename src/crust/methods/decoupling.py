"""Decoupling (Malach and Shalev-Shwartz 2017): when to learn is decided by two networks, what to learn by the label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.training.context import Context
from crust.training.distributed import Tally
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings


def disputed(first: Tensor, second: Tensor) -> Tensor:
    """Where two networks predict different classes. No label is asked."""
    return first.detach().argmax(1) != second.detach().argmax(1)


def disputed_loss(logits: Tensor, y: Tensor, where: Tensor, floor: float) -> Tensor:
    """The sum of the cross-entropies of the disputed examples, over their number or a share of the batch, if larger."""
    losses = F.cross_entropy(logits, y, reduction="none")
    return losses[where].sum() / max(floor * len(y), int(where.sum()))


class DecouplingSettings(Settings):
    warmup: int = Field(1, ge=0, description="epochs on everything first")
    floor: float = Field(
        0.1, ge=0, le=1, description="the mean is over at least this share of the batch; 0: over the disputed"
    )


class Decoupling(Method):
    name = "decoupling"
    summary = "two networks, both trained only where their predictions differ"
    networks = 2
    Settings = DecouplingSettings
    settings: DecouplingSettings
    state_names = ("tally",)

    def begin_run(self, context: Context) -> None:
        self.tally = Tally(context.n)

    def begin_epoch(self, context: Context) -> Selection | None:
        self.facts: dict[str, Any] = {}
        return Selection(np.arange(context.n), facts=self.facts)

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        first, second = (output.logits for output in outputs)
        where = disputed(first, second)
        self.tally.count(batch.index, where.cpu().numpy())
        if context.epoch < self.settings.warmup:
            return [cross_entropy(first, batch.y), cross_entropy(second, batch.y)]
        if not where.any():
            return [None, None]
        return [disputed_loss(logits, batch.y, where, self.settings.floor) for logits in (first, second)]

    def end_epoch(self, context: Context) -> None:
        self.facts["disputed"] = self.tally.gather(context.processes)

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """How often the networks disagreed on an example."""
        return {"disputed": self.tally.rate()}
