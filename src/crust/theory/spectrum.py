"""`spectrum`: the singular values of a network's Jacobian, and where they are cut into information and nuisance space.

`Spaces`: the left singular vectors of the Jacobian of any subset, from the Gram matrix where it fits, else matrix-free
by block Lanczos. There every step multiplies one block of orthonormal vectors with J and with its transpose: a block,
not one vector, since the Jacobian of a network with several outputs has singular values that come several times. After
each step the values so far come with a bound: next to each of them, within its error, lies a singular value of J.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crust.errors import InputError, choices
from crust.theory.gram import gram, is_quick, jacobian_rows, precision_of
from crust.theory.inputs import inputs_of
from crust.theory.jacobian import Jacobian, memory_of, shown

Cut = int | float | str


def rank_of(values: NDArray[np.float64], cut: Cut, energy: float, rows: int) -> int:
    """The dimension of the information space.

    Args:
        values: singular values, largest first; all of them or the leading ones.
        cut: a whole number is the rank itself; a share between 0 and 1 is that of the energy, the sum of the squared
            singular values, that the information space must hold; "gap" cuts where the ratio of one value to the next
            is largest, in the first half of the spectrum (the last values of any matrix are far apart).
        energy: the sum of all squared singular values.
        rows: how many singular values there are in all, known or not.

    Example:
        >>> values = np.array([10.0, 9.0, 1.0, 0.9])
        >>> rank_of(values, 3, 182.81, 4), rank_of(values, 0.9, 182.81, 4), rank_of(values, "gap", 182.81, 4)
        (3, 2, 2)
    """
    if isinstance(cut, bool) or not isinstance(cut, (int, float, str, np.integer, np.floating)):
        raise _unknown(cut)
    if isinstance(cut, str):
        if cut != "gap":
            raise _unknown(cut)
        if len(values) < 2 or values[0] <= 0:
            return 1
        last = max(1, min(len(values) - 1, rows // 2))
        floor = values[0] * 1e-12
        clipped = np.maximum(values, floor)
        return int(np.argmax(clipped[:last] / clipped[1 : last + 1])) + 1
    if isinstance(cut, (int, np.integer)):
        if cut < 1:
            raise InputError(f"the cut is a rank of {cut}: give at least 1", code="cut-range")
        if cut > len(values):
            if len(values) < rows:
                raise InputError(
                    f"the cut is at rank {cut}, but {len(values)} singular values are known: ask for more",
                    code="too-few-values",
                )
            return len(values)
        return int(cut)
    if not 0 < cut < 1:
        raise InputError(
            f"the cut is {cut}: give a share of the energy between 0 and 1, a rank, or 'gap'", code="cut-range"
        )
    held = np.cumsum(np.square(values))
    enough = held >= cut * energy * (1 - 1e-12)
    if not enough.any():
        if len(values) < rows:
            raise InputError(
                f"the {len(values)} leading singular values hold {held[-1] / energy:.0%} of the energy, not {cut:.0%}: "
                "ask for more of them, or cut at a rank",
                code="too-few-values",
            )
        return len(values)
    return int(np.argmax(enough)) + 1


def _unknown(cut: Any) -> InputError:
    return InputError(
        f"unknown cut {cut!r}: give a rank such as 10, a share of the energy such as 0.9, or 'gap'", code="unknown-cut"
    )


log = logging.getLogger("crust")
METHODS = ("auto", "exact", "gram", "lanczos")
EXACT_ENTRIES = 2 * 10**7  # numbers in a Jacobian that is still decomposed as a whole
MAX_LANCZOS_STEPS = 12
USUAL_LANCZOS_STEPS = 5  # steps that usually suffice


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a Jacobian.

    Attributes:
        singular_values: float64, largest first.
        errors: for each, how far the nearest singular value of J may be; rounding only where the method is exact.
        shape: rows (examples times outputs) and columns (parameters) of J.
        outputs: of the network.
        energy: the sum of all squared singular values, also of those that were not computed.
        method: `exact`, `gram` or `lanczos`.
        passes: how often the data was gone through.
        left: the left singular vectors, a column each; None where they were not asked for.

    Example:
        >>> found = Spectrum(np.array([2.0, 1.0]), np.zeros(2), (2, 5), 1, 5.0, "exact", 1)
        >>> found.rank(0.7), found.known
        (1, 1.0)
    """

    singular_values: NDArray[np.float64]
    errors: NDArray[np.float64]
    shape: tuple[int, int]
    outputs: int
    energy: float
    method: str
    passes: int
    left: NDArray[np.float64] | None = None

    def rank(self, cut: Cut) -> int:
        """The dimension of the information space: `cut` is a rank, a share of the energy, or "gap"."""
        return rank_of(self.singular_values, cut, self.energy, min(self.shape))

    @property
    def known(self) -> float:
        """The share of the energy that the computed values hold."""
        return float(min(1.0, np.square(self.singular_values).sum() / self.energy)) if self.energy else 1.0


def spectrum(
    model: nn.Module,
    data: Any,
    k: int = 50,
    *,
    method: str = "auto",
    vectors: bool = False,
    tolerance: float = 1e-3,
    memory_limit: int | None = None,
    seed: int = 0,
) -> Spectrum:
    """Singular values of the Jacobian of the outputs with respect to all trained parameters, at the present weights.

    Args:
        model: any network that returns logits, or one number an example; run in eval mode, nothing in it changes.
        data: inputs as a tensor or an array, (inputs, labels), `Examples`, or a map-style dataset.
        k: how many leading values `lanczos` finds; the others give all.
        method: `exact` forms the matrix in float64 and decomposes it; `gram` decomposes the inner products of its rows,
            which is quick for fully connected networks, but rounds small values; `lanczos` never forms anything, needs
            memory for some times k vectors of parameters, and says how far off each value may be; `auto` takes `exact`
            for small ones, then what costs less.
        vectors: keep the left singular vectors as well.
        tolerance: of `lanczos`: the largest error, as a share of the largest value.
        memory_limit: bytes; None: half of what is free.
        seed: of the random start of `lanczos`.

    Returns:
        A `Spectrum`.

    Example:
        >>> x = torch.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
        >>> spectrum(nn.Linear(2, 1, bias=False), x).singular_values.tolist()
        [4.0, 3.0]
    """
    choices(method, METHODS, "method")
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1:
        raise InputError(f"k is {k!r}: give a whole number of singular values, at least 1", code="k-range")
    inputs = inputs_of(data)
    small = Jacobian(model, inputs, torch.float32, memory_limit)
    numbers = small.shape[0] * small.shape[1]
    if method == "auto" and numbers <= EXACT_ENTRIES and 32 * numbers <= small.memory:
        method = "exact"
    elif method == "auto":
        work = USUAL_LANCZOS_STEPS * 4.0 * (int(k) + 10) * small.m  # of lanczos, for each row
        quick = is_quick(small) and small.shape[0] * small.factors.columns <= work
        method = "gram" if quick else "lanczos"
    if method == "exact":
        if 32 * numbers > memory_of(memory_limit):
            raise InputError(
                f"the whole Jacobian, {small.shape[0]} x {small.shape[1]}, takes {shown(32 * numbers)} to decompose, "
                f"and {shown(small.memory)} may be used: use method='lanczos', or fewer examples",
                code="memory",
            )
        return exact_spectrum(Jacobian(model, inputs, torch.float64, memory_limit), vectors)
    if method == "gram":
        dtype = precision_of(small.shape[0], small.factors.columns)
        return gram_spectrum(small if dtype == small.dtype else Jacobian(model, inputs, dtype, memory_limit), vectors)
    return lanczos_spectrum(small, None, min(int(k), *small.shape), vectors, tolerance, seed)


def gram_spectrum(jacobian: Jacobian, vectors: bool, matrix: NDArray[np.float64] | None = None) -> Spectrum:
    """From the inner products of all rows, where these are known or cost little."""
    matrix = gram(jacobian) if matrix is None else matrix
    left = None
    if vectors:
        squares, left = np.linalg.eigh(matrix)
    else:
        squares = np.linalg.eigvalsh(matrix)
    count = min(jacobian.shape)
    values = np.sqrt(np.maximum(squares[::-1][:count], 0.0))
    energy = float(np.trace(matrix))
    off = torch.finfo(jacobian.dtype).eps * energy  # of the squares
    errors = np.minimum(np.sqrt(off), off / np.maximum(values, np.sqrt(off)))
    left = None if left is None else left[:, ::-1][:, :count]
    return Spectrum(values, errors, jacobian.shape, jacobian.outputs, energy, "gram", 1, left)


def exact_spectrum(jacobian: Jacobian, vectors: bool) -> Spectrum:
    """From the whole matrix, in float64."""
    rows = jacobian.rows(np.arange(jacobian.n))
    left = None
    if vectors:
        u, s, _ = torch.linalg.svd(rows, full_matrices=False)
        left = u.cpu().numpy()
    else:
        s = torch.linalg.svdvals(rows)
    values = s.cpu().numpy()
    rounding = np.full(len(values), np.finfo(np.float64).eps * max(jacobian.shape) * float(values[0]))
    energy = float(rows.square().sum())
    return Spectrum(values, rounding, jacobian.shape, jacobian.outputs, energy, "exact", 1, left)


def lanczos_spectrum(
    jacobian: Jacobian,
    index: NDArray[np.int64] | None,
    k: int,
    vectors: bool,
    tolerance: float,
    seed: int,
    by: str = "auto",
) -> Spectrum:
    """From products with the Jacobian of some examples, or of all.

    Rows of a few examples at a time serve a whole block of vectors at once, at the price of one backward pass for each
    output; products need a forward and a backward pass for each vector of the block. `by` is `rows`, `products`, or
    `auto`: what costs less.
    """
    chosen = np.arange(jacobian.n) if index is None else index
    n, m = len(chosen) * jacobian.outputs, jacobian.m
    k = min(k, n, m)
    by_rows = jacobian.outputs <= 2 * k if by == "auto" else by == "rows"
    block = min(m, k + 10 if by_rows else max(8, -(-k // 4)))
    steps = MAX_LANCZOS_STEPS if by_rows else 4 * MAX_LANCZOS_STEPS
    each = 4.0 * block * (2 * m + 5 * n)  # a block, its image, and the decomposition of the images
    afford = int((jacobian.memory / 2 - 12.0 * block * m) // each)
    if afford * block < k or afford < 2:
        raise InputError(
            f"the {k} leading singular values of a {n} x {m} Jacobian take at least "
            f"{shown(2 * (max(2, -(-k // block)) * each + 12.0 * block * m))}, and {shown(jacobian.memory)} may be "
            "used: ask for fewer values, or for fewer examples",
            code="memory",
        )
    if by_rows and 4.0 * jacobian.outputs * m * jacobian.dtype.itemsize > jacobian.memory / 2:
        by_rows = False
    squares: list[float] = []

    def apply(v: Tensor) -> tuple[Tensor, Tensor]:
        image = torch.empty(n, v.shape[1], dtype=jacobian.dtype, device=jacobian.device)
        back = torch.zeros_like(v)
        total, at = 0.0, 0
        for part in jacobian.chunks(chosen, None if by_rows else 128):
            where = slice(at, at + len(part) * jacobian.outputs)
            at = where.stop
            if by_rows:
                rows = jacobian.rows(part)
                total += float(rows.square().sum(dtype=torch.float64))
                image[where] = rows @ v
                back += rows.T @ image[where]
            else:
                image[where] = jacobian.times(part, v)
                back += jacobian.transposed_times(part, image[where])
        # A random block holds its share of the energy, on average
        squares.append(total if by_rows else float(image.square().sum(dtype=torch.float64)) * m / v.shape[1])
        log.info("spectrum: pass %d over %d examples", len(squares), len(chosen))
        return image, back

    noise = torch.randn(m, block, generator=torch.Generator().manual_seed(seed)).to(jacobian.device, jacobian.dtype)
    found = leading(apply, m, k, block=block, steps=min(steps, afford), tolerance=tolerance, start=noise)
    values = found.values.cpu().numpy()
    energy = max(squares[0], float(np.square(values).sum()))
    left = found.left.cpu().numpy() if vectors else None
    errors = found.errors.cpu().numpy()
    return Spectrum(values, errors, (n, m), jacobian.outputs, energy, "lanczos", found.steps, left)


class Space(NamedTuple):
    """Singular values, largest first, left vectors, and the sum of all squared values."""

    values: NDArray[np.float64]
    left: NDArray[np.float64]
    energy: float

    def cut(self, cut: Cut) -> NDArray[np.float64]:
        """An orthonormal basis of the information space."""
        return self.left[:, : rank_of(self.values, cut, self.energy, len(self.left))]


class Spaces:
    """The spaces of one network on one dataset; k leading values where the Gram matrix is too large."""

    def __init__(self, jacobian: Jacobian, k: int = 50, seed: int = 0, matrix: NDArray[np.float64] | None = None):
        self.jacobian, self.k, self.seed = jacobian, k, seed
        if matrix is None and is_quick(jacobian):
            matrix = gram(jacobian)
        self.matrix = matrix

    def of(self, index: NDArray[np.int64] | None = None) -> Space:
        """The space of some examples, or of all."""
        if self.matrix is None:
            found = lanczos_spectrum(self.jacobian, index, self.k, True, 1e-3, self.seed)
            assert found.left is not None
            return Space(found.singular_values, found.left, found.energy)
        part = self.matrix
        if index is not None:
            rows = jacobian_rows(index, self.jacobian.outputs)
            part = part[np.ix_(rows, rows)]
        squares, vectors = np.linalg.eigh(part)
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        return Space(values, vectors[:, ::-1], float(np.trace(part)))


# ------------------------------------------------------------ block Lanczos

Apply = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass
class Leading:
    """Singular values, largest first, how far off each may be, their left vectors, and the steps that were made."""

    values: Tensor
    errors: Tensor
    left: Tensor
    steps: int


def leading(apply: Apply, columns: int, k: int, *, block: int, steps: int, tolerance: float, start: Tensor) -> Leading:
    """The k leading singular values of J; `apply` makes J V and Jᵀ J V of orthonormal vectors V, (columns, b)."""
    basis = [torch.linalg.qr(start[:, : min(block, columns)])[0]]
    images: list[Tensor] = []
    while True:
        image, back = apply(basis[-1])
        images.append(image)
        back, rest = _next_block(back, basis)
        u, s, wt = torch.linalg.svd(torch.cat(images, 1).double(), full_matrices=False)
        count = min(k, len(s))
        last = wt[:count, -basis[-1].shape[1] :]
        floor = torch.finfo(image.dtype).eps * s[0].clamp(min=torch.finfo(torch.float64).tiny)
        errors = (rest.double() @ last.T).norm(dim=0) / s[:count].clamp(min=float(floor))
        width = sum(part.shape[1] for part in basis)
        room = min(block, columns - width)
        done = count == k and float(errors.max()) <= tolerance * float(s[0])
        if done or room < 1 or len(images) >= steps:
            return Leading(s[:count], errors, u[:, :count], len(images))
        basis.append(back[:, :room])


def _next_block(back: Tensor, basis: list[Tensor]) -> tuple[Tensor, Tensor]:
    """What is new in a block, orthonormal, and its size: the part of Jᵀ J V outside of all blocks so far."""
    for _ in range(2):
        for part in basis:
            back = back - part @ (part.T @ back)
    block, rest = torch.linalg.qr(back)
    # Where next to nothing is new, its direction is rounding: bring it outside of the blocks once more.
    for _ in range(2):
        for part in basis:
            block = block - part @ (part.T @ block)
        block = torch.linalg.qr(block)[0]
    return block, rest
