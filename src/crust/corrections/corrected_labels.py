"""Corrections: from a review, or from a table of anybody's, checked against the audit that they correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.data import matrix_io
from crust.data.labels import as_name, column_codes, have_names
from crust.errors import InputError, choices
from crust.review.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet")


def decisions_table(decisions: Iterable[Decision], audit: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """The decisions of a review, one row each, for people and for `read_corrections`.

    Columns: `index`, `id` (where there are any), `given`, `decision`, `corrected` (empty where it was skipped), `who`,
    `at`.
    """
    import pandas as pd

    made = [one for one in decisions if one.kind is not None]
    rows = audit.set_index("index").loc[[one.example for one in made]]
    new: list[Any] = [
        classes[one.label] if one.label is not None else given if one.kind == "keep" else None
        for one, given in zip(made, rows["given_label"].tolist(), strict=True)
    ]
    columns: dict[str, Any] = {"index": [one.example for one in made]}
    if "id" in rows:
        columns["id"] = rows["id"].tolist()
    columns |= {
        "given": rows["given_label"].tolist(),
        "decision": [one.kind for one in made],
        "corrected": pd.Series(new, dtype=object),
        "who": [one.who for one in made],
        "at": [one.at for one in made],
    }
    return pd.DataFrame(columns)


def read_corrections(path: str | Path, audit: pd.DataFrame, classes: Sequence[Any]) -> dict[int, int]:
    """New labels from a table: by the example's index, the number of its new class; those that keep their label too.

    Args:
        path: .csv, .tsv or .parquet with a column `index` or `id`, and a column `corrected` (or `label`); what
            `crust review --export` writes. Rows without a corrected label are left out.
        audit: what is corrected.
        classes: its classes.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"cannot read corrections from {path}: it must end in {', '.join(SUFFIXES)}", code="file-type")
    from crust.data import table_io

    with matrix_io.reading(path):
        table = table_io.read_table_file(path, ("id", "corrected", "label") if have_names(classes) else ("id",))
    names = table.column_names
    label = next((name for name in ("corrected", "label") if name in names), None)
    if label is None or not {"index", "id"} & set(names):
        raise InputError(
            f"{path.name} has the columns {table_io.listed(names)}: give index (or id) and corrected",
            code="missing-column",
        )
    values = table.column(label).to_pylist()
    rows = [row for row, value in enumerate(values) if value is not None and str(value).strip() != ""]
    indices = _indices(table, rows, audit, path.name)
    known = {str(name): number for number, name in enumerate(classes)}
    found: dict[int, int] = {}
    for row, index in zip(rows, indices, strict=True):
        if index in found:
            raise InputError(f"row {row} of {path.name} corrects {index} again: take one out", code="duplicate-example")
        found[index] = known[choices(as_name(values[row], known), known, f"class in row {row} of {path.name}")]
    return found


def corrected_labels(corrections: dict[int, int], audit: pd.DataFrame, classes: Sequence[Any]) -> dict[int, int]:
    """Only the corrections that change a label."""
    codes = column_codes(audit["given_label"], classes, "given_label")
    given = dict(zip(audit["index"].tolist(), codes.tolist(), strict=True))
    return {index: number for index, number in sorted(corrections.items()) if given[index] != number}


def _indices(table: Any, rows: list[int], audit: pd.DataFrame, file: str) -> list[int]:
    """The examples that rows of corrections mean, by index, by id, or by both, which must then agree."""
    names = table.column_names
    ids = None
    if "id" in names and "id" in audit:
        ids = dict(zip(audit["id"].astype(str), audit["index"].tolist(), strict=True))
    known = frozenset(audit["index"].tolist())
    found = []
    given = {name: table.column(name).to_pylist() for name in ("index", "id") if name in names}
    for row in rows:
        index = None
        if "index" in given:
            index = _as_position(given["index"][row])
            if index not in known:
                raise InputError(
                    f"row {row} of {file} names the example {given['index'][row]!r}, which the audit does not have: "
                    f"its indices go from {min(known)} to {max(known)}",
                    code="unknown-example",
                )
        if ids is not None:
            name = str(given["id"][row])
            if name not in ids:
                raise InputError(f"row {row} of {file} names unknown {name!r}: check the id", code="unknown-example")
            if index is not None and ids[name] != index:
                raise InputError(
                    f"row {row} of {file} names example {index} and {name!r}, which is example {ids[name]}: "
                    "give the corrections of this run",
                    code="unknown-example",
                )
            index = ids[name]
        if index is None:
            raise InputError(f"{file} has ids, but the audit has none: give a column index", code="unknown-example")
        found.append(int(index))
    return found


def _as_position(value: Any) -> int | None:
    """A position; None for anything else, such as true, which Python takes for 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
