"""`proxies`: one pass over the data; its rows are in the order of the dataset, whatever order they came in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, SequentialSampler

from crust._util.foreign import as_tensor, cannot_read, check_device, numbers_of, whole_numbers
from crust._util.large_arrays import kept_type
from crust._util.torch_modules import (
    check_network,
    device_of,
    evaluate_batches,
    forward_logits,
    inputs_in,
    last_linear,
    parts_of,
    slice_batch,
)
from crust.errors import CrustError, InputError, choices
from crust.gradients.per_example import (
    LOSSES,
    check_gradient_memory,
    exact_gradients,
    label_certainty,
    label_tensor,
    logit_matrix,
)  # fmt: skip

KINDS = ("logits", "features", "exact")


def proxies(
    model: nn.Module,
    batches: Iterable[Any],
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
            once, as it came first. Or a DataLoader that goes through the dataset in its order: of (x, labels) or of
            a mapping the inputs are taken.
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
    check_network(model)
    check_device(device)
    if not (autocast is None or isinstance(autocast, torch.dtype)):
        raise InputError(f"autocast is {autocast!r:.100}: give a type such as torch.bfloat16", code="autocast-type")
    y = label_tensor(labels, loss)
    place = device_of(model) if device is None else torch.device(device)
    step, exact = None, None
    weight: Tensor | None = None  # of the last layer
    if kind == "exact":
        if train_mode:
            raise InputError(
                "exact gradients are not defined in train mode: use eval mode, or another proxy",
                code="exact-train-mode",
            )
        if not partial:
            check_gradient_memory(model, len(y))
        step, exact = exact_gradients(model, loss)

    table = Table(len(y))
    # p - y follows from p, and both together are what takes most memory
    derived = kind == "logits" and loss == "cross-entropy" and probabilities

    def forward(model: nn.Module, inputs: Any) -> Any:
        if exact:  # these gradients need the labels too
            return inputs
        try:
            return forward_logits(model, inputs)
        except (RuntimeError, TypeError, ValueError, AttributeError, LookupError) as error:
            if isinstance(error, CrustError) or "memory" in str(error):
                raise
            raise cannot_read("what the model says of a batch", error) from error

    def write(inputs: Any, index: np.ndarray, outputs: Any) -> None:
        nonlocal weight
        given, rows = y[index].to(place), None
        if exact:
            with torch.autocast(place.type, autocast) if autocast else nullcontext():
                rows, outputs = exact(inputs, given)
        logits = logit_matrix(outputs, given, loss)
        if rows is None and not derived:
            rows = LOSSES[loss].residual(logits, given)
        if kind == "features" and rows is not None:
            if weight is None:
                weight = _last_weight(model, inputs, layer, logits.shape[1]).to(place)
            with torch.autocast(place.type, enabled=False):
                rows = rows @ weight
        columns: dict[str, Any] = {
            "rows": rows,
            "predictions": logits[:, 0] if logits.shape[1] == 1 else logits.argmax(1),
            **label_certainty(logits, given, loss),
        }
        if not probabilities:
            columns.pop("probabilities", None)
        if derived:
            del columns["rows"]  # which are none
            if kept_type(len(y), logits.shape[1]) is np.float16:
                columns["probabilities"] = columns["probabilities"].half()
        table.write(index, {name: value.cpu().numpy() for name, value in columns.items()})

    pieces = _checked_pieces(_in_order(batches) if isinstance(batches, DataLoader) else batches, len(y), step)
    evaluate_batches(model, pieces, write, device=place, train_mode=train_mode, autocast=autocast, forward=forward)
    found = table.seen() if partial else table.complete()
    return replace(found, labels=np.asarray(y)[found.index]) if derived and len(found.index) else found


def _in_order(loader: DataLoader[Any]) -> Iterator[tuple[Any, np.ndarray]]:
    """The inputs of a loader's batches, and their positions."""
    if not isinstance(getattr(loader, "sampler", None), SequentialSampler):
        raise InputError(
            "the loader does not go through its dataset in order: give one with shuffle=False and no sampler",
            code="loader-order",
        )
    first = 0
    for batch in loader:
        x = inputs_in(batch)
        n = len(parts_of(x)[0])
        yield x, np.arange(first, first + n)
        first += n


def _checked_pieces(batches: Iterable[tuple[Any, Any]], n: int, step: int | None) -> Iterator[tuple[Any, np.ndarray]]:
    """The batches with checked positions, cut into pieces of at most `step` examples."""
    if not isinstance(batches, Iterable):
        raise InputError(
            f"the batches are a {type(batches).__name__}: give pairs of inputs and positions, or a DataLoader",
            code="batch-type",
        )
    for batch in batches:
        if not (isinstance(batch, (list, tuple)) and len(batch) == 2):
            raise InputError(
                f"a batch is a {type(batch).__name__}: give pairs of inputs and their positions", code="batch-parts"
            )
        x, where = batch[0], whole_numbers(numbers_of(batch[1], "the positions").reshape(-1), "a batch", "position")
        x = as_tensor(x) if isinstance(x, np.ndarray) else x
        if len(where) and not (where.min() >= 0 and where.max() < n):
            wrong = where.min() if where.min() < 0 else where.max()
            raise InputError(
                f"a batch has the position {wrong}, but there are {n} labels: number them from 0", code="position-range"
            )
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
            f"the layer {name!r} has {len(weight)} outputs, but the model has {outputs}: name its last layer",
            code="wrong-layer",
        )
    return weight.detach().float().flatten(1)


@dataclass(frozen=True)
class GradientPass:
    """What one pass over the data says about every example; row i is the example `index[i]`.

    Attributes:
        index: positions in the dataset, rising: all of them, or those that a part has seen.
        predictions: int64, the class with the largest output; float32, the output itself, where it is a scalar.
        losses: float32, the loss of each example with its given label.
        confidence: float32, the probability of the given label (NaN for the squared loss).
        margins: float32, that probability minus the largest other one (NaN for the squared loss).
        probabilities: float32 (n, C) where they were asked for; float16 where there are very many.
        rows: the gradient proxies, where they do not follow from the probabilities.
        labels: the given labels, where they do.

    Example:
        >>> batches = [(torch.tensor([[3.0, 0.0], [0.0, 3.0]]), [1, 0])]
        >>> found = proxies(torch.nn.Identity(), batches, [1, 1])
        >>> found.predictions.tolist(), found.margins.round(2).tolist()
        ([1, 0], [0.9..., -0.9...])
    """

    index: np.ndarray
    predictions: np.ndarray
    losses: np.ndarray
    confidence: np.ndarray
    margins: np.ndarray
    probabilities: np.ndarray | None = None
    rows: np.ndarray | None = None
    labels: np.ndarray | None = None

    @property
    def proxies(self) -> np.ndarray:
        """The gradient proxies: float32, (n, C) for logits, (n, d) for features, (n, parameters) for exact.

        Where they follow from the probabilities they are made anew each time, in the same type.
        """
        if self.rows is not None:
            return self.rows
        assert self.probabilities is not None
        assert self.labels is not None
        found: np.ndarray = self.probabilities.copy()
        found[np.arange(len(found)), self.labels] -= 1
        return found


def merge_passes(parts: Iterable[GradientPass], n: int) -> GradientPass:
    """One pass over the whole dataset from the parts that several processes have seen.

    Args:
        parts: passes made with `partial=True`, in the order of the processes. Their rows may come in any order; an
            example that comes twice, as padding makes it, counts once, as it came first.
        n: the size of the dataset.

    Returns:
        All rows in the order of the dataset.

    Example:
        >>> model, x, labels = torch.nn.Linear(2, 3), torch.randn(3, 2), [0, 1, 2]
        >>> parts = [proxies(model, [(x[rows], rows)], labels, partial=True) for rows in ([0, 2], [1, 0])]
        >>> merge_passes(parts, 3).index.tolist()
        [0, 1, 2]
    """
    parts = list(parts)
    if len(parts) == 1 and len(parts[0].index) == n:  # nothing to merge, and nothing to copy
        return parts[0]
    table = Table(n)
    for part in parts:
        columns = {name: value for name, value in vars(part).items() if name != "index" and value is not None}
        if len(part.index):
            table.write(np.asarray(part.index), columns)
    return table.complete()


class Table:
    """Rows written by their position in the dataset; the first one of a position stays."""

    def __init__(self, n: int):
        self.known = np.zeros(n, dtype=bool)
        self.columns: dict[str, np.ndarray] = {}

    def write(self, index: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        positions, first = np.unique(index, return_index=True)
        first = np.sort(first[~self.known[positions]])
        for name, rows in columns.items():
            if name not in self.columns:
                self.columns[name] = np.empty((len(self.known), *rows.shape[1:]), rows.dtype)
            self.columns[name][index[first]] = rows[first]
        self.known[index] = True

    def seen(self) -> GradientPass:
        index = np.flatnonzero(self.known)
        if not self.columns:  # a process without batches has no rows
            none = np.empty(0, np.float32)
            return GradientPass(index, index, none, none, none, rows=none.reshape(0, 0))
        if len(index) == len(self.known):
            return GradientPass(index, **self.columns)
        # one piece, as processes are given, needs no copy
        part: Any = slice(index[0], index[-1] + 1) if index[-1] - index[0] < len(index) else index
        return GradientPass(index, **{name: rows[part] for name, rows in self.columns.items()})

    def complete(self) -> GradientPass:
        if not len(self.known):
            raise InputError("there are no labels to compute gradients from: give at least one example", code="empty")
        missing = np.flatnonzero(~self.known)
        if len(missing):
            raise InputError(
                f"the batches leave out {len(missing)} of {len(self.known)} examples, the first being {missing[0]}: "
                "give every example once, and drop no last batch",
                code="missing-examples",
            )
        return self.seen()
