"""Losses of single examples and their gradients at the outputs of the network, in float32.

Gradients of single examples over all trained parameters, for small networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from crust._util.foreign import as_array, whole_numbers
from crust._util.torch_modules import logits_of, parts_of
from crust.errors import InputError


class Loss(NamedTuple):
    """A loss of each example, and its gradient at the outputs; both take outputs and labels."""

    losses: Callable[[Tensor, Tensor], Tensor]
    residual: Callable[[Tensor, Tensor], Tensor]


def label_mask(outputs: Tensor, y: Tensor) -> Tensor:
    """True at the label of each row; unlike torch's own it works under vmap."""
    return y[:, None] == torch.arange(outputs.shape[1], device=outputs.device)


def distance(outputs: Tensor, y: Tensor) -> Tensor:
    """f - y; with several outputs y is the one-hot vector of the label."""
    return outputs - (y[:, None] if outputs.shape[1] == 1 else label_mask(outputs, y)).to(outputs.dtype)


def distance_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Half the square of f - y."""
    return distance(outputs, y).square().sum(1) / 2


LOSSES = {
    "cross-entropy": Loss(
        lambda z, y: -torch.where(label_mask(z, y), z.log_softmax(1), 0.0).sum(1),
        lambda z, y: z.softmax(1) - label_mask(z, y).to(z.dtype),  # p - y
    ),
    "squared": Loss(distance_loss, distance),
}


def label_certainty(logits: Tensor, y: Tensor, loss: str) -> dict[str, Tensor]:
    """Losses, probabilities, that of the given label, and its lead over the best other; NaN where there are none.

    Labels were checked before. There may be thousands of classes, so that each is gone through as seldom as can be.
    """
    if loss == "squared":
        nothing = torch.full((len(logits),), torch.nan)
        return {"losses": distance_loss(logits, y), "confidence": nothing, "margins": nothing}
    p, given = logits.softmax(1), y[:, None]
    own = p.gather(1, given)
    others = p.scatter_(1, given, -torch.inf).amax(1)
    p.scatter_(1, given, own)
    losses = -logits.log_softmax(1).gather(1, given)[:, 0]
    return {"losses": losses, "confidence": own[:, 0], "margins": own[:, 0] - others, "probabilities": p}


def label_tensor(labels: Any, loss: str) -> Tensor:
    """The given labels as a tensor: int64, or float32 for a scalar output."""
    values = as_array(labels, "the labels")
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InputError(
            f"labels have shape {values.shape} and type {values.dtype}: give one number an example", code="labels-shape"
        )
    if values.dtype.kind == "f" and loss == "squared":
        return torch.from_numpy(values.astype(np.float32))
    return torch.from_numpy(whole_numbers(values, "the labels"))


def logit_matrix(logits: Tensor, y: Tensor, loss: str) -> Tensor:
    """Logits as an (n, outputs) float32 matrix that fits the labels."""
    n = len(y)
    # A batch of one may have lost its dimension on the way.
    if logits.ndim > 2 or (n > 1 and logits.shape[:1] != (n,)) or (logits.ndim == 2 and len(logits) != n):
        raise InputError(
            f"the model gives an output of shape {tuple(logits.shape)} for {n} examples: let it return one row each",
            code="outputs-shape",
        )
    rows = logits.detach().float().reshape(n, -1)
    classes = rows.shape[1]
    if classes == 1 and loss == "cross-entropy":
        raise InputError(
            "the model has 1 output: cross-entropy needs one a class; use the loss 'squared'", code="outputs-count"
        )
    if classes > 1 and y.is_floating_point():
        raise InputError(
            f"the model has {classes} outputs, but the labels are not whole numbers: number the classes",
            code="labels-type",
        )
    if classes > 1 and not (int(y.min()) >= 0 and int(y.max()) < classes):
        wrong = int(y.min()) if int(y.min()) < 0 else int(y.max())
        raise InputError(
            f"a label is {wrong}, but the model has {classes} outputs: labels go from 0 to {classes - 1}",
            code="label-range",
        )
    return rows


# So many numbers are computed at once; with what vmap needs on the way, some hundred megabytes.
NUMBERS_AT_ONCE = 2**24


def exact_gradients(model: nn.Module, loss: str) -> tuple[int, Callable[[Any, Tensor], tuple[Tensor, Tensor]]]:
    """How many examples to take at once, and the function that gives their gradients, a row each, and outputs."""
    trained = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    fixed = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
    fixed |= dict(model.named_buffers())
    if not trained:
        raise InputError(
            "the model has no parameters that are trained: use the proxy 'logits', which needs none",
            code="no-parameters",
        )

    def one(parameters: dict[str, Tensor], x: Any, y: Tensor) -> tuple[Tensor, Tensor]:
        named = {name: value[None] for name, value in x.items()} if isinstance(x, Mapping) else {}
        args = () if named else tuple(part[None] for part in parts_of(x))
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
                "use the proxy 'logits' or 'features'",
                code="exact-unsupported",
            ) from error
        return torch.cat([value.float().flatten(1) for value in found.values()], 1), outputs

    return max(1, NUMBERS_AT_ONCE // count_parameters(model)), gradients


def count_parameters(model: nn.Module) -> int:
    """The number of trained parameters."""
    return sum(value.numel() for value in model.parameters() if value.requires_grad)


def check_gradient_memory(model: nn.Module, n: int) -> None:
    """Refuse what would not fit, before anything is computed."""
    parameters, free = count_parameters(model), psutil.virtual_memory().available
    needed = 4 * n * parameters
    if needed > free:
        raise InputError(
            f"exact gradients of {n} examples over {parameters} parameters take {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free: use the proxy 'logits' or 'features', or a smaller model",
            code="memory",
        )
