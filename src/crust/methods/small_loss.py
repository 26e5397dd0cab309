"""The control for selection in gradient space: the examples with the smallest loss of each predicted class."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from crust.training import coreset_rules
from crust.training.context import Context
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings


class SmallLossSettings(Settings):
    fraction: float = Field(0.5, gt=0, le=1)
    grouping: coreset_rules.Grouping = "prediction"
    select_after: int = Field(1, ge=0)  # epochs on everything first: before, all losses are alike


class SmallLoss(Method):
    name = "small-loss"
    summary = "the smallest losses of each predicted class, chosen anew each epoch"
    Settings = SmallLossSettings
    settings: SmallLossSettings

    def looks_at_all(self, epoch: int, epochs: int) -> bool:
        return epoch >= self.settings.select_after

    def begin_epoch(self, context: Context) -> Selection | None:
        if not self.looks_at_all(context.epoch, context.epochs):
            return None
        seen = context.look_at_all()
        coreset = coreset_rules.choose(
            seen.proxies,
            seen.predictions,
            seen.losses,
            context.labels,
            self.settings.fraction,
            grouping=self.settings.grouping,
            selection="small-loss",
            seed=0,
        )
        return coreset_rules.as_selection(coreset, "none", None)

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        return [cross_entropy(outputs[0].logits, batch.y)]
