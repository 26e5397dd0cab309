"""The Gram matrix K = J Jᵀ: from it comes all that is asked of subsets, each without another pass through the network.

`Weighted`: the weighted Jacobian of a coreset, diag(√r) J_S, seen through the Gram matrix of all examples.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust.errors import InputError
from crust.selection import select
from crust.theory.inputs import given_labels, inputs_of, label_rows, residual_rows, usual_loss
from crust.theory.jacobian import Jacobian, products, shown

log = logging.getLogger("crust")
Matrix = NDArray[np.float64]
FLOAT64_ENTRIES = 2**26  # numbers in a Jacobian whose rows are still computed in float64
QUICK_GRAM_ROWS = 6000  # rows of a Gram matrix whose full decomposition is still quick


def precision_of(rows: int, columns: int) -> torch.dtype:
    """float64 while the Jacobian is small, so that small singular values are right too."""
    return torch.float64 if rows * columns <= FLOAT64_ENTRIES else torch.float32


def labelled(
    model: nn.Module,
    data: Any,
    labels: Any,
    true_labels: Any,
    loss: str | None,
    memory_limit: int | None,
    check: Callable[[Jacobian], None] = lambda _: None,
) -> tuple[Jacobian, Matrix, Matrix | None, Matrix, str]:
    """The Jacobian, given and true labels, residuals and the loss, all checked; `check` before what takes long."""
    inputs = inputs_of(data)
    jacobian = Jacobian(model, inputs, torch.float32, memory_limit)
    n, outputs = jacobian.n, jacobian.outputs
    loss = usual_loss(loss, outputs)
    y = label_rows(given_labels(data, labels), outputs, n, loss)
    truth = None if true_labels is None else label_rows(true_labels, outputs, n, loss, "true labels")
    check(jacobian)
    if precision_of(*jacobian.shape) == torch.float64:
        jacobian = Jacobian(model, inputs, torch.float64, memory_limit)
    return jacobian, y, truth, residual_rows(jacobian.logits.double().cpu().numpy(), y, loss), loss


def check_repeats(repeats: int) -> None:
    """Refuse less than none."""
    if repeats < 0:
        raise InputError(f"repeats is {repeats}: give 0 or more random subsets", code="repeats-range")


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
            f"all pairs of gradients, and {shown(jacobian.memory)} may be used: give fewer examples",
            code="memory",
        )
    one = 2.0 * jacobian.outputs * jacobian.factors.columns * jacobian.dtype.itemsize
    if needed(rows) / 2 + one > jacobian.memory:
        raise InputError(
            f"the gradients of one example, {jacobian.outputs} outputs by {jacobian.m} parameters, take {shown(one)}, "
            f"and {shown(jacobian.memory)} may be used in all: give a smaller model",
            code="memory",
        )


def gram(jacobian: Jacobian) -> NDArray[np.float64]:
    """J Jᵀ in float64. Rows are kept as far as memory goes, and computed again where it ends."""
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
    """The rows of the Jacobian that belong to some examples."""
    return (np.asarray(index)[:, None] * outputs + np.arange(outputs)).reshape(-1)


# ------------------------------------------------------------ weighted subsets

DENSE_SIZE = 300  # up to this size all eigenvalues are found as quickly as one


class Weighted:
    """Some examples S (`index`) with weights r, from J Jᵀ of all examples."""

    def __init__(self, matrix: Matrix, outputs: int, index: NDArray[np.int64], weights: NDArray[np.float64]):
        self.whole, self.outputs, self.index, self.weights = matrix, outputs, index, weights
        rows = jacobian_rows(index, outputs)
        self.matrix = matrix[np.ix_(rows, rows)]  # J_S J_Sᵀ
        self.roots = np.repeat(np.sqrt(weights), outputs)

    @cached_property
    def scaled(self) -> Matrix:
        """J_r J_rᵀ."""
        return np.asarray(self.matrix * self.roots[:, None] * self.roots)

    @cached_property
    def plain(self) -> NDArray[np.float64]:
        """The singular values of J_S."""
        return roots_of(np.linalg.eigvalsh(self.matrix))

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The singular values of J_r."""
        return roots_of(np.linalg.eigvalsh(self.scaled))

    @cached_property
    def norm(self) -> float:
        """‖J_S‖."""
        return float(np.sqrt(largest_eigenvalue(lambda v: self.matrix @ v, len(self.matrix))))

    def difference(self) -> NDArray[np.float64]:
        """The diagonal of D in JᵀJ - J_Sᵀ R J_S = Jᵀ D J: one, less the weight of what was chosen."""
        d = np.ones(len(self.whole))
        d[jacobian_rows(self.index, self.outputs)] -= self.roots**2
        return d

    def cluster_basis(self, clusters: NDArray[np.int64], weighted: bool) -> Matrix:
        """An orthonormal basis of the support subspace: vectors that are equal within every main cluster, output by
        output; `weighted` multiplies them with √r, which is the column space of J_r where J is equal within clusters.
        """
        count = int(clusters.max()) + 1
        k, outputs = len(self.index), self.outputs
        basis = np.zeros((k, outputs, count, outputs))
        height = np.sqrt(self.weights) if weighted else np.ones(k)
        for output in range(outputs):
            basis[np.arange(k), output, clusters, output] = height
        flat = basis.reshape(k * outputs, count * outputs)
        return flat / np.linalg.norm(flat, axis=0)


def largest_eigenvalue(apply: Callable[[Matrix], Matrix], size: int) -> float:
    """The largest magnitude of an eigenvalue of a symmetric matrix, given by its products with columns."""
    if size <= DENSE_SIZE:
        return float(np.abs(np.linalg.eigvalsh(apply(np.eye(size)))).max())
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=size)
    found = eigsh(operator, k=1, which="LM", v0=start, tol=1e-9, return_eigenvectors=False)
    return float(abs(found[0]))


def roots_of(squares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Singular values, largest first, from eigenvalues in rising order; below rounding they are zero."""
    floor = np.finfo(np.float64).eps * len(squares) * max(float(squares[-1]), 0.0)
    return np.sqrt(np.where(squares > floor, squares, 0.0))[::-1]


def least(matrix: Matrix, basis: Matrix) -> float:
    """The smallest ‖Jᵀu‖ over unit vectors u of a subspace, from J Jᵀ."""
    return float(roots_of(np.linalg.eigvalsh(basis.T @ matrix @ basis))[-1])


def largest_outside(matrix: Matrix, basis: Matrix) -> float:
    """The largest ‖Jᵀw‖ over unit vectors w orthogonal to a subspace."""
    rest = matrix - basis @ (basis.T @ matrix)
    rest = rest - (rest @ basis) @ basis.T
    return float(roots_of(np.linalg.eigvalsh((rest + rest.T) / 2))[0]) if len(matrix) > basis.shape[1] else 0.0


def row_distances(matrix: Matrix, outputs: int) -> Matrix:
    """‖J_i - J_j‖ for all pairs of examples."""
    n = len(matrix) // outputs
    inner = np.einsum("icjc->ij", matrix.reshape(n, outputs, n, outputs))
    size = np.diag(inner)
    return np.sqrt(np.maximum(size[:, None] + size - 2 * inner, 0.0)) * (1 - np.eye(n))


def main_clusters(weighted: Weighted, clusters: object) -> NDArray[np.int64]:
    """The main cluster of every member: given as they are, or so many medoids of the members' Jacobian rows.

    Not of their gradients, which hold the residual too: a wrong label would then be a cluster of its own with the rows
    of the clean one beside it, and no vector that tells the two apart could be learned.
    """
    k = len(weighted.index)
    if isinstance(clusters, (int, np.integer)) and not isinstance(clusters, bool):
        count = int(clusters)
        if count < 1:
            raise InputError(f"there cannot be {count} main clusters: give at least 1", code="clusters-count")
        if count >= k:
            return np.arange(k)
        found = select(row_distances(weighted.matrix, weighted.outputs).astype(np.float32), count, metric="precomputed")
        return found.assignment
    names = np.asarray(clusters)
    if names.shape != (k,):
        raise InputError(
            f"the main clusters have shape {names.shape}: give one an example of the coreset, ({k},)",
            code="clusters-shape",
        )
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
