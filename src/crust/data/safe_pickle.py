"""Pickles that hold arrays, text, numbers, lists and dicts, read without running anything they say.

The files of CIFAR are pickles. A pickle may name any function of any module, and loading it calls them. Here only
the names that numpy writes for an array are known, and they stand for the small classes below, not for numpy's own.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from crust.errors import InputError

PLAIN_KINDS = "biufS"  # kinds of values that are only bytes


def read_pickle(path: Path) -> Any:
    """The content of a pickle, text of Python 2 as bytes; anything but plain values is refused."""
    try:
        return _unwrapped(_Reader(io.BytesIO(path.read_bytes()), encoding="bytes").load())
    except InputError as error:
        raise InputError(f"{path} {error}", code=error.code) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}", code="cannot-read") from None
    except Exception:  # a broken pickle raises all kinds of errors, and all mean the same
        raise InputError(
            f"{path} is truncated or no pickle of plain arrays: download it again", code="bad-file"
        ) from None


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        # numpy.core became numpy._core in numpy 2
        known = ALLOWED_GLOBALS.get((module.replace("numpy._core", "numpy.core"), name))
        if known is None:
            raise InputError(
                f"asks for {module}.{name}, which a file of images has no need of: nothing was run",
                code="pickled-objects",
            )
        return known


class _Dtype:
    """What stands for numpy.dtype: a code such as u1, and a byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code, self.order = _latin1_text(code), "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = _latin1_text(state[1])

    def plain(self) -> np.dtype[Any]:
        found = np.dtype(self.code)
        if found.kind not in PLAIN_KINDS or found.hasobject:
            raise InputError(f"holds an array of {self.code!r}: only numbers are read", code="pickled-objects")
        return np.dtype(self.order + self.code) if self.order in "<>" else found


class _Array:
    """What stands for numpy.ndarray: filled by its state, made into a real array from the bytes alone."""

    value: Any = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, content = state
        self.value = _unpickled_array(content, dtype, shape, "F" if fortran else "C")


def _unpickled_array(content: Any, dtype: Any, shape: Any, order: Any = "C") -> Any:
    if not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
        raise InputError("holds an array of objects: only numbers are read", code="pickled-objects")
    return np.frombuffer(bytes(content), dtype.plain()).reshape(shape, order="F" if _latin1_text(order) == "F" else "C")


def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    return _Array()


def _frombuffer(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    found = _Array()
    found.value = _unpickled_array(content, dtype, shape, order)
    return found


def _unpickled_scalar(dtype: Any, content: Any) -> Any:
    return _unpickled_array(content, dtype, ())[()].item()


def _latin1_bytes(text: Any, encoding: Any) -> bytes:
    """Bytes, as Python 3 writes them for Python 2."""
    if _latin1_text(encoding) != "latin1":
        raise InputError("holds text in an unusual code: nothing was run", code="pickled-objects")
    return str(text).encode("latin1")


def _latin1_text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, dict):
        return {key: _unwrapped(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_unwrapped(each) for each in value)
    return value


ALLOWED_GLOBALS = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _unpickled_scalar,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer,
    ("_codecs", "encode"): _latin1_bytes,
    ("__builtin__", "bytes"): bytes,
    ("builtins", "bytes"): bytes,
    ("__builtin__", "bytearray"): bytearray,
    ("builtins", "bytearray"): bytearray,
}
