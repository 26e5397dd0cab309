"""Weighted gradient descent on a coreset: the iterations that the theorem speaks of, carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import grad

from crust._util.torch_modules import evaluating
from crust.gradients import LOSSES
from crust.theory.jacobian import Jacobian

BLOWN_UP = 1e12


@dataclass(frozen=True)
class Path:
    """Where gradient descent came to."""

    weights: Tensor  # the last weights, (m,)
    outputs: NDArray[np.float64]  # of the coreset at the last weights, (k, C)
    steps: int  # that were made
    first_right: int | None  # the first step after which all outputs belonged to the true labels; None: never
    diverged: bool  # whether the outputs stopped being numbers


def weighted_loss(jacobian: Jacobian, index: NDArray[np.int64], r: NDArray[np.float64], y: Tensor, loss: str) -> Any:
    """Σ r_i ℓ(f(W, x_i), y_i) as a function of the weights; y holds labels for cross-entropy, rows for squared."""
    x, scale = jacobian.pick(index), torch.as_tensor(r, dtype=jacobian.dtype, device=jacobian.device)

    def total(w: Tensor) -> Tensor:
        outputs = jacobian.values(jacobian.unflat(w), x)
        if loss == "squared":
            return (scale[:, None] * (outputs - y).square()).sum() / 2
        return (scale * LOSSES[loss].losses(outputs, y)).sum()

    return total


def descend(
    jacobian: Jacobian,
    index: NDArray[np.int64],
    r: NDArray[np.float64],
    rows: NDArray[np.float64],
    truth: NDArray[np.float64],
    loss: str,
    rate: float,
    steps: int,
    margin: float,
) -> Path:
    """`steps` iterations with the constant rate η from the present weights, on the given labels `rows` of S with
    weights r.

    `truth` has the true labels of S; `margin` is δ, the smallest distance between two labels.
    """
    y = torch.as_tensor(rows, dtype=jacobian.dtype, device=jacobian.device)
    slope: Any = grad(weighted_loss(jacobian, index, r, y if loss == "squared" else y.argmax(1), loss))
    x, w = jacobian.pick(index), jacobian.flat().clone()
    first, done, diverged = None, 0, False
    look_every = max(1, steps // 200)
    with evaluating(jacobian.model):
        for step in range(1, steps + 1):
            w = w - rate * slope(w).detach()
            done = step
            if step % look_every == 0 or step == steps:
                outputs = jacobian.values(jacobian.unflat(w), x).detach()
                if not float(outputs.abs().max()) < BLOWN_UP:
                    diverged = True
                    break
                if first is None and bool(right(outputs.double().cpu().numpy(), truth, margin).all()):
                    first = step
        outputs = jacobian.values(jacobian.unflat(w), x).detach()
    return Path(w, outputs.double().cpu().numpy(), done, first, diverged)


def right(outputs: NDArray[np.float64], truth: NDArray[np.float64], margin: float) -> NDArray[np.bool_]:
    """Whether each output belongs to the true label: the largest one, or for a scalar one within half the margin."""
    if truth.shape[1] > 1:
        return np.asarray(outputs.argmax(1) == truth.argmax(1))
    return np.asarray(np.abs(outputs - truth)[:, 0] < margin / 2)


def margin_of(*labels: NDArray[np.float64]) -> float:
    """δ: the smallest distance between two different labels; 1 between entries of one-hot rows."""
    if labels[0].shape[1] > 1:
        return 1.0
    values = np.unique(np.concatenate([each.reshape(-1) for each in labels]))
    return float(np.diff(values).min()) if len(values) > 1 else np.inf
