"""Losses of single examples and their gradients at the outputs of the network, in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crust.errors import InputError

__all__ = ["LOSSES"]


class Loss(NamedTuple):
    """A loss of each example, and its gradient at the outputs; both take outputs and labels."""

    losses: Callable[[Tensor, Tensor], Tensor]
    residual: Callable[[Tensor, Tensor], Tensor]


def one_hot(outputs: Tensor, y: Tensor) -> Tensor:
    """True at the label of each row; unlike torch's own it works under vmap."""
    return y[:, None] == torch.arange(outputs.shape[1], device=outputs.device)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Minus the log probability of the label."""
    return -torch.where(one_hot(logits, y), logits.log_softmax(1), 0.0).sum(1)


def probability_residual(logits: Tensor, y: Tensor) -> Tensor:
    """p - y."""
    return logits.softmax(1) - one_hot(logits, y).to(logits.dtype)


def distance(outputs: Tensor, y: Tensor) -> Tensor:
    """f - y; with several outputs y is the one-hot vector of the label."""
    return outputs - (y[:, None] if outputs.shape[1] == 1 else one_hot(outputs, y)).to(outputs.dtype)


def squared(outputs: Tensor, y: Tensor) -> Tensor:
    """Half the squared distance from the label."""
    return distance(outputs, y).square().sum(1) / 2


# Every loss by its name.
LOSSES = {
    "cross-entropy": Loss(cross_entropy, probability_residual),
    "squared": Loss(squared, distance),
}


def certainty(logits: Tensor, y: Tensor, loss: str) -> dict[str, Tensor]:
    """Probabilities, that of the given label, and its lead over the best other; NaN where there are none."""
    if loss == "squared":
        nothing = torch.full((len(logits),), torch.nan)
        return {"confidence": nothing, "margins": nothing}
    p = logits.softmax(1)
    own = p.gather(1, y[:, None])[:, 0]
    others = p.masked_fill(one_hot(logits, y), -torch.inf)
    return {"confidence": own, "margins": own - others.amax(1), "probabilities": p}


def targets(labels: Any, loss: str) -> Tensor:
    """The given labels as a tensor: int64, or float32 for a scalar output."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InputError(f"labels have shape {values.shape} and type {values.dtype}: give one number an example")
    if values.dtype.kind == "f" and loss == "squared":
        return torch.from_numpy(values.astype(np.float32))
    whole = values.astype(np.int64)
    if not np.array_equal(whole, values):
        raise InputError("labels are not whole numbers: number the classes from 0, or use the loss 'squared'")
    return torch.from_numpy(whole)


def matrix(logits: Tensor, y: Tensor, loss: str) -> Tensor:
    """Logits as an (n, outputs) float32 matrix that fits the labels."""
    n = len(y)
    # A batch of one may have lost its dimension on the way.
    if logits.ndim > 2 or (n > 1 and logits.shape[:1] != (n,)) or (logits.ndim == 2 and len(logits) != n):
        raise InputError(
            f"the model gives an output of shape {tuple(logits.shape)} for {n} examples: let it return one row each"
        )
    rows = logits.detach().float().reshape(n, -1)
    classes = rows.shape[1]
    if classes == 1 and loss == "cross-entropy":
        raise InputError("the model has 1 output: cross-entropy needs one a class; use the loss 'squared'")
    if classes > 1 and y.is_floating_point():
        raise InputError(f"the model has {classes} outputs, but the labels are not whole numbers: number the classes")
    if classes > 1 and not (int(y.min()) >= 0 and int(y.max()) < classes):
        wrong = int(y.min()) if int(y.min()) < 0 else int(y.max())
        raise InputError(f"a label is {wrong}, but the model has {classes} outputs: labels go from 0 to {classes - 1}")
    return rows
