"""L_DMI (Xu et al. 2019): a loss that noise can only shift, -log |det U|, after a training with cross-entropy.

U counts how given labels and predictions occur together in a batch. Noise that does not depend on the example
multiplies U by the matrix of the noise, and so only adds a constant. The loss cannot tell classes from each other's
names, so that a plain training must come first; and U is singular where a class is missing in a batch, which is then
skipped.
"""

from __future__ import annotations

import math

from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.losses import cross_entropy, log_abs_det
from crust.training.method import Batch, Method, Output, Settings, Stage


class LDmiSettings(Settings):
    dmi_learning_rate: float = Field(1e-6, gt=0, description="of the second training")
    first_epochs: int | None = Field(None, ge=1, description="of the first training; null: as many as of the second")
    dmi_batch_size: int | None = Field(None, ge=2, description="null: 256, with many classes more")
    floor: float = Field(
        -6.0, description="for each class: a batch whose log |det U| is below floor · classes is skipped"
    )
    clip: float = Field(1.0, gt=0, description="largest norm of the gradient")


class LDmi(Method):
    name = "l-dmi"
    summary = "cross-entropy first, then the determinant loss, which noise only shifts by a constant"
    Settings = LDmiSettings
    settings: LDmiSettings
    state_names = ("second", "classes")
    second = False
    classes = 10  # until the first stage begins

    def stages(self) -> list[Stage]:
        settings = self.settings
        return [
            Stage("cross-entropy", settings.first_epochs, end="best", counts=False),
            Stage(
                "dmi",
                learning_rate=settings.dmi_learning_rate,
                batch_size=settings.dmi_batch_size or batch_size(self.classes),
                clip_norm=settings.clip,
                schedule=False,
                full_batches=True,
                keep_initial=True,
            ),
        ]

    def begin_stage(self, context: Context) -> None:
        if context.stage == 0:
            self.classes = context.classes
        self.second = context.stage == 1

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if not self.second:
            return [cross_entropy(outputs[0].logits, batch.y)]
        return [dmi(outputs[0].logits, batch.y, self.settings.floor * context.classes)]


def dmi(logits: Tensor, y: Tensor, floor: float = -math.inf) -> Tensor | None:
    """-log |det U|; None where U is singular, or so nearly that only its noise would be learnt from.

    Example:
        >>> import torch
        >>> dmi(torch.randn(5, 3), torch.zeros(5, dtype=torch.long)) is None
        True
    """
    found = log_abs_det(logits, y)
    value = float(found.detach())
    return -found if math.isfinite(value) and value > floor else None


def batch_size(classes: int) -> int:
    """As published for 10 classes; with more of them so many that hardly any batch lacks one."""
    return max(256, 1 << math.ceil(math.log2(10 * classes)))
