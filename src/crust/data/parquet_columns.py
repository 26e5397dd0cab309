"""Parquet files that are larger than memory should hold: one column at a time, or rows piece by piece."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE_ROWS = 2**16  # that are read at once


class ParquetColumns:
    """A Parquet file as a table of pyarrow's, of which no more than a column, or a piece of its rows, is in memory.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> path = Path(tempfile.mkdtemp()) / "x.parquet"
        >>> pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), path, row_group_size=2)
        >>> table = ParquetColumns(path).slice(0, 2)
        >>> table.column_names, table.num_rows, table.column("b").to_pylist()
        (['a', 'b'], 2, ['x', 'y'])
        >>> [piece.num_rows for piece in table.pieces(["a"], rows=1)]
        [1, 1]
    """

    def __init__(self, path: Path, num_rows: int | None = None):
        import pyarrow.parquet

        self.path = path
        self.file = pyarrow.parquet.ParquetFile(path)
        self.column_names: list[str] = self.file.schema_arrow.names
        whole = self.file.metadata.num_rows
        self.num_rows = whole if num_rows is None else min(num_rows, whole)

    @property
    def num_columns(self) -> int:
        return len(self.column_names)

    @property
    def nbytes(self) -> int:
        """What all of it would take, about: the bytes of the row groups without compression."""
        groups = (self.file.metadata.row_group(i) for i in range(self.file.metadata.num_row_groups))
        return sum(group.total_byte_size for group in groups)

    def slice(self, first: int, rows: int) -> ParquetColumns:
        """The first so many rows."""
        assert first == 0
        return ParquetColumns(self.path, min(rows, self.num_rows))

    def column(self, name: str) -> Any:
        """One column, of the row groups that are needed."""
        groups, rows = [], 0
        for group in range(self.file.metadata.num_row_groups):
            if rows < self.num_rows:
                groups.append(group)
            rows += self.file.metadata.row_group(group).num_rows
        return self.file.read_row_groups(groups, columns=[name]).column(name).slice(0, self.num_rows)

    def select(self, names: list[str]) -> Any:
        """A table of some columns, read whole."""
        return self.file.read(columns=names).slice(0, self.num_rows)

    def pieces(self, names: list[str], rows: int = PIECE_ROWS) -> Iterator[Any]:
        """Tables of so many rows, in order, with some of the columns."""
        import pyarrow as pa

        left = self.num_rows
        for batch in self.file.iter_batches(rows, columns=names):
            if left <= 0:
                return
            piece = pa.Table.from_batches([batch]).slice(0, left)
            left -= piece.num_rows
            yield piece


def encoded_in_pieces(
    table: ParquetColumns,
    names: list[str],
    width: int,
    encode: Callable[[Any], NDArray[np.float32]],
    most: int,
) -> NDArray[np.float32]:
    """What `encode` makes of all rows: in memory up to `most` bytes, else a memory map of a file that goes at the end.

    Args:
        table: read piece by piece.
        names: the columns that are encoded.
        width: columns of the result.
        encode: a table to features, a row a row.
        most: bytes.
    """
    shape = (table.num_rows, width)
    if 4 * shape[0] * shape[1] <= most:
        found = np.empty(shape, np.float32)
    else:
        folder = Path(tempfile.mkdtemp(prefix="crust-table-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        found = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, shape)
    first = 0
    for piece in table.pieces(names):
        found[first : first + piece.num_rows] = encode(piece)
        first += piece.num_rows
    return found
