"""What a run has seen of every example: the raw material of the audit, kept up to date epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.gradients import GradientPass


class Watch:
    """Sums over all looks at a set of examples, and over all choices of them."""

    def __init__(self, n: int, classes: int):
        self.looks = 0
        self.probabilities = np.zeros((n, classes), np.float64)
        self.losses = np.zeros(n)
        self.margins = np.zeros(n)
        self.agreed = np.zeros(n, np.int64)  # looks at which the prediction was the given label
        self.selections = 0
        self.chosen = np.zeros(n, np.int64)
        self.weight = np.zeros(n)

    def look(self, seen: GradientPass, labels: NDArray[np.int64]) -> None:
        """Count one look at all examples."""
        assert seen.probabilities is not None
        self.looks += 1
        self.probabilities += seen.probabilities
        self.losses += seen.losses
        self.margins += seen.margins
        self.agreed += seen.predictions == labels

    def choose(self, indices: NDArray[np.int64], weights: NDArray[np.float32] | None) -> None:
        """Count one selection; a member that is visited several times counts once, with all its weight."""
        self.selections += 1
        self.chosen[np.unique(indices)] += 1
        np.add.at(self.weight, indices, 1.0 if weights is None else weights)

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    def load(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
