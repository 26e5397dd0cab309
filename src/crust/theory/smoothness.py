"""How fast the Jacobian changes with the weights: ‖J_r(W¹) - J_r(W²)‖ ≤ L ‖W¹ - W²‖, estimated from below."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import grad, jvp

from crust._util.torch_modules import evaluating
from crust.theory.jacobian import Jacobian, products_of_change

STARTS, ROUNDS = 2, 10
LENGTHS = (1e-3, 1e-2, 1e-1)  # of secants, as shares of the length of the weights


def smoothness(
    jacobian: Jacobian, index: NDArray[np.int64], weights: NDArray[np.float64], downhill: Tensor, seed: int = 0
) -> float:
    """A lower bound of L for diag(√r) J_S near the present weights: the largest of what two searches find.

    The first climbs the second derivatives: of all unit directions v it looks for the one with the largest
    ‖√r ∘ D²f[v, v]‖, alternating between v and the combination of outputs that bends most along it. The second takes
    secants, ‖J_r(W + tv) - J_r(W)‖ / t, downhill and along what the first found: these also see the kinks of ReLU.
    """
    roots = torch.as_tensor(np.sqrt(weights), dtype=jacobian.dtype, device=jacobian.device)
    x = jacobian.pick(index)
    here = jacobian.flat()

    def outputs(w: Tensor) -> Tensor:
        return (jacobian.values(jacobian.unflat(w), x) * roots[:, None]).reshape(-1)

    generator = torch.Generator().manual_seed(seed)
    starts = [torch.randn(jacobian.m, generator=generator, dtype=torch.float64) for _ in range(STARTS)]
    directions = [_unit(start.to(here)) for start in [*starts, downhill] if float(start.norm()) > 0]
    with evaluating(jacobian.model), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # forward differentiation loads parts of torch that warn
        climbed = [_climb(outputs, here, direction) for direction in directions]
    best = max(climbed, key=lambda found: found[0])
    size = float(here.norm())
    ends = [here + length * size * direction for direction in (best[1], directions[-1]) for length in LENGTHS]
    return max(best[0], *secants(jacobian, index, roots, here, ends))


def secants(
    jacobian: Jacobian, index: NDArray[np.int64], roots: Tensor, here: Tensor, ends: Sequence[Tensor]
) -> list[float]:
    """‖J_r(end) - J_r(here)‖ / ‖end - here‖ for each end; 0 for a point and itself.

    Of as many members as memory has room for: the norm of some rows is at most that of all.
    """
    factors = jacobian.factors
    room = int(jacobian.memory / 4 // (jacobian.outputs * factors.columns * jacobian.dtype.itemsize))
    some, scale = index[: max(1, room)], roots[: max(1, room)].double()
    scale = scale.repeat_interleave(jacobian.outputs)
    start, found = factors.rows(some, jacobian.unflat(here)), []
    for end in ends:
        far = float((end - here).norm())
        if far:
            square = products_of_change(start, factors.rows(some, jacobian.unflat(end))) * scale[:, None] * scale
            far = float(torch.linalg.eigvalsh(square)[-1].clamp(min=0).sqrt()) / far
        found.append(far)
    return found


def _climb(outputs: Callable[[Tensor], Tensor], here: Tensor, v: Tensor) -> tuple[float, Tensor]:
    """The largest ‖D²f[v, v]‖ that alternation finds from a start, and its direction."""
    best, where = 0.0, v
    for _ in range(ROUNDS):

        def first(w: Tensor, v: Tensor = v) -> Tensor:
            return jvp(outputs, (w,), (v,))[1]

        bend = jvp(first, (here,), (v,))[1].detach()  # D²f[v, v]
        size = float(bend.norm())
        if size > best:
            best, where = size, v
        if size == 0:
            break
        u = bend / size

        def combined(w: Tensor, u: Tensor = u) -> Tensor:
            return (u * outputs(w)).sum()

        turned = jvp(grad(combined), (here,), (v,))[1]
        if float(turned.norm()) == 0:
            break
        v = _unit(turned.detach())
    return best, where


def _unit(v: Tensor) -> Tensor:
    return v / v.norm()
