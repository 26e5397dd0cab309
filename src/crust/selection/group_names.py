"""Group names: anything that tells the points apart, as numbers in the order of the names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.selection.checks import _it, _rows, _shape, is_tensor


def check_groups(groups: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """Hold that every point has one group name, and number the groups in the order of their names.

    Args:
        groups: n strings, integers, booleans or whole floats as a sequence, array, tensor or pandas Series; or None.
        n: number of points.

    Returns:
        The sorted names and for each point the position of its name (int64); None where there are no groups.

    Example:
        >>> names, codes = check_groups(["ship", "cat", "cat"], 3)
        >>> names.tolist(), codes.tolist()
        (['cat', 'ship'], [1, 0, 0])
    """
    if groups is None:
        return None
    values = _group_values(groups)
    if len(values) != n:
        raise InputError(
            f"groups has {len(values)} {'name' if len(values) == 1 else 'names'}, but features has "
            f"{n} {'row' if n == 1 else 'rows'}: give one group name a row"
        )
    if isinstance(values, list):
        values = _of_one_kind(values)
    elif values.dtype.kind == "U":
        values = values.tolist()
    elif values.dtype.kind == "S":
        values = _decoded(values.tolist())
    if isinstance(values, list):
        # A million strings: a dict finds their codes several times faster than sorting them all
        ordered = sorted(set(values))
        position = {name: code for code, name in enumerate(ordered)}
        return np.array(ordered, dtype=str), np.fromiter(map(position.__getitem__, values), np.int64, n)
    if values.dtype.kind == "f":
        values = _whole(values)
    if values.dtype.kind not in "biu":
        raise InputError(f"groups has type {values.dtype}: use strings, integers or booleans as group names")
    native = values.dtype.newbyteorder("=")  # files from other machines: Parquet would not take their byte order
    names, codes = np.unique(values.astype(native, copy=False), return_inverse=True)
    return names, codes.astype(np.int64, copy=False)


def _group_values(groups: Any) -> NDArray[Any] | list[Any]:
    """Group names as a 1-D array, or as a list where their types still have to be looked at one by one."""
    if isinstance(groups, (str, bytes, dict, set, frozenset)) or not hasattr(groups, "__len__"):
        raise InputError(f"groups is a {type(groups).__name__}: give a sequence with one group name a row")
    if getattr(groups, "ndim", 1) != 1:
        raise InputError(f"groups has shape {_shape(groups)}, but it must be 1-D, one group name a row")
    if is_tensor(groups):
        # numpy has no bfloat16; float64 holds whatever a smaller float holds
        return (groups.detach().double() if groups.is_floating_point() else groups).cpu().numpy()  # type: ignore[no-any-return]
    masked = isinstance(groups, np.ma.MaskedArray)  # masked names come out of tolist() as None
    if isinstance(getattr(groups, "dtype", None), np.dtype) and groups.dtype.kind not in "OT" and not masked:
        return np.asarray(groups)
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    return [v.item() if getattr(v, "ndim", None) == 0 else v for v in values]  # numpy's and torch's scalars


def _of_one_kind(values: list[Any]) -> NDArray[Any] | list[str]:
    """An array for a list of numbers or booleans, a list for one of strings."""
    _refuse_missing([row for row, value in enumerate(values) if _is_missing(value)])
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return values
    if kinds == {bytes}:
        return _decoded(values)
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    if kinds == {int}:
        if min(values) >= -(2**63) and max(values) < 2**63:
            return np.array(values, dtype=np.int64)
        raise InputError("groups has integers that need more than 64 bits: use strings instead")
    if kinds <= {int, float}:
        return np.array(values, dtype=np.float64)
    if kinds & {list, tuple, np.ndarray}:
        raise InputError("groups is nested, but it must be 1-D, one group name a row")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"groups has names of type {names}: use only strings, only integers or only booleans")


def _decoded(values: list[bytes]) -> list[str]:
    try:
        return [value.decode() for value in values]
    except UnicodeDecodeError:
        raise InputError("groups holds bytes that are not UTF-8: decode them to strings first") from None


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    # By name: pandas' two markers, without importing pandas to compare with them
    return type(value).__name__ in ("NAType", "NaTType")


def _refuse_missing(rows: Sequence[int] | NDArray[np.int64]) -> None:
    if len(rows):
        it = _it(rows)
        raise InputError(f"groups has {_rows('without a name', rows)}: drop {it} or give {it} a group")


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    """Floats that are whole numbers, as integers: labels often went through a table that knows only floats."""
    values = values.astype(np.float64)  # 2^53 is infinity to a float16
    _refuse_missing(np.flatnonzero(np.isnan(values)))
    off = np.flatnonzero((values != np.trunc(values)) | (np.abs(values) >= 2.0**53))
    if len(off):
        raise InputError(
            f"groups has the value {values[off[0]]} in row {off[0]}, which is no name of a group: "
            "use strings, integers or booleans"
        )
    return values.astype(np.int64)
