"""Points in .npy files: one large file, or a folder of many, on this machine or spread over those of a cluster.

Their rows count through, file after file in the order of their names. Only pieces are ever read, by whoever works on
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign_files import check_regular
from crust.errors import InputError
from crust.selection import input_checks
from crust.selection.distances import as_float64, directions, shifted

SUFFIX = ".npy"


@dataclass(frozen=True)
class ShardFile:
    """One file, and which machines have it (none named: all of them)."""

    path: str
    rows: int
    columns: int
    dtype: str
    nodes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.path).name

    def open(self) -> NDArray[Any]:
        """Its rows, mapped into memory and not read yet."""
        array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return array


@dataclass(frozen=True)
class Form:
    """What is done to points before distances are computed: see `distances.group_points`."""

    metric: str
    exponent: int = 0

    def read(self, file: ShardFile, rows: Any) -> NDArray[np.float64]:
        """Some rows of a file as the kernels need them."""
        points = as_float64(file.open()[rows])
        found: NDArray[np.float64] = directions(points) if self.metric == "cosine" else shifted(points, self.exponent)
        return found


class ShardFiles:
    """All files in order."""

    def __init__(self, files: list[ShardFile]):
        self.files = files
        self.ends = np.cumsum([file.rows for file in files])

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.ends[-1]), self.files[0].columns

    def start(self, number: int) -> int:
        """The row that the first one of a file is, of all."""
        return int(self.ends[number]) - self.files[number].rows

    def spans(self, points: int) -> Iterator[tuple[int, slice]]:
        """Runs of about so many rows: the number of their file, and the rows in it."""
        for number, file in enumerate(self.files):
            count = -(-file.rows // points)
            for s in range(count):
                yield number, slice(s * file.rows // count, (s + 1) * file.rows // count)

    def split(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Rows of all, by file: the number of the file, where these stand in `rows`, and which ones they are in it."""
        of = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(of).tolist():
            where = np.flatnonzero(of == number)
            yield number, where, rows[where] - self.start(number)


def are_files(features: Any) -> bool:
    """Whether somebody names files in place of points."""
    if isinstance(features, str | os.PathLike):
        return True
    many = isinstance(features, list | tuple) and len(features) > 0
    return many and all(isinstance(name, str | os.PathLike) for name in features)


def mapped_file(features: Any) -> str | None:
    """The .npy file whose content a memory map is, as a whole; None for anything else."""
    path = getattr(features, "filename", None) if isinstance(features, np.memmap) else None
    if path is None or not str(path).lower().endswith(SUFFIX):
        return None
    try:
        whole = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):  # changed since, or no .npy inside
        return None
    same = (whole.shape, whole.dtype, whole.strides) == (features.shape, features.dtype, features.strides)
    return str(path) if same else None


def find_files(features: Any, engine: Any = None) -> ShardFiles:
    """The files that are named, as the machines of an engine see them; without one, as this machine does.

    A name is that of a .npy file, or of a folder of them; several count in the order they are given.
    """
    names = [features] if isinstance(features, str | os.PathLike) else list(features)
    paths = [os.path.abspath(os.fspath(name)) for name in names]  # noqa: PTH100  (links stay as they are)
    if hasattr(engine, "look"):
        seen = engine.look(describe, paths)
    else:
        seen = [("", describe(paths))]
    found: dict[str, ShardFile] = {}
    nodes: dict[str, list[str]] = {}
    for node, files in seen:
        for file in files:
            if found.setdefault(file.path, file) != file:
                raise InputError(
                    f"{file.path} is not the same on all machines: give each file a name of its own",
                    code="files-differ",
                )
            nodes.setdefault(file.path, []).append(node)
    for path, name in zip(paths, names, strict=True):
        if not any(file == path or str(Path(file).parent) == path for file in found):
            there = Path(path).is_dir()
            what = f"{name} has no {SUFFIX} files" if there else f"there is no file or folder {name}"
            where = " on any machine of the cluster" if hasattr(engine, "look") and not there else ""
            raise InputError(
                f"{what}{where}: give a folder of files such as part-0.npy, with one point a row", code="missing-file"
            )
    files = []
    for path, file in _ordered(found, paths):
        everywhere = len(nodes[path]) == len(seen)
        files.append(file if everywhere else replace(file, nodes=tuple(nodes[path])))
    for file in files:
        if file.columns != files[0].columns:
            raise InputError(
                f"{file.name} has {file.columns} columns, but {files[0].name} has {files[0].columns}: "
                "all shards need the same number",
                code="columns-differ",
            )
    return ShardFiles(files)


def _ordered(found: dict[str, ShardFile], paths: list[str]) -> Iterator[tuple[str, ShardFile]]:
    """In the order that was given; those of a folder by name. A file that is named twice counts once."""
    for path in dict.fromkeys(paths):
        inside = [path] if path in found else sorted(p for p in found if str(Path(p).parent) == path)
        for one in inside:
            if one in found:
                yield one, found.pop(one)


def describe(paths: list[str]) -> list[ShardFile]:
    """What of these files and folders is on this machine; only the heads of the files are read."""
    files = []
    for path in map(Path, paths):
        inside = sorted(path.iterdir()) if path.is_dir() else [path] if path.is_file() else []
        for file in inside:
            if path.is_dir() and (file.suffix.lower() != SUFFIX or file.name.startswith(".")):
                continue
            files.append(_head(file))
    return files


def _head(path: Path) -> ShardFile:
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path} is no {SUFFIX} file: save its array with numpy.save", code="not-npy")
    check_regular(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(". ")
        raise InputError(
            f"cannot read {path}: truncated, empty or no {SUFFIX} file ({reason})", code="damaged-file"
        ) from None
    if 0 in array.shape:
        raise InputError(f"{path} is empty (shape {array.shape}): take it out of the folder", code="empty")
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InputError(
            f"{path} has shape {array.shape} and type {array.dtype}: give numbers of up to 64 bits in two dimensions, "
            "one row a point",
            code="not-numbers",
        )
    return ShardFile(str(path), len(array), array.shape[1], str(array.dtype))


# ---------------------------------------------------------------- what workers are asked


@dataclass(frozen=True)
class ShardRows:
    """Some rows of a file, in some form."""

    file: ShardFile
    rows: Any  # a slice, or positions
    form: Form

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.file.nodes


def fetch(wanted: ShardRows) -> NDArray[np.float64]:
    """The points themselves."""
    return wanted.form.read(wanted.file, wanted.rows)


@dataclass(frozen=True)
class Seen:
    """What a look at all values of some rows finds: the largest, and the rows that cannot be used."""

    largest: float
    not_finite: NDArray[np.int64]
    zero: NDArray[np.int64]


def survey(wanted: ShardRows) -> Seen:
    """Look at some rows as they stand in the file."""
    array, start = wanted.file.open()[wanted.rows], wanted.rows.start
    bad = zero = np.empty(0, np.int64)
    if array.dtype.kind == "f":
        bad = input_checks.rows_where(array, input_checks.not_finite)
    if wanted.form.metric == "cosine":
        zero = input_checks.rows_where(array, input_checks.all_zero)
    largest = 0.0 if len(bad) else max(float(array.max()), -float(array.min()))
    return Seen(largest, bad + start, zero + start)
