"""Gradients of single examples over all trained parameters, for small networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from crust.errors import InputError
from crust.gradients.loss import LOSSES
from crust.networks import logits_of

# So many numbers are computed at once; with what vmap needs on the way, some hundred megabytes.
NUMBERS_AT_ONCE = 2**24


def exact_gradients(model: nn.Module, loss: str) -> tuple[int, Callable[[Any, Tensor], tuple[Tensor, Tensor]]]:
    """How many examples to take at once, and the function that gives their gradients, a row each, and outputs."""
    trained = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    fixed = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
    fixed |= dict(model.named_buffers())
    if not trained:
        raise InputError("the model has no parameters that are trained: use the proxy 'logits', which needs none")

    def one(parameters: dict[str, Tensor], x: Any, y: Tensor) -> tuple[Tensor, Tensor]:
        named = {name: value[None] for name, value in x.items()} if isinstance(x, Mapping) else {}
        args = () if named else (x[None],)
        outputs = logits_of(functional_call(model, {**fixed, **parameters}, args, named))
        return LOSSES[loss].losses(outputs.float().reshape(1, -1), y[None])[0], outputs[0]

    every = vmap(grad(one, has_aux=True), in_dims=(None, 0, 0), randomness="different")

    def gradients(x: Any, y: Tensor) -> tuple[Tensor, Tensor]:
        try:
            found, outputs = every(trained, x, y)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(
                f"exact gradients of this model cannot be computed for many examples at once ({reason}): "
                "use the proxy 'logits' or 'features'"
            ) from error
        return torch.cat([value.float().flatten(1) for value in found.values()], 1), outputs

    return max(1, NUMBERS_AT_ONCE // count(model)), gradients


def count(model: nn.Module) -> int:
    """The number of trained parameters."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def check_memory(model: nn.Module, n: int) -> None:
    """Refuse what would not fit, before anything is computed."""
    needed, free = 4 * n * count(model), psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"exact gradients of {n} examples over {count(model)} parameters take {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free: use the proxy 'logits' or 'features', or a smaller model"
        )
