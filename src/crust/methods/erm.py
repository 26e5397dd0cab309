"""Plain training: cross-entropy on everything, as if all labels were right."""

from __future__ import annotations

from torch import Tensor

from crust.training.context import Context
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Method, Output


class Erm(Method):
    name = "erm"
    summary = "plain cross-entropy on all examples"

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        return [cross_entropy(outputs[0].logits, batch.y)]
