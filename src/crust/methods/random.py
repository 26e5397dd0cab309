"""The control: a random subset, new each epoch. Fewer updates alone already memorise less."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crust.training.context import Context
from crust.training.method import Method, Selection, Settings


class RandomSettings(Settings):
    fraction: float = Field(0.5, gt=0, le=1, description="of the training examples, each epoch")
    select_after: int = Field(0, ge=0, description="epochs on everything first")


class Random(Method):
    name = "random"
    summary = "a random subset, new each epoch: the control for every selection"
    Settings = RandomSettings
    settings: RandomSettings

    def begin_epoch(self, context: Context) -> Selection | None:
        if context.epoch < self.settings.select_after:
            return None
        k = max(1, round(self.settings.fraction * context.n))
        return Selection(np.sort(context.rng("choice").choice(context.n, k, replace=False)))
