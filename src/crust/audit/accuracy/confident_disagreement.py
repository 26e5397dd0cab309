"""What the examples that a network is surest of say about the noise: how many labels are wrong at most."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARE, LEAST = 0.1, 100  # of the examples of each suggested class are asked; so many in all at least


@dataclass(frozen=True)
class Surest:
    """What the surest examples say."""

    contradicted: float  # the share of them whose suggested label is not the given one
    asked: int  # how many they are
    noticed: float  # what share of wrong labels shows up there in this way
    spread: float  # how far that may be off, as a part of itself


SILENT = Surest(1.0, 1, 1.0, 0.0)  # they set no bound


def surest(suggested: NDArray[np.int64], probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the examples of each suggested class that are most probably of it."""
    return most_confident_per_class(suggested, probability, max(SHARE, LEAST / max(1, len(suggested))))


def contradicted(
    given: NDArray[np.int64], suggested: NDArray[np.int64], probability: NDArray[np.float64]
) -> tuple[float, int]:
    """The share of other labels among the surest suggestions of each class, and how many these are.

    Where noise depends on the class alone it is as frequent there as elsewhere, and hardly a suggestion is wrong. On
    CIFAR-10: 0.22 where 0.20 of all labels are wrong, 0.45 where it is 0.50, 0.10 on the human labels `aggre` where it
    is 0.09.

    Example:
        >>> suggested, probability = np.repeat([0, 1], 500), np.linspace(0.5, 1, 1000)
        >>> contradicted(np.where(np.arange(1000) % 10 == 0, 1 - suggested, suggested), suggested, probability)
        (0.1, 100)
    """
    sure = surest(suggested, probability)
    return float((given[sure] != suggested[sure]).mean()), len(sure)


def noticed(
    injected: NDArray[np.bool_],
    given: NDArray[np.int64],
    suggested: NDArray[np.int64],
    probability: NDArray[np.float64],
) -> tuple[float, float]:
    """What share of the injected labels shows up among the surest examples, and how far that may be off.

    A network that memorises labels is sure of them, right or wrong: then few do. All arguments but `injected` are of
    the network that was trained with them.
    """
    sure = surest(suggested, probability)
    seen = int((injected[sure] & (given[sure] != suggested[sure])).sum())
    expected = float(injected.mean()) * len(sure)
    return min(1.0, (seen + 0.5) / (expected + 0.5)), 1 / math.sqrt(seen + 1)


def most_confident(probabilities: NDArray[np.floating], share: float = 0.25) -> NDArray[np.int64]:
    """Positions of the clearest predictions of each predicted class, at least one of each that occurs."""
    top = np.sort(probabilities, axis=1)
    return most_confident_per_class(probabilities.argmax(axis=1), top[:, -1] - top[:, -2], share)


def most_confident_per_class(
    predictions: NDArray[np.int64], sureness: NDArray[np.floating], share: float
) -> NDArray[np.int64]:
    """Positions of the surest so many of each predicted class, at least one of each that occurs.

    Example:
        >>> most_confident_per_class(np.array([0, 0, 0, 1]), np.array([0.8, 0.2, 0.6, 0.4]), 0.5).tolist()
        [0, 2, 3]
    """
    found = []
    for name in np.unique(predictions):
        members = np.flatnonzero(predictions == name)
        order = members[np.argsort(-sureness[members], kind="stable")]
        found.append(order[: max(1, round(share * len(order)))])
    return np.sort(np.concatenate(found))
