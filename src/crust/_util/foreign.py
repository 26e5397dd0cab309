"""Where foreign data becomes ours: one rule each for arrays, numbers and text that anybody may give.

Documents and files are in `foreign_files`.

Nothing is cast to nonsense, ignored or waited for: what does not fit is refused in one sentence.
"""

from __future__ import annotations

import inspect
import mmap
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign_files import LONGEST
from crust.errors import InputError

INT64 = 2.0**63  # the first number above the largest
FLOAT32 = float(np.finfo(np.float32).max)


def as_array(values: Any, what: str) -> NDArray[Any]:
    """An array of whatever kind of values: of a tensor, a frame, a masked array that masks nothing, a sequence.

    Example:
        >>> as_array((1, 2), "the labels")
        array([1, 2])
        >>> as_array(np.ma.array([1, 2], mask=[False, True]), "the labels")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: row 1 of the labels is masked: fill it in, or leave it out
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        check_tensor(values, what)
        found = values.detach().cpu().resolve_conj().resolve_neg()
        narrow = found.dtype.is_floating_point and found.dtype not in (torch.float16, torch.float32, torch.float64)
        return found.float().numpy() if narrow else found.numpy()  # type: ignore[no-any-return]
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values).reshape(len(values), -1) if values.ndim else np.zeros((0, 1), bool)
        if mask.any():
            row = int(mask.any(axis=1).argmax())
            raise InputError(f"row {row} of {what} is masked: fill it in, or leave it out", code="masked")
        return np.asarray(values.data)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError(f"{what} are a sparse matrix: give a dense one, such as matrix.toarray()", code="sparse")
    if not is_sequence(values):
        raise InputError(f"{what} are a {type(values).__name__}: give a sequence or an array", code="not-a-sequence")
    try:
        found = np.asarray(values)
        short = found.ndim > 0 and hasattr(values, "__len__") and len(values) != len(found)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InputError(
            f"{what} have rows of different lengths or kinds: give every row the same number of values", code="ragged"
        ) from None
    except Exception as error:  # of a class of the user's own
        raise cannot_read(what, error) from error
    if short:
        raise InputError(
            f"{what} say that they are {len(values)}, but hold {len(found)}: give a list of them", code="ragged"
        )
    if found.dtype.kind in "US" and isinstance(values, (list, tuple)) and any(isinstance(one, Real) for one in values):
        raise InputError(f"{what} mix text and numbers: use one of them", code="labels-type")
    if found.dtype.kind == "c":
        raise InputError(f"{what} are complex numbers: give real ones, such as their .real", code="not-numbers")
    return found


def is_sequence(values: Any) -> bool:
    """Whether values can be asked for one by one in an order; a text or bytes are one value.

    Example:
        >>> is_sequence([1]), is_sequence("a"), is_sequence({1}), is_sequence(3), is_sequence(i for i in [])
        (True, False, False, False, False)
    """
    one = (str, bytes, bytearray, mmap.mmap, Mapping, Set)
    return not isinstance(values, (*one, type)) and (hasattr(values, "__len__") or hasattr(values, "__array__"))


def cannot_read(what: str, error: Exception) -> InputError:
    """The error of the user's own code, or of a library, as one of ours."""
    reason = " ".join(str(error).split())[:LONGEST].rstrip(".")
    return InputError(f"{what} cannot be read: {reason or 'it fails'} ({type(error).__name__})", code="cannot-read")


def numbers_of(values: Any, what: str) -> NDArray[Any]:
    """The same as `as_array` for numbers; columns of pandas' own types become floats, with NaN for what is missing.

    Example:
        >>> numbers_of([[1, True]], "the features")
        array([[1, 1]])
        >>> numbers_of([["1"]], "the features")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: the features hold text, not numbers: give numbers
    """
    if type(values).__module__.partition(".")[0] == "pandas" and getattr(values, "ndim", 0) == 2:
        return numbers_of_frame(values, what)
    found = as_array(values, what)
    if found.dtype.kind == "O" and all(isinstance(one, (Real, np.number, np.bool_)) for one in found.flat):
        found = found.astype(np.float64)
    if found.dtype.kind not in "biuf":
        kind = {"U": "text", "S": "text", "O": "Python objects"}.get(found.dtype.kind, str(found.dtype))
        raise InputError(f"{what} hold {kind}, not numbers: give numbers", code="array-type")
    return found


def numbers_of_frame(frame: Any, what: str) -> NDArray[Any]:
    """The numbers of a pandas DataFrame; missing ones become NaN."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    for name, dtype in frame.dtypes.items():
        if not is_numeric_dtype(dtype) or is_complex_dtype(dtype):
            raise InputError(
                f"{what} column {name!r} has type {dtype}: drop it or turn it into numbers", code="not-numbers"
            )
    values: NDArray[Any] = frame.to_numpy()
    # Booleans beside numbers, and pandas' own nullable types, come out as objects
    return values if values.dtype.kind in "fiub" else frame.to_numpy(dtype=np.float64, na_value=np.nan)


def check_tensor(tensor: Any, what: str) -> None:
    """Refuse what a tensor can be besides a block of real numbers."""
    torch = sys.modules["torch"]
    if tensor.is_nested or tensor.layout is not torch.strided:
        raise InputError(f"{what} are a sparse or nested tensor: give a dense one, as to_dense() makes", code="sparse")
    if tensor.is_meta:
        raise InputError(f"{what} are a tensor on the device meta, which holds no values: give one", code="no-values")
    if tensor.is_complex() or tensor.is_quantized:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise InputError(f"{what} are {kind}: give real numbers", code="not-numbers")


def whole_numbers(values: NDArray[Any], what: str, kind: str = "label") -> NDArray[np.int64]:
    """Whole numbers as int64, whatever type they are stored in.

    Example:
        >>> whole_numbers(np.array([1.0, 2.0]), "the labels")
        array([1, 2])
        >>> whole_numbers(np.array([0, 2**64 - 1], np.uint64), "the labels")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: label 18446744073709551615 in row 1 of the labels needs more than 64 bits: use ...
    """
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values) | (values != np.round(values)) | (np.abs(values.astype(np.float64)) >= INT64)
    elif values.dtype.kind == "u":
        bad = values > np.iinfo(np.int64).max
    else:
        return values.astype(np.int64)
    if bad.any():
        row = int(bad.argmax())
        number = values[row].item()
        advice = ", and put what is to be predicted as a number (regression) into classes" * (kind == "label")
        why = "needs more than 64 bits" if INT64 <= abs(number) < np.inf else "is not a whole number"
        raise InputError(
            f"{kind} {number:{'g' if values.dtype.kind == 'f' else ''}} in row {row} of {what} {why}: "
            f"use whole numbers or text{advice}",
            code=f"{kind}s-type",
        )
    return values.astype(np.int64)


def decoded(values: NDArray[Any], what: str) -> NDArray[np.str_]:
    """Text of bytes or characters, refused where it is not UTF-8, or could not be written as such.

    Example:
        >>> decoded(np.array([b"cat", b"caf\\xe9"]), "the labels")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: row 1 of the labels holds b'caf\\xe9', which is not UTF-8: write it as UTF-8
    """
    check_text(values.reshape(-1).tolist(), what)
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def check_text(values: Iterable[Any], what: str) -> None:
    """Hold that text among these values, bytes or not, can be written as UTF-8."""
    for row, value in enumerate(values):
        try:
            value.decode() if isinstance(value, bytes) else value.encode() if isinstance(value, str) else None
        except UnicodeError:
            raise InputError(
                f"row {row} of {what} holds {value!r:.{LONGEST}}, which is not UTF-8: write it as UTF-8",
                code="not-utf8",
            ) from None


def as_tensor(array: NDArray[Any]) -> Any:
    """A tensor of an array, in the same memory where torch can do that; nobody may write to it."""
    import torch

    if any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not writable
        return torch.from_numpy(array)


def as_float32(values: Any, what: str) -> Any:
    """An array or a tensor in float32; a number that does not fit is named, where a cast would make it infinite."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        found = values.to(torch.float32)
        bad = ~torch.isfinite(found).flatten(1).all(dim=1)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            found = values.astype(np.float32)
        bad = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
    if bad.any():
        row = int((bad * 1).argmax())
        held = np.asarray(values[row].tolist(), np.float64).reshape(-1)
        if np.isfinite(held).all():
            raise InputError(
                f"row {row} of {what} holds {held[np.abs(held).argmax()]:g}, which is too large for float32: scale it",
                code="too-large",
            )
        raise InputError(f"row {row} of {what} holds values that are no numbers: fill them in", code="not-finite")
    return found


def positional_count(function: Callable[..., Any]) -> int | None:
    """How many arguments a function takes by position; None where that is not known, or any number.

    Example:
        >>> positional_count(lambda step, steps: 0), positional_count(print)
        (2, None)
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind == one.VAR_POSITIONAL for one in parameters):
        return None
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def whole_number(value: Any, what: str, least: int, code: str = "whole-number") -> int:
    """Hold that a value is a whole number, and no less than this."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{what} is {as_typed(value)}, but it must be a whole number of at least {least}", code=code)
    return int(value)


def as_typed(value: Any) -> str:
    """A value as a user would have typed it: 3 rather than np.int64(3)."""
    return f"{value if isinstance(value, Real) else repr(value)!s:.{LONGEST}}"


def check_device(device: Any) -> str | None:
    """Hold that a torch device, or one of its name such as "cuda:1", is there; returns its name."""
    if device is None or device == "cpu":
        return device  # type: ignore[no-any-return]  # without torch: importing it takes seconds
    import torch

    try:
        checked = torch.device(device)
        if checked.type == "meta":
            raise RuntimeError("it holds no values")
        torch.empty(1, device=checked)
    except Exception:  # each kind of device has errors of its own
        available = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        available += ["mps"] if torch.backends.mps.is_available() else []
        name = str(device) if isinstance(device, torch.device) else device
        raise InputError(
            f"device {name!r} is not there: use {' or '.join(map(repr, available))}", code="missing-device"
        ) from None
    return str(checked)
