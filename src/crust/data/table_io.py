"""Columns of Parquet, CSV and TSV files as numpy arrays."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crust.data.parquet_columns import ParquetColumns
from crust.errors import InputError, choices

log = logging.getLogger("crust.data")

COMMAS = re.compile(r"[+-]?(\d+,\d+|\d{1,3}(,\d{3})+(\.\d*)?)")  # decimals or thousands: nobody can tell


def numeric_matrix(path: Path, columns: Sequence[str] | None, skip: Sequence[str] = ()) -> np.ndarray:
    """The named columns side by side; without names, all numeric ones but those to skip."""
    table = read_table_file(path)
    names = table.column_names
    if columns:
        used = [choices(name, names, f"column of {path.name}") for name in columns]
    else:
        # A column without a name is the row index that pandas writes into CSV files.
        used = [n for n in names if n and n not in skip and is_numeric(table.schema.field(n).type)]
        refuse_nearly_numeric(table, [n for n in names if n and n not in skip and n not in used], path.name)
        left_out = [name for name in names if name not in used]
        if not used:
            raise InputError(
                f"{path.name} has no numeric column: its columns are {listed(names)}; convert or name some",
                code="no-columns",
            )
        if left_out:
            log.info("%s: vectors from %s; left out: %s", path.name, listed(used), listed(left_out))
    blocks = [column_block(table.column(name), f"column {name!r} of {path.name}") for name in used]
    dtype = np.result_type(*blocks)
    values = np.empty((table.num_rows, sum(block.shape[1] for block in blocks)), dtype)
    start = 0
    for block in blocks:
        values[:, start : start + block.shape[1]] = block
        start += block.shape[1]
    return values


def column(path: Path, name: str | None, what: str = "group", text: bool = False) -> np.ndarray:
    """One column as whole numbers or text, or all of it as text; its name may be left out where there is only one."""
    table = read_table_file(path)
    names = [each for each in table.column_names if each]
    if name is None:
        if len(names) != 1:
            how = "with --group-column" if what == "group" else f"as in {path.name}:{names[0]}"
            raise InputError(
                f"{path.name} has {len(names)} columns: name one {how}; it has {listed(names)}", code="several-columns"
            )
        name = names[0]
    name = choices(name, names, f"column of {path.name}")
    return values(read_table_file(path, [name]) if text else table, name, path.name, what)


def values(table: Any, name: str, file: str, what: str) -> np.ndarray:
    """One column of a table, a value a row, none of them missing."""
    import pyarrow as pa

    found = table.column(name)
    if found.null_count:
        row = int(np.flatnonzero(found.is_null().to_numpy())[0])
        says = ", or says NA, null or nan" if file.lower().endswith((".csv", ".tsv")) else ""
        raise InputError(
            f"row {row} of column {name!r} of {file} is empty{says}: give every row a {what}", code="missing-label"
        )
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_integer(found.type) or pa.types.is_floating(found.type):
        return found.to_numpy()
    if pa.types.is_boolean(found.type):
        return found.cast(pa.int64()).to_numpy()
    return np.array(as_text(found, f"column {name!r} of {file}").to_pylist(), dtype=str)


def as_text(column: Any, where: str) -> Any:
    """A column as text; nested ones and bytes that are none are refused."""
    import pyarrow as pa

    try:
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            raise pa.ArrowInvalid("bytes")
        return column.cast(pa.string())
    except pa.ArrowException:
        raise InputError(
            f"{where} holds {column.type}, which is neither numbers nor text: convert it, or name other columns",
            code="column-type",
        ) from None


def read_table_file(path: Path, text: Sequence[str] = (), whole: bool = True) -> Any:
    """The whole table, as pyarrow has it; the columns of a CSV file that are named as text are taken as they stand.

    Of other columns pyarrow guesses what they hold, and makes 1 of 01, true of True and nothing of NA. A large Parquet
    file need not be read `whole`: `ParquetColumns` are what is asked of them.
    """
    from crust.data.image_folder import IN_MEMORY_BYTES

    large = ParquetColumns(path) if path.suffix.lower() == ".parquet" and not whole else None
    table: Any
    if large is not None and large.nbytes > IN_MEMORY_BYTES:
        table = large
    elif path.suffix.lower() == ".parquet":
        import pyarrow.parquet

        # The file itself, not a dataset: the name of a folder such as `split=train` must not become a column.
        table = pyarrow.parquet.ParquetFile(path).read()
    else:
        table = _read_csv(path, text)
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"{path.name} has two columns named {twice[0]!r}: rename one", code="duplicate-column")
    if table.num_rows == 0:
        raise InputError(f"{path.name} has no rows: give at least one", code="no-rows")
    return table


def _read_csv(path: Path, text: Sequence[str]) -> Any:
    import pyarrow.csv

    delimiter, header = csv_form(path)

    def read(block: int | None) -> Any:
        return pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=not header, block_size=block),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(text, pyarrow.string()), strings_can_be_null=False
            ),
        )

    try:
        table = read(None)
    except pyarrow.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
        table = read(min(path.stat().st_size, 2**31 - 1))  # a row, such as a long text, is larger than a usual block
    # A quote that is never closed swallows all rows after it as one text, which is the last cell then.
    last = table.column(-1)[-1].as_py() if table.num_rows and table.num_columns else None
    if isinstance(last, str) and "\n" in last and path.read_bytes().count(b'"') % 2:
        raise InputError(
            f"{path.name} has a quote that is never closed, in row {table.num_rows - 1}: close it, or leave it out",
            code="open-quote",
        )
    return table


def csv_form(path: Path) -> tuple[str, bool]:
    """What separates the cells of a CSV or TSV file, and whether its first line holds names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    return delimiter, _has_header(next(csv.reader([first], delimiter=delimiter), []), path.name)


def _has_header(cells: list[str], name: str) -> bool:
    """Whether the first line holds names. Guessing wrong would lose or invent a point: what is unclear is an error."""
    if not all(is_number(cell) for cell in cells):
        return True
    counted = [cell.strip() for cell in cells] == [str(i) for i in range(len(cells))]  # as pandas names columns
    if counted and len(cells) < 3:
        raise InputError(
            f"the first line of {name}, {','.join(cells)!r}, may be names or numbers: name the columns",
            code="ambiguous-header",
        )
    return counted


def column_block(values: Any, where: str) -> np.ndarray:
    """A column as an (n, width) block; nulls become NaN, which the selection reports by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if is_list(kind):
        lengths = pc.unique(pc.list_value_length(values)).to_pylist()
        if values.null_count or len(lengths) != 1:
            raise InputError(
                f"{where} holds lists of different lengths: give every row the same number of values",
                code="list-length",
            )
        flat = column_block(pa.chunked_array([chunk.flatten() for chunk in values.chunks], kind.value_type), where)
        return flat.reshape(len(values), lengths[0])
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif not is_numeric(kind) or pa.types.is_decimal(kind):
        row = _first_text(values)
        if row is not None:
            raise InputError(
                f"{where} is not numeric: row {row} holds {values[row].as_py()!r}; choose other columns",
                code="not-numeric",
            )
        values = values.cast(pa.float64())
    return values.to_numpy().reshape(-1, 1)


def is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    if is_list(kind):
        return is_numeric(kind.value_type) and not is_list(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_number(text: object) -> bool:
    try:
        float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _first_text(values: Any) -> int | None:
    """The first row that is not a number, or None."""
    return next((i for i, v in enumerate(values.to_pylist()) if v is not None and not is_number(v)), None)


def refuse_nearly_numeric(table: Any, names: list[str], file: str) -> None:
    """A typing error in one cell makes text of a whole column: leaving it out in silence would change the answer."""
    import pyarrow as pa

    for name in names:
        values = table.column(name)
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            continue
        head = [v for v in values.slice(0, 1000).to_pylist() if v]
        if head and sum(bool(COMMAS.fullmatch(v.strip())) for v in head) > 0.9 * len(head):
            raise InputError(
                f"column {name!r} of {file} holds numbers with commas, such as {head[0]!r}: write a point before the "
                "decimals and nothing between the thousands",
                code="not-numeric",
            )
        if head and sum(map(is_number, head)) > 0.9 * len(head):
            row = _first_text(values)
            held = f": row {row} holds {values[row].as_py()!r}" if row is not None else ", stored as text"
            raise InputError(
                f"column {name!r} of {file} is nearly numeric{held}; correct it or name the --columns",
                code="not-numeric",
            )


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(str, names[:10]))
    return f"{shown}, … ({len(names)})" if len(names) > 10 else shown
