"""Counts for each example that are made batch by batch, in one process or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.training.processes import Processes


class Tally:
    """How often something was said of an example when it came by.

    What was counted since the last `gather` is known to this process alone; `gather` is called by all processes after
    each epoch, and afterwards all have the same sums.

    Example:
        >>> tally = Tally(3)
        >>> tally.count(np.array([0, 2]), np.array([1.0, 0.0]))
        >>> tally.count(np.array([0]), np.array([0.0]))
        >>> tally.gather(Processes(cpu=True))
        0.3333333333333333
        >>> tally.rate().tolist()
        [0.5, nan, 0.0]
    """

    def __init__(self, n: int):
        self.sums, self.visits = np.zeros(n), np.zeros(n, np.int64)
        self._sums, self._visits = np.zeros(n), np.zeros(n, np.int64)  # since the last gathering

    def count(self, index: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Add what was said of some examples; one that came twice counts twice."""
        np.add.at(self._sums, index, values)
        np.add.at(self._visits, index, 1)

    def gather(self, processes: Processes) -> float | None:
        """Put the counts of all processes together; returns the mean of what is new, None where nothing is."""
        parts = processes.gather((self._sums, self._visits))
        sums, visits = sum(part[0] for part in parts), sum(part[1] for part in parts)
        self.sums, self.visits = self.sums + sums, self.visits + visits
        self._sums, self._visits = np.zeros_like(self.sums), np.zeros_like(self.visits)
        return float(sums.sum() / visits.sum()) if visits.any() else None

    def rate(self) -> NDArray[np.float64]:
        """The mean of what was said of each example; nan where it never came by."""
        return np.where(self.visits > 0, self.sums / np.maximum(self.visits, 1), np.nan)

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "visits": self.visits}

    def load(self, state: dict[str, Any]) -> None:
        self.sums, self.visits = state["sums"], state["visits"]
        self._sums, self._visits = np.zeros_like(self.sums), np.zeros_like(self.visits)
