"""Files with other labels: everything else in them stays as it was."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from crust._util.atomic_write import write_atomic
from crust.data import encode_labels, table_io
from crust.data.labels import column_codes
from crust.data.matrix_io import reading
from crust.data.npz_dataset import labels_name
from crust.data.table_dataset import table_labels
from crust.errors import InputError, choices

if TYPE_CHECKING:
    import pandas as pd


def apply_to_table(
    source: str | Path,
    target: str | Path,
    label_column: str,
    changes: Mapping[int, int],
    audit: pd.DataFrame,
    classes: Sequence[Any],
    left_out: Sequence[int] = (),
) -> None:
    """A CSV, TSV or Parquet file with other labels in some rows: `changes` has the number of the new class by row.

    The rows of `left_out` are gone. Every other byte of a CSV file stays as it is; a Parquet file keeps its schema. The
    given labels of the audit must be those of the table.
    """
    source = Path(source)
    with reading(source):
        table = table_io.read_table_file(source)
    choices(label_column, table.column_names, f"column of {source.name}")
    values = table_labels(table, label_column, source.name)
    take = _source_rows(values, changes, audit, classes, source.name)
    if source.suffix.lower() == ".parquet":
        kept = _kept(len(take), left_out)
        write_atomic(target, lambda file: _write_parquet(source, table, label_column, take, kept, file))
    else:
        write_atomic(target, _csv_with(source, table.column_names.index(label_column), changes, take, left_out))


def apply_to_npz(
    source: str | Path,
    target: str | Path,
    changes: Mapping[int, int],
    audit: pd.DataFrame,
    classes: Sequence[Any],
    left_out: Sequence[int] = (),
) -> None:
    """A .npz file with other labels for some examples, as in `apply_to_table`; its other arrays stay as they are.

    Where examples are left out, they are so in every array with a row an example.
    """
    from crust.data.matrix_io import open_npz

    source = Path(source)
    name = labels_name(source)
    with reading(source):
        values = open_npz(source, name)
    kept = _kept(len(values), left_out)
    new = values[_source_rows(values, changes, audit, classes, source.name)][kept]

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(file, "w") as archive:
            for member in old.infolist():
                other = None
                if left_out and member.filename.removesuffix(".npy") != name:
                    with reading(source):
                        other = open_npz(source, member.filename.removesuffix(".npy"))
                    other = other[kept] if other.ndim and len(other) == len(values) else None
                if other is not None or member.filename.removesuffix(".npy") == name:
                    buffer = BytesIO()
                    np.lib.format.write_array(buffer, new if other is None else other, allow_pickle=False)
                    archive.writestr(member.filename, buffer.getvalue(), member.compress_type)
                    continue
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                copy.compress_type = member.compress_type
                with old.open(member) as content, archive.open(copy, "w", force_zip64=True) as place:
                    while block := content.read(1 << 20):
                        place.write(block)

    write_atomic(target, write)


def apply_to_npy(
    source: str | Path,
    target: str | Path,
    changes: Mapping[int, int],
    audit: pd.DataFrame,
    classes: Sequence[Any],
    left_out: Sequence[int] = (),
) -> None:
    """An array of labels with others in some places, as in `apply_to_table`."""
    from crust.data.matrix_io import open_npy

    source = Path(source)
    with reading(source):
        values = open_npy(source)
    new = values[_source_rows(values, changes, audit, classes, source.name)][_kept(len(values), left_out)]
    write_atomic(target, lambda file: np.lib.format.write_array(file, new, allow_pickle=False))


def labels_file(
    audit: pd.DataFrame,
    changes: Mapping[int, int],
    classes: Sequence[Any],
    *,
    by_id: bool,
    left_out: Sequence[int] = (),
) -> pd.DataFrame:
    """All labels of an audit, corrected, as `crust train DATA --labels FILE` takes them; by `id` for image folders.

    A column `exclude` marks those that are to be left out, where there are any: such a file cannot do it.

    Example:
        >>> import pandas as pd
        >>> labels_file(pd.DataFrame({"index": [0, 1], "given_label": ["a", "b"]}), {0: 1}, ["a", "b"], by_id=False)
           index label
        0      0     b
        1      1     b
    """
    found = audit[["id" if by_id else "index"]].copy()
    new = column_codes(audit["given_label"], classes, "given_label")
    for row, index in enumerate(audit["index"].tolist()):
        new[row] = changes.get(index, new[row])
    found["label"] = [classes[number] for number in new]
    return found.assign(exclude=audit["index"].isin(left_out)) if len(left_out) else found


def _source_rows(
    values: Any, changes: Mapping[int, int], audit: pd.DataFrame, classes: Sequence[Any], file: str
) -> NDArray[np.int64]:
    """Which row of the file each row takes its label from: its own, or the first of its new class.

    So a label keeps the form that it has in the file, whatever that is.
    """
    codes, _ = encode_labels(values, classes, f"the labels of {file}")
    indices, given = audit["index"].to_numpy(), column_codes(audit["given_label"], classes, "given_label")
    if len(codes) <= indices.max():
        raise InputError(
            f"{file} has {len(codes):,} rows, but the run had more: give the data it was trained on", code="other-data"
        )
    other = np.flatnonzero(codes[indices] != given)
    if other.size:
        row = int(indices[other[0]])
        raise InputError(
            f"row {row} of {file} is labelled {classes[codes[row]]!r}, but was {classes[given[other[0]]]!r} in the "
            "run: give the data it was trained on",
            code="other-data",
        )
    first = {int(code): int(row) for code, row in zip(*np.unique(codes, return_index=True), strict=True)}
    take = np.arange(len(codes))
    for index, number in changes.items():
        if number not in first:
            raise InputError(
                f"{file} has no row labelled {classes[number]!r}, whose form could be taken: add one",
                code="missing-class",
            )
        take[index] = first[number]
    return take


def _kept(n: int, left_out: Sequence[int]) -> NDArray[np.int64]:
    return np.setdiff1d(np.arange(n), np.asarray(left_out, np.int64))


def _write_parquet(
    source: Path, table: Any, column: str, take: NDArray[np.int64], kept: NDArray[np.int64], file: BinaryIO
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    place = table.column_names.index(column)
    table = table.set_column(place, table.schema.field(place), table.column(place).take(pa.array(take)))
    group = parquet.ParquetFile(source).metadata.row_group(0)
    codec = group.column(0).compression.lower()
    compression = codec if codec in ("snappy", "gzip", "brotli", "zstd", "lz4") else "none"
    table = table if len(kept) == table.num_rows else table.take(pa.array(kept))
    parquet.write_table(table, file, compression=compression, row_group_size=max(1, group.num_rows))


def _csv_with(
    source: Path, column: int, changes: Mapping[int, int], take: NDArray[np.int64], left_out: Sequence[int]
) -> bytes:
    text = source.read_bytes().decode("utf-8", "surrogateescape")
    delimiter, header = table_io.csv_form(source)
    lines = list(records(text, delimiter))[header:]
    if len(lines) != len(take) or min(map(len, lines)) <= column:
        raise InputError(
            f"the rows of {source.name} are not all alike: write the file again, with quotes where needed",
            code="ragged-rows",
        )
    parts, end = [], 0
    gone = frozenset(left_out)
    for row in sorted({*changes, *gone}):
        if row in gone:  # with the end of its line
            parts.append(text[end : lines[row][0][0]])
            end = lines[row + 1][0][0] if row + 1 < len(lines) else len(text)
            continue
        (start, stop), (first, last) = lines[row][column], lines[take[row]][column]
        parts += [text[end:start], text[first:last]]
        end = stop
    return "".join([*parts, text[end:]]).encode("utf-8", "surrogateescape")


def records(text: str, delimiter: str) -> Iterator[list[tuple[int, int]]]:
    """Where the cells of each line of a CSV file begin and end, quotes included; empty lines are no lines.

    Example:
        >>> text = 'a,"b,""c"\\r\\n\\r\\nd,'
        >>> [[text[a:b] for a, b in cells] for cells in records(text, ",")]
        [['a', '"b,""c"'], ['d', '']]
    """
    other = f"[^{re.escape(delimiter)}\r\n]*"
    cell = re.compile(f'"[^"]*(?:""[^"]*)*"{other}|{other}')
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        if text[at] in "\r\n":
            at += 1
            continue
        cells = []
        while True:
            match = cell.match(text, at)
            assert match is not None  # the pattern fits an empty text
            cells.append(match.span())
            at = match.end()
            if not text.startswith(delimiter, at):
                break
            at += 1
        yield cells
