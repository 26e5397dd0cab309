"""Exact greedy facility location on torch tensors, for GPUs: the same picks as the CPU kernels.

The formula of a distance and the exact sums are those of `kernels.py`, so the answer is the same to the last bit.
Here whole rows are cheap and small steps are not: gains are kept up to date from whole rows, without lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crust.selection.assignment import Picks
from crust.selection.executors import Ticker
from crust.selection.kernels import REFINE_RATIO, magic_number

if TYPE_CHECKING:
    from torch import Tensor


class DeviceDistances:
    """Exact distances between the points of one group, in rows, on the points' device."""

    def __init__(self, points: Tensor | None, matrix: Tensor | None, metric: str, limit: int):
        import torch

        self.torch = torch
        self.columns = None if points is None else points.double().T.contiguous()
        # the upper triangle counts: the other half may differ in the last digit
        self.matrix, self.metric = None if matrix is None else matrix.triu() + matrix.triu(1).T, metric
        source = points if matrix is None else matrix
        assert source is not None
        self.n, self.device = len(source), source.device
        self.stored: Tensor | None = None
        # float64 sums, differences, squares and the result make 28 bytes a pair
        self.rows_at_once = int(max(1, min(self.n, limit // 2 // (28 * self.n))))
        if 4 * self.n**2 <= limit // 2:
            self.stored = torch.empty((self.n, self.n), dtype=torch.float32, device=self.device)
            for first in range(0, self.n, self.rows_at_once):
                rows = torch.arange(first, min(self.n, first + self.rows_at_once), device=self.device)
                self.stored[rows] = self._compute(rows)

    def rows(self, rows: Tensor) -> Tensor:
        """float32 distances from the points `rows` to all."""
        return self._compute(rows) if self.stored is None else self.stored[rows]

    def row(self, i: int) -> Tensor:
        return self.rows(self.torch.tensor([i], device=self.device))[0]

    def _compute(self, rows: Tensor) -> Tensor:
        if self.matrix is not None:
            return self.matrix[rows].float()
        assert self.columns is not None
        total = self.torch.zeros((len(rows), self.n), dtype=self.torch.float64, device=self.device)
        for column in self.columns:  # one after another: the order of the sum is part of the formula
            difference = column[rows, None] - column
            total += difference * difference
        if self.metric == "euclidean":
            return total.sqrt_().float()
        return total.mul_(0.5 if self.metric == "cosine" else 1.0).float()


def snap_tensor(values: Tensor, magic: float) -> Tensor:
    """As in `kernels.snap`."""
    return (values.double() + magic) - magic


def lowest(mask: Tensor) -> int:
    """The lowest index where the mask holds (argmax on a device may take any of several)."""
    return int(mask.nonzero()[0, 0])


def greedy_on_device(distances: DeviceDistances, k: int, ticker: Ticker) -> Picks:
    """Pick k points greedily; ties go to the lowest index."""
    state = _State(distances, k)
    state.first()
    ticker.step(float(distances.n) ** 2)
    while state.done < k and state.pick():
        ticker.step(float(distances.n) ** 2 / k)
    while state.done < k:
        state.take_next()
        ticker.step()
    return Picks(np.array(state.order), np.array(state.gains), state.owner.cpu().numpy(), state.nearest.cpu().numpy())


class _State:
    def __init__(self, distances: DeviceDistances, k: int):
        torch = distances.torch
        self.distances, self.k, self.n, self.torch = distances, k, distances.n, torch
        self.picked = torch.zeros(self.n, dtype=torch.bool, device=distances.device)
        self.order: list[int] = []
        self.gains: list[float] = []

    @property
    def done(self) -> int:
        return len(self.order)

    def _batches(self, rows: Tensor) -> Any:
        step = self.distances.rows_at_once
        return ((rows[first : first + step], first) for first in range(0, len(rows), step))

    def first(self) -> None:
        torch, distances, n = self.torch, self.distances, self.n
        everyone = torch.arange(n, device=distances.device)
        if distances.matrix is None:
            widest = float(distances.row(0).max()) * (2.0 if distances.metric == "euclidean" else 4.0)
        else:
            widest = float(distances.matrix.float().max())
        magic = magic_number(n * widest)
        sums = torch.empty(n, dtype=torch.float64, device=distances.device)
        peak = 0.0
        for rows, _ in self._batches(everyone):
            block = distances.rows(rows)
            sums[rows] = snap_tensor(block, magic).sum(dim=1)
            peak = max(peak, float(block.max()))
        e = lowest(sums == sums.min())
        self.nearest = distances.row(e).clone()
        self.owner = torch.full((n,), e, dtype=torch.int64, device=distances.device)
        self._take(e, n * peak - float(sums[e]))
        self._rescale()

    def _take(self, e: int, gain: float) -> None:
        self.order.append(e)
        self.gains.append(gain)
        self.picked[e] = True
        self.owner[e] = e

    def _rescale(self) -> bool:
        """A finer quantum for the sums, and all gains with it; False where no distance is left."""
        torch = self.torch
        self.bound = self.n * float(self.nearest.max())
        if self.bound == 0.0:
            return False
        self.magic = magic_number(self.bound)
        self.candidate_gains = torch.zeros(self.n, dtype=torch.float64, device=self.nearest.device)
        for rows, _ in self._batches(torch.arange(self.n, device=self.nearest.device)):
            before = snap_tensor(self.nearest[rows], self.magic)[:, None]
            self.candidate_gains += (
                (before - snap_tensor(self.distances.rows(rows), self.magic)).clamp_(min=0).sum(dim=0)
            )
        self.candidate_gains[self.picked] = -1.0
        return True

    def pick(self) -> bool:
        """One pick; False where all points coincide with a medoid."""
        while True:
            if self.bound == 0.0:
                return False
            best = self.candidate_gains.max()
            if float(best) > self.bound / (REFINE_RATIO * self.n):
                break
            if not self._rescale():
                return False
        e = lowest(self.candidate_gains == best)
        row = self.distances.row(e)
        self._take_over(e, row)
        changed = (row < self.nearest).nonzero()[:, 0]
        for rows, _ in self._batches(changed):
            before = snap_tensor(self.nearest[rows], self.magic)[:, None]
            step = before - snap_tensor(row[rows], self.magic)[:, None]
            lost = (before - snap_tensor(self.distances.rows(rows), self.magic)).clamp_(min=0)
            self.candidate_gains -= self.torch.minimum(step, lost).sum(dim=0)
        self.nearest = self.torch.minimum(self.nearest, row)
        self._take(e, float(best))
        self.candidate_gains[self.picked] = -1.0
        return True

    def _take_over(self, e: int, row: Tensor) -> None:
        tie = (row == self.nearest) & (self.owner > e) & ~self.picked
        self.owner[(row < self.nearest) | tie] = e

    def take_next(self) -> None:
        """All points coincide with a medoid: the lowest index is next, and takes over its own duplicates."""
        e = lowest(~self.picked)
        self._take_over(e, self.distances.row(e))
        self._take(e, 0.0)
