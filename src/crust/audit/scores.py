"""One doubt score an example, and what the label should rather be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.training.watch import Watch

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit_table", "doubt", "estimated_transitions"]


def doubt(watch: Watch, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much the run disagrees with each given label, from 0 (never) to 1.

    The mean of two views of the whole history: how improbable the network found the given label on average, and how
    seldom its prediction was the given label.

    Example:
        >>> watch = Watch(2, 2)
        >>> watch.looks, watch.agreed[:] = 1, [1, 0]
        >>> watch.probabilities[:] = [[0.9, 0.1], [0.2, 0.8]]
        >>> doubt(watch, np.array([0, 0])).round(2).tolist()
        [0.05, 0.9]
    """
    if not watch.looks:
        return np.full(len(labels), np.nan)
    given = watch.probabilities[np.arange(len(labels)), labels] / watch.looks
    return 0.5 * (1 - given) + 0.5 * (1 - watch.agreed / watch.looks)


def suggested(watch: Watch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The class with the largest mean probability over the run, and that probability."""
    mean = watch.probabilities / max(1, watch.looks)
    return mean.argmax(axis=1), mean.max(axis=1)


def audit_table(
    watch: Watch,
    labels: NDArray[np.int64],
    index: NDArray[np.int64],
    classes: Sequence[Any],
    *,
    held: tuple[Watch, NDArray[np.int64], NDArray[np.int64]] | None = None,
    ids: Sequence[str] | None = None,
    opinions: Mapping[str, NDArray[np.floating]] | None = None,
) -> pd.DataFrame:
    """A row for each example of the training set, in its order.

    Args:
        watch: what the run has seen of the examples it trained on.
        labels: their given labels.
        index: their positions in the training set.
        classes: the user's names for the classes.
        held: the same three for the examples that were held out.
        ids: a name for each example of the training set, such as its file.
        opinions: what the method itself says of the examples that it trained on; one number an example makes a column.

    Returns:
        Columns: `index`, `id` (where there are any), `label`, `suggested`, `probability`, `doubt`, `chosen` (share of
        the selections), `weight` (mean over the selections), `loss`, `margin` (means over the looks), `held_out`, and
        the method's own.

    Example:
        >>> watch = Watch(1, 2)
        >>> watch.looks, watch.probabilities[:] = 1, [[0.2, 0.8]]
        >>> table = audit_table(watch, np.array([0]), np.array([0]), ["cat", "dog"])
        >>> table["label"][0], table["suggested"][0], float(table["doubt"][0])
        ('cat', 'dog', 0.9)
    """
    import pandas as pd

    parts = [_part(watch, labels, index, False)]
    if held is not None:
        parts.append(_part(*held, True))
    table = pd.concat([pd.DataFrame(part) for part in parts]).sort_values("index", ignore_index=True)
    names = np.array(list(classes), dtype=object)
    table["label"] = names[table["label"].to_numpy()]
    table["suggested"] = names[table["suggested"].to_numpy()]
    for name, values in (opinions or {}).items():
        if np.shape(values) == (len(labels),) and name not in table:
            own = pd.Series(np.asarray(values, np.float64), index=index)
            table[name] = own.reindex(table["index"]).to_numpy()
    if ids is not None:
        table.insert(1, "id", [ids[i] for i in table["index"]])
    return table


def _part(watch: Watch, labels: NDArray[np.int64], index: NDArray[np.int64], held_out: bool) -> dict[str, NDArray[Any]]:
    looks, selections = max(1, watch.looks), max(1, watch.selections)
    better, probability = suggested(watch)
    nothing = np.full(len(labels), np.nan)
    return {
        "index": index,
        "label": labels,
        "suggested": better,
        "probability": probability,
        "doubt": doubt(watch, labels),
        "chosen": nothing if held_out else watch.chosen / selections,
        "weight": nothing if held_out else watch.weight / selections,
        "loss": watch.losses / looks,
        "margin": watch.margins / looks,
        "held_out": np.full(len(labels), held_out),
    }


def estimated_transitions(
    labels: NDArray[np.int64], better: NDArray[np.int64], classes: int
) -> tuple[float, NDArray[np.float64]]:
    """The noise rate and the matrix P(given | suggested) that the suggestions amount to.

    Example:
        >>> rate, matrix = estimated_transitions(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), 2)
        >>> rate, matrix.tolist()
        (0.25, [[0.5, 0.5], [0.0, 1.0]])
    """
    counts = np.zeros((classes, classes))
    np.add.at(counts, (better, labels), 1.0)
    rows = counts.sum(axis=1, keepdims=True)
    matrix = np.where(rows > 0, counts / np.maximum(rows, 1), np.eye(classes))
    return float((labels != better).mean()), matrix
