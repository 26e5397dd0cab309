"""Generalised cross-entropy (Zhang and Sabuncu 2018): a loss that is bounded, so that no label can pull without end."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.losses import gce
from crust.training.method import Batch, Method, Output, Settings


class GceSettings(Settings):
    q: float = Field(0.7, ge=0, le=1, description="0: cross-entropy; 1: mean absolute error")


class Gce(Method):
    name = "gce"
    summary = "a bounded loss between cross-entropy and mean absolute error"
    Settings = GceSettings
    settings: GceSettings

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        return [gce(outputs[0].logits, batch.y, self.settings.q)]
