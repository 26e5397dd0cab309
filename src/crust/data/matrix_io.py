"""Vectors and group names from files: .npy, .npz, .safetensors, .parquet, .csv, .tsv.

A file that cannot be used gives one `InputError` that names it. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from crust._util.foreign import decoded, whole_numbers
from crust._util.foreign_files import check_regular
from crust.data import table_io
from crust.errors import InputError, choices

KEYED = (".npz", ".safetensors")
TABLES = (".parquet", ".csv", ".tsv")
SUFFIXES = (".npy", *KEYED, *TABLES)
# BF16 has no numpy type and is widened below.
SAFETENSORS = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2",
}  # fmt: skip


def read_matrix(spec: str | Path, columns: Sequence[str] | None = None, skip: Sequence[str] = ()) -> np.ndarray:
    """Read an (n, d) matrix of numbers with at least one row and column, memory-mapped where the format allows it.

    Args:
        spec: a path; arrays inside .npz and .safetensors are `file.npz:key`, the key being needed if there are several.
        columns: the columns of a table to use, in this order; None takes all numeric ones.
        skip: columns of a table that are not vectors, such as the one with the group names.
    """
    path, key = split_spec(spec)
    with reading(path):
        if path.suffix.lower() in TABLES:
            return _checked_matrix(table_io.numeric_matrix(path, columns, skip), path.name)
        if columns:
            raise InputError(
                f"{path.name} has no columns: use --columns only with a table ({', '.join(TABLES)})", code="no-columns"
            )
        return _checked_matrix(open_array(path, key), path.name)


def read_column(spec: str | Path, column: str | None = None) -> np.ndarray:
    """Read one value a row, such as group names: whole numbers as int64, or text.

    `spec` is a path, or `file.npz:key` as in `read_matrix`; of a table the column is named, unless it has only one.
    """
    values = read_values(spec, column, "group")
    return _checked_names(values, split_spec(spec)[0].name)


def read_values(spec: str | Path, column: str | None, what: str, text: bool = False) -> np.ndarray:
    """One value a row, as it stands in the file; `what` it is, for the error messages; `text` guesses at no types."""
    path, key = split_spec(spec)
    with reading(path):
        if path.suffix.lower() in TABLES:
            values = table_io.column(path, column, what, text)
        elif column is not None:
            raise InputError(
                f"{path.name} has no columns: use a column only with a table ({', '.join(TABLES)})", code="no-columns"
            )
        else:
            values = open_array(path, key)
            if values.ndim == 2 and values.shape[1] == 1:
                values = values[:, 0]
            if values.ndim != 1:
                raise InputError(
                    f"{path.name} has shape {values.shape}: give one {what} a row, shape (n,)", code="array-shape"
                )
        if values.size == 0:
            raise InputError(f"{path.name} is empty: give one {what} a row", code="empty-array")
        return values


def split_spec(spec: str | Path) -> tuple[Path, str | None]:
    """Split `file.npz:key` into path and key; anything else is a path."""
    text = str(spec)
    head, colon, key = text.rpartition(":")
    if colon and head.lower().endswith(KEYED) and not Path(text).exists():
        return Path(head), key or None
    return Path(text), None


def open_array(path: Path, key: str | None) -> np.ndarray:
    """The array of a .npy file, or the named one of a .npz or .safetensors file."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return open_npy(path)
    if suffix == ".npz":
        return open_npz(path, key)
    return open_safetensors(path, key)


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
    with npz_archive(path) as archive:
        name = _pick(key, archive.files, path.name)
        try:
            return archive[name]
        except ValueError as error:
            if "allow_pickle" in str(error):
                _refuse_objects(np.dtype(object), f"{path.name}:{name}")
            raise


@contextmanager
def npz_archive(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """The arrays of a .npz file by name; what is none is not handed to numpy, which would propose to unpickle it."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no zip archive")
        file.seek(0)
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is no archive of arrays")
        yield archive


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
        raise InputError(f"{path.name}:{name} holds {entry['dtype']}: convert it to F32 first", code="array-type")
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
        raise InputError(f"{file} holds no arrays: write it again", code="no-arrays")
    if key is not None:
        return choices(key, names, f"array of {file}")
    if len(names) > 1:
        raise InputError(
            f"{file} holds several arrays: name one, as in {file}:{names[0]}; it has {', '.join(names)}",
            code="several-arrays",
        )
    return names[0]


def _refuse_objects(dtype: np.dtype, name: str) -> None:
    if dtype.hasobject:
        raise InputError(
            f"{name} holds Python objects, which are never unpickled: save plain numbers or text instead",
            code="pickled-objects",
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one sentence about that file."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: give a file ending in one of {', '.join(SUFFIXES)}", code="not-a-file")
    if not path.exists():
        raise InputError(f"there is no file {path}: check the path", code="missing-file")
    check_regular(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"cannot read {path}: its name must end in one of {', '.join(SUFFIXES)}", code="file-type")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is an empty file: write it again", code="empty-file")
    try:
        yield
    except InputError:
        raise
    except PermissionError:
        raise InputError(f"cannot read {path}: permission denied", code="cannot-read") from None
    except MemoryError:
        raise InputError(
            f"cannot read {path}: it does not fit into memory; use .npy, which is memory-mapped", code="memory"
        ) from None
    # The readers of five formats raise all kinds of exceptions on a broken file; the user needs the same one thing.
    except Exception as error:
        reason = next(iter(str(error).partition(": <")[0].splitlines()), type(error).__name__).rstrip(". ")
        kind = path.suffix.lower()
        raise InputError(
            f"cannot read {path}: truncated or not a {kind} file ({reason}); write it again", code="bad-file"
        ) from error


def _checked_matrix(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {values.dtype}, not numbers: give an array of real numbers", code="array-type")
    if values.ndim != 2:
        raise InputError(
            f"{name} has shape {values.shape}: give a two-dimensional array, one row a point", code="array-shape"
        )
    if values.size == 0:
        raise InputError(
            f"{name} is empty, shape {values.shape}: give at least one row and one column", code="empty-array"
        )
    return values


def _checked_names(values: np.ndarray, name: str) -> np.ndarray:
    """Group names as int64 or text; whole numbers stored as floats are taken for what they are."""
    kind = values.dtype.kind
    if kind in "SU":
        return decoded(values, name)
    if kind in "biuf":
        return whole_numbers(values, name, "group")
    raise InputError(f"{name} holds {values.dtype}: give group names as whole numbers or text", code="groups-type")
