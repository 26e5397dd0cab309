"""Co-teaching (Han et al. 2018): each network trains on the examples that the other one finds easy."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.training.context import Context
from crust.training.distributed import Tally
from crust.training.epoch_scaling import stretched
from crust.training.losses import small_loss
from crust.training.method import Batch, Method, Output, Selection, Settings
from crust.training.noise_estimation import Rate


def forget_rate(epoch: int, rate: float, ramp: int, power: float = 1.0, released: bool = False) -> float:
    """The share of a batch that is left out: none at first, the noise rate from epoch `ramp` on.

    Args:
        epoch: from 0.
        rate: of wrong labels.
        ramp: epochs until all of it is left out.
        power: of the epoch (in the paper) or of the rate (in the published code).
        released: as the published code has it: from 0 to rate ** power in ramp - 1 equal steps, then the rate itself.
    """
    if not released:
        return rate * min(epoch**power / ramp, 1.0)
    return rate**power * epoch / max(1, ramp - 1) if epoch < ramp else rate


def kept(length: int, forget: float) -> int:
    """How many of a batch are kept: rounded down, but at least one.

    Example:
        >>> kept(128, 0.2), kept(10, 0.9), kept(3, 0.9)
        (102, 1, 1)
    """
    return max(1, int((1.0 - forget) * length + 1e-9))


def exchanged(losses: tuple[Tensor, Tensor], n: int) -> tuple[Tensor, Tensor]:
    """For each of two networks the positions of the n smallest losses of the other."""
    return small_loss(losses[1], n), small_loss(losses[0], n)


class CoTeachingSettings(Settings):
    noise_rate: Rate = Field("estimate", description="the share of wrong labels, or where to take it from")
    ramp: int | None = Field(
        None, ge=1, description="epochs until all of the noise rate is left out; null: 10 of 200 of 50,000 examples"
    )
    power: float = Field(1.0, gt=0, description="of the epoch while it ramps")
    forgetting: Literal["paper", "released"] = Field("paper", description="how the share that is left out rises")
    mean_twice: bool = Field(
        False, description="divide the mean by the number of kept examples once more, as the published code does"
    )


class CoTeaching(Method):
    name = "co-teaching"
    summary = "two networks, each trained on the examples of a batch that the other finds easiest"
    networks = 2
    needs = "the noise rate (estimated)"
    Settings = CoTeachingSettings
    settings: CoTeachingSettings
    state_names = ("tally",)

    def begin_run(self, context: Context) -> None:
        self.tally = Tally(context.n)

    def begin_epoch(self, context: Context) -> Selection | None:
        settings, rate = self.settings, context.noise_info["noise_rate"].value
        ramp = settings.ramp or stretched(10, 200, context.epochs, context.n)
        self.forget = forget_rate(context.epoch, rate, ramp, settings.power, settings.forgetting == "released")
        return Selection(np.arange(context.n), facts={"forget_rate": self.forget})

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        first, second = (F.cross_entropy(output.logits, batch.y, reduction="none") for output in outputs)
        n = kept(len(batch.y), self.forget)
        chosen = exchanged((first, second), n)
        if n < len(batch.y):
            dropped = torch.ones(len(batch.y))
            for which in chosen:
                dropped[which.cpu()] -= 0.5
            self.tally.count(batch.index, dropped.numpy())
        share = 1 / n if self.settings.mean_twice else 1.0
        return [losses[which].mean() * share for losses, which in zip((first, second), chosen, strict=True)]

    def end_epoch(self, context: Context) -> None:
        self.tally.gather(context.processes)

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """How often an example was left out, of the times that any were."""
        return {"dropped": self.tally.rate()}
