"""What a user names to be shown: a file, a folder of images, texts, a table, arrays or a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import as_array, cannot_read, is_sequence
from crust._util.foreign_files import check_regular, path_of
from crust.errors import InputError
from crust.report.previews import Looks, Pictures, Rows, as_image, files_of, is_image, numbers_of, pictures_of, rows_of

if TYPE_CHECKING:
    import pandas as pd


def looks_of_shown(show: Any, audit: pd.DataFrame) -> Looks:
    """How to show the examples of an audit.

    Args:
        show: a `Looks`; the name of a table (`texts.csv`, `texts.csv:column`), of a .txt with one text a line, of a
            .npy or .npz of images or features, or of a folder that the ids of the audit are relative to; a list of
            texts, of images or of their paths; an array; a table; a dataset of texts or images.
        audit: whose `index` are positions in it; or whose `id` are names in a folder.

    Example:
        >>> import pandas as pd
        >>> looks_of_shown(["so good", "so bad"], pd.DataFrame({"index": [0, 1]})).row(1)
        ['so bad']
    """
    if hasattr(show, "columns") and callable(getattr(show, "picture", None)):
        return show  # type: ignore[no-any-return]
    if isinstance(show, str | Path):
        path = path_of(show, "what is to be shown")
        if path.is_dir():
            return looks_of_folder(path, audit)
        found, count = _of_file(str(show))
        return _fitting(found, count, audit, path.name)
    found, count = _of_object(show)
    return _fitting(found, count, audit, "what is to be shown")


def numbers_of_shown(show: Any) -> NDArray[Any] | None:
    """A row of numbers an example, where arrays of features or images are shown; else None.

    Example:
        >>> numbers_of_shown(np.zeros((5, 8, 8))).shape, numbers_of_shown(["a text"])
        ((5, 64), None)
    """
    from crust.data import matrix_io

    if isinstance(show, str | Path):
        path, key = matrix_io.split_spec(str(show))
        if path.suffix.lower() not in (".npy", ".npz"):
            return None
        with matrix_io.reading(path):
            show = matrix_io.open_array(path, key)
    if not isinstance(show, np.ndarray) or show.ndim < 2 or show.dtype.kind not in "biuf" or not len(show):
        return None
    return show.reshape(len(show), -1)


def looks_of_folder(root: Path, audit: pd.DataFrame) -> Looks:
    """The image files that the audit names, below a folder."""
    from crust.data.image_folder import train_root

    if "id" not in audit:
        raise InputError(
            f"the audit has no column id that would name the files below {root}: give one", code="missing-ids"
        )
    ids = [_below(root, name) for name in audit["id"].astype(str).tolist()]
    names = dict(zip(audit["index"].tolist(), ids, strict=True))
    base = root
    if not any((root / name).is_file() for name in list(names.values())[:100]):
        try:
            base = train_root(root)
        except InputError:  # not one of class folders
            base = root
    return files_of(base, names, parts=1)


def _below(root: Path, name: str) -> str:
    """A name relative to the folder, where it is a whole path to something in it."""
    path = Path(name)
    return path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else name


def _fitting(found: Looks, count: int, audit: pd.DataFrame, name: str) -> Looks:
    """Refuse what has other examples than the audit: the same number, or at least all that a part of them names."""
    index = audit["index"].to_numpy()
    whole = len(index) == index.max() + 1
    if (whole and count != len(index)) or index.max() >= count:
        what = f"there are {len(index):,} labels" if whole else f"the audit names example {index.max():,}"
        raise InputError(f"{name} has {count:,} examples, but {what}: give the same ones", code="labels-length")
    return found


def _of_file(spec: str) -> tuple[Looks, int]:
    from crust.data import matrix_io, table_io

    head, colon, column = spec.rpartition(":")
    named = bool(colon) and head.lower().endswith(matrix_io.TABLES) and not Path(spec).exists()
    path = Path(head if named else spec)
    check_regular(path)
    if path.suffix.lower() == ".txt":
        try:
            lines = texts_of_file(path)
        except OSError as error:
            raise InputError(
                f"cannot read {path}: {(error.strerror or str(error)).lower()}", code="cannot-read"
            ) from None
        return Rows(["text"], lambda index: [lines[index]]), len(lines)
    if path.suffix.lower() in matrix_io.TABLES:
        with matrix_io.reading(path):
            table = table_io.read_table_file(path)
        if named:
            if column not in table.column_names:
                raise InputError(
                    f"{path.name} has no column {column!r}: it has {table_io.listed(table.column_names)}",
                    code="missing-column",
                )
            table = table.select([column])
        return rows_of(table, [""]), table.num_rows
    with matrix_io.reading(path):
        values = matrix_io.open_array(*matrix_io.split_spec(spec))
    return _of_array(values, path.name), len(values)


def _of_object(show: Any) -> tuple[Looks, int]:
    from crust.data import Examples

    if isinstance(show, Examples):
        if show.kind == "tokens":
            return rows_of({"text": show.inputs.texts}), len(show)
        return (numbers_of(show.inputs) if show.kind == "features" else pictures_of(show)), len(show)
    if isinstance(show, dict):
        return _of_columns(show), len(next(iter(show.values())))
    names = getattr(show, "column_names", None)  # of Arrow's tables and of datasets
    if names is not None and not callable(names):
        _check_column_names(names)
        columns = {str(name): show[name] for name in names}
        images = [name for name, values in columns.items() if len(values) and _is_picture(values[0])]
        if images:
            return _of_list(columns[images[0]])
        return rows_of(show), len(show)
    if hasattr(show, "columns") and hasattr(show, "iloc"):
        _check_column_names(list(show.columns))
        return rows_of(show), len(show)
    if hasattr(show, "shape") and not hasattr(show, "iloc"):
        values = as_array(show, "what is to be shown")
        if values.ndim > 1:
            return _of_array(values, "what is to be shown"), len(values)
    if not is_sequence(show):
        raise InputError(
            f"a {type(show).__name__} cannot be shown: give texts, images, a table, a folder or a dataset",
            code="cannot-show",
        )
    return _of_list(show.tolist() if hasattr(show, "tolist") else show)


def _of_columns(show: dict[Any, Any]) -> Looks:
    """A dict of columns, all of one length."""
    _check_column_names(list(show))
    if not all(is_sequence(values) for values in show.values()) or len({len(values) for values in show.values()}) > 1:
        raise InputError(
            "what is to be shown has columns of different lengths: give each one value an example", code="ragged"
        )
    return rows_of(show)


def _check_column_names(names: Sequence[Any]) -> None:
    if not len(names):
        raise InputError("what is to be shown has no columns: give one at least", code="empty")
    if len({str(name) for name in names}) < len(names):
        raise InputError("what is to be shown has two columns of one name: rename one of them", code="duplicate-column")


def _of_list(values: Sequence[Any]) -> tuple[Looks, int]:
    """Texts, images, paths of images, or items of a dataset, whose inputs are one of these."""
    what = "what is to be shown"
    try:
        count = len(values)
    except Exception as error:  # of a class of the user's own
        raise cannot_read(what, error) from error
    if not count:
        raise InputError("there is nothing to show: give one item an example", code="empty")

    def item(index: int) -> Any:
        try:
            found = values[index]
        except Exception as error:
            raise cannot_read(f"item {index} of {what}", error) from error
        return found[0] if isinstance(found, tuple) and len(found) else found

    first = item(0)
    if isinstance(first, dict):
        columns = [name for name, value in first.items() if isinstance(value, str | int | float)]
        pictures = [name for name, value in first.items() if _is_picture(value)]
        if pictures:
            return Pictures(lambda index: _picture(_field_of(item(index), pictures[0]))), count
        _check_column_names(columns)
        return Rows(columns, lambda index: [_field_of(item(index), name) for name in columns]), count
    if _is_picture(first):
        return Pictures(lambda index: _picture(item(index))), count
    return Rows(["text"], lambda index: [item(index)]), count


def _field_of(item: Any, name: Any) -> Any:
    """What an item has by that name; nothing where it is no dict, or has none."""
    return item.get(name) if isinstance(item, dict) else None


def _is_picture(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(value, Path) or hasattr(value, "convert") or (shape is not None and is_image(tuple(shape)))


def _picture(value: Any) -> Any:
    if isinstance(value, Path):
        from crust.data.image_folder import open_image

        return open_image(value)
    return value if hasattr(value, "convert") else as_image(np.asarray(value))


def texts_of_file(path: Path) -> list[str]:
    """One text a line. A text may hold form feeds and whatever else Unicode takes for the end of a line."""
    lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    if not lines[-1]:  # after the end of the last line
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _of_array(values: Any, name: str) -> Looks:
    """The rows of a matrix, or images; whatever else there is could not be shown."""
    if values.dtype.kind not in "biuf" or (values.ndim != 2 and not is_image(values.shape[1:])):
        raise InputError(
            f"{name} has shape {values.shape} of {values.dtype}, which is neither features nor images: give numbers of "
            "shape (n, features), (n, height, width), or images with 1, 3 or 4 channels",
            code="array-shape",
        )
    return numbers_of(values) if values.ndim == 2 else Pictures(lambda index: as_image(values[index]))
