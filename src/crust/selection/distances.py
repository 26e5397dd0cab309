"""All distances of one group, a tile at a time: exact, or approximate with a proven bound.

The exact formula is slow by the standards of a matrix product. Greedy needs few distances exactly, so the passes over
all pairs use float32 arithmetic whose error is bounded, and whatever the bound leaves open is settled exactly.

With u = 2**-24, y the centred points in float32 and R the largest norm of y:
- rounding the points moves a distance by at most 2uR;
- sums of squared differences have a relative error of at most (d + 3)u, their roots half of it;
- norms and inner products leave an absolute error of at most (2d + 20)uR^2 in the squared distance.

Distances are rounded to float32, so points whose distances would not fit are scaled by a power of two first, which
changes no digit. For cosine the rows get length one: half the squared distance of two is one minus their cosine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.selection import kernels
from crust.selection.executors import Ticker, run_in_threads

UNIT = 2.0**-24
FEW_DIMENSIONS = 24  # up to here differences beat a matrix product
ALL_EXACT = 400  # groups up to this size gain nothing from approximate distances
TILE_ROWS, TILE_COLUMNS = 64, 2000  # no power of two: rows of a tile would share the same few lines of the cache
PRODUCT_ROWS = 512  # a matrix product wants more of them


class Distances:
    """Distances between the points of one group (or a matrix of them) under one metric."""

    x: np.ndarray

    def __init__(self, n: int, dims: int, metric: str, *, root: bool, factor: float, bound_factor: float):
        self.n, self.dims, self.metric = n, dims, metric
        self.root, self.factor, self.bound_factor = root, factor, bound_factor
        self.matrix: np.ndarray | None = None  # given by the user: any square array
        self.index: np.ndarray | None = None
        self.stored: np.ndarray | None = None
        self.mirrored = True  # False: only the upper triangle of `stored` is filled
        self.exact = True
        self.relative = self.shift = self.inverse = 0.0

    # ------------------------------------------------------------ where distances come from

    @classmethod
    def of_points(cls, points: np.ndarray, metric: str, approximate: bool = True) -> Distances:
        """`points`: (n, d) float64, in the space where the metric is Euclidean (see `group_points`)."""
        n, dims = points.shape
        root = metric == "euclidean"
        self = cls(
            n, dims, metric, root=root, factor=0.5 if metric == "cosine" else 1.0, bound_factor=2.0 if root else 4.0
        )
        self.x = np.ascontiguousarray(points)
        if approximate and n > ALL_EXACT:
            self._approximate()
        return self

    @classmethod
    def of_matrix(cls, matrix: np.ndarray, index: np.ndarray | None) -> Distances:
        """A matrix of distances, or the part of it that belongs to the points `index`."""
        n = len(matrix) if index is None else len(index)
        self = cls(n, 0, "precomputed", root=False, factor=1.0, bound_factor=1.0)
        self.x = np.empty((0, 0))
        self.matrix, self.index = matrix, index
        return self

    def _approximate(self) -> None:
        centred = self.x - self.x.mean(axis=0)
        largest = float(max(centred.max(), -centred.min()))
        if not 0.0 < largest < math.inf:
            return
        exponent = math.frexp(largest)[1]
        centred *= math.ldexp(1.0, -exponent)
        y = centred.astype(np.float32)
        norms = np.einsum("ij,ij->i", y, y, dtype=np.float64)
        unit = math.ldexp(1.0, exponent)
        radius = math.sqrt(float(norms.max()))
        # 1e-15: squares of differences below it underflow in float32; 1.05 covers all terms of higher order
        move = (2.1 * UNIT * radius + 1e-15) * unit
        self.few = self.dims <= FEW_DIMENSIONS
        if self.few:
            self.yt = np.ascontiguousarray(y.T)
            relative, squared = 1.05 * (0.5 * self.dims + 6.0) * UNIT, 0.0
        else:
            self.y, self.norms = y, norms.astype(np.float32)
            relative, squared = 8 * UNIT, 1.05 * (2 * self.dims + 20) * UNIT * radius**2 * unit**2
        self.exact = False
        self.scale = np.float32(unit) if self.root else np.float32(self.factor * unit**2)
        self.move, self.squared, self.root_relative = move, squared, relative
        if self.root:
            self.relative, self.shift, self.inverse = relative, move, squared
        else:
            diameter = 2.0 * radius * unit
            self.relative = 2.1 * relative
            self.shift = self.factor * (2.1 * move * diameter + move**2 + squared)

    @cached_property
    def xt(self) -> np.ndarray:
        """The points, a row a dimension; made when all distances are wanted exactly."""
        return np.ascontiguousarray(self.x.T)

    @property
    def tile_rows(self) -> int:
        return TILE_ROWS if self.exact or self.few or self.stored is not None else PRODUCT_ROWS

    def make_exact(self) -> None:
        """From now on all tiles are exact; stored ones are gone."""
        self.exact, self.stored = True, None
        self.relative = self.shift = self.inverse = 0.0

    def limits(self, values: np.ndarray) -> np.ndarray:
        """What an approximate distance can be at most where the exact one is at most `values`."""
        if self.exact:
            return values
        value = values.astype(np.float64)
        straight = value if self.root else np.sqrt(value / self.factor)
        squares = (straight * (1 + self.root_relative) + self.move) ** 2 + self.squared
        upper = np.sqrt(squares) if self.root else squares * self.factor
        return np.nextafter((upper * (1 + 1e-6)).astype(np.float32), np.float32(np.inf))

    # ------------------------------------------------------------ tiles

    def tile(self, rows: np.ndarray, start: int, stop: int, out: np.ndarray) -> np.ndarray:
        """Distances from the points `rows` to the points start..stop, into the buffer `out`."""
        width = stop - start
        tile = out[: len(rows) * width].reshape(len(rows), width)
        if self.matrix is not None:
            columns = np.arange(start, stop) if self.index is None else self.index[start:stop]
            row_index = (rows if self.index is None else self.index[rows])[:, None]
            # the upper triangle counts: the other half may differ in the last digit
            tile[:] = self.matrix[np.minimum(row_index, columns), np.maximum(row_index, columns)]
        elif self.exact:
            kernels.exact_tile(self.x, self.xt, rows, start, stop, self.root, self.factor, tile)
        elif self.few:
            kernels.differences_tile(self.yt, rows, start, stop, self.root, self.scale, tile)
        else:
            np.matmul(self.y[rows], self.y[start:stop].T, out=tile)
            kernels.products_finish(tile, self.norms[rows], self.norms[start:stop], self.root, self.scale)
        return tile

    def kept_tiles(
        self, part: tuple[int, int, int, int], square: np.ndarray, out: np.ndarray
    ) -> Iterator[tuple[np.ndarray, int, int]]:
        """A tile of the upper triangle, which is also written into the square matrix, in pieces (tile, top, left)."""
        top, bottom, left, right = part
        if self.exact or self.few or self.matrix is not None:
            tile = self.tile(np.arange(top, bottom), left, right, out)
            kernels.store(tile, top, left, square)
            yield tile, top, left
            return
        # Inner products go where the distances will be; on the diagonal half of them are enough, as BLAS knows
        # where both factors are the same.
        rows, first = self.y[top:bottom], left
        if left == top:
            first = min(bottom, right)
            np.matmul(rows, rows.T, out=square[top:bottom, top:bottom])
        if first < right:
            np.matmul(rows, self.y[first:right].T, out=square[top:bottom, first:right])
        for begin in range(top, bottom, TILE_ROWS):  # pieces that the cache can hold
            end, start = min(bottom, begin + TILE_ROWS), max(left, begin)
            tile = out[: (end - begin) * (right - start)].reshape(end - begin, right - start)
            norms = self.norms[begin:end], self.norms[start:right]
            kernels.products_kept(square, begin, start, *norms, self.root, self.scale, tile)
            yield tile, begin, start

    def row(self, i: int) -> np.ndarray:
        """Distances (exact or approximate) from point i to all."""
        if self.stored is not None:
            return self.stored[i] if self.mirrored else self.whole_rows(np.array([i]))[0]
        return self.tile(np.array([i]), 0, self.n, np.empty(self.n, np.float32))[0]

    def full(self) -> np.ndarray:
        """The stored distances, with both halves filled; whoever needs only some rows early asks `whole_rows`."""
        assert self.stored is not None
        if not self.mirrored:
            kernels.mirror(self.stored, 0, self.n)
            self.mirrored = True
        return self.stored

    def whole_rows(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the stored distances, without filling the other half for it."""
        assert self.stored is not None
        whole = self.stored[rows]
        if not self.mirrored:
            for r, i in enumerate(rows.tolist()):
                whole[r, :i] = self.stored[:i, i]
        return whole

    def exact_row(self, i: int) -> np.ndarray:
        """Exact distances from point i to all."""
        return self.row(i).copy() if self.exact else self.exact_to(i, np.arange(self.n, dtype=np.int32))

    def exact_to(self, i: int, others: np.ndarray) -> np.ndarray:
        """Exact distances from point i to some others, from the points themselves."""
        out = np.empty(len(others), np.float32)
        kernels.exact_pairs(self.x, self.x[i], others, self.root, self.factor, out)
        return out

    def near(self, i: int, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The points whose distance to i may be within `limits`, and their exact distances."""
        row = self.row(i)
        near_points = np.empty(self.n + 1, np.int32)
        near_points = near_points[: kernels.below(row, limits, near_points)]
        return near_points, row[near_points] if self.exact else self.exact_to(i, near_points)

    def matrix_largest(self) -> float:
        """The largest entry of the given matrix that belongs to these points."""
        rows = (self.tile(np.array([i]), 0, self.n, np.empty(self.n, np.float32)) for i in range(self.n))
        return max(float(row.max()) for row in rows)

    # ------------------------------------------------------------ passes

    def triangle(self) -> Iterator[tuple[int, int, int, int]]:
        """Tiles (top, bottom, left, right) that cover the upper triangle, largest rows first."""
        for top in range(0, self.n, self.tile_rows):
            for left in range(top, self.n, TILE_COLUMNS):
                yield top, min(self.n, top + self.tile_rows), left, min(self.n, left + TILE_COLUMNS)

    def each_tile(self, consume: Callable, threads: int, ticker: Ticker, square: np.ndarray | None = None) -> None:
        """Call consume(tile, top, left, slot) for every tile of the upper triangle; into `square` they go as well."""
        buffers = [np.empty(self.tile_rows * min(self.n, TILE_COLUMNS), np.float32) for _ in range(threads)]

        def work(unit: tuple[int, int, int, int], slot: int) -> None:
            top, bottom, left, right = unit
            if self.stored is not None:
                tile = np.ascontiguousarray(self.stored[top:bottom, left:right])
            elif square is not None:
                for piece in self.kept_tiles(unit, square, buffers[slot]):
                    consume(*piece, slot)
                ticker.step((bottom - top) * (right - left))
                return
            else:
                tile = self.tile(np.arange(top, bottom), left, right, buffers[slot])
            consume(tile, top, left, slot)
            ticker.step((bottom - top) * (right - left))

        run_in_threads(self.triangle(), work, threads, ticker)

    def each_strip(self, rows: np.ndarray, consume: Callable, threads: int, ticker: Ticker) -> None:
        """Call consume(tile, tile_rows, offset, part, columns) until all `rows` have met all columns.

        The tile's rows `tile_rows` are the points rows[part], its columns from `offset` on the points `columns`.
        Threads share out the columns, so what is written per column needs no lock.
        """
        if self.stored is not None:
            self.full()  # before the threads ask for it
        if len(rows) * self.n < 2**19:
            threads = 1  # too little to wake a thread for
        size = 0 if self.stored is not None else self.tile_rows * TILE_COLUMNS
        buffers = [np.empty(size, np.float32) for _ in range(threads)]

        def work(left: int, slot: int) -> None:
            right = min(self.n, left + TILE_COLUMNS)
            columns = slice(left, right)
            if self.stored is not None:
                consume(self.full(), rows, left, slice(0, len(rows)), columns)
                return
            for first in range(0, len(rows), self.tile_rows):
                part = slice(first, min(len(rows), first + self.tile_rows))
                tile = self.tile(rows[part], left, right, buffers[slot])
                consume(tile, np.arange(part.stop - first), 0, part, columns)
                ticker.step()

        run_in_threads(range(0, self.n, TILE_COLUMNS), work, threads, ticker)


# ---------------------------------------------------------------- from what the user has

# Exponents of the largest value between which distances, and sums of them, fit float32 without scaling.
RANGE = {"euclidean": (-100, 115), "sqeuclidean": (-45, 55), "cosine": (-45, 55)}


def group_points(features: Any, index: Any, metric: str) -> tuple[NDArray[np.float64], float]:
    """The points of one group as float64, and by what their distances are to be multiplied afterwards."""
    return scale_points(as_float64(features if index is None else features[index]), metric)


def scale_points(points: Any, metric: str) -> tuple[Any, float]:
    """The same points in the range and form that the metric needs: numpy or torch, with the same digits."""
    if metric == "cosine":
        return directions(points), 1.0
    exponent, unit = power_of_two(float(max(points.max(), -points.min())), metric)
    return shifted(points, exponent), unit


def shifted(points: Any, exponent: int) -> Any:
    """The points divided by a power of two."""
    if exponent == 0:
        return points
    half = exponent // 2  # in two steps: the power itself may be out of range where the result is not
    return points * math.ldexp(1.0, -half) * math.ldexp(1.0, half - exponent)


def power_of_two(largest: float, metric: str) -> tuple[int, float]:
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
            f"{math.ldexp(1.0, exponent):.0e}",
            code="too-large",
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
