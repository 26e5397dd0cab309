"""Checkpoints: one folder an epoch, complete or not there, tensors as safetensors and the rest as JSON.

Opening one never runs code from it. A checkpoint that is damaged or foreign is refused, and the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crust.errors import InputError
from crust.training.history import write_atomically

FORMAT = 1
KEEP = 2
log = logging.getLogger("crust")


def flatten(state: Any, prefix: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Take tensors and arrays out of nested dicts and lists; what stays is JSON with their names in their places.

    Example:
        >>> found = {}
        >>> flatten({"a": [1, np.zeros(2)]}, "m", found)
        {'a': [1, {'$tensor': 'm.a.1', 'numpy': True}]}
        >>> list(found)
        ['m.a.1']
    """
    if isinstance(state, torch.Tensor | np.ndarray):
        array = isinstance(state, np.ndarray)
        tensors[prefix] = (torch.from_numpy(np.ascontiguousarray(state)) if array else state.detach().cpu()).contiguous()
        return {"$tensor": prefix, "numpy": array}
    if isinstance(state, dict):
        pairs = [[key, flatten(value, f"{prefix}.{key}", tensors)] for key, value in state.items()]
        plain = all(isinstance(key, str) for key, _ in pairs)
        return dict(pairs) if plain else {"$pairs": pairs}
    if isinstance(state, list | tuple):
        return [flatten(value, f"{prefix}.{i}", tensors) for i, value in enumerate(state)]
    if isinstance(state, np.generic):
        return state.item()
    return state


def unflatten(state: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """The inverse of `flatten`; tuples come back as lists."""
    if isinstance(state, dict):
        if "$tensor" in state:
            tensor = tensors[state["$tensor"]]
            return tensor.numpy() if state["numpy"] else tensor
        if "$pairs" in state:
            return {key: unflatten(value, tensors) for key, value in state["$pairs"]}
        return {key: unflatten(value, tensors) for key, value in state.items()}
    if isinstance(state, list):
        return [unflatten(value, tensors) for value in state]
    return state


def save(folder: Path, number: int, state: dict[str, Any]) -> None:
    """Write checkpoint `number` of a run, and remove all but the newest two."""
    from safetensors.torch import save as to_bytes

    tensors: dict[str, torch.Tensor] = {}
    described = flatten(state, "s", tensors)
    body = to_bytes(tensors)
    head = {"format": FORMAT, "what": "crust checkpoint", "number": number, "state": described}
    head["tensors"] = hashlib.sha256(body).hexdigest()
    target = folder / f"{number:06d}"
    part = folder / f"{number:06d}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        write_atomically(part / "tensors.safetensors", body)
        write_atomically(part / "state.json", json.dumps(head).encode())
        shutil.rmtree(target, ignore_errors=True)
        os.replace(part, target)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise InputError(f"cannot write the checkpoint {target}: {error.strerror or error}") from None
    for old in sorted(folder.glob("[0-9]*"))[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)


def read(path: Path) -> dict[str, Any]:
    """One checkpoint; refused with a sentence where it is damaged or something else."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    try:
        head = json.loads((path / "state.json").read_text())
        if head.get("what") != "crust checkpoint" or head.get("format") != FORMAT:
            raise InputError(f"{path} is no checkpoint of this version of crust")
        body = (path / "tensors.safetensors").read_bytes()
        if hashlib.sha256(body).hexdigest() != head["tensors"]:
            raise InputError(f"{path} is damaged: its tensors are not those that were written")
        return unflatten(head["state"], from_bytes(body))  # type: ignore[no-any-return]
    except (OSError, ValueError, KeyError, AttributeError, SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no complete checkpoint: {error}") from None


def newest(folder: Path) -> dict[str, Any] | None:
    """The newest checkpoint that can be read; None where there is none."""
    for path in sorted(folder.glob("[0-9]*"), reverse=True):
        if path.suffix == ".part":
            continue
        try:
            return read(path)
        except InputError as error:
            log.warning("%s; the one before it is used", error)
    return None
