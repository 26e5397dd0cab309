"""What the user has, in the form that the theory needs: inputs in memory, labels and residuals as rows of numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crust.data import Examples, batches, from_dataset
from crust.errors import InputError, choices
from crust.gradients import LOSSES
from crust.gradients.per_example import label_mask, label_tensor, logit_matrix
from crust.selection import Coreset

BATCH = 256


def inputs_of(data: Any) -> Any:
    """All inputs as one tensor (or a mapping of tensors), from a tensor, an array, (x, y), `Examples` or a dataset."""
    if isinstance(data, tuple) and len(data) == 2:
        data = data[0]
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(np.ascontiguousarray(data))
    if isinstance(data, torch.Tensor):
        return data.float() if data.dtype == torch.float64 else data
    if isinstance(data, Mapping):
        return dict(data)
    examples = data if isinstance(data, Examples) else from_dataset(data)
    parts = [x for x, _ in batches(examples, None, BATCH)]
    if not parts:
        raise InputError("there are no examples: give at least one", code="empty")
    if isinstance(parts[0], Mapping):
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return torch.cat(parts)


def given_labels(data: Any, labels: Any) -> Any:
    """The given labels: those that are named, else those that the data brings along."""
    if labels is not None:
        return labels
    if isinstance(data, tuple) and len(data) == 2:
        return data[1]
    if isinstance(data, Examples):
        return data.labels
    raise InputError("there are no labels: give labels, one an example", code="missing-labels")


def usual_loss(loss: str | None, outputs: int) -> str:
    """Cross-entropy for several outputs, the squared loss for one."""
    if loss is None:
        return "squared" if outputs == 1 else "cross-entropy"
    return choices(loss, LOSSES, "loss")


def label_rows(labels: Any, outputs: int, n: int, loss: str, what: str = "labels") -> NDArray[np.float64]:
    """Labels as an (n, outputs) matrix: one-hot rows, or the numbers themselves for a scalar output.

    Example:
        >>> label_rows([2, 0], 3, 2, "cross-entropy").tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
        >>> label_rows([0.5, -1], 1, 2, "squared").tolist()
        [[0.5], [-1.0]]
    """
    y = label_tensor(labels, loss if outputs == 1 else "cross-entropy")
    if len(y) != n:
        raise InputError(f"there are {len(y)} {what} for {n} examples: give one an example", code="labels-length")
    rows = torch.zeros(n, outputs)
    logit_matrix(rows, y, loss)  # refuses labels that do not fit
    found = y[:, None] if outputs == 1 else label_mask(rows, y)
    return found.double().numpy()


def residual_rows(logits: NDArray[np.floating], rows: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """The gradient of the loss at the outputs: f - y, or p - y for cross-entropy."""
    if loss == "squared":
        return np.asarray(logits - rows)
    return torch.from_numpy(np.asarray(logits, dtype=np.float64)).softmax(1).numpy() - rows


def members_of(coreset: Any, n: int, weights: Any = None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Indices and weights of a coreset, or of plain indices, whose weights are then n/k each.

    Example:
        >>> members_of([3, 1], 4)
        (array([3, 1]), array([2., 2.]))
    """
    own = coreset.weights if isinstance(coreset, Coreset) else None
    if isinstance(coreset, Coreset) and coreset.n != n:
        raise InputError(f"the coreset is of {coreset.n} points, not {n}: give the same data", code="coreset-data")
    index = np.asarray(coreset.indices if isinstance(coreset, Coreset) else coreset)
    if index.ndim != 1 or not len(index) or index.dtype.kind not in "iu":
        raise InputError("the coreset has no members: give a Coreset, or positions of examples", code="coreset-members")
    if len(index) > n:
        raise InputError(f"the coreset has {len(index)} members for {n} examples: choose fewer", code="coreset-members")
    if index.min() < 0 or index.max() >= n or len(np.unique(index)) != len(index):
        raise InputError(f"the positions do not fit {n} examples: name each once, from 0 on", code="coreset-members")
    given = own if weights is None else weights
    r = np.full(len(index), n / len(index)) if given is None else np.asarray(given, dtype=np.float64)
    if r.shape != index.shape or not np.isfinite(r).all() or r.min() <= 0:
        raise InputError(f"the weights do not fit {len(index)} members: give each one above 0", code="weights-shape")
    return index.astype(np.int64), r
