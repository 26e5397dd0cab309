"""Algorithms by name: each gets one group and returns its `Picks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.selection import prepare
from crust.selection.device import greedy_on_device
from crust.selection.greedy import Greedy
from crust.selection.options import Options
from crust.selection.picks import Picks
from crust.selection.workers import Ticker


def run_group(
    features: Any,
    index: NDArray[np.int64] | None,
    k: int,
    options: Options,
    *,
    group: int,
    store: bool,
    room: Any,
    limit: int,
    threads: int,
    engine: Any,
    ticker: Ticker,
) -> tuple[Picks, float]:
    """Select k points of one group; returns the picks, and the factor for their distances and gains."""
    device = tensor_device(features, options)
    if device is not None and options.algorithm in ("greedy", "lazy"):
        on_device, unit = prepare.device_distances(features, index, options.metric, device, limit)
        return greedy_on_device(on_device, k, ticker), unit
    approximate = options.algorithm == "greedy"
    distances, unit = prepare.group_distances(features, index, options.metric, approximate=approximate)
    run = Greedy(distances, k, room=room if store else None, list_bytes=limit // 2, threads=threads, ticker=ticker)
    return run.run(), unit


def tensor_device(features: Any, options: Options) -> Any:
    """The device to work on where that is not the CPU; None: the CPU kernels."""
    device = options.device if options.device is not None else getattr(features, "device", None)
    return None if device is None or str(device).startswith("cpu") else device
