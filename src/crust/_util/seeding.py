"""Randomness that can be resumed: every draw comes from the seed and its place in the run, never from what was before.

An epoch that is run again after a crash draws the same numbers, so no state of a generator has to be saved.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def numpy_rng(seed: int, *place: int | str) -> np.random.Generator:
    """A numpy generator for one purpose at one place of a run."""
    return np.random.default_rng([seed, *(_seed_number(part) for part in place)])


def torch_rng(seed: int, *place: int | str) -> torch.Generator:
    """The same for torch, on the CPU."""
    return torch.Generator().manual_seed(int(numpy_rng(seed, *place).integers(2**62)))


@contextmanager
def seeded(seed: int, *place: int | str) -> Iterator[None]:
    """Let dropout and the like inside networks, which know only the global generator, draw from this place too."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(numpy_rng(seed, *place).integers(2**62)))
        yield


def _seed_number(part: int | str) -> int:
    return zlib.crc32(part.encode()) if isinstance(part, str) else part
