"""Everything that can be wrong with points, distances, group names or options, found before the work starts.

The public functions call these once; whatever they call may rely on it. Large inputs are read in pieces, so that a
memory map is never loaded whole, and are handed back as they are, not copied.

Group names: anything that tells the points apart, as numbers in the order of the names.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import (
    as_array,
    as_typed,
    cannot_read,
    check_device,
    check_tensor,
    check_text,
    decoded,
    is_sequence,
    numbers_of_frame,
    whole_number,
)
from crust.errors import InputError, choices

if TYPE_CHECKING:
    import torch

    Matrix: TypeAlias = NDArray[Any] | torch.Tensor


PIECE_BYTES = 64 * 2**20  # how much of an input is looked at in one go
TILE = 1024  # side of a tile of a precomputed matrix: a row of it is at least one page of a memory map
SHOWN = 5  # offending rows that a message names


def check_features(features: Any, what: str = "features") -> Matrix:
    """Hold that the points are a 2-D table of finite numbers.

    Arrays, memory maps and tensors are returned as they came; frames and nested sequences as a new array.
    """
    table = _as_table(features, what)
    if _is_float(table):
        bad = rows_where(table, not_finite)
        if len(bad):
            it = it_or_them(bad)
            raise InputError(
                f"{what} has {rows_in_words('with NaN or infinite values', bad)}: drop {it} or fill {it} in",
                code="not-finite",
            )
    return table


def check_directions(features: Matrix, what: str = "features") -> None:
    """Hold that no row is all zeros: cosine distance needs a direction."""
    bad = rows_where(features, all_zero)
    if len(bad):
        verb = "has" if len(bad) == 1 else "have"
        raise InputError(
            f"{what} has {rows_in_words('of zeros only', bad)}, which {verb} no direction for metric 'cosine': "
            f"drop {it_or_them(bad)} or use metric 'euclidean'",
            code="zero-rows",
        )


def check_precomputed(matrix: Any, what: str = "the precomputed matrix") -> Matrix:
    """Hold that a matrix can be one of distances: square, finite, not negative, symmetric, zero on the diagonal.

    Two mirrored values may differ by a millionth of the larger one.
    """
    table = _as_table(matrix, what)
    n = table.shape[0]
    if n != table.shape[1]:
        raise InputError(
            f"{what} has shape {_shape_of(table)}, but it must be square, one row and one column a point; "
            "for points use another metric",
            code="not-square",
        )
    for top in range(0, n, TILE):
        uneven: list[tuple[int, int]] = []
        for left in range(top, n, TILE):
            upper, lower = _tile(table, top, left), _tile(table, left, top)
            for tile, row, column in ((upper, top, left), (lower, left, top)):
                # NaN makes both comparisons false, so this one test covers everything a value can have wrong
                if not (tile.min() >= 0 and tile.max() < np.inf):
                    _refuse_values(table, tile, row, column, what)
            if top == left:
                loose = np.flatnonzero(upper.diagonal())
                if len(loose):
                    i = top + int(loose[0])
                    raise InputError(
                        f"{what} is {upper[i - top, i - top]} at [{i}, {i}], but a point has distance 0 to itself: "
                        "set the diagonal with np.fill_diagonal(matrix, 0)",
                        code="diagonal",
                    )
            uneven += [(top + i, left + j) for i, j in _first_uneven(upper, lower.T)]
        if uneven:
            i, j = min(uneven)
            there, back = _cell_value(table, i, j), _cell_value(table, j, i)
            raise InputError(
                f"{what} is not symmetric: [{i}, {j}] is {there:.9g} but [{j}, {i}] is {back:.9g}; "
                "average the two with (matrix + matrix.T) / 2",
                code="not-symmetric",
            )
    return table


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor, found out without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


# ---------------------------------------------------------------------------------------------- tables


def _as_table(features: Any, what: str) -> Matrix:
    """A 2-D array or tensor of a numeric type; the values are not looked at."""
    table: Any = features
    if is_tensor(table):
        check_tensor(table, what)
        table = table.detach()
    elif isinstance(table, np.ma.MaskedArray):
        # NaN where a value is masked, so that the masked rows get named
        table = np.ma.filled(table.astype(np.float64), np.nan) if np.ma.is_masked(table) else table.data
    elif type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "dtypes") and table.ndim == 2:
        table = numbers_of_frame(table, what)
    elif hasattr(table, "toarray"):
        raise InputError(f"{what} is a sparse matrix: pass a dense one, such as matrix.toarray()", code="sparse")
    elif type(table) not in (np.ndarray, np.memmap):
        table = as_array(table, what)
    if 0 in table.shape:
        raise InputError(
            f"{what} is empty (shape {_shape_of(table)}): it needs at least one row and one column", code="empty"
        )
    if table.ndim != 2:
        hint = "; for points of one value each use reshape(-1, 1)" if table.ndim == 1 else ""
        if table.ndim > 2:
            hint = "; flatten each point with reshape(len(x), -1)"
        raise InputError(
            f"{what} has shape {_shape_of(table)}, but it must be 2-D, one row a point{hint}", code="shape"
        )
    if not _is_numeric(table):
        kind = str(table.dtype).removeprefix("torch.")
        raise InputError(
            f"{what} has type {kind}: give floats of up to 64 bits, integers or booleans", code="not-numbers"
        )
    return table  # type: ignore[no-any-return]


def _is_numeric(table: Any) -> bool:
    if is_tensor(table):
        tiny = table.dtype.is_floating_point and table.dtype.itemsize < 2  # float8: torch itself can hardly compare it
        return not (table.dtype.is_complex or table.is_quantized or tiny)
    return table.dtype.kind in "fiub" and table.dtype.itemsize <= 8


def _is_float(table: Any) -> bool:
    return bool(table.dtype.is_floating_point) if is_tensor(table) else table.dtype.kind == "f"


def _row_blocks(table: Matrix) -> Iterator[tuple[int, Any]]:
    """Runs of rows of about PIECE_BYTES, each with the number of its first row."""
    rows = max(1, PIECE_BYTES // max(1, table.shape[1] * table.dtype.itemsize))
    for start in range(0, table.shape[0], rows):
        yield start, table[start : start + rows]


def rows_where(table: Matrix, test: Any) -> NDArray[np.int64]:
    """Numbers of the rows of which `test`, given a run of rows, says True."""
    hits = [start + np.flatnonzero(test(piece)) for start, piece in _row_blocks(table)]
    return np.concatenate(hits)


def not_finite(piece: Any) -> NDArray[np.bool_]:
    if is_tensor(piece):
        return ~piece.isfinite().all(dim=1).cpu().numpy()  # type: ignore[no-any-return]
    finite = np.isfinite(piece)
    # Nearly always all of it is, and one flat pass says so faster than one a row
    return np.zeros(len(piece), dtype=bool) if finite.all() else ~finite.all(axis=1)


def all_zero(piece: Any) -> NDArray[np.bool_]:
    if is_tensor(piece):
        return ~(piece != 0).any(dim=1).cpu().numpy()  # type: ignore[no-any-return]
    return ~piece.any(axis=1)  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- precomputed


def _tile(table: Matrix, top: int, left: int) -> NDArray[Any]:
    """One tile as a numpy array, in main memory."""
    tile: Any = table[top : top + TILE, left : left + TILE]
    if is_tensor(tile):
        tile = tile.cpu()
        if tile.dtype.is_floating_point and tile.dtype.itemsize < 4:
            tile = tile.float()  # numpy has no bfloat16
        tile = tile.numpy()
    return np.asarray(tile)


def _cell_value(table: Matrix, i: int, j: int) -> Any:
    return table[i, j].item()


def _first_uneven(upper: NDArray[Any], mirrored: NDArray[Any]) -> list[tuple[int, int]]:
    """The first pair of a tile whose two values differ by more than a millionth of the larger, as a list of 0 or 1."""
    if np.array_equal(upper, mirrored):
        return []
    # As float64, where the difference of two integers cannot wrap around
    one, other = upper.astype(np.float64), mirrored.astype(np.float64)
    uneven = np.abs(one - other) > 1e-6 * np.maximum(one, other)
    where = int(uneven.argmax())
    i, j = divmod(where, uneven.shape[1])
    return [(i, j)] if uneven[i, j] else []


def _refuse_values(table: Matrix, tile: NDArray[Any], top: int, left: int, what: str) -> None:
    """Say what is wrong in a tile with values that are not finite, or negative."""
    check_features(table, what)  # counts all rows that are not finite, and raises if there are any
    i, j = (int(x) for x in np.argwhere(tile < 0)[0])
    raise InputError(
        f"{what} is negative at [{top + i}, {left + j}] ({tile[i, j]}): distances are 0 or more; "
        "where rounding left values just below 0 use np.maximum(matrix, 0)",
        code="negative",
    )


# ---------------------------------------------------------------------------------------------- words


def _shape_of(table: Any) -> tuple[int, ...]:
    return tuple(int(side) for side in table.shape)


def rows_in_words(kind: str, rows: Sequence[int] | NDArray[np.int64]) -> str:
    """Such as `7 rows of zeros only (first: 0, 3, 5, 9, 11)`."""
    shown = ", ".join(str(row) for row in rows[:SHOWN])
    if len(rows) == 1:
        return f"1 row {kind} (row {shown})"
    return f"{len(rows)} rows {kind} ({'rows' if len(rows) <= SHOWN else 'first:'} {shown})"


def it_or_them(rows: Sequence[int] | NDArray[np.int64]) -> str:
    return "it" if len(rows) == 1 else "them"


def check_groups(groups: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """Hold that each of n points has one group name: a string, integer, boolean or whole float.

    Returns:
        The sorted names and for each point the position of its name (int64); None where there are no groups.
    """
    if groups is None:
        return None
    values = _group_values(groups)
    if len(values) != n:
        raise InputError(
            f"groups has {len(values)} {'name' if len(values) == 1 else 'names'}, but features has "
            f"{n} {'row' if n == 1 else 'rows'}: give one group name a row",
            code="groups-length",
        )
    if isinstance(values, list):
        values = _of_one_kind(values)
    elif values.dtype.kind in "SU":
        values = decoded(values, "groups").tolist()
    if isinstance(values, list):
        # A million strings: a dict finds their codes several times faster than sorting them all
        ordered = sorted(set(values))
        position = {name: code for code, name in enumerate(ordered)}
        return np.array(ordered, dtype=str), np.fromiter(map(position.__getitem__, values), np.int64, n)
    if values.dtype.kind == "f":
        values = _whole_floats(values)
    if values.dtype.kind not in "biu":
        raise InputError(
            f"groups has type {values.dtype}: use strings, integers or booleans as group names", code="group-type"
        )
    native = values.dtype.newbyteorder("=")  # files from other machines: Parquet would not take their byte order
    names, codes = np.unique(values.astype(native, copy=False), return_inverse=True)
    return names, codes.astype(np.int64, copy=False)


def _group_values(groups: Any) -> NDArray[Any] | list[Any]:
    """Group names as a 1-D array, or as a list where their types still have to be looked at one by one."""
    if is_tensor(groups):
        check_tensor(groups, "groups")
    if not is_sequence(groups) or not hasattr(groups, "__len__"):
        raise InputError(
            f"groups is a {type(groups).__name__}: give a sequence with one group name a row", code="group-type"
        )
    if getattr(groups, "ndim", 1) != 1:
        raise InputError(
            f"groups has shape {_shape_of(groups)}, but it must be 1-D, one group name a row", code="groups-shape"
        )
    if is_tensor(groups):
        # numpy has no bfloat16; float64 holds whatever a smaller float holds
        return (groups.detach().double() if groups.is_floating_point() else groups).cpu().numpy()  # type: ignore[no-any-return]
    masked = isinstance(groups, np.ma.MaskedArray)  # masked names come out of tolist() as None
    if isinstance(getattr(groups, "dtype", None), np.dtype) and groups.dtype.kind not in "OT" and not masked:
        return np.asarray(groups)
    try:
        values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    except Exception as error:  # of a class of the user's own
        raise cannot_read("groups", error) from error
    if len(values) != len(groups):
        raise InputError(f"groups says that it has {len(groups)} names, but holds {len(values)}", code="groups-length")
    return [v.item() if getattr(v, "ndim", None) == 0 else v for v in values]  # numpy's and torch's scalars


def _of_one_kind(values: list[Any]) -> NDArray[Any] | list[str]:
    """An array for a list of numbers or booleans, a list for one of strings."""
    _refuse_missing_groups([row for row, value in enumerate(values) if _is_missing(value)])
    kinds = {type(value) for value in values}
    if kinds in ({str}, {bytes}):
        check_text(values, "groups")
        return [value.decode() if isinstance(value, bytes) else value for value in values]
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    if kinds == {int}:
        if min(values) >= -(2**63) and max(values) < 2**63:
            return np.array(values, dtype=np.int64)
        raise InputError("groups has integers that need more than 64 bits: use strings instead", code="group-type")
    if kinds <= {int, float}:
        return np.array(values, dtype=np.float64)
    if kinds & {list, tuple, np.ndarray}:
        raise InputError("groups is nested, but it must be 1-D, one group name a row", code="groups-shape")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(
        f"groups has names of type {names}: use only strings, only integers or only booleans", code="group-type"
    )


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    # By name: pandas' two markers, without importing pandas to compare with them
    return type(value).__name__ in ("NAType", "NaTType")


def _refuse_missing_groups(rows: Sequence[int] | NDArray[np.int64]) -> None:
    if len(rows):
        it = it_or_them(rows)
        raise InputError(
            f"groups has {rows_in_words('without a name', rows)}: drop {it} or give {it} a group", code="missing-group"
        )


def _whole_floats(values: NDArray[Any]) -> NDArray[np.int64]:
    """Floats that are whole numbers, as integers: labels often went through a table that knows only floats."""
    values = values.astype(np.float64)  # 2^53 is infinity to a float16
    _refuse_missing_groups(np.flatnonzero(np.isnan(values)))
    off = np.flatnonzero((values != np.trunc(values)) | (np.abs(values) >= 2.0**53))
    if len(off):
        raise InputError(
            f"groups has the value {values[off[0]]} in row {off[0]}, which is no name of a group: "
            "use strings, integers or booleans",
            code="group-type",
        )
    return values.astype(np.int64)


# ---------------------------------------------------------------------------------------------- options


ALGORITHMS = ("greedy", "lazy", "stochastic", "sieve", "greedi", "central", "random")
METRICS = ("euclidean", "sqeuclidean", "cosine", "precomputed")

# A bare letter could mean 1000 or 1024: the smaller keeps the limit under either reading
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}


@dataclass(frozen=True)
class Options:
    """The options of a selection, checked and in one form: what `check_options` returns."""

    algorithm: str
    metric: str
    device: str | None
    threads: int | None
    memory_limit: int | None
    epsilon: float
    seed: int


def check_options(
    *,
    algorithm: Any = "greedy",
    metric: Any = "euclidean",
    device: Any = None,
    threads: Any = None,
    memory_limit: Any = None,
    epsilon: Any = 0.1,
    seed: Any = 0,
) -> Options:
    """Hold that each option is one that exists, and bring it into one form.

    Where None is allowed the caller chooses. `memory_limit` is in bytes, or a string such as "2 GiB".
    """
    return Options(
        algorithm=choices(algorithm, ALGORITHMS, "algorithm"),
        metric=choices(metric, METRICS, "metric"),
        device=check_device(device),
        threads=None if threads is None else whole_number(threads, "threads", 1),
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit, "memory_limit"),
        epsilon=_check_epsilon(epsilon),
        seed=whole_number(seed, "seed", 0),
    )


def parse_bytes(size: Any, what: str = "the size") -> int:
    """Read an amount of memory.

    Args:
        size: a number of bytes, or a string with a unit: kB, MB, GB, TB count in thousands, KiB, MiB, GiB, TiB in 1024.
        what: what the messages call it.

    Returns:
        Bytes, at least 1.
    """
    count = 0
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", size.lower(), re.ASCII)
        if match and match[2] in _UNITS:
            count = int(Fraction(match[1]) * _UNITS[match[2]])
    elif not isinstance(size, bool) and isinstance(size, Real) and math.isfinite(size):
        count = int(float(size))
    if count < 1:
        raise InputError(
            f"{what} is {as_typed(size)}, but it must be a number of bytes above 0, or such as '2 GiB'",
            code="memory-size",
        )
    return count


def _check_epsilon(epsilon: Any) -> float:
    if not isinstance(epsilon, Real) or not 0 < float(epsilon) < 1:
        raise InputError(
            f"epsilon is {as_typed(epsilon)}, but it must be a number above 0 and below 1, such as 0.1",
            code="epsilon-range",
        )
    return float(epsilon)
