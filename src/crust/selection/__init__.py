"""Selection: arrays in, `Coreset` out. Knows nothing of models or datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crust._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from crust.selection.coreset import Coreset as Coreset
    from crust.selection.cost_model import CostEstimate as CostEstimate
    from crust.selection.cost_model import estimate_cost as estimate_cost
    from crust.selection.executors import Ray as Ray
    from crust.selection.select_coreset import centrality as centrality
    from crust.selection.select_coreset import select as select
    from crust.selection.sieve_streaming import StreamPicks as StreamPicks
    from crust.selection.sieve_streaming import sieve_stream as sieve_stream

# Imported when first used: the kernels need numba, which takes its time.
_HOMES = {
    "Coreset": "crust.selection.coreset",
    "CostEstimate": "crust.selection.cost_model",
    "Ray": "crust.selection.executors",
    "StreamPicks": "crust.selection.sieve_streaming",
    "centrality": "crust.selection.select_coreset",
    "estimate_cost": "crust.selection.cost_model",
    "select": "crust.selection.select_coreset",
    "sieve_stream": "crust.selection.sieve_streaming",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
