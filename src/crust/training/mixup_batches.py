"""Mixing examples with partners: mixup, and its cluster form in CRUST."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.training.context import Context
from crust.training.losses import mix, one_hot
from crust.training.method import Batch


def mix_with(
    batch: Batch,
    partners: NDArray[np.int64],
    context: Context,
    *,
    alpha: float,
    beta: float,
    labels: bool = True,
    one_share: bool = False,
) -> Batch:
    """Mix each example of a batch with its partner, unless that is itself: share ~ Beta(alpha, beta) of itself."""
    if isinstance(batch.x, Mapping) or not batch.x.is_floating_point():
        raise InputError("these inputs cannot be mixed: use mixup none", code="cannot-mix")
    rng = context.rng("mix", step=True)
    share = rng.beta(alpha, beta, None if one_share else len(partners)) * np.ones(len(partners))
    share = np.where(partners == batch.index, 1.0, share)
    shares = context.tensor(share.astype(np.float32))
    batch.x = mix(batch.x, context.inputs(partners), shares)
    if labels:
        other = context.tensor(context.labels[partners])
        batch.target = mix(one_hot(batch.y, context.classes), one_hot(other, context.classes), shares)
    return batch
