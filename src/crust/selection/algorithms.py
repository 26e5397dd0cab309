"""Algorithms by name: each gets one group and returns its `Picks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.selection import prepare
from crust.selection.approximate import lazy, stochastic
from crust.selection.central import central, random
from crust.selection.device import greedy_on_device
from crust.selection.distributed import greedi
from crust.selection.greedy import Greedy
from crust.selection.options import Options
from crust.selection.picks import Picks
from crust.selection.plan import group_bytes, list_bytes
from crust.selection.streaming import sieve
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
    rng = np.random.default_rng([options.seed, group])
    keep = room if store else None
    means: dict[str, Any] = {"threads": threads, "ticker": ticker}
    exact = options.algorithm == "lazy"
    distances, unit = prepare.group_distances(features, index, options.metric, approximate=not exact)
    match options.algorithm:
        case "greedy":
            left = limit - group_bytes(distances.n, distances.dims, options, store, threads)
            lists = min(left, int(list_bytes(distances.n)))
            return Greedy(distances, k, room=keep, list_bytes=lists, **means).run(), unit
        case "lazy":
            return lazy(distances, k, room=keep, **means), unit
        case "stochastic":
            return stochastic(distances, k, epsilon=options.epsilon, rng=rng, **means), unit
        case "sieve":
            return sieve(distances, k, epsilon=options.epsilon, rng=rng, **means), unit
        case "greedi":
            return greedi(distances, k, rng=rng, engine=engine, memory=limit // (2 * threads), **means), unit
        case "central":
            return central(distances, k, **means), unit
        case "random":
            return random(distances, k, rng=rng, **means), unit
    raise AssertionError(options.algorithm)


def tensor_device(features: Any, options: Options) -> Any:
    """The device to work on where that is not the CPU; None: the CPU kernels."""
    device = options.device if options.device is not None else getattr(features, "device", None)
    return None if device is None or str(device).startswith("cpu") else device
