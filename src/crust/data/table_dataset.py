"""Tables with one label column (CSV, TSV, Parquet), and how their columns become features.

What is learned of the columns comes from the training rows only, is kept as plain values, and applies to any rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import FLOAT32, as_tensor
from crust.data import table_io
from crust.data.examples import Bundle, Examples
from crust.data.labels import check_classes, encode_labels, have_names
from crust.data.mapped_array import MappedArray, stays_on_disk
from crust.data.matrix_io import reading
from crust.data.parquet_columns import ParquetColumns, encoded_in_pieces
from crust.data.text import hash_texts
from crust.data.text_columns import column_texts, text_to_learn
from crust.errors import InputError, choices

DEFAULT_LABEL_COLUMN = "label"  # the column that is taken where none is named


def load_table(
    path: Path,
    label_column: str | None = None,
    limit: int | None = None,
    columns: Sequence[str] | None = None,
    text_column: str | None = None,
) -> Bundle:
    """All columns but the labels, or those named, as features; medians, scales and categories from these rows.

    Or the texts of one column, as token ids.
    """
    with reading(path):
        table = table_io.read_table_file(path, [text_column] if text_column else (), whole=False)
    names = [name for name in table.column_names if name]  # one without a name is the row index of pandas
    label = _label(label_column, names, path.name)
    if text_column is not None and choices(text_column, names, f"column of {path.name}") == label:
        raise InputError(
            f"column {label!r} of {path.name} holds the labels: name another text_column", code="text-is-label"
        )
    codes, classes = encode_labels(table_labels(table, label, path.name), where=f"column {label!r} of {path.name}")
    if path.suffix.lower() != ".parquet" and not have_names(classes):
        _refuse_merged(path, label)
    total, rows = len(codes), np.arange(min(limit or len(codes), len(codes)))
    table, codes = table.slice(0, len(rows)), codes[: len(rows)]
    check_classes(codes, classes, f"the labels of {path.name}")
    used = [choices(name, names, f"column of {path.name}") for name in columns or names if name != label]
    if not used:
        raise InputError(
            f"{path.name} has no column besides the labels: give at least one to learn from", code="no-columns"
        )
    if text_column is None and columns is None:
        text_column, used = text_to_learn(table, used, path.name)
    form: dict[str, Any]
    if text_column is not None:
        train = _text_examples(column_texts(table, text_column, path.name), codes, classes)
        form = {"text_column": text_column, "tokens": train.inputs.encoding}
    else:
        encoder = TableEncoder.fit(table, used, path.name)
        train = _table_examples(_features(encoder, table, path.name), codes, classes)
        form = {"columns": encoder.columns}
    encoding = {"format": "table", "classes": classes, "shape": list(train.shape), "label_column": label, **form}
    return Bundle(train, None, encoding, total, rows)


def load_new_table(path: Path, encoding: dict[str, Any]) -> Examples:
    """New rows in the same features; labels where the table has them."""
    label, text = encoding["label_column"], encoding.get("text_column")
    as_text = [*([label] if have_names(encoding["classes"]) else []), *([text] if text else [])]
    with reading(path):
        table = table_io.read_table_file(path, as_text, whole=False)
    if text:
        texts = column_texts(table, choices(text, table.column_names, f"column of {path.name}"), path.name)
    else:
        x = _features(TableEncoder(encoding["columns"]), table, path.name)
    codes = np.full(table.num_rows, -1, np.int64)
    if label in table.column_names:
        known = np.flatnonzero([v is not None and str(v).strip() != "" for v in table.column(label).to_pylist()])
        if known.size:
            values = table_labels(table.select([label]).take(known), label, path.name)
            codes[known], _ = encode_labels(values, encoding["classes"], f"column {label!r} of {path.name}")
    if text:
        return _text_examples(texts, codes, encoding["classes"], encoding["tokens"])
    return _table_examples(x, codes, encoding["classes"])


def _label(name: str | None, names: list[str], file: str) -> str:
    if name is not None:
        return choices(name, names, f"column of {file}")
    if DEFAULT_LABEL_COLUMN in names:
        return DEFAULT_LABEL_COLUMN
    raise InputError(
        f"{file} has no column {DEFAULT_LABEL_COLUMN!r}: say which one holds the labels with label_column "
        f"(--label-column); it has {table_io.listed(names)}",
        code="missing-column",
    )


def table_labels(table: Any, label: str, file: str) -> Any:
    """The labels of a table, one a row."""
    import pyarrow as pa

    if pa.types.is_boolean(table.column(label).type) and not table.column(label).null_count:
        return table.column(label).to_numpy()  # true and false stay what they are
    return table_io.values(table, label, file, "label")


def _refuse_merged(path: Path, label: str) -> None:
    """Labels that are taken for numbers: 01 and 1 would be one class, though they are written as two."""
    with reading(path):
        written = table_io.read_table_file(path, [label]).column(label).unique().to_pylist()
    first: dict[str, str] = {}
    for text in written:
        number = text.strip().lstrip("+").lstrip("0").split(".")[0] or "0"
        other = first.setdefault(number, text)
        if "." not in text + other and other.strip() != text.strip():
            raise InputError(
                f"column {label!r} of {path.name} holds {other!r} and {text!r}, which are one number: write one class "
                "in one way, or name classes in words",
                code="merged-labels",
            )


def _features(encoder: TableEncoder, table: Any, file: str) -> NDArray[np.float32]:
    """The features of a table; of a large Parquet file a piece at a time."""
    if not isinstance(table, ParquetColumns):
        return encoder.transform(table, file)
    from crust.data.image_folder import IN_MEMORY_BYTES

    names = [column["name"] for column in encoder.columns]
    for name in names:
        choices(name, table.column_names, f"column of {file}")
    return encoded_in_pieces(
        table, names, len(encoder.features), lambda piece: encoder.transform(piece, file), IN_MEMORY_BYTES
    )


def _table_examples(x: Any, codes: Any, classes: list[Any]) -> Examples:
    return Examples(MappedArray(x) if stays_on_disk(x) else as_tensor(x), codes, list(classes), "features")


def _text_examples(
    texts: list[str], codes: Any, classes: list[Any], encoding: dict[str, Any] | None = None
) -> Examples:
    return Examples(hash_texts(texts, encoding), codes, list(classes), "tokens")


log = logging.getLogger("crust.data")

MAX_CATEGORIES = 100  # categories of one column that get a feature of their own, the most frequent ones


class TableEncoder:
    """Columns to features: numbers standardised, categories one-hot, lists of numbers standardised one by one.

    A missing number becomes the median, with a feature that says so where numbers were missing in training. A missing
    category has a feature of its own where it occurred in training; a category not seen in training has none.

    Args:
        columns: what is known of each column, plain values only.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"age": [20.0, None, 40.0], "town": ["Ulm", "Bonn", "Ulm"]})
        >>> encoder = TableEncoder.fit(table, ["age", "town"], "people.csv")
        >>> encoder.features
        ['age', 'age is missing', 'town=Bonn', 'town=Ulm']
        >>> encoder.transform(table, "people.csv").round(2)
        array([[-1.22,  0.  ,  0.  ,  1.  ],
               [ 0.  ,  1.  ,  1.  ,  0.  ],
               [ 1.22,  0.  ,  0.  ,  1.  ]], dtype=float32)
    """

    def __init__(self, columns: list[dict[str, Any]]) -> None:
        self.columns = columns

    @classmethod
    def fit(cls, table: Any, names: Sequence[str], file: str) -> TableEncoder:
        """Learn medians, scales and categories from the training rows of a table."""
        kinds = {name: _column_kind(table.column(name).type) for name in names}
        table_io.refuse_nearly_numeric(table, [name for name in names if kinds[name] == "category"], file)
        found = [FIT[kinds[name]](table, name, file) for name in names]
        columns = [column for column in found if column is not None]
        if not columns:
            raise InputError(
                f"{file} has no column to learn from besides the labels: give at least one", code="no-columns"
            )
        return cls(columns)

    @property
    def features(self) -> list[str]:
        """The names of the features, in order."""
        names: list[str] = []
        for column in self.columns:
            name = column["name"]
            if column["kind"] == "list":
                names += [f"{name}[{i}]" for i in range(len(column["mean"]))]
            elif column["kind"] == "number":
                names += [name, f"{name} is missing"][: 1 + column["indicator"]]
            else:
                names += [f"{name}={level}" for level in column["levels"]]
                names += [f"{name} is missing"] * column["indicator"]
        return names

    def transform(self, table: Any, file: str) -> NDArray[np.float32]:
        """The features of any rows, (n, d)."""
        for column in self.columns:
            choices(column["name"], table.column_names, f"column of {file}")
        blocks = [TRANSFORM[column["kind"]](table, column, file) for column in self.columns]
        return np.concatenate(blocks, axis=1, dtype=np.float32)


def _column_kind(kind: Any) -> str:
    import pyarrow as pa

    if table_io.is_list(kind):
        return "list"
    timely = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    numeric = table_io.is_numeric(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return "number" if timely or numeric else "category"


# ------------------------------------------------------------------------------------------- numbers


def _number_column(table: Any, name: str, file: str) -> NDArray[np.float64]:
    """As float64, missing ones as NaN; dates as seconds."""
    import pyarrow as pa

    values = table.column(name)
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan)
    found = table_io.column_block(values, f"column {name!r} of {file}")[:, 0].astype(np.float64)
    large = np.abs(found) > FLOAT32
    if large.any():
        row = int(large.argmax())
        what = "infinite" if np.isinf(found[row]) else f"{found[row]:g}, too large for float32,"
        raise InputError(f"column {name!r} of {file} is {what} in row {row}: correct it", code="not-finite")
    return found


def _fit_number(table: Any, name: str, file: str) -> dict[str, Any] | None:
    values = _number_column(table, name, file)
    known = values[~np.isnan(values)]
    if not known.size:
        log.warning("column %r of %s is empty and is left out", name, file)
        return None
    median = float(np.median(known))
    filled = np.where(np.isnan(values), median, values)
    return {
        "name": name,
        "kind": "number",
        "median": median,
        "mean": float(filled.mean()),
        "std": float(filled.std()) or 1.0,
        "indicator": bool(known.size < values.size),
    }


def _transform_number(table: Any, column: dict[str, Any], file: str) -> NDArray[np.float64]:
    values = _number_column(table, column["name"], file)
    missing = np.isnan(values)
    scaled = (np.where(missing, column["median"], values) - column["mean"]) / column["std"]
    return np.stack([scaled, missing] if column["indicator"] else [scaled], axis=1)


# ------------------------------------------------------------------------------------------- categories


def _categories(table: Any, name: str, file: str) -> tuple[NDArray[np.int64], list[str | None]]:
    """A code a row, and what the codes stand for; None where there is nothing."""
    import pyarrow as pa

    values = table.column(name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if pa.types.is_floating(values.type):  # whole numbers in one file come as 3, beside an empty cell as 3.0
        texts = [None if v is None else str(int(v) if v.is_integer() else v) for v in values.to_pylist()]
        values = pa.chunked_array([pa.array(texts, pa.string())])
    coded = (
        table_io.as_text(values, f"column {name!r} of {file}")
        .combine_chunks()
        .dictionary_encode(null_encoding="encode")
    )
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    levels = [None if level is None or not level.strip() else level for level in coded.dictionary.to_pylist()]
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), levels


def _fit_category(table: Any, name: str, file: str) -> dict[str, Any] | None:
    codes, levels = _categories(table, name, file)
    counts = np.bincount(codes, minlength=len(levels))
    seen = [(level, int(count)) for level, count in zip(levels, counts, strict=True) if level is not None]
    if not seen or (len(seen) > MAX_CATEGORIES and len(seen) > len(codes) / 2):
        why = "is empty" if not seen else "has a value of its own in most rows"
        log.warning("column %r of %s %s and is left out", name, file, why)
        return None
    frequent = sorted(seen, key=lambda pair: (-pair[1], pair[0]))[:MAX_CATEGORIES]
    missing = any(level is None and count for level, count in zip(levels, counts, strict=True))
    return {
        "name": name,
        "kind": "category",
        "levels": sorted(level for level, _ in frequent),
        "indicator": bool(missing),
    }


def _transform_category(table: Any, column: dict[str, Any], file: str) -> NDArray[np.float32]:
    codes, levels = _categories(table, column["name"], file)
    position = {level: i for i, level in enumerate(column["levels"])}
    width = len(column["levels"]) + column["indicator"]
    nothing = width - 1 if column["indicator"] else -1
    target = np.array([nothing if level is None else position.get(level, -1) for level in levels], dtype=np.int64)
    of_row = target[codes]
    block = np.zeros((len(codes), width), dtype=np.float32)
    known = np.flatnonzero(of_row >= 0)
    block[known, of_row[known]] = 1
    return block


# ------------------------------------------------------------------------------------------- lists of numbers


def _list_column(table: Any, name: str, file: str) -> NDArray[np.float64]:
    found = table_io.column_block(table.column(name), f"column {name!r} of {file}").astype(np.float64)
    bad = ~(np.abs(found) <= FLOAT32).all(axis=1)
    if bad.any():
        raise InputError(
            f"row {int(bad.argmax())} of column {name!r} of {file} holds values that are no numbers", code="not-finite"
        )
    return found


def _fit_list(table: Any, name: str, file: str) -> dict[str, Any]:
    values = _list_column(table, name, file)
    std = values.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return {"name": name, "kind": "list", "mean": values.mean(axis=0).tolist(), "std": std.tolist()}


def _transform_list(table: Any, column: dict[str, Any], file: str) -> NDArray[np.float64]:
    values = _list_column(table, column["name"], file)
    if values.shape[1] != len(column["mean"]):
        raise InputError(
            f"column {column['name']!r} of {file} holds lists of {values.shape[1]} numbers, "
            f"but in training they had {len(column['mean'])}",
            code="list-length",
        )
    return (values - np.array(column["mean"])) / np.array(column["std"])


FIT: dict[str, Callable[[Any, str, str], dict[str, Any] | None]] = {
    "number": _fit_number,
    "category": _fit_category,
    "list": _fit_list,
}
TRANSFORM: dict[str, Callable[[Any, dict[str, Any], str], NDArray[Any]]] = {
    "number": _transform_number,
    "category": _transform_category,
    "list": _transform_list,
}
