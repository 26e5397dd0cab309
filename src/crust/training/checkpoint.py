"""Checkpoints: one folder an epoch, complete or not there, tensors as safetensors and the rest as JSON.

A large array has a file of its own, written from where it lies, without a copy. It is named by its content, so that a
checkpoint shares with the one before it what has not changed: in most epochs nothing has looked at all examples.
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

from crust._util.atomic_write import write_atomic
from crust.errors import InputError

FORMAT = 3
KEEP = 2
LARGE = 2**22  # bytes from which on an array has a file of its own
log = logging.getLogger("crust")


def flatten(state: Any, prefix: str, tensors: dict[str, torch.Tensor], copy: bool = True) -> Any:
    """Take tensors and arrays out of nested dicts and lists; what stays is JSON with their names in their places.

    Copies, since arrays may be read-only, and tied weights share memory, which safetensors refuses; without `copy` only
    what is small, read-only or on another device.
    """
    if isinstance(state, torch.Tensor | np.ndarray):
        while prefix in tensors:  # {"a.b": ...} beside {"a": {"b": ...}}
            prefix += "'"
        copy = copy or state.nbytes < LARGE
        if isinstance(state, torch.Tensor):
            tensors[prefix] = state.detach().to("cpu", copy=copy).contiguous()
        else:
            tensors[prefix] = torch.from_numpy(np.require(state.copy() if copy else state, requirements=["C", "W"]))
        return {"$tensor": prefix, "numpy": not isinstance(state, torch.Tensor)}
    if isinstance(state, dict):
        pairs = [[key, flatten(value, f"{prefix}.{key}", tensors, copy)] for key, value in state.items()]
        plain = all(isinstance(key, str) for key, _ in pairs)
        return dict(pairs) if plain else {"$pairs": pairs}
    if isinstance(state, list | tuple):
        return [flatten(value, f"{prefix}.{i}", tensors, copy) for i, value in enumerate(state)]
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
    plain = flatten(state, "s", tensors, copy=False)
    large = {name: tensors.pop(name) for name, tensor in list(tensors.items()) if tensor.nbytes >= LARGE}
    body = to_bytes(tensors)
    target = folder / f"{number:06d}"
    part = folder / f"{number:06d}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        arrays = {name: _write_array(part, tensor, numbered(folder)[-1:]) for name, tensor in large.items()}
        described = json.dumps({"state": plain, "arrays": arrays}).encode()
        head = {"what": "crust checkpoint", "format": FORMAT, "state": _sum(described), "tensors": _sum(body)}
        write_atomic(part / "tensors.safetensors", body)
        write_atomic(part / "state.json", _line(head) + b"\n" + described)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except (OSError, InputError) as error:
        shutil.rmtree(part, ignore_errors=True)
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot write the checkpoint {target}: {reason}", code="cannot-write") from None
    _prune(folder, every)


def _write_array(part: Path, tensor: torch.Tensor, before: list[Path]) -> list[Any]:
    """A large array in its file, or that of the checkpoint before where it is the same; what it takes to read it."""
    content = tensor.reshape(-1).view(torch.uint8).numpy().data
    name = _sum(content)
    target = part / name
    if not target.exists():
        try:
            os.link(before[-1] / name, target)
        except (OSError, IndexError):  # another content, or a file system without links
            write_atomic(target, lambda file: file.write(content))
    return [name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]


def _read_array(path: Path, name: str, kind: str, shape: list[int]) -> torch.Tensor:
    content = np.fromfile(path / name, np.uint8)
    if _sum(content.data) != name:
        raise InputError(f"{path} is damaged: it is not what was written", code="damaged-file")
    return torch.from_numpy(content).view(getattr(torch, kind)).reshape(shape)


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
        found = json.loads(described)
        arrays = {name: _read_array(path, *what) for name, what in found["arrays"].items()}
        return unflatten(found["state"], from_bytes(body) | arrays)  # type: ignore[no-any-return]
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


def _sum(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
