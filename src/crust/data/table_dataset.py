"""Tables with one label column: CSV, TSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crust.data import table_io
from crust.data.examples import Bundle, Examples
from crust.data.labels import check_classes, encode_labels, have_names
from crust.data.matrix_io import reading
from crust.data.table_encoder import TableEncoder
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
        table = table_io.read_table_file(path, [text_column] if text_column else ())
    names = [name for name in table.column_names if name]  # one without a name is the row index of pandas
    label = _label(label_column, names, path.name)
    if text_column is not None and choices(text_column, names, f"column of {path.name}") == label:
        raise InputError(
            f"column {label!r} of {path.name} holds the labels: name another text_column", code="text-is-label"
        )
    codes, classes = encode_labels(table_labels(table, label, path.name), where=f"column {label!r} of {path.name}")
    total, rows = len(codes), np.arange(min(limit or len(codes), len(codes)))
    table, codes = table.slice(0, len(rows)), codes[: len(rows)]
    check_classes(codes, classes, f"the labels of {path.name}")
    used = [choices(name, names, f"column of {path.name}") for name in columns or names if name != label]
    if not used:
        raise InputError(f"{path.name} has no column besides the labels: give at least one to learn from")
    if text_column is None and columns is None:
        text_column, used = text_to_learn(table, used, path.name)
    form: dict[str, Any]
    if text_column is not None:
        train = _text_examples(column_texts(table, text_column, path.name), codes, classes)
        form = {"text_column": text_column, "tokens": train.inputs.encoding}
    else:
        encoder = TableEncoder.fit(table, used, path.name)
        train = _table_examples(encoder.transform(table, path.name), codes, classes)
        form = {"columns": encoder.columns}
    encoding = {"format": "table", "classes": classes, "shape": list(train.shape), "label_column": label, **form}
    return Bundle(train, None, encoding, total, rows)


def load_new_table(path: Path, encoding: dict[str, Any]) -> Examples:
    """New rows in the same features; labels where the table has them."""
    label, text = encoding["label_column"], encoding.get("text_column")
    as_text = [*([label] if have_names(encoding["classes"]) else []), *([text] if text else [])]
    with reading(path):
        table = table_io.read_table_file(path, as_text)
    if text:
        texts = column_texts(table, choices(text, table.column_names, f"column of {path.name}"), path.name)
    else:
        x = TableEncoder(encoding["columns"]).transform(table, path.name)
    codes = np.full(table.num_rows, -1, np.int64)
    if label in table.column_names:
        known = np.flatnonzero([v is not None and str(v).strip() != "" for v in table.column(label).to_pylist()])
        if known.size:
            values = table_labels(table.take(known), label, path.name)
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
        f"(--label-column); it has {table_io.listed(names)}"
    )


def table_labels(table: Any, label: str, file: str) -> Any:
    """The labels of a table, one a row."""
    import pyarrow as pa

    if pa.types.is_boolean(table.column(label).type) and not table.column(label).null_count:
        return table.column(label).to_numpy()  # true and false stay what they are
    return table_io.values(table, label, file, "label")


def _table_examples(x: Any, codes: Any, classes: list[Any]) -> Examples:
    import torch

    return Examples(torch.from_numpy(x), codes, list(classes), "features")


def _text_examples(
    texts: list[str], codes: Any, classes: list[Any], encoding: dict[str, Any] | None = None
) -> Examples:
    return Examples(hash_texts(texts, encoding), codes, list(classes), "tokens")
