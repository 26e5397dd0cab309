"""The evidence: which of the examples that a run has trusted it sees most alike."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NEAR = 3  # medoids an example
MOST = 2000  # medoids that are compared with: enough to find like ones, and no example takes long
ROWS = 4096  # examples at a time


def nearest_medoids(
    parts: Sequence[NDArray[np.floating]],
    medoids: NDArray[np.int64],
    chosen: NDArray[np.int64],
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
        most: of more medoids than these, those chosen most are compared with.

    Returns:
        For each part (n, near) positions in the first part.
    """
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
            top = np.argpartition(-alike, near - 1, axis=1)[:, :near] if near else np.empty((len(some), 0), np.int64)
            best = np.take_along_axis(alike, top, axis=1)
            order = np.lexsort((top, -best), axis=1)
            rows[start : start + len(some)] = kept[np.take_along_axis(top, order, axis=1)]
        found.append(rows)
    return found
