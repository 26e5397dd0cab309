"""Arrays from .npy, .npz and .safetensors, memory-mapped where the bytes lie as numpy needs them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from crust.errors import InputError, choices

# BF16 has no numpy type and is widened below.
SAFETENSORS = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2",
}  # fmt: skip


def open_npy(path: Path) -> np.ndarray:
    """Memory-map a .npy file."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(file)
    _refuse_objects(dtype, path.name)
    if 0 in shape:
        return np.empty(shape, dtype)  # nothing there to map
    return np.lib.format.open_memmap(path, mode="r")


def open_npz(path: Path, key: str | None) -> np.ndarray:
    """Read one array of a .npz file. It is copied: zip files do not align their members."""
    with path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("not an archive of arrays")
        name = _pick(key, archive.files, path.name)
        try:
            return archive[name]
        except ValueError as error:
            if "allow_pickle" in str(error):
                _refuse_objects(np.dtype(object), f"{path.name}:{name}")
            raise


def open_safetensors(path: Path, key: str | None) -> np.ndarray:
    """Memory-map one tensor of a .safetensors file."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:  # checks the header against the size of the file
        name = _pick(key, list(file.keys()), path.name)
    with path.open("rb") as raw:
        length = int.from_bytes(raw.read(8), "little")
        entry = json.loads(raw.read(length))[name]
    shape, start = tuple(entry["shape"]), 8 + length + entry["data_offsets"][0]
    if entry["dtype"] not in SAFETENSORS:
        raise InputError(f"{path.name}:{name} holds {entry['dtype']}: convert it to F32 first")
    dtype = np.dtype(SAFETENSORS[entry["dtype"]])
    if 0 in shape:
        return np.empty(shape, dtype)
    values = np.memmap(path, dtype, "r", offset=start, shape=shape)
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values if values.flags.aligned else values.copy()


def _pick(key: str | None, names: Iterable[str], file: str) -> str:
    names = list(names)
    if not names:
        raise InputError(f"{file} holds no arrays: write it again")
    if key is not None:
        return choices(key, names, f"array of {file}")
    if len(names) > 1:
        raise InputError(f"{file} holds several arrays: name one, as in {file}:{names[0]}; it has {', '.join(names)}")
    return names[0]


def _refuse_objects(dtype: np.dtype, name: str) -> None:
    if dtype.hasobject:
        raise InputError(f"{name} holds Python objects, which are never unpickled: save plain numbers or text instead")
