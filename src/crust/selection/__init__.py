"""Selection: arrays in, `Coreset` out. Knows nothing of models or datasets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crust.selection.coreset import Coreset as Coreset
    from crust.selection.cost_model import CostEstimate as CostEstimate
    from crust.selection.cost_model import estimate_cost as estimate_cost
    from crust.selection.executors import Ray as Ray
    from crust.selection.select import select as select
    from crust.selection.sieve_streaming import StreamPicks as StreamPicks
    from crust.selection.sieve_streaming import sieve_stream as sieve_stream

# Imported when first used: the kernels need numba, which takes its time.
_HOMES = {
    "Coreset": "coreset",
    "Estimate": "cost_model",
    "Ray": "executors",
    "StreamPicks": "sieve_streaming",
    "estimate": "cost_model",
    "select": "select",
    "sieve_stream": "sieve_streaming",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'crust.selection' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"crust.selection.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
