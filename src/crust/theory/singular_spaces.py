"""Left singular vectors of the Jacobian of any subset: from the Gram matrix where it fits, else matrix-free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crust.theory.gram import gram, is_quick, jacobian_rows
from crust.theory.jacobian import Jacobian
from crust.theory.spectrum import Cut, lanczos_spectrum, rank_of


class Space(NamedTuple):
    """Singular values, largest first, left vectors, and the sum of all squared values."""

    values: NDArray[np.float64]
    left: NDArray[np.float64]
    energy: float

    def cut(self, cut: Cut) -> NDArray[np.float64]:
        """An orthonormal basis of the information space."""
        return self.left[:, : rank_of(self.values, cut, self.energy, len(self.left))]


class Spaces:
    """The spaces of one network on one dataset.

    Args:
        jacobian: of all examples.
        k: how many leading values are computed where the Gram matrix is too large.
        seed: for these.
        matrix: the Gram matrix, where it is known.

    Example:
        >>> import torch
        >>> jacobian = Jacobian(torch.nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 1.0]]))
        >>> Spaces(jacobian).of(np.array([0, 1])).values.tolist()
        [4.0, 3.0]
    """

    def __init__(self, jacobian: Jacobian, k: int = 50, seed: int = 0, matrix: NDArray[np.float64] | None = None):
        self.jacobian, self.k, self.seed = jacobian, k, seed
        if matrix is None and is_quick(jacobian):
            matrix = gram(jacobian)
        self.matrix = matrix

    def of(self, index: NDArray[np.int64] | None = None, weights: NDArray[np.float64] | None = None) -> Space:
        """The space of some examples, or of all; with weights r, that of diag(√r) J."""
        if self.matrix is None:
            found = lanczos_spectrum(self.jacobian, index, weights, self.k, True, 1e-3, self.seed)
            assert found.left is not None
            return Space(found.singular_values, found.left, found.energy)
        part = self.matrix
        if index is not None:
            rows = jacobian_rows(index, self.jacobian.outputs)
            part = part[np.ix_(rows, rows)]
        if weights is not None:
            roots = np.repeat(np.sqrt(weights), self.jacobian.outputs)
            part = part * roots[:, None] * roots
        squares, vectors = np.linalg.eigh(part)
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        return Space(values, vectors[:, ::-1], float(np.trace(part)))
