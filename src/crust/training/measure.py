"""How good the first network is: accuracy, and the score by which its weights are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data import Examples
from crust.training.context import Context
from crust.training.looking import predict
from crust.training.method import Method, Stage


def accuracies(context: Context, tests: dict[str, Examples]) -> dict[str, float]:
    """The share of examples that the first network gets right, each counted once by one process.

    The first set's goes by the name `test_accuracy`, that of another one by `test_accuracy_NAME`. Where a `top` is set
    and there are more classes than that, `test_top5` and `test_top5_NAME` stand beside them.
    """
    found, top = {}, context.settings.top
    for number, (name, examples) in enumerate(tests.items()):
        end = f"_{name}" if number else ""
        seen = predict(context, None, 0, examples, False)
        found[f"test_accuracy{end}"] = float((seen.predictions == examples.labels).mean())
        if top is not None and top < context.classes:
            found[f"test_top{top}{end}"] = float((ranks(seen.probabilities, examples.labels) < top).mean())
    return found


def ranks(probabilities: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many classes come before the labels; of equal ones the first comes first, as for predictions.

    Example:
        >>> ranks(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]), np.array([0, 1]))
        array([2, 1])
    """
    own = probabilities[np.arange(len(labels)), labels][:, None]
    before = np.arange(probabilities.shape[1]) < labels[:, None]
    found: NDArray[np.int64] = ((probabilities > own) | ((probabilities == own) & before)).sum(axis=1)
    return found


def score(context: Context, method: Method, stage: Stage) -> tuple[float, dict[str, float]]:
    """What the present weights are worth by the stage's measure, larger is better; and what the history shows of it.

    Without a set to select on the later weights are the better ones.
    """
    found: dict[str, float] = {}
    probabilities: NDArray[np.float64] | None = None
    labels = context.labels
    if context.validation is not None:
        seen, labels = predict(context, None, 0, context.validation, False), context.validation.labels
        found["val_accuracy"] = float((seen.predictions == labels).mean())
        probabilities = seen.probabilities.astype(np.float64)
    if stage.held is not None and len(stage.held):
        # A part of the training set is the method's own choice, so that looking at it is on its bill.
        seen, labels = context.predict(stage.held), context.labels[stage.held]
        found["held_accuracy"] = float((seen.predictions == labels).mean())
        probabilities = seen.probabilities.astype(np.float64)
    if probabilities is None or stage.select_by == "last":
        return float(context.epoch), found
    if stage.select_by == "val_loss":
        own = probabilities[np.arange(len(labels)), labels]
        found["val_loss"] = float(-np.log(np.maximum(own, 1e-12)).mean())
        return -found["val_loss"], found
    if stage.select_by == "method":
        found["score"] = float(method.score(probabilities, labels))
        return found["score"], found
    return found["held_accuracy" if stage.held is not None and len(stage.held) else "val_accuracy"], found
