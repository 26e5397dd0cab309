"""Symmetric cross-entropy (Wang et al. 2019): cross-entropy learns fast, its reverse is what wrong labels bend less."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.losses import sce
from crust.training.method import Batch, Method, Output, Settings

MANY = 50  # classes from which on the authors' values for CIFAR-100 are taken


class SceSettings(Settings):
    alpha: float | None = Field(None, ge=0, description="of cross-entropy; null: 0.1, with 50 classes or more 6")
    beta: float | None = Field(None, ge=0, description="of its reverse; null: 1, with 50 classes or more 0.1")
    log_zero: float = Field(-4.0, lt=0, description="what stands for log 0")


class Sce(Method):
    name = "sce"
    summary = "cross-entropy and its reverse together"
    Settings = SceSettings
    settings: SceSettings

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        alpha, beta = weights(self.settings, context.classes)
        return [sce(outputs[0].logits, batch.y, alpha, beta, self.settings.log_zero)]


def weights(settings: SceSettings, classes: int) -> tuple[float, float]:
    """Those of the two parts: as set, else as published for 10 classes or for 100.

    Example:
        >>> weights(SceSettings(), 10), weights(SceSettings(), 100), weights(SceSettings(alpha=1.0), 10)
        ((0.1, 1.0), (6.0, 0.1), (1.0, 1.0))
    """
    alpha, beta = (6.0, 0.1) if classes >= MANY else (0.1, 1.0)
    return alpha if settings.alpha is None else settings.alpha, beta if settings.beta is None else settings.beta
