"""Corrections: from a review, or from a table of anybody's, checked against the audit that they correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust._util.foreign import as_typed, check_text
from crust._util.foreign_files import LONGEST
from crust.data import matrix_io
from crust.data.labels import as_name, column_codes, have_names
from crust.errors import InputError, choices
from crust.review.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet", ".json")
USED = ("index", "id", "corrected", "label", "decision")  # columns of a table of corrections


def decisions_table(decisions: Iterable[Decision], audit: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """The decisions of a review, one row each, for people and for `read_corrections`.

    Columns: `index`, `id` (where there are any), `given`, `decision`, `corrected`, `reason`, `note`, `who`,
    `at`; `corrected` is empty for what was excluded or skipped.
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
        "reason": pd.Series([one.reason for one in made], dtype=object),
        "note": pd.Series([one.note or None for one in made], dtype=object),
        "who": [one.who for one in made],
        "at": [one.at for one in made],
    }
    return pd.DataFrame(columns)


def read_corrections(
    corrections: str | Path | pd.DataFrame, audit: pd.DataFrame, classes: Sequence[Any]
) -> dict[int, int | None]:
    """New labels: by the example's index, the number of its new class, or None where it is to be left out.

    Args:
        corrections: a table, or a .csv, .tsv or .parquet, with a column `index` or `id`, and a column `corrected` (or
            `label`): what `crust review --export` writes; or a .json of annotations of Label Studio, Argilla or
            FiftyOne (`crust.exchange`). Rows without a corrected label are passed over, unless `decision` says exclude.
        audit: what is corrected.
        classes: its classes.
    """
    from crust.data import table_io

    name = "the corrections"
    if isinstance(corrections, str | Path):
        path = Path(corrections)
        name = path.name
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(
                f"cannot read corrections from {path}: give a file ending in {', '.join(SUFFIXES)}", code="file-type"
            )
        if path.suffix.lower() == ".json":
            from crust.exchange import read_annotations

            columns = _used_columns(read_annotations(path), audit, name)
            names = [*columns]
        else:
            with matrix_io.reading(path):
                texts = ("id", "corrected", "label") if have_names(classes) else ("id",)
                table = table_io.read_table_file(path, texts)
            columns = {one: table.column(one).to_pylist() for one in USED if one in table.column_names}
            names = table.column_names
    else:
        columns = _used_columns(corrections, audit, name)
        names = [str(one) for one in corrections.columns]
    label = next((one for one in ("corrected", "label") if one in columns), None)
    if label is None or not {"index", "id"} & set(columns):
        take = "; to take every label as it is predicted, call that column corrected"
        raise InputError(
            f"{name} has the columns {table_io.listed(names)}: corrections need index (or id) and corrected"
            f"{take if 'predicted_label' in names else ''}",
            code="missing-column",
        )
    values = columns[label]
    out = {row: str(one) == "exclude" for row, one in enumerate(columns.get("decision", []))}
    rows = [row for row, value in enumerate(values) if out.get(row) or (value is not None and str(value).strip() != "")]
    indices = _indices(columns, rows, audit, name)
    known = {str(one): number for number, one in enumerate(classes)}
    found: dict[int, int | None] = {}
    for row, index in zip(rows, indices, strict=True):
        if index in found:
            raise InputError(
                f"row {row} of {name} corrects example {index} a second time: leave one of them out",
                code="duplicate-example",
            )
        if out.get(row):
            found[index] = None
        else:
            found[index] = known[choices(as_name(values[row], known), known, f"class in row {row} of {name}")]
    return found


def _used_columns(corrections: pd.DataFrame, audit: pd.DataFrame, name: str) -> dict[str, list[Any]]:
    """Those that are used, with None for what is missing. FiftyOne names images without their endings: with them."""
    import pandas as pd

    if not isinstance(corrections, pd.DataFrame):
        raise InputError(f"{name} are a {type(corrections).__name__}: give a table", code="not-corrections")
    columns: dict[str, list[Any]] = {}
    for one in USED:
        if one in corrections:
            column = corrections[one]
            if column.ndim > 1:
                raise InputError(f"{name} have the column {one!r} twice: rename one of them", code="duplicate-column")
            columns[one] = [None if lost else value for value, lost in zip(column.tolist(), column.isna(), strict=True)]
            check_text(columns[one], f"the column {one} of {name}")
    if "id" in columns and "id" in audit:
        ids = audit["id"].astype(str)
        whole = dict(zip((Path(one).with_suffix("").as_posix() for one in ids), ids, strict=True))
        known = frozenset(ids)
        columns["id"] = [
            one if one is None or str(one) in known else whole.get(str(one), str(one)) for one in columns["id"]
        ]
    return columns


def corrected_labels(
    corrections: dict[int, int | None], audit: pd.DataFrame, classes: Sequence[Any]
) -> tuple[dict[int, int], list[int]]:
    """Only the corrections that change a label; and the examples that are left out."""
    given = dict(
        zip(audit["index"].tolist(), column_codes(audit["given_label"], classes, "given_label").tolist(), strict=True)
    )
    changes = {
        index: number for index, number in sorted(corrections.items()) if number is not None and given[index] != number
    }
    return changes, sorted(index for index, number in corrections.items() if number is None)


def _indices(columns: dict[str, list[Any]], rows: list[int], audit: pd.DataFrame, file: str) -> list[int]:
    """The examples that rows of corrections mean, by index, by id, or by both, which must then agree."""
    ids: dict[str, int | None] = {}
    if "id" in columns and "id" in audit:
        for name, example in zip(audit["id"].astype(str), audit["index"].tolist(), strict=True):
            ids[name] = None if name in ids else example  # None: of two
    known = frozenset(audit["index"].tolist())
    found = []
    for row in rows:
        number, text = (columns[name][row] if name in columns else None for name in ("index", "id"))
        index = _as_position(number)
        if number is not None and index not in known:
            raise InputError(
                f"row {row} of {file} names the example {as_typed(number)}, which the audit does not have: "
                f"its indices go from {min(known)} to {max(known)}",
                code="unknown-example",
            )
        if text is not None and ids:
            name = str(text)
            if name not in ids:
                raise InputError(
                    f"row {row} of {file} names {name[:LONGEST]!r}, which the audit does not have: check the id",
                    code="unknown-example",
                )
            if index is None and ids[name] is None:
                raise InputError(
                    f"row {row} of {file} names {name[:LONGEST]!r}, as two examples of the audit are called: "
                    "give a column index",
                    code="duplicate-example",
                )
            if index is not None and ids[name] not in (None, index):
                raise InputError(
                    f"row {row} of {file} names example {index} and {name!r}, which is example {ids[name]}: "
                    "give the corrections of this run",
                    code="unknown-example",
                )
            index = ids[name] if index is None else index
        if index is None and text is None:
            raise InputError(f"row {row} of {file} names no example: give its index or id", code="unknown-example")
        if index is None:
            raise InputError(
                f"{file} names examples by id, but the audit has none: give a column index", code="unknown-example"
            )
        found.append(int(index))
    return found


def _as_position(value: Any) -> int | None:
    """A position; None for anything else, such as true, which Python takes for 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
