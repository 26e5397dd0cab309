"""mixup (Zhang et al. 2018): every batch is mixed with itself in another order, labels too."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from pydantic import Field

from crust.errors import InputError
from crust.training.context import Context
from crust.training.losses import mix, one_hot
from crust.training.method import Batch, Method, Settings


class MixupSettings(Settings):
    alpha: float = Field(1.0, gt=0, description="of Beta(alpha, alpha); with noisy labels larger ones are recommended")


class Mixup(Method):
    name = "mixup"
    summary = "mix each batch with itself in another order, labels too"
    Settings = MixupSettings
    settings: MixupSettings

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if isinstance(batch.x, Mapping) or not batch.x.is_floating_point():
            raise InputError(
                "these inputs cannot be mixed, and mixup needs that: use another method", code="cannot-mix"
            )
        rng = context.rng("mix", step=True)
        share = torch.full((len(batch.y),), float(rng.beta(self.settings.alpha, self.settings.alpha)))
        other = context.tensor(rng.permutation(len(batch.y)))
        labels = one_hot(batch.y, context.classes)
        shares = share.to(context.device)
        batch.target = mix(labels, labels[other], shares)
        batch.x = mix(batch.x, batch.x[other], shares)
        return batch
