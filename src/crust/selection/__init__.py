"""Selection: arrays in, `Coreset` out. Knows nothing of models or datasets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crust.selection.coreset import Coreset as Coreset
    from crust.selection.entry import select as select
    from crust.selection.plan import Estimate as Estimate
    from crust.selection.plan import estimate as estimate
    from crust.selection.ray_engine import Ray as Ray
    from crust.selection.reservoir import StreamPicks as StreamPicks
    from crust.selection.reservoir import sieve_stream as sieve_stream

# Imported when first used: the kernels need numba, which takes its time.
_HOMES = {
    "Coreset": "coreset",
    "Estimate": "plan",
    "Ray": "ray_engine",
    "StreamPicks": "reservoir",
    "estimate": "plan",
    "select": "entry",
    "sieve_stream": "reservoir",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'crust.selection' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"crust.selection.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
