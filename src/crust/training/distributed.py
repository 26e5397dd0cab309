"""Counts for each example that are made batch by batch, in one process or several.

One process or several: the same calls. Alone, gathering does nothing and all work is ours.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust.errors import InputError
from crust.selection.input_checks import check_device


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


Item = TypeVar("Item")
VARIABLE = "ACCELERATE_TORCH_DEVICE"


@contextmanager
def own_accelerate_state() -> Iterator[None]:
    """Let an Accelerator of ours have a state of its own, and put the user's back afterwards.

    Accelerate keeps precision and gradient accumulation once for the whole process, without a public way to have two
    at a time: a run of ours would else be refused, or change those of the user's own Accelerator.
    """
    from accelerate.state import AcceleratorState, GradientState, PartialState

    kept = [(kind._shared_state, dict(kind._shared_state)) for kind in (AcceleratorState, GradientState)]
    fresh = not PartialState._shared_state
    try:
        for shared, _ in kept:
            shared.clear()
        yield
    finally:
        for shared, before in kept:
            shared.clear()
            shared.update(before)
        # Who belongs to which process stays where there are several: the group of processes goes on.
        if fresh and PartialState._shared_state.get("num_processes", 1) == 1:
            PartialState._shared_state.clear()


def launched() -> dict[str, Any]:
    """What `accelerate launch` was asked for of what a run can be told too, by the names of its settings."""
    found: dict[str, Any] = {}
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "")
    if precision in ("fp16", "bf16"):
        found["mixed_precision"] = precision
    elif precision not in ("", "no"):
        raise InputError(
            f"accelerate launch says mixed_precision {precision}: use fp16, bf16 or no", code="launched-precision"
        )
    steps = os.environ.get("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1")
    if steps.isdecimal() and int(steps) > 1:
        found["accumulate"] = int(steps)
    return found


@contextmanager
def _asked_device(device: str | None) -> Iterator[None]:
    """Accelerate takes its device by an environment variable; here for one Accelerator alone."""
    if check_device(device) is None:
        yield
        return
    if device != "cpu" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            f"the device is {device}, but each process takes its own: leave it out", code="several-devices"
        )
    before = os.environ.get(VARIABLE)
    try:
        os.environ[VARIABLE] = str(device)
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


class Processes:
    """A thin view of Accelerate: who we are, our share of the work, and everyone's results."""

    splits = True  # each process keeps what it has seen of its own examples; False: everyone has everything

    def __init__(
        self,
        mixed_precision: str = "no",
        cpu: bool = False,
        trackers: Sequence[str] = (),
        folder: Any = None,
        device: str | None = None,
        find_unused_parameters: bool = False,
    ):
        from accelerate import Accelerator
        from accelerate.utils import (
            DistributedDataParallelKwargs,
            GradientAccumulationPlugin,
            ProjectConfiguration,
        )

        logs = None if folder is None or not trackers else str(Path(folder) / "trackers")
        with _asked_device(device):
            self.accelerator = Accelerator(
                mixed_precision=mixed_precision,
                cpu=cpu if device is None else device == "cpu",
                log_with=list(trackers) or None,
                # By a plugin, since Accelerate would let what `accelerate launch` said go before a number: the loop
                # counts itself.
                gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=1),
                kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=find_unused_parameters)],
                project_config=ProjectConfiguration(project_dir=folder, logging_dir=logs),
            )
        self.rank, self.count = self.accelerator.process_index, self.accelerator.num_processes
        self.device = self.accelerator.device
        self.first = self.accelerator.is_main_process
        self.sent = 0  # bytes of arrays that we have given to others

    def prepare(self, *parts: Any) -> Any:
        """Networks and optimizers, on the device and wrapped where there are several processes."""
        return self.accelerator.prepare(*parts)

    def bare(self, network: nn.Module) -> nn.Module:
        """The network itself, without a wrapper."""
        return self.accelerator.unwrap_model(network)

    def deal(self, items: Sequence[Item]) -> Iterator[Item | None]:
        """Our items of a list that is dealt out round by round; None in the last round where there is none for us."""
        for first in range(0, len(items), self.count):
            mine = first + self.rank
            yield items[mine] if mine < len(items) else None

    def active(self, items: Sequence[Any], number: int) -> int:
        """How many processes have an item in round `number`."""
        return min(self.count, len(items) - number * self.count)

    def slice(self, n: int, rank: int | None = None) -> NDArray[np.int64]:
        """Our contiguous part of n examples, or that of another process."""
        rank = self.rank if rank is None else rank
        return np.arange(n * rank // self.count, n * (rank + 1) // self.count)

    # ------------------------------------------------------------ arrays, without pickling

    def add(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whole numbers summed over the processes, one by one."""
        if self.count == 1:
            return numbers
        total = torch.from_numpy(numbers.copy()).to(self.device)
        torch.distributed.all_reduce(total)
        self.sent += 2 * numbers.nbytes * (self.count - 1) // self.count
        return total.cpu().numpy()

    def largest(self, number: float) -> float:
        """The largest number that any process has."""
        if self.count == 1:
            return number
        return float(self.join(np.array([number])).max())

    def join(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows of all processes, in their order, for everyone."""
        if self.count == 1:
            return rows
        lengths = torch.empty(self.count, dtype=torch.int64, device=self.device)
        torch.distributed.all_gather_into_tensor(lengths, torch.tensor([len(rows)], device=self.device))
        most, each = int(lengths.max()), rows.dtype.itemsize * math.prod(rows.shape[1:])
        padded = np.zeros(most * each, np.uint8)
        padded[: rows.nbytes] = _bytes(rows)
        found = torch.empty(self.count * len(padded), dtype=torch.uint8, device=self.device)
        torch.distributed.all_gather_into_tensor(found, torch.from_numpy(padded).to(self.device))
        self.sent += len(padded) * (self.count - 1)
        parts = found.cpu().numpy().reshape(self.count, -1)
        whole = np.concatenate([part[: int(n) * each] for part, n in zip(parts, lengths.tolist(), strict=True)])
        return whole.view(rows.dtype).reshape(-1, *rows.shape[1:])

    def exchange(self, pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Give every process the piece that is meant for it; what all have given us, in their order."""
        if self.count == 1:
            return pieces[0]
        kind, shape = pieces[0].dtype, pieces[0].shape[1:]
        sizes = torch.tensor([piece.nbytes for piece in pieces], device=self.device)
        coming = torch.empty_like(sizes)
        torch.distributed.all_to_all_single(coming, sizes)
        given = torch.from_numpy(np.concatenate([_bytes(piece) for piece in pieces])).to(self.device)
        found = torch.empty(int(coming.sum()), dtype=torch.uint8, device=self.device)
        torch.distributed.all_to_all_single(found, given, coming.tolist(), sizes.tolist())
        self.sent += sum(piece.nbytes for rank, piece in enumerate(pieces) if rank != self.rank)
        return found.cpu().numpy().view(kind).reshape(-1, *shape)

    def collect(self, rows: NDArray[Any]) -> NDArray[Any] | None:
        """The rows of all processes, in their order, for the first process alone."""
        if self.count == 1:
            return rows
        nothing = rows[:0]
        found = self.exchange([rows if rank == 0 else nothing for rank in range(self.count)])
        return found if self.first else None

    def share(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give every process the values of the first, such as BatchNorm statistics, of which each has moved its own."""
        for tensor in tensors if self.count > 1 else ():
            torch.distributed.broadcast(tensor, 0)

    def sums(self, numbers: Sequence[int]) -> list[int]:
        """Whole numbers summed over the processes."""
        if self.count == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        torch.distributed.all_reduce(total)
        return [int(number) for number in total.tolist()]

    def average_gradients(self, tensors: Sequence[torch.Tensor]) -> None:
        """Give tensors outside of a network the mean of all gradients, as the wrapper does for those inside."""
        if self.count == 1:
            return
        for tensor in tensors:
            gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
            shared = gradient.to(self.accelerator.device)  # GPUs exchange only what lies on them
            torch.distributed.all_reduce(shared)
            tensor.grad = (shared / self.count).to(tensor.device)

    def gather(self, value: Any) -> list[Any]:
        """What every process has to say, in the order of the processes, to everyone."""
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(found, value)
        return found

    def wait(self) -> None:
        self.accelerator.wait_for_everyone()


def _bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).reshape(-1).view(np.uint8)


@dataclass
class OwnRows:
    """Rows of our examples, where each process has its own, in a state that is to be saved whole.

    Two of the same place and version are the same rows.
    """

    values: NDArray[Any]
    version: int


class Collected:
    """States that are to be saved whole, in the first process; the others send it what has changed."""

    def __init__(self, processes: Processes):
        self.processes = processes
        self.known: dict[str, tuple[int, NDArray[Any] | None]] = {}

    def __call__(self, state: Any, place: str = "") -> Any:
        """The state with the rows of all processes joined; elsewhere than in the first they are None.

        Example:
            >>> Collected(Processes(cpu=True))({"a": {"b": OwnRows(np.ones(2), 1)}, "c": 3})
            {'a': {'b': array([1., 1.])}, 'c': 3}
        """
        if isinstance(state, dict):
            return {name: self(value, f"{place}.{name}") for name, value in state.items()}
        if not isinstance(state, OwnRows):
            return state
        version, whole = self.known.get(place, (-1, None))
        if version != state.version:
            whole = self.processes.collect(state.values)
            self.known[place] = state.version, whole
        return whole
