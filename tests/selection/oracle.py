"""Slow and obvious: what the fast code is held against."""

from itertools import combinations

import numpy as np


def float32_distances(x: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """All distances by the one formula, rounded to float32."""
    x = np.asarray(x, np.float64)
    if metric == "cosine":
        x = x / np.abs(x).max(axis=1)[:, None]  # so that parallel rows become equal ones
        x = x / np.sqrt(sum(column * column for column in x.T))[:, None]
    squares = np.zeros((len(x), len(x)))
    for column in x.T:
        squares += (column[:, None] - column) ** 2
    if metric == "euclidean":
        return np.sqrt(squares).astype(np.float32)
    return (squares * (0.5 if metric == "cosine" else 1.0)).astype(np.float32)


def greedy_oracle(distances: np.ndarray, k: int) -> tuple[list[int], list[float], np.ndarray, np.ndarray]:
    """Greedy facility location in O(n^2 k): the medoids in order, their gains, each point's medoid and distance."""
    d = distances.astype(np.float64)
    n = len(d)
    nearest = np.full(n, d.max())
    order: list[int] = []
    gains: list[float] = []
    for _ in range(k):
        gain = np.maximum(nearest[:, None] - d, 0).sum(axis=0)
        gain[order] = -1
        best = int(gain.argmax())  # the first of several
        order.append(best)
        gains.append(float(gain[best]))
        nearest = np.minimum(nearest, d[best])
    owner, near = assign_oracle(distances, order)
    return order, gains, owner, near


def assign_oracle(distances: np.ndarray, medoids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The nearest medoid of each point: the lowest index among equals, but a medoid belongs to itself."""
    owner, near = [], []
    for i, row in enumerate(distances):
        best = i if i in medoids else min(medoids, key=lambda m: (row[m], m))
        owner.append(best)
        near.append(0.0 if best == i else row[best])
    return np.array(owner), np.array(near, np.float32)


def facility(distances: np.ndarray, medoids: list[int]) -> float:
    """F(S): how much nearer than the largest distance the points are to their medoids, in sum."""
    return float((distances.max() - distances[:, medoids].astype(np.float64).min(axis=1)).sum())


def brute_force_optimum(distances: np.ndarray, k: int) -> float:
    """The largest F(S) of all sets of k."""
    return max(facility(distances, list(chosen)) for chosen in combinations(range(len(distances)), k))
