"""Points by their medoid, farthest first: most of them are out of a candidate's reach.

A point i at distance r from its medoid m can only come nearer by a candidate e with d(e, m) < 2r: otherwise
d(e, i) >= d(e, m) - r >= r. So one distance to each medoid tells which few points of its cluster have to be looked at.
Later medoids only make r smaller, so the clusters of an earlier moment still serve.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math

import numpy as np

from crust.selection import loose
from crust.selection.distances import UNIT, Distances
from crust.selection.kernels import exact_pairs, kernel, snap


class Clusters:
    """The clusters of one moment of a selection.

    Args:
        distances: approximate ones, of points.
        rows: the points as `Distances` has them in float32, one a row.
        nearest: how far from its medoid each point is; may be the first few of the points only.
        owner: which medoid that is.
    """

    def __init__(self, distances: Distances, rows: np.ndarray, nearest: np.ndarray, owner: np.ndarray):
        self.distances, self.rows = distances, rows
        # all lengths here are in the unit of the rows
        unit = float(distances.scale) if distances.root else math.sqrt(float(distances.scale) / distances.factor)
        straight = nearest.astype(np.float64) if distances.root else np.sqrt(nearest / np.float64(distances.factor))
        self.order = np.lexsort((-straight, owner))
        self.reach = (straight[self.order] * ((1 + 1e-6) / unit)).astype(np.float32)
        starts = np.flatnonzero(np.diff(owner[self.order], prepend=-1))
        self.begins = np.append(starts, len(owner))
        self.medoids = rows[owner[self.order[starts]]]
        self._sorted: np.ndarray | None = None
        # half the smallest distance that an approximate one may stand for
        self.shrink = np.float32(0.5 * (1 - 1e-6) / (1 + relative_error(distances)))
        self.less = np.float32(1.01 * distances.move / unit)

    def share(self, candidates: np.ndarray) -> float:
        """The share of the points that these candidates have to look at."""
        seen = _count(self.rows, candidates, self.medoids, self.begins, self.reach, self.shrink, self.less)
        return float(seen) / (len(candidates) * len(self.order))

    @property
    def sorted(self) -> np.ndarray:
        """The rows of the points, cluster after cluster."""
        if self._sorted is None:
            self._sorted = self.rows[self.order]
        return self._sorted

    def bounds(self, candidates: np.ndarray, raised: np.ndarray, out: np.ndarray) -> None:
        """Upper bounds of the gains: sums of max(0, raised - distance)."""
        _bounds(
            self.rows, candidates, self.medoids, self.begins, self.reach, self.shrink, self.less, self.sorted,
            self.order, self.distances.root, self.distances.scale, raised, out,
        )  # fmt: skip

    def near(
        self, candidate: int, limits: np.ndarray, nearest: np.ndarray, magic: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The points within their limits, their exact distances, and the exact gain."""
        distances = self.distances
        found, far = np.empty(len(self.order), np.int32), np.empty(len(self.order), np.float32)
        count, gain = _near(
            self.rows, candidate, self.medoids, self.begins, self.reach, self.shrink, self.less, self.sorted,
            self.order, distances.root, distances.scale, distances.factor, distances.x, limits, nearest, magic,
            found, far,
        )  # fmt: skip
        return found[:count].copy(), far[:count].copy(), gain


def relative_error(distances: Distances) -> float:
    """Of a float32 distance from differences, whatever the number of dimensions (see `distances.py`)."""
    return 1.05 * (0.5 * distances.dims + 6.0) * UNIT


@loose.kernel
def _square(a, b):
    total = np.float32(0.0)
    for t in range(a.shape[0]):
        step = a[t] - b[t]
        total += step * step
    return total


@kernel
def _count(rows, candidates, medoids, begins, reach, shrink, less):
    seen = 0
    for e in candidates:
        for c in range(medoids.shape[0]):
            half = math.sqrt(_square(rows[e], medoids[c])) * shrink - less
            t, end = begins[c], begins[c + 1]
            while t < end and reach[t] >= half:
                t += 1
            seen += t - begins[c]
    return seen


@kernel
def _bounds(rows, candidates, medoids, begins, reach, shrink, less, sorted_rows, order, root, scale, raised, out):
    for r in range(candidates.shape[0]):
        query = rows[candidates[r]]
        total = 0.0
        for c in range(medoids.shape[0]):
            half = math.sqrt(_square(query, medoids[c])) * shrink - less
            t, end = begins[c], begins[c + 1]
            while t < end and reach[t] >= half:
                square = _square(query, sorted_rows[t])
                far = (math.sqrt(square) if root else square) * scale
                total += max(np.float32(0.0), raised[order[t]] - far)
                t += 1
        out[r] = total


@kernel
def _near(
    rows, candidate, medoids, begins, reach, shrink, less, sorted_rows, order, root, scale, factor, x, limits, nearest,
    magic, found, far,
):  # fmt: skip
    query = rows[candidate]
    count = 0
    for c in range(medoids.shape[0]):
        half = math.sqrt(_square(query, medoids[c])) * shrink - less
        t, end = begins[c], begins[c + 1]
        while t < end and reach[t] >= half:
            square = _square(query, sorted_rows[t])
            if (math.sqrt(square) if root else square) * scale <= limits[order[t]]:
                found[count] = order[t]
                count += 1
            t += 1
    exact_pairs(x, x[candidate], found[:count], root, factor, far)
    gain = 0.0
    for t in range(count):
        gain += max(0.0, snap(nearest[found[t]], magic) - snap(far[t], magic))
    return count, gain
