"""What a sampler keeps beside the model's weights, as plain values and tensors; and how it is read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from crust._util.foreign_files import parse_json
from crust.errors import InputError
from crust.training import checkpoint

FORMAT = 1
MOST_EPOCHS = 1_000_000
KINDS: dict[str, type | tuple[type, ...]] = {
    "identity": list, "epoch": int, "handed_out": bool, "order": np.ndarray, "rest": np.ndarray, "indices": np.ndarray,
    "weights": (np.ndarray, type(None)), "facts": dict, "method": dict, "watch": dict,
    "watch_validation": (dict, type(None)), "history": list, "passes": list,
}  # fmt: skip


def packed(content: dict[str, Any]) -> dict[str, Any]:
    """For `torch.save`: one text, and tensors."""
    tensors: dict[str, Tensor] = {}
    return {"format": FORMAT, "plain": json.dumps(checkpoint.flatten(content, "", tensors)), "tensors": tensors}


def unpacked(state: Any, rows: int, identity: list[Any]) -> dict[str, Any]:
    """The content of `packed`, refused where it is of another sampler, or nothing that one has written.

    Args:
        state: what was given to be loaded.
        rows: that the sampler chooses among.
        identity: of the sampler.
    """
    try:
        if not isinstance(state, Mapping) or state["format"] != FORMAT:
            raise ValueError
        found = checkpoint.unflatten(parse_json(state["plain"]), dict(state["tensors"]))
        odd = [name for name, kind in KINDS.items() if not isinstance(found[name], kind)]
        numbers = [found[name] for name in ("order", "rest", "indices")]
        whole = all(one.ndim == 1 and one.dtype == np.int64 and ((one >= 0) & (one < rows)).all() for one in numbers)
        weights = found["weights"]
        fits = weights is None or (weights.shape == numbers[2].shape and bool((weights >= 0).all()))
        counted = len(found["passes"]) == 2 and all(type(one) is int for one in found["passes"])
        lines = all(isinstance(line, dict) for line in found["history"])
        epoch = found["epoch"] if type(found["epoch"]) is int else -2
        if odd or not (whole and fits and counted and lines and -1 <= epoch < MOST_EPOCHS):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError):
        raise not_a_state() from None
    if found["identity"] != identity:
        raise InputError(
            "this state is of a sampler with other labels or settings: make the sampler as it was", code="other-state"
        )
    return found  # type: ignore[no-any-return]


def not_a_state() -> InputError:
    return InputError(
        "this is no state of a CoresetSampler, or only a part of one: give what state_dict() returned", code="bad-state"
    )
