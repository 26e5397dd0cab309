"""What a run has seen of every example: the raw material of the audit, kept up to date epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.large_arrays import ROWS, kept_type

if TYPE_CHECKING:
    from crust.gradients import GradientPass


GAP = 0.15  # so much oftener right by the given labels on what was trained on: a look counts a third


def trust(progress: float, on_trained: float, on_held: float | None) -> float:
    """How much a look counts: late ones more, since the network knows more; less, where it has memorised labels.

    Memorisation shows in how much oftener the predictions are the given labels on the examples trained on than on
    those held out. Where nothing is held out this cannot be seen, and all looks count the same. How this was chosen
    stands in docs/results/audit-scores.md. `progress` is how far training has come, from 0 to 1.

    Example:
        >>> trust(0.5, 0.5, 0.5), trust(1.0, 0.5, 0.5), round(trust(1.0, 0.7, 0.5), 3), trust(0.1, 0.9, None)
        (0.5, 1.0, 0.169, 1.0)
    """
    if on_held is None:
        return 1.0
    return max(1e-6, progress * math.exp(-((max(0.0, on_trained - on_held) / GAP) ** 2)))


class Watch:
    """Sums over all looks at a set of examples, and over all choices of them.

    Where there are very many probabilities their mean is kept in place of their sum, in single or half precision: sums
    in double precision would take 8 GB for a million examples in a thousand classes.
    """

    OF_EACH = ("probabilities", "losses", "margins", "agreed")  # what a process knows of its own examples only

    def __init__(self, n: int, classes: int, mine: NDArray[np.int64] | None = None):
        """`mine`: the examples that this process looks at, where there are several."""
        self.mine = np.arange(n) if mine is None else mine
        here = len(self.mine)
        self.looks = 0
        self.trust = 0.0  # the sum of what the looks count
        # weighted by what the looks count
        self.probabilities = np.zeros((here, classes), kept_type(n, classes, summed=True))
        self.losses = np.zeros(here)
        self.margins = np.zeros(here)
        self.agreed = np.zeros(here, np.int32)  # looks at which the prediction was the given label
        self.selections = 0
        self.chosen = np.zeros(n, np.int32)
        self.weight = np.zeros(n)
        self.last = np.zeros(0, np.int64)  # who was chosen last

    def look(self, seen: GradientPass, labels: NDArray[np.int64], counts: float = 1.0) -> None:
        """Count one look at all examples (of ours), with their labels."""
        assert seen.probabilities is not None
        self.looks += 1
        self.trust += counts
        if self.probabilities.dtype == np.float64:
            self.probabilities += counts * seen.probabilities
        else:
            share = np.float32(counts / self.trust)
            for first in range(0, len(self.probabilities), ROWS):
                mean, new = self.probabilities[first : first + ROWS], seen.probabilities[first : first + ROWS]
                mean[:] = mean + share * (new - mean.astype(np.float32))
        self.losses += seen.losses
        self.margins += seen.margins
        self.agreed += seen.predictions == labels

    def mean(self) -> NDArray[np.floating]:
        """The probabilities of all classes, averaged over the looks; NaN before the first."""
        if self.trust and self.probabilities.dtype != np.float64:
            return self.probabilities
        return self.probabilities / self.trust if self.trust else np.full_like(self.probabilities, np.nan)

    def choose(self, indices: NDArray[np.int64], weights: NDArray[np.float32] | None) -> None:
        """Count one selection; a member that is visited several times counts once, with all its weight."""
        self.selections += 1
        self.last = np.flatnonzero(np.bincount(indices, minlength=len(self.chosen)))
        self.chosen[self.last] += 1
        np.add.at(self.weight, indices, 1.0 if weights is None else weights)

    def join(self, rows_of_all: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        """From now on know what all processes have seen of all examples."""
        for name in self.OF_EACH:
            setattr(self, name, rows_of_all(getattr(self, name)))
        self.mine = np.arange(len(self.chosen))

    def state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "mine"}

    def load(self, state: dict[str, Any]) -> None:
        """What was saved of all examples; here ours are kept of it."""
        # A checkpoint of before has looks that count the same, and does not say who was chosen last.
        given, n = {"trust": float(state["looks"]), "last": self.last, **state}, len(self.chosen)
        names = [name for name in vars(self) if name != "mine"]
        for name in names:
            value, now = given[name], getattr(self, name)
            if not isinstance(now, np.ndarray):
                right = isinstance(value, int | float) and 0 <= value < np.inf
            elif name == "last":
                right = value.ndim == 1 and value.dtype == now.dtype and bool(((value >= 0) & (value < n)).all())
            else:
                right = value.shape == (n, *now.shape[1:]) and value.dtype == now.dtype
            if not right:
                raise ValueError(f"{name} is not as it was written")
        vars(self).update({name: given[name] for name in names})
        if len(self.mine) < len(self.losses):
            for name in self.OF_EACH:
                setattr(self, name, getattr(self, name)[self.mine])
