"""From what the user has to what the kernels need: one group at a time, float64, within range.

Distances are rounded to float32, so points whose distances would not fit are scaled by a power of two, which changes
no digit. For cosine the rows get length one: half the squared distance of two of them is one minus their cosine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.selection.distances import Distances

# Exponents of the largest value between which distances, and sums of them, fit float32 without scaling.
RANGE = {"euclidean": (-100, 115), "sqeuclidean": (-45, 55), "cosine": (-45, 55)}


def group_points(features: Any, index: Any, metric: str) -> tuple[NDArray[np.float64], float]:
    """The points of one group as float64, and by what their distances are to be multiplied afterwards."""
    return scale_points(as_float64(features if index is None else features[index]), metric)


def scale_points(points: Any, metric: str) -> tuple[Any, float]:
    """The same points in the range and form that the metric needs: numpy or torch, with the same digits."""
    if metric == "cosine":
        return directions(points), 1.0
    exponent, unit = power(float(max(points.max(), -points.min())), metric)
    return shifted(points, exponent), unit


def shifted(points: Any, exponent: int) -> Any:
    """The points divided by a power of two."""
    if exponent == 0:
        return points
    half = exponent // 2  # in two steps: the power itself may be out of range where the result is not
    return points * math.ldexp(1.0, -half) * math.ldexp(1.0, half - exponent)


def power(largest: float, metric: str) -> tuple[int, float]:
    """The power of two to divide points by, given their largest value, and what it makes of a unit of distance."""
    exponent = math.frexp(largest)[1]
    low, high = RANGE[metric]
    if largest == 0.0 or low <= exponent <= high:
        return 0, 1.0
    try:
        return exponent, math.ldexp(1.0, exponent * (1 if metric == "euclidean" else 2))
    except OverflowError:
        raise InputError(
            f"squared distances of values up to {largest:.2g} are too large for float64: divide the features by "
            f"{math.ldexp(1.0, exponent):.0e}"
        ) from None


def directions(points: Any) -> Any:
    """Rows of length one; lengths are summed column by column, so that every library finds the same."""
    largest = abs(points).max(1)
    points = points / (largest if isinstance(points, np.ndarray) else largest.values)[:, None]
    squares = sum(points[:, c] * points[:, c] for c in range(points.shape[1]))
    return points / (squares**0.5)[:, None]


def as_float64(rows: Any) -> NDArray[np.float64]:
    """A numpy array or torch tensor as a float64 array of its own."""
    if hasattr(rows, "detach"):
        rows = rows.detach().double().cpu().numpy()
    return np.array(rows, dtype=np.float64, order="C")


def group_distances(
    features: Any, index: NDArray[np.int64] | None, metric: str, *, approximate: bool
) -> tuple[Distances, float]:
    """Distances within one group (`index`: its rows, None for all), and the factor for the values."""
    if metric == "precomputed":
        matrix = features.cpu().numpy() if hasattr(features, "cpu") else features
        return Distances.of_matrix(matrix, index), 1.0
    points, unit = group_points(features, index, metric)
    return Distances.of_points(points, metric, approximate), unit


def device_distances(features: Any, index: NDArray[np.int64] | None, metric: str, device: Any, limit: int) -> Any:
    """The same for a torch device: `DeviceDistances`, and the factor for the values."""
    import torch

    from crust.selection.greedy_torch import DeviceDistances

    tensor = torch.as_tensor(features)
    if index is not None:
        rows = torch.as_tensor(index, device=tensor.device)
        tensor = tensor[rows][:, rows] if metric == "precomputed" else tensor[rows]
    tensor = tensor.to(device)
    if metric == "precomputed":
        return DeviceDistances(None, tensor, metric, limit), 1.0
    points, unit = scale_points(tensor.double(), metric)
    return DeviceDistances(points, None, metric, limit), unit
