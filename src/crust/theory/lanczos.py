"""Leading singular values of a matrix that is only ever multiplied with: block Lanczos from a random start.

Every step multiplies one block of orthonormal vectors with J and with its transpose. A block, not one vector, since the
Jacobian of a network with several outputs has singular values that come several times. After each step the values so
far come with a bound: next to each of them, within its error, lies a singular value of J.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Apply = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass
class Leading:
    """Singular values, largest first, how far off each may be, their left vectors, and the steps that were made."""

    values: Tensor
    errors: Tensor
    left: Tensor
    steps: int


def leading(apply: Apply, columns: int, k: int, *, block: int, steps: int, tolerance: float, start: Tensor) -> Leading:
    """The k leading singular values of J.

    Args:
        apply: for orthonormal vectors V, (m, b), the pair J V and Jᵀ J V.
        columns: m.
        k: how many values.
        block: vectors in a block.
        steps: at most so many blocks.
        tolerance: stop when no error is above this share of the largest value.
        start: (m, b) random numbers.

    Example:
        >>> J = torch.diag(torch.tensor([3.0, 2.0, 2.0, 1.0])).double()
        >>> noise = torch.randn(4, 2, generator=torch.Generator().manual_seed(0)).double()
        >>> found = leading(lambda V: (J @ V, J.T @ J @ V), 4, 3, block=2, steps=9, tolerance=1e-9, start=noise)
        >>> [round(value, 6) for value in found.values.tolist()]
        [3.0, 2.0, 2.0]
    """
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
