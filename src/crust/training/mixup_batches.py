"""Mixing examples with partners: mixup, and its cluster form in CRUST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from crust._util.torch_modules import parts_of
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
    if not any(part.is_floating_point() for part in parts_of(batch.x)):
        raise InputError("these inputs cannot be mixed: use mixup none", code="cannot-mix")
    rng = context.rng("mix", step=True)
    share = rng.beta(alpha, beta, None if one_share else len(partners)) * np.ones(len(partners))
    share = np.where(partners == batch.index, 1.0, share)
    shares = context.tensor(share.astype(np.float32))
    others = context.inputs(partners) if batch.partner_x is None else batch.partner_x
    batch.x = _mix_parts(batch.x, others, shares)
    if labels:
        other = context.tensor(context.labels[partners])
        batch.target = mix(one_hot(batch.y, context.classes), one_hot(other, context.classes), shares)
    return batch


def _mix_parts(x: Any, others: Any, shares: Tensor) -> Any:
    """Of a batch of several inputs those that are floats; token ids stay those of the example itself."""
    if isinstance(x, Mapping):
        return {name: _mix_parts(value, others[name], shares) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [_mix_parts(value, other, shares) for value, other in zip(x, others, strict=True)]
    if not x.is_floating_point():
        return x
    if x.shape != others.shape:
        raise InputError(
            f"inputs of shapes {tuple(x.shape[1:])} and {tuple(others.shape[1:])} cannot be mixed: bring all to one, "
            "or use mixup none",
            code="cannot-mix",
        )
    return mix(x, others, shares)
