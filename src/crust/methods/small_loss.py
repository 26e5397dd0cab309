"""The control for selection in gradient space: the examples with the smallest loss of each predicted class."""

from __future__ import annotations

from pydantic import Field

from crust.training import coreset_rules
from crust.training.context import Context
from crust.training.method import Method, Selection, Settings


class SmallLossSettings(Settings):
    fraction: float = Field(0.5, gt=0, le=1, description="how many of the smallest losses are trained on, as a share")
    grouping: coreset_rules.Grouping = Field(
        "prediction",
        description="what losses are compared within: the predicted class, the given label, or all together",
    )
    select_after: int = Field(1, ge=0, description="epochs on everything first: before, all losses are alike")


class SmallLoss(Method):
    name = "small-loss"
    summary = "the smallest losses of each predicted class, chosen anew each epoch"
    Settings = SmallLossSettings
    settings: SmallLossSettings

    def train_set_pass(self, epoch: int, epochs: int) -> str | None:
        return "logits" if epoch >= self.settings.select_after else None

    def begin_epoch(self, context: Context) -> Selection | None:
        if self.train_set_pass(context.epoch, context.epochs) is None:
            return None
        seen, together = context.evaluate_our_part(), context.together
        coreset = coreset_rules.choose(
            seen.losses[:, None],  # which nobody compares
            together.join(seen.predictions),
            together.join(seen.losses),
            context.labels,
            self.settings.fraction,
            grouping=self.settings.grouping,
            selection="small-loss",
            seed=0,
        )
        return coreset_rules.as_selection(coreset, "none", None)
