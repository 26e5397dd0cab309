"""`proxies`: one pass over the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crust._util.torch_modules import (
    device_of,
    evaluate_batches,
    forward_logits,
    last_linear,
    slice_batch,
)
from crust.errors import InputError, choices
from crust.gradients.gradient_pass import GradientPass, Table
from crust.gradients.per_example import (
    LOSSES,
    check_gradient_memory,
    exact_gradients,
    label_certainty,
    label_tensor,
    logit_matrix,
)

__all__ = ["KINDS", "proxies"]

KINDS = ("logits", "features", "exact")


def proxies(
    model: nn.Module,
    batches: Iterable[tuple[Any, Any]],
    labels: Any,
    *,
    kind: str = "logits",
    loss: str = "cross-entropy",
    layer: str | None = None,
    device: torch.device | str | None = None,
    train_mode: bool = False,
    autocast: torch.dtype | None = None,
    probabilities: bool = False,
    partial: bool = False,
) -> GradientPass:
    """Gradient proxies, predictions and losses of all examples from one pass, in the order of the dataset.

    Nothing in the network changes: not its weights, gradients, BatchNorm statistics or train flags; nor does any
    random state. Under several processes give each of them the network itself, not its distributed wrapper.

    Args:
        model: any network that returns logits, or an object with `.logits`.
        batches: pairs of inputs and their positions in the dataset, in any order; a position that comes twice counts
            once, as it came first.
        labels: the given label of every example in the dataset, as numbers from 0; any number for a scalar output.
        kind: `logits`: the gradient at the last layer's output, p - y for cross-entropy and f - y for the squared
            loss; `features`: the gradient at its input, (p - y) W; `exact`: over all parameters that are trained, for
            small networks.
        loss: `cross-entropy`, or `squared`, which is half the squared distance from the label (its one-hot vector
            where there are several outputs).
        layer: the name of the last linear layer; None finds it. Only `features` needs it.
        device: where to compute; None is where the network is.
        train_mode: run in train mode, as the published code of CRUST does: BatchNorm sees batches, its statistics and
            the random states move.
        autocast: compute the network in this type, such as torch.bfloat16; proxies and losses stay float32.
        probabilities: keep the probabilities as well.
        partial: the batches are one process's part of the dataset: return only its rows, for `merge`.

    Returns:
        A `GradientPass` with one row an example.

    Reference:
        Mirzasoleiman, Cao, Leskovec: Coresets for Robust Training of Neural Networks against Noisy Labels, 2020.

    Example:
        >>> model = torch.nn.Linear(2, 3)
        >>> x, labels = torch.randn(5, 2), np.array([0, 1, 2, 0, 1])
        >>> found = proxies(model, [(x[3:], [3, 4]), (x[:3], [0, 1, 2])], labels)
        >>> found.proxies.shape, bool((found.proxies[np.arange(5), labels] < 0).all())
        ((5, 3), True)
    """
    choices(kind, KINDS, "proxy")
    choices(loss, LOSSES, "loss")
    y = label_tensor(labels, loss)
    place = device_of(model) if device is None else torch.device(device)
    step, exact = None, None
    weight: Tensor | None = None  # of the last layer
    if kind == "exact":
        if train_mode:
            raise InputError("exact gradients are not defined in train mode: use eval mode, or another proxy")
        if not partial:
            check_gradient_memory(model, len(y))
        step, exact = exact_gradients(model, loss)

    table = Table(len(y))

    def forward(model: nn.Module, inputs: Any) -> Any:
        return inputs if exact else forward_logits(model, inputs)  # exact gradients need the labels too

    def write(inputs: Any, index: np.ndarray, outputs: Any) -> None:
        nonlocal weight
        given, rows = y[index].to(place), None
        if exact:
            with torch.autocast(place.type, autocast) if autocast else nullcontext():
                rows, outputs = exact(inputs, given)
        logits = logit_matrix(outputs, given, loss)
        if rows is None:
            rows = LOSSES[loss].residual(logits, given)
        if kind == "features":
            if weight is None:
                weight = _last_weight(model, inputs, layer, logits.shape[1]).to(place)
            with torch.autocast(place.type, enabled=False):
                rows = rows @ weight
        columns = {
            "proxies": rows,
            "predictions": logits[:, 0] if logits.shape[1] == 1 else logits.argmax(1),
            "losses": LOSSES[loss].losses(logits, given),
            **label_certainty(logits, given, loss),
        }
        if not probabilities:
            columns.pop("probabilities", None)
        table.write(index, {name: value.cpu().numpy() for name, value in columns.items()})

    pieces = _checked_pieces(batches, len(y), step)
    evaluate_batches(model, pieces, write, device=place, train_mode=train_mode, autocast=autocast, forward=forward)
    return table.seen() if partial else table.complete()


def _checked_pieces(batches: Iterable[tuple[Any, Any]], n: int, step: int | None) -> Iterator[tuple[Any, np.ndarray]]:
    """The batches with checked positions, cut into pieces of at most `step` examples."""
    for x, index in batches:
        where = np.asarray(index.cpu() if isinstance(index, Tensor) else index, dtype=np.int64).reshape(-1)
        if len(where) and not (where.min() >= 0 and where.max() < n):
            wrong = where.min() if where.min() < 0 else where.max()
            raise InputError(f"a batch has the position {wrong}, but there are {n} labels: number them from 0")
        if step is None or step >= len(where):
            if len(where):
                yield x, where
            continue
        for first in range(0, len(where), step):
            yield slice_batch(x, first, first + step), where[first : first + step]


def _last_weight(model: nn.Module, x: Any, layer: str | None, outputs: int) -> Tensor:
    """The weight of the last linear layer, (outputs, features), in float32."""
    name, found = last_linear(model, slice_batch(x, 0, 8), layer)
    weight = found.weight
    assert isinstance(weight, Tensor)
    if len(weight) != outputs:
        raise InputError(
            f"the layer {name!r} has {len(weight)} outputs, but the model has {outputs}: name its last layer"
        )
    return weight.detach().float().flatten(1)
