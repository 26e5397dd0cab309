"""Mean distances to a large group from a sample of it, in time that grows with the group and not with its square.

The mean square of the distances of a point x is known without looking at any pair: |x - c|^2 + V, with the group's
centre c and the mean V of |y - c|^2. With d0 its root, the mean distance is, to the last digit,

    mean d  =  d0 - mean (d - d0)^2 / (2 d0),

and only the last term, which is small, is taken from a sample. The sample is stratified: the group is put in order by
the coordinate in which a point is farthest from the centre, and by how far it is (for gradient proxies these are the
given labels), cut into as many pieces as there are samples, and a point is drawn from each. The draws are independent,
and every point is drawn as often as any other, so the bounds for means of independent variables hold (`error_bounds`).

Every operation is elementwise in float32 and sums fold halves onto each other, so that neither vector width nor threads
nor how the rows are cut change a bit. Sums over the group are of whole numbers (`whole_number_sums`), so that a group
whose rows lie in several processes has the same bits as well: these exchange the sums, eight bytes a point to put the
group in order, and the points of the sample.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.selection import kernels
from crust.selection.distances import as_float64, directions, power_of_two, shifted
from crust.selection.executors import Ticker, run_in_threads
from crust.selection.together import ALONE, Together

SMALL = 2  # groups of up to so many times the sample are measured exactly: that costs hardly more
BLOCK_NUMBERS = 2**20  # of the points that are worked on at once
DEVICE_PAIRS = 2**25  # of points and sample at once on a device: some 400 MB
FAILURE = 1e-6  # the bounds hold for a point but with this probability


def sample_size(sample: int) -> int:
    """A power of two, so that sums can fold halves.

    Example:
        >>> sample_size(1000)
        1024
    """
    return 2 ** max(3, math.ceil(math.log2(sample)))


class SampledGroup:
    """One group: its centre, how far everybody is from it, and the sample.

    Args:
        features: all points; `index`: the rows of the group, None for all.
        metric: euclidean, sqeuclidean or cosine.
        sample: how many points are drawn.
        seed: of the draws, with the size of the group.
        together: the processes, where each has some of the points; `index` are then rows of ours.
    """

    def __init__(
        self,
        features: Any,
        index: NDArray[np.int64] | None,
        metric: str,
        sample: int,
        seed: int,
        ticker: Ticker,
        together: Together = ALONE,
    ):
        self.features, self.index, self.metric = features, index, metric
        self.n = len(features) if index is None else len(index)  # that are here
        everywhere = together.join(np.array([self.n]))
        self.size, before = int(everywhere.sum()), int(everywhere[: together.rank].sum())
        self.dims = features.shape[1]
        self.step = max(1, BLOCK_NUMBERS // self.dims)
        self.ticker = ticker
        self.exponent = 0
        largest = max((float(np.abs(block).max()) for _, block in self._blocks()), default=0.0)
        largest = together.largest(largest) if metric != "cosine" else 1.0
        self.exponent, self.unit = power_of_two(largest, "euclidean")
        pieces = (block for _, block in self._blocks())
        self.centre = whole_number_sums(pieces, self.dims, largest, self.exponent, self.size, together) / self.size
        self.squares = np.empty(self.n)  # from the centre
        leading, reach = np.empty(self.n, np.int32), 0.0
        for first, block in self._blocks():
            block -= self.centre
            part = slice(first, first + len(block))
            np.einsum("ij,ij->i", block, block, out=self.squares[part])
            sizes = np.abs(block)
            axis = sizes.argmax(axis=1)
            leading[part] = 2 * axis + (block[np.arange(len(block)), axis] > 0)
            reach = max(reach, float(sizes.max()))
        reach = together.largest(reach)
        self.farthest = together.largest(float(self.squares.max(initial=0.0)))
        spread = whole_number_sums([self.squares[:, None]], 1, self.farthest, 0, self.size, together)[0] / self.size
        self.root = np.sqrt(self.squares + spread)  # of the mean square of the distances
        # float32 has room for squares of what is about one
        self.scale = math.ldexp(1.0, -math.frexp(reach)[1]) if 0.0 < reach < math.inf else 0.0
        if metric == "euclidean" and self.scale:
            near = (self.squares * self.scale**2).astype(np.float32)
            keys = together.join(np.stack([leading, near.view(np.int32)], axis=1))
            order = np.lexsort((keys[:, 1], keys[:, 0]))  # floats from 0 on are in the order of their bits
            rng = np.random.default_rng([seed, self.size])
            drawn = order[((np.arange(sample) + rng.random(sample)) * (self.size / sample)).astype(np.int64)]
            here = (drawn >= before) & (drawn < before + self.n)
            rows = np.empty((sample, self.dims), np.float32)
            whose = np.searchsorted(np.cumsum(everywhere), drawn, side="right")
            rows[np.argsort(whose, kind="stable")] = together.join(self._centred(drawn[here] - before))
            self.sample = np.ascontiguousarray(rows.T)

    def _rows(self, where: Any) -> NDArray[np.float64]:
        rows = as_float64(self.features[where if self.index is None else self.index[where]])
        return directions(rows) if self.metric == "cosine" else shifted(rows, self.exponent)

    def _blocks(self):
        for first in range(0, self.n, self.step):
            self.ticker.step()
            yield first, self._rows(slice(first, min(self.n, first + self.step)))

    def _centred(self, where: Any) -> NDArray[np.float32]:
        return ((self._rows(where) - self.centre) * self.scale).astype(np.float32)

    def means(
        self, threads: int, bounds: bool = False, device: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The mean distance of every point to the others, and where it is asked for how far that may be off.

        On a device torch works on the pairs of points and sample, elementwise like the kernel: the bits are the same.
        """
        n, others = self.n, self.size / max(1, self.size - 1)  # a point is no other to itself
        off = np.zeros(n) if bounds else None
        if not self.scale:
            return np.zeros(n), off
        if self.metric != "euclidean":  # the mean square is all there is to know
            return self.root**2 * others * (0.5 if self.metric == "cosine" else self.unit**2), off
        sample = self.sample
        root = (self.root * self.scale).astype(np.float32)
        found, found_squares = np.empty(n, np.float32), np.zeros(n if bounds else 0, np.float32)

        step = self.step if device is None else max(1, DEVICE_PAIRS // sample.shape[1])
        there = None if device is None else _on_device(sample, device)

        def work(first: int, slot: int) -> None:
            part = slice(first, min(n, first + step))
            if there is None:
                spread(self._centred(part), sample, root[part], found[part], found_squares[part])
            else:
                spread_on_device(self._centred(part), there, root[part], found[part], found_squares[part])
            self.ticker.step()

        run_in_threads(range(0, n, step), work, threads if device is None else 1, self.ticker)
        size, length = sample.shape[1], self.unit / self.scale
        term = found.astype(np.float64) / size / (2.0 * root)
        if off is not None:
            largest = math.sqrt(self.farthest) * self.scale  # nobody is farther from the centre
            farthest = np.sqrt(self.squares) * self.scale + largest
            span = np.maximum(root, farthest - root) ** 2 / (2.0 * root)
            spreads = found_squares.astype(np.float64) / size / (2.0 * root) ** 2 - term**2
            off += error_bounds(np.maximum(spreads, 0.0), span, size) + (self.dims + 32) * 2.0**-24 * (farthest + root)
            off *= others * length
        return (self.root * self.scale - term) * (others * length), off


def whole_number_sums(
    blocks: Iterable[NDArray[np.float64]], dims: int, largest: float, exponent: int, size: int, together: Together
) -> NDArray[np.float64]:
    """The sums of all rows, of `size` in all processes, rounded to whole numbers so that no order of adding matters.

    Args:
        blocks: rows of ours, divided by two to the `exponent`.
        largest: no number was larger before that.

    Example:
        >>> whole_number_sums([np.array([[1.0, 0.1], [2.0, -0.3]])], 2, 2.0, 0, 2, ALONE).round(9).tolist()
        [3.0, -0.2]
    """
    if not 0.0 < largest < math.inf:
        return np.zeros(dims)
    unit = 61 - math.ceil(math.log2(size)) - (math.frexp(largest)[1] - exponent)  # the sums stay below 2^62
    total = np.zeros(dims, np.int64)
    for block in blocks:
        total += np.rint(np.ldexp(block, unit)).astype(np.int64).sum(axis=0)
    return np.ldexp(together.add(total).astype(np.float64), -unit)


def error_bounds(variances: NDArray[np.float64], spans: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """How far means of `size` independent draws may be from the truth, but for a probability of `FAILURE` each.

    The smaller of Hoeffding's bound and the empirical Bernstein bound (Maurer and Pontil 2009, theorem 11), both on
    both sides.

    Args:
        variances: of the draws.
        spans: of what could have been drawn.

    Example:
        >>> error_bounds(np.array([0.01, 0.01]), np.array([1.0, 0.2]), 1024).round(4)
        array([0.0539, 0.0172])
    """
    hoeffding = spans * math.sqrt(math.log(4 / FAILURE) / (2 * size))
    log = math.log(8 / FAILURE)
    bernstein = np.sqrt(2 * variances * size / (size - 1) * log / size) + spans * 7 * log / (3 * (size - 1))
    found: NDArray[np.float64] = np.minimum(hoeffding, bernstein)
    return found


def sampled_means(
    features: Any,
    index: NDArray[np.int64] | None,
    metric: str,
    sample: int,
    *,
    seed: int = 0,
    threads: int = 1,
    ticker: Ticker | None = None,
    bounds: bool = False,
    device: Any = None,
    together: Together = ALONE,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The mean distance of each point of a group to the others, from a sample; and bounds of its error.

    Where several processes have the points, each finds the means of its own.

    Example:
        >>> points = np.random.default_rng(0).normal(size=(5000, 3))
        >>> means, bounds = sampled_means(points, None, "euclidean", 64, bounds=True)
        >>> exact = np.linalg.norm(points[0] - points, axis=1).sum() / 4999
        >>> bool(abs(means[0] - exact) < bounds[0])
        True
    """
    group = SampledGroup(features, index, metric, sample_size(sample), seed, ticker or Ticker(), together)
    return group.means(threads, bounds, device)


@kernels.exact_kernel
def spread(points, sample, root, out, squares):
    """For each point the sum of (d - root)^2 over the sample, and of its square where there is room for it.

    `points` are rows, `sample` a row a dimension; sums fold the upper half onto the lower.
    """
    n, dims = points.shape
    size = sample.shape[1]
    sums = np.empty(size, np.float32)
    fourth = np.empty(size, np.float32)
    for i in range(n):
        for j in range(size):
            sums[j] = 0.0
        for c in range(dims):
            q, column = points[i, c], sample[c]
            for j in range(size):
                t = q - column[j]
                sums[j] += t * t
        a = root[i]
        for j in range(size):
            t = np.sqrt(sums[j]) - a
            sums[j] = t * t
        if squares.shape[0]:
            for j in range(size):
                fourth[j] = sums[j] * sums[j]
            squares[i] = fold(fourth)
        out[i] = fold(sums)


def spread_on_device(
    points: NDArray[np.float32],
    sample: Any,
    root: NDArray[np.float32],
    out: NDArray[np.float32],
    squares: NDArray[np.float32],
) -> None:
    """What `spread` does, by torch: every operation is one that rounds by itself, in the same order."""
    import torch

    rows, roots = _on_device(points, sample.device), _on_device(root, sample.device)
    sums = torch.zeros(len(points), sample.shape[1], device=sample.device)
    for column, other in enumerate(sample):
        t = rows[:, column, None] - other
        sums += t * t
    # on the CPU torch takes roots by MKL, whose last bit may be wrong; through float64 it is right
    lengths = sums.double().sqrt().float() if sums.device.type == "cpu" else sums.sqrt()
    t = lengths - roots[:, None]
    t = t * t
    if len(squares):
        squares[:] = _folded(t * t).cpu().numpy()
    out[:] = _folded(t).cpu().numpy()


def _folded(values: Any) -> Any:
    while values.shape[1] > 1:
        half = values.shape[1] // 2
        values = values[:, :half] + values[:, half:]
    return values[:, 0]


def _on_device(values: NDArray[np.float32], device: Any) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


@kernels.exact_kernel
def fold(values):
    half = values.shape[0] // 2
    while half:
        for j in range(half):
            values[j] += values[j + half]
        half //= 2
    return values[0]
