"""The result of a pass: rows in the order of the dataset, whatever order they came in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from crust.errors import InputError

__all__ = ["GradientPass", "merge_passes"]


@dataclass(frozen=True)
class GradientPass:
    """What one pass over the data says about every example; row i is the example `index[i]`.

    Attributes:
        index: positions in the dataset, rising: all of them, or those that a part has seen.
        proxies: float32, (n, C) for logits, (n, d) for features, (n, parameters) for exact.
        predictions: int64, the class with the largest output; float32, the output itself, where it is a scalar.
        losses: float32, the loss of each example with its given label.
        confidence: float32, the probability of the given label (NaN for the squared loss).
        margins: float32, that probability minus the largest other one (NaN for the squared loss).
        probabilities: float32 (n, C) where they were asked for.

    Example:
        >>> import torch
        >>> from crust.gradients import proxies
        >>> batches = [(torch.tensor([[3.0, 0.0], [0.0, 3.0]]), [1, 0])]
        >>> found = proxies(torch.nn.Identity(), batches, [1, 1])
        >>> found.predictions.tolist(), found.margins.round(2).tolist()
        ([1, 0], [0.9..., -0.9...])
    """

    index: np.ndarray
    proxies: np.ndarray
    predictions: np.ndarray
    losses: np.ndarray
    confidence: np.ndarray
    margins: np.ndarray
    probabilities: np.ndarray | None = None


def merge_passes(parts: Iterable[GradientPass], n: int) -> GradientPass:
    """One pass over the whole dataset from the parts that several processes have seen.

    Args:
        parts: passes made with `partial=True`, in the order of the processes. Their rows may come in any order; an
            example that comes twice, as padding makes it, counts once, as it came first.
        n: the size of the dataset.

    Returns:
        All rows in the order of the dataset.

    Example:
        >>> import torch
        >>> from crust.gradients import proxies
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
            return GradientPass(index, none.reshape(0, 0), index, none, none, none)
        if len(index) == len(self.known):
            return GradientPass(index, **self.columns)
        return GradientPass(index, **{name: rows[index] for name, rows in self.columns.items()})

    def complete(self) -> GradientPass:
        if not len(self.known):
            raise InputError("there are no labels to compute gradients from: give at least one example")
        missing = np.flatnonzero(~self.known)
        if len(missing):
            raise InputError(
                f"the batches leave out {len(missing)} of {len(self.known)} examples, the first being {missing[0]}: "
                "give every example once, and drop no last batch"
            )
        return self.seen()
