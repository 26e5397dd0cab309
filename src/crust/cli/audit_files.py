"""`crust audit --probs P --labels L` and `--features F --labels L`: an audit without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crust.errors import InputError


def audited(probs: str | None, features: str | None, labels: str | None, quiet: bool) -> tuple[Any, list[Any]]:
    """The table and the classes, from files."""
    if labels is None:
        raise InputError(f"--{'probs' if probs is not None else 'features'} needs labels: give --labels FILE")
    if probs is not None and features is not None:
        raise InputError("--probs and --features are both given: give one of them")

    from crust.audit import find_label_issues
    from crust.data.labels import label_values
    from crust.data.matrix_io import read_matrix

    values, where = label_values(labels)
    given = _probabilities(probs) if probs is not None else read_matrix(str(features))
    if len(values) != len(given):
        other = Path(str(probs or features)).name
        raise InputError(f"{where} holds {len(values)} labels, but {other} has {len(given)} rows: give one label a row")
    if probs is not None:
        table = find_label_issues(_named(values, labels, given), given)
    else:
        table = find_label_issues(values, features=given, progress=not quiet)
    names = set(table["given_label"]) | set(table["predicted_label"])
    return table, sorted(names)


def _named(values: Any, labels: str, given: Any) -> Any:
    """The labels as text where only so they are the names of the columns: true and 01 are no numbers then."""
    from crust.data.labels import label_values

    names = {str(name) for name in getattr(given, "columns", ())}
    if not names or {str(value) for value in values.tolist()} <= names:
        return values
    texts, _ = label_values(labels, text=True)
    return texts if {str(text) for text in texts.tolist()} <= names else values


def _probabilities(spec: str) -> Any:
    """The matrix; of a table with its column names, which are those of the classes."""
    from crust.data import matrix_io, table_io

    matrix = matrix_io.read_matrix(spec)
    path = matrix_io.split_spec(spec)[0]
    if path.suffix.lower() not in matrix_io.TABLES:
        return matrix
    import pandas as pd

    with matrix_io.reading(path):
        table = table_io.read_table_file(path)
        names = [name for name in table.column_names if name and table_io.is_numeric(table.schema.field(name).type)]
    return pd.DataFrame(matrix, columns=names) if len(names) == matrix.shape[1] else matrix
