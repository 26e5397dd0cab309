"""Labels as the user gave them, and as numbers from 0: the checks, and labels from a file of their own."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import as_array, decoded, whole_numbers
from crust.data import matrix_io, table_io
from crust.errors import InputError, choices

log = logging.getLogger("crust.data")

MOST_CLASSES = 1_000_000  # where labels are numbers of classes that nobody has named


def encode_labels(
    values: Any, classes: Sequence[Any] | None = None, where: str = "the labels"
) -> tuple[NDArray[np.int64], list[Any]]:
    """Turn labels of any kind into numbers from 0 to C − 1, and keep what the user calls the classes.

    Args:
        values: one label an example: whole numbers (also stored as floats), text, or true and false.
        classes: the classes where they are known. Labels are then looked up by value; whole numbers also by position
            where the classes are names. None takes the different labels, sorted.
        where: what to call the labels in an error message.

    Returns:
        The numbers as int64, and the list of classes.

    Example:
        >>> encode_labels(["dog", "cat", "dog"])
        (array([1, 0, 1]), ['cat', 'dog'])
        >>> encode_labels([1, 0, 1], classes=["cat", "dog"])[0]
        array([1, 0, 1])
        >>> encode_labels([0.0, 1.5])
        Traceback (most recent call last):
        ...
        crust.errors.InputError: label 1.5 in row 1 of the labels is not a whole number: use whole numbers ...
    """
    plain = plain_labels(values, where)
    if classes is not None:
        return _look_up(plain, list(classes), where), list(classes)
    names, codes = np.unique(plain, return_inverse=True)
    if len(names) == 1:
        raise InputError(
            f"all of {where} are {names[0].item()!r}: training needs at least two classes", code="one-class"
        )
    return codes.reshape(-1).astype(np.int64), names.tolist()


def read_labels(
    spec: str | Path,
    n: int,
    classes: Sequence[Any] | None = None,
    rows: NDArray[np.int64] | None = None,
    ids: Sequence[str] | None = None,
) -> NDArray[np.int64]:
    """Read labels from a file of their own, such as the human labels of CIFAR-10N.

    Args:
        spec: a file with one label a row: .npy, .npz:KEY, .safetensors:KEY, .csv:COLUMN, .tsv:COLUMN, .parquet:COLUMN;
            key and column may be left out where there is only one. A table with a column `label` beside `index`
            (positions from 0) or `id` may be in any order, and may hold more than is asked for: this is what
            `crust apply` writes, and its labels are names where the classes have names.
        n: how many labels there must be.
        classes: the classes, for labels given by name; without them labels are whole numbers from 0.
        rows: which of the n to return, where not all of the examples are used.
        ids: the names of the examples that are returned, for tables that tell them by `id`.

    Returns:
        Numbers from 0 to C − 1, int64.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "human.npz"
        >>> np.savez(path, worse=np.array([1, 0, 2], dtype=np.uint8))
        >>> read_labels(f"{path}:worse", 3)
        array([1, 0, 2])
    """
    keyed = _read_keyed(spec, np.arange(n) if rows is None else rows, ids, classes)
    if keyed is not None:
        (values, where), rows = keyed, None
    else:
        values, where = _read_plain(spec, classes)
    if keyed is None and len(values) != n:
        raise InputError(
            f"{where} holds {len(values)} labels, but there are {n} examples: give one label an example",
            code="labels-length",
        )
    if classes is None:
        plain = plain_labels(values, where)
        if plain.dtype.kind == "U":
            raise InputError(f"{where} holds text: say which classes there are", code="labels-type")
        if plain.max() >= max(MOST_CLASSES, n):
            raise InputError(
                f"label {plain.max()} in row {plain.argmax()} of {where} is no number of a class: give names as text",
                code="label-range",
            )
        classes = list(range(int(plain.max()) + 1))
    codes, _ = encode_labels(values, classes, where)
    return codes if rows is None else codes[rows]


def one_each(values: Any, n: int, where: str = "the labels") -> NDArray[Any]:
    """Whatever was given as labels as an array of n, whose values are not looked at."""
    found = as_array(values, where)
    if found.ndim == 0:
        raise InputError(f"{where} are one value: give one label an example", code="labels-shape")
    if len(found) != n:
        raise InputError(
            f"there are {len(found)} labels for {n} examples: give one label an example", code="labels-length"
        )
    return found


def check_classes(labels: NDArray[np.int64], classes: Sequence[Any], where: str = "the labels") -> None:
    """Refuse labels of one class only; say where a class has a single example."""
    counts = np.bincount(labels, minlength=len(classes))
    if (counts > 0).sum() == 1:
        raise InputError(
            f"all of {where} are {classes[int(counts.argmax())]!r}: training needs at least two classes",
            code="one-class",
        )
    single = np.flatnonzero(counts == 1)
    if single.size:
        more = f" and {single.size - 1} more have" if single.size > 1 else " has"
        log.warning("class %r%s a single example: it is never held out, and its label cannot be judged",
                    classes[int(single[0])], more)  # fmt: skip


def check_codes(labels: Any, n: int, classes: int, where: str = "the labels") -> NDArray[np.int64]:
    """Labels that are numbers already: as many as examples, from 0 to C − 1."""
    codes = plain_labels(labels, where) if n else np.zeros(0, np.int64)
    if codes.dtype.kind == "U":
        raise InputError(
            f"{where} are text, such as {codes[0].item()!r}: give numbers from 0 to {classes - 1}", code="labels-type"
        )
    codes = codes.astype(np.int64)
    one_each(codes, n, where)
    _refuse_outside(codes, classes, where)
    return codes


def have_names(classes: Sequence[Any] | None) -> bool:
    """Whether the classes are text: then 01 and 1 are two of them, and true is a name like any other."""
    return classes is not None and all(isinstance(name, str) for name in classes)


def as_name(value: Any, known: Container[str]) -> str:
    """A label as the classes are called: tables make 3.0 of a 3 beside an empty cell.

    Example:
        >>> as_name("3.0", ["3"]), as_name(3.0, ["3"]), as_name("03", ["3"])
        ('3', '3', '03')
    """
    text = str(value)
    whole = re.fullmatch(r"(-?\d+)\.0+", text.strip())
    tried = [text, text.strip(), whole[1] if whole else text]
    return next((one for one in tried if one in known), text)


def label_values(spec: str | Path, text: bool = False) -> tuple[NDArray[Any], str]:
    """The labels of a file as they stand in it, and what to call them; `text` takes no 01 for a number."""
    whole = str(spec)
    head, colon, key = whole.rpartition(":")
    if colon and head.lower().endswith(matrix_io.TABLES) and not Path(whole).exists():
        path, column = Path(head), key or None
        return matrix_io.read_values(path, column, "label", text), f"{path.name}:{column}" if column else path.name
    path = matrix_io.split_spec(spec)[0]
    values = matrix_io.read_values(spec, None, "label", text)
    return values, whole[len(str(path.parent)) + 1 :] if path.parent.name else whole


def _read_plain(spec: str | Path, classes: Sequence[Any] | None) -> tuple[NDArray[Any], str]:
    """The labels of a file with one a row: names of classes, or else whole numbers, where no name could be meant."""
    if classes is None or not have_names(classes):
        return label_values(spec)
    known = frozenset(classes)
    found = label_values(spec, text=True)
    if {str(value) for value in found[0].tolist()} <= known:
        return found
    values, where = label_values(spec)
    number = next((name for name in classes if table_io.is_number(name)), None)
    other = [value for value in np.unique(values).tolist() if as_name(value, known) not in known]
    if number is not None and other and values.dtype.kind in "biuf":
        raise InputError(
            f"{where} holds {other[0]}, which is no class, nor taken for a position where classes have names such as "
            f"{number!r}: give the names of the classes",
            code="unknown-class",
        )
    return values, where


def _read_keyed(
    spec: str | Path, rows: NDArray[np.int64], ids: Sequence[str] | None, classes: Sequence[Any] | None
) -> tuple[NDArray[Any], str] | None:
    """The labels of a table that says which example each of its rows means; None where it does not."""
    path = Path(spec)
    if path.suffix.lower() not in matrix_io.TABLES or not path.is_file():
        return None
    with matrix_io.reading(path):
        named = have_names(classes)
        table = table_io.read_table_file(path, ("id", "label") if named else ("id",))
        key = next((name for name in ("id", "index") if name in table.column_names), None)
        if key is None or "label" not in table.column_names:
            return None
        if key == "id" and ids is None and "index" in table.column_names:
            key = "index"
        if key == "id" and ids is None:
            raise InputError(
                f"{path.name} names examples by id, but this data has no ids: give a column index", code="missing-ids"
            )
        wanted: list[Any] = [str(one) for one in ids] if key == "id" and ids is not None else rows.tolist()
        there = [str(one) if key == "id" else one for one in table.column(key).to_pylist()]
        if any(isinstance(one, bool) for one in there):  # to Python, true is 1
            raise InputError(
                f"the column index of {path.name} holds true and false: give positions from 0", code="index-type"
            )
        values = table_io.values(table, "label", path.name, "label")
        if named:
            known = frozenset(str(name) for name in classes or ())
            values = np.array([as_name(value, known) for value in values.tolist()], dtype=str)
            numbers = any(map(table_io.is_number, known))  # then a number is a name
            if not numbers and all(value.isdecimal() for value in values.tolist()):
                values = values.astype(np.int64)  # positions
    place = {one: row for row, one in enumerate(there)}
    if len(place) < len(there):
        twice = next(one for row, one in enumerate(there) if place[one] != row)
        raise InputError(
            f"{path.name} has two labels for the example {twice!r}: leave one of them out", code="duplicate-example"
        )
    missing = next((one for one in wanted if one not in place), None)
    if missing is not None:
        raise InputError(
            f"{path.name} has no label for the example {missing!r}: give every example one", code="missing-label"
        )
    return values[[place[one] for one in wanted]], path.name


def plain_labels(values: Any, where: str) -> NDArray[Any]:
    """One-dimensional labels as int64, bool or text, without missing ones."""
    found = as_array(values, where)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim == 2 and found.size and found.dtype.kind in "biuf":
        return _of_one_hot(found, where)
    if found.ndim != 1:
        raise InputError(
            f"{where} have shape {found.shape}: give one label an example, shape (n,)", code="labels-shape"
        )
    if found.size == 0:
        raise InputError(f"{where} are empty: give at least one label", code="labels-length")
    kind = found.dtype.kind
    if kind == "O":
        return plain_labels(_from_objects(found, where), where)
    if kind in "SU":
        found = decoded(found, where)
        _refuse_missing_labels(np.char.strip(found) == "", where)
        return found
    if kind == "f":
        _refuse_missing_labels(np.isnan(found), where)
    if kind in "fiu":
        return whole_numbers(found, where)
    if kind != "b":
        raise InputError(f"{where} hold {found.dtype}: use whole numbers or text", code="labels-type")
    return found


def several_labels(where: str) -> InputError:
    """What is said of labels of which an example has several."""
    return InputError(
        f"{where} are several an example (multi-label): give one label an example, or train one run for each of them",
        code="labels-shape",
    )


def _of_one_hot(rows: NDArray[Any], where: str) -> NDArray[np.int64]:
    """The places of the ones, where each row has a single one among zeros."""
    if not ((rows == 0) | (rows == 1)).all():
        raise InputError(
            f"{where} are rows of {rows.shape[1]} shares or scores: give one label an example, such as the largest",
            code="labels-shape",
        )
    if (rows.sum(axis=1) != 1).any():
        raise several_labels(where)
    return rows.argmax(axis=1).astype(np.int64)


def _from_objects(found: NDArray[Any], where: str) -> NDArray[Any]:
    """Python objects, as pandas keeps text: all text or all numbers."""
    _refuse_missing_labels(np.array([_is_missing(one) for one in found.tolist()]), where)
    texts = np.array([isinstance(v, (str, bytes)) for v in found])
    if texts.any() and not texts.all():
        raise InputError(f"{where} mix text and numbers: use one of them", code="labels-type")
    odd = next((one for one in found.tolist() if not isinstance(one, (str, bytes, Real))), None)
    plain = found if odd is not None else as_array(found.tolist(), where)
    if plain.dtype.kind == "O":
        kind = "numbers of more than 64 bits" if odd is None else type(odd).__name__
        raise InputError(f"{where} hold {kind}: use whole numbers or text", code="labels-type")
    return plain


def _is_missing(value: Any) -> bool:
    """None, NaN, or pandas' own markers, which refuse to be compared."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _look_up(plain: NDArray[Any], classes: list[Any], where: str) -> NDArray[np.int64]:
    """The position of each label among the classes."""
    names, codes = np.unique(plain, return_inverse=True)
    by_name = {str(name): position for position, name in enumerate(classes)}
    keys = [str(name) for name in names.tolist()]
    if plain.dtype.kind in "ib" and not all(key in by_name for key in keys):
        by_value = {int(name): p for p, name in enumerate(classes) if isinstance(name, (int, np.integer))}
        if not by_value:  # classes have names, labels are positions
            _refuse_outside(plain.astype(np.int64), len(classes), where)
            return plain.astype(np.int64)
        by_name, keys = {str(v): p for v, p in by_value.items()}, [str(int(name)) for name in names]
    for position, key in enumerate(keys):
        if key not in by_name:
            row = int(np.flatnonzero(codes.reshape(-1) == position)[0])
            choices(key, by_name, f"class in row {row} of {where}")
    return np.array([by_name[key] for key in keys], dtype=np.int64)[codes.reshape(-1)]


def _refuse_missing_labels(missing: NDArray[np.bool_], where: str) -> None:
    if missing.any():
        raise InputError(
            f"row {int(missing.argmax())} of {where} has no label: give every example one", code="missing-label"
        )


def _refuse_outside(codes: NDArray[np.int64], classes: int, where: str) -> None:
    bad = np.flatnonzero((codes < 0) | (codes >= classes))
    if bad.size:
        raise InputError(
            f"label {codes[bad[0]]} in row {bad[0]} of {where} is out of range: labels go from 0 to {classes - 1}",
            code="label-range",
        )


def column_codes(values: Any, classes: Sequence[Any], what: str) -> NDArray[np.int64]:
    """The number of each label among the classes.

    Example:
        >>> column_codes(["dog", "cat"], ["cat", "dog"], "label")
        array([1, 0])
        >>> column_codes(["cow"], ["cat", "dog"], "label")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: row 0 of the column 'label' holds 'cow', which is no class: give an audit of ...
    """
    import pandas as pd

    known = {name: i for i, name in enumerate(classes)} | {str(name): i for i, name in enumerate(classes)}
    every, places = np.asarray(values, dtype=object), None
    if pd.api.types.infer_dtype(every, skipna=False) in ("string", "integer", "boolean"):  # each name is looked up once
        places, every = pd.factorize(every)
    found = np.array([known.get(value, known.get(str(value), -1)) for value in every], dtype=np.int64)
    if places is not None:
        found = found[places]
    if (found < 0).any():
        row = int((found < 0).argmax())
        value = list(values)[row]
        raise InputError(
            f"row {row} of the column {what!r} holds {value!r}, which is no class: give an audit of these classes",
            code="unknown-class",
        )
    return found
