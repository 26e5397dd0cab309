"""The evidence: which of the examples that a run has trusted it sees most alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEAR = 3  # medoids an example
MOST = 2000  # medoids that are compared with: enough to find like ones, and no example takes long
PRODUCTS = 2**39  # of numbers, at most: a million examples in a thousand classes are compared with 549 medoids
ROWS = 4096  # examples at a time


def nearest_medoids(
    parts: Sequence[NDArray[np.floating]],
    medoids: NDArray[np.int64],
    chosen: NDArray[np.integer],
    near: int = NEAR,
    most: int = MOST,
) -> list[NDArray[np.int64]]:
    """For each example the `near` medoids whose probabilities are most like its own, the nearest first.

    Distances are Hellinger's, between probabilities averaged over the run: alike is what the network took for the
    same all along. No example is evidence for itself.

    Args:
        parts: probabilities (n, classes); the medoids are rows of the first part.
        medoids: their positions in it.
        chosen: how often each example of the first part was chosen.
        near: how many for each example; fewer where there are no more.
        most: of more medoids than these, those chosen most are compared with; fewer where examples times classes
            are so many that it would take as long as training.

    Returns:
        For each part (n, near) positions in the first part.
    """
    most = min(most, max(near + 1, PRODUCTS // max(1, sum(part.size for part in parts))))
    order = np.argsort(-chosen[medoids], kind="stable")[:most]
    kept = np.sort(medoids[order])
    place = np.full(len(parts[0]), -1)
    place[kept] = np.arange(len(kept))
    roots = np.sqrt(parts[0][kept]).astype(np.float32)
    near = min(near, len(kept) - 1)
    found = []
    for number, part in enumerate(parts):
        rows = np.empty((len(part), near), np.int64)
        for start in range(0, len(part), ROWS):
            some = np.sqrt(part[start : start + ROWS]).astype(np.float32)
            alike = some @ roots.T  # the larger, the nearer
            if number == 0:
                own = place[start : start + len(some)]
                mine = np.flatnonzero(own >= 0)
                alike[mine, own[mine]] = -1
            each = np.arange(len(some))
            for rank in range(near):  # of equals the first
                best = alike.argmax(axis=1)
                rows[start : start + len(some), rank] = kept[best]
                alike[each, best] = -np.inf
        found.append(rows)
    return found
