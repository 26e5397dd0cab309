"""Checkpoints: one folder an epoch, complete or not there, tensors as safetensors and the rest as JSON.

Opening one never runs code from it. A checkpoint that is damaged or foreign is refused, and the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crust._util.atomic_write import write_atomic
from crust.errors import InputError

FORMAT = 2
KEEP = 2
log = logging.getLogger("crust")


def flatten(state: Any, prefix: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Take tensors and arrays out of nested dicts and lists; what stays is JSON with their names in their places."""
    if isinstance(state, torch.Tensor | np.ndarray):
        while prefix in tensors:  # {"a.b": ...} beside {"a": {"b": ...}}
            prefix += "'"
        # Copies: arrays may be read-only, and tied weights share memory, which safetensors refuses.
        if isinstance(state, torch.Tensor):
            tensors[prefix] = state.detach().to("cpu", copy=True).contiguous()
        else:
            tensors[prefix] = torch.from_numpy(np.array(state, order="C"))
        return {"$tensor": prefix, "numpy": not isinstance(state, torch.Tensor)}
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


def save(folder: Path, number: int, state: dict[str, Any], every: int | None = None) -> None:
    """Write checkpoint `number` of a run, and remove all but the newest two and, where it is given, each `every`th."""
    from safetensors.torch import save as to_bytes

    tensors: dict[str, torch.Tensor] = {}
    described = json.dumps(flatten(state, "s", tensors)).encode()
    body = to_bytes(tensors)
    head = {"what": "crust checkpoint", "format": FORMAT, "state": _sum(described), "tensors": _sum(body)}
    target = folder / f"{number:06d}"
    part = folder / f"{number:06d}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        write_atomic(part / "tensors.safetensors", body)
        write_atomic(part / "state.json", _line(head) + b"\n" + described)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except (OSError, InputError) as error:
        shutil.rmtree(part, ignore_errors=True)
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot write the checkpoint {target}: {reason}", code="cannot-write") from None
    _prune(folder, every)


def tidy(folder: Path, every: int | None = None) -> None:
    """Remove what a process has left that was killed while it saved; nobody else may be saving."""
    for part in folder.glob("*.part"):
        shutil.rmtree(part, ignore_errors=True)
    _prune(folder, every)


def _prune(folder: Path, every: int | None) -> None:
    for old in numbered(folder)[:-KEEP]:
        if every is None or int(old.name) % every:
            shutil.rmtree(old, ignore_errors=True)


def read(path: Path) -> dict[str, Any]:
    """One checkpoint; refused with a sentence where it is damaged or something else."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    try:
        first, _, described = (path / "state.json").read_bytes().partition(b"\n")
        head = json.loads(first)
        if head.get("what") != "crust checkpoint" or head.get("format") != FORMAT:
            raise InputError(f"{path} is no checkpoint of this version of crust", code="version")
        body = (path / "tensors.safetensors").read_bytes()
        if _sum(described) != head["state"] or _sum(body) != head["tensors"]:
            raise InputError(f"{path} is damaged: it is not what was written", code="damaged-file")
        return unflatten(json.loads(described), from_bytes(body))  # type: ignore[no-any-return]
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} is no complete checkpoint: {error.strerror or error}", code="damaged-file") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, SafetensorError):
        raise InputError(f"{path} is no checkpoint of this version of crust", code="version") from None


def newest(folder: Path) -> dict[str, Any] | None:
    """The newest checkpoint that can be read; None where there is none at all."""
    found = numbered(folder)
    for path in reversed(found):
        try:
            return read(path)
        except InputError as error:
            log.warning("%s; looking at the one before it", error)
    if found:
        raise InputError(
            f"none of the {len(found)} checkpoints in {folder} can be read: begin again in another folder",
            code="damaged-file",
        )
    return None


def numbered(folder: Path) -> list[Path]:
    """The checkpoints that are there, oldest first; each is named by the number of epochs done."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdigit())


def _line(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
