"""The Gram matrix K = J Jᵀ: from it comes all that is asked of subsets, each without another look at the network."""

from __future__ import annotations

import logging

import numpy as np
import torch
from numpy.typing import NDArray

from crust.errors import InputError
from crust.theory.factored_jacobian import products
from crust.theory.jacobian import Jacobian, shown

log = logging.getLogger("crust")
FLOAT64_ENTRIES = 2**26  # numbers in a Jacobian whose rows are still computed in float64
QUICK_GRAM_ROWS = 6000  # rows of a Gram matrix whose full decomposition is still quick


def precision_of(rows: int, columns: int) -> torch.dtype:
    """float64 while the Jacobian is small, so that small singular values are right too."""
    return torch.float64 if rows * columns <= FLOAT64_ENTRIES else torch.float32


def is_quick(jacobian: Jacobian) -> bool:
    """Whether the Gram matrix fits and can be decomposed in little time."""
    rows = jacobian.shape[0]
    return rows <= QUICK_GRAM_ROWS and needed(rows) <= jacobian.memory


def needed(rows: int) -> float:
    """Bytes that a Gram matrix takes with its decomposition."""
    return 8.0 * 4 * rows * rows


def check_gram_memory(jacobian: Jacobian) -> None:
    """Refuse what would not fit, before anything is computed."""
    rows = jacobian.shape[0]
    if needed(rows) > jacobian.memory:
        raise InputError(
            f"{jacobian.n} examples with {jacobian.outputs} outputs take {shown(needed(rows))} for the products of "
            f"all pairs of gradients, and {shown(jacobian.memory)} may be used: give fewer examples"
        )
    one = 2.0 * jacobian.outputs * jacobian.factors.columns * jacobian.dtype.itemsize
    if needed(rows) / 2 + one > jacobian.memory:
        raise InputError(
            f"the gradients of one example, {jacobian.outputs} outputs by {jacobian.m} parameters, take {shown(one)}, "
            f"and {shown(jacobian.memory)} may be used in all: give a smaller model"
        )


def gram(jacobian: Jacobian) -> NDArray[np.float64]:
    """J Jᵀ in float64. Rows are kept as far as memory goes, and computed again where it ends.

    Example:
        >>> from torch import nn
        >>> gram(Jacobian(nn.Linear(2, 1, bias=False), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))).tolist()
        [[5.0, 11.0], [11.0, 25.0]]
    """
    check_gram_memory(jacobian)
    outputs, size = jacobian.outputs, jacobian.shape[0]
    found = np.empty((size, size))
    free = (jacobian.memory - needed(size) / 2) / 3
    factors = jacobian.factors
    panel = int(max(1, free // (outputs * factors.columns * jacobian.dtype.itemsize)))
    step = factors.at_once()
    for low in range(0, jacobian.n, panel):
        high = min(low + panel, jacobian.n)
        kept = factors.rows(np.arange(low, high))
        here = slice(low * outputs, high * outputs)
        found[here, here] = products(kept, kept).cpu().numpy()
        for first in range(high, jacobian.n, step):
            last = min(first + step, jacobian.n)
            block = products(kept, factors.rows(np.arange(first, last))).cpu().numpy()
            there = slice(first * outputs, last * outputs)
            found[here, there], found[there, here] = block, block.T
        log.info("gradients: %d of %d examples", high, jacobian.n)
    return (found + found.T) / 2


def jacobian_rows(index: NDArray[np.int64], outputs: int) -> NDArray[np.int64]:
    """The rows of the Jacobian that belong to some examples.

    Example:
        >>> jacobian_rows(np.array([2, 0]), 2).tolist()
        [4, 5, 0, 1]
    """
    return (np.asarray(index)[:, None] * outputs + np.arange(outputs)).reshape(-1)
