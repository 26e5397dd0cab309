"""Files to write: checked before the work that would be lost, and written whole."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crust._util.foreign_files import path_of
from crust.errors import InputError


def check_output(
    path: Path | None, option: str, suffixes: tuple[str, ...], inputs: Iterable[str | Path | None] = ()
) -> None:
    """Refuse a file that could not be written, before the work that would be lost.

    Example:
        >>> check_output(Path("coreset.txt"), "-o", (".parquet",))
        Traceback (most recent call last):
        ...
        crust.errors.InputError: -o coreset.txt: the name must end in .parquet
    """
    if path is None:
        return
    path_of(path, option)
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{option} {path}: the name must end in {' or '.join(suffixes)}", code="file-type")
    if any(name is not None and os.path.realpath(_file_of(name)) == os.path.realpath(path) for name in inputs):
        raise InputError(
            f"{option} {path} would overwrite what is read: write to another file", code="overwrites-input"
        )
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{option} {path}: there is no folder {folder}; create it first, or write somewhere else",
            code="missing-folder",
        )
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{option} {path} is {kind}: give the name of a file", code="not-a-file")
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"{option} {path}: the folder {folder} cannot be written to; write somewhere else", code="cannot-write"
        )


def _file_of(name: str | Path) -> Path:
    """The file that is meant by `file.csv:column`, `file.npz:key` or `file.npy`."""
    head, colon, _ = str(name).rpartition(":")
    return Path(head) if colon and head and not Path(name).exists() else Path(name)


def write_table(table: Any, path: Path) -> None:
    """A pandas table as .csv or .parquet, by the name of the file; whole or not at all."""
    from io import BytesIO

    from crust._util.atomic_write import write_atomic

    if path.suffix.lower() == ".csv":
        write_atomic(path, _as_csv(table))
        return
    buffer = BytesIO()
    table.to_parquet(buffer, index=False)
    write_atomic(path, buffer.getvalue())


def _as_csv(table: Any) -> bytes:
    """Text in quotes where a cell holds a carriage return: pandas leaves it bare, and readers end the line there."""
    found = str(table.to_csv(index=False, lineterminator="\n"))
    if "\r" in found:
        found = str(table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return found.encode()
