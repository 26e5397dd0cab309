"""`load`: data by name or from a path, and `load_new`: more of the same, in the same form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crust._util.foreign_files import check_regular, path_of
from crust.data import cifar, digits, image_folder, npz_dataset, table_dataset, webvision
from crust.data.examples import Bundle, Examples
from crust.data.matrix_io import TABLES
from crust.errors import InputError

NAMES = ("digits", "cifar10", "cifar100", "webvision")


def load(
    spec: str | Path,
    *,
    data_dir: str | Path | None = None,
    label_column: str | None = None,
    text_column: str | None = None,
    columns: Sequence[str] | None = None,
    image_size: int | None = None,
    skip_broken: bool = False,
    limit: int | None = None,
    test: str | Path | None = None,
) -> Bundle:
    """Load a dataset by name or from a path.

    | what | as |
    |---|---|
    | `digits` | scikit-learn's handwritten digits, 1297 to train on and 500 to test with |
    | `cifar10`, `cifar100` | torchvision's folder in `data_dir`, else NAME.npz there, else downloaded |
    | `webvision` | mini WebVision as its archives unpack into `data_dir`/webvision; ImageNet's test images beside it |
    | FILE.npz | arrays x and y, or x_train, y_train, x_test, y_test: features, or images (n, height, width, channels) |
    | FILE.csv, .tsv, .parquet | a table with one label column: numbers, categories, missing values; or texts |
    | FOLDER | images in class folders, or in class folders inside `train` and `test` (or `val`) |

    Args:
        spec: one of the above.
        data_dir: where named datasets are; by default the environment variable CRUST_DATA, else `data`.
        label_column: which column of a table holds the labels; by default `label`.
        text_column: the column of a table whose texts are learned from, in place of all others; where there is but one
            column besides the labels, and it holds texts, it need not be named.
        columns: which columns of a table to learn from; by default all others.
        image_size: the side in pixels that images in folders are brought to; by default their own where all are
            square and alike, else 224; for WebVision 299.
        skip_broken: leave out images that cannot be read, and say which.
        limit: only the first so many training examples; in class folders, those of every class in turn.
        test: a test set of the same kind from another path, in place of those that come with the data.

    Returns:
        The training examples, the test examples, and how to read more of the same.

    Example:
        >>> bundle = load("digits", limit=100)
        >>> len(bundle.train), bundle.train.shape, bundle.train.classes
        (100, (1, 8, 8), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
        raise InputError(f"the limit is {limit!r}: give a number of examples, at least 1", code="limit-range")
    image_folder.check_size(image_size)
    is_table = str(spec).lower().endswith(TABLES)
    if (label_column or text_column or columns) and not is_table:
        raise InputError(
            f"{spec} has no columns: name columns only of a table ({', '.join(TABLES)})", code="no-columns"
        )
    if text_column and columns:
        raise InputError(
            f"the text column {text_column!r} and columns are both named: give one of them", code="text-and-columns"
        )
    bundle = _load(spec, data_dir, label_column, text_column, columns, image_size, skip_broken, limit)
    if test is not None:
        bundle.test, bundle.more_tests = load_new(test, bundle.encoding, data_dir=data_dir, skip_broken=skip_broken), {}
        unknown = bundle.test.labels < 0
        if unknown.any():
            raise InputError(
                f"example {int(unknown.argmax())} of {test} has no known label: a test set needs them all",
                code="missing-label",
            )
    return bundle


def load_new(
    spec: str | Path, encoding: dict[str, Any], *, data_dir: str | Path | None = None, skip_broken: bool = False
) -> Examples:
    """Load examples in the form of those a network was trained on: for predictions.

    Args:
        spec: a path, or a name: then its test set.
        encoding: that of the `Bundle` trained on, also after a way through JSON.
        data_dir: where named datasets are.
        skip_broken: leave out images that cannot be read, and say which.

    Returns:
        The examples; labels are −1 where they are not known.

    Example:
        >>> bundle = load("digits")
        >>> len(load_new("digits", bundle.encoding))
        500
    """
    path, form = path_of(spec, "the data"), encoding["format"]
    if str(spec) in NAMES and not path.exists():
        if str(spec) == "webvision" and form == "images":  # not all its training images for the sake of these
            found: Examples | None = webvision.load_validation(
                _data_folder(data_dir), encoding["shape"][1], skip_broken
            )
        else:
            found = _load(spec, data_dir, None, None, None, None, skip_broken, None).test
        assert found is not None
        if list(found.shape) != encoding["shape"] or found.classes != encoding["classes"]:
            raise InputError(
                f"{spec} is not the kind of data that the network was trained on: give data like that",
                code="other-data",
            )
        return found
    _check_path(path, spec)
    if path.is_dir() and form == "images":
        return image_folder.load_new_folder(path, encoding, skip_broken)
    if path.suffix.lower() == ".npz" and form in ("images", "features"):
        return npz_dataset.load_new_npz(path, encoding)
    if path.suffix.lower() in TABLES and form == "table":
        return table_dataset.load_new_table(path, encoding)
    raise InputError(
        f"{spec} does not hold {FORM_WORDS[form]}, which the network was trained on: give data like that",
        code="other-data",
    )


FORM_WORDS = {"images": "images", "features": "arrays of features", "table": "a table"}


def _load(
    spec: str | Path,
    data_dir: str | Path | None,
    label_column: str | None,
    text_column: str | None,
    columns: Sequence[str] | None,
    image_size: int | None,
    skip_broken: bool,
    limit: int | None,
) -> Bundle:
    path = path_of(spec, "the data")
    if str(spec) == "digits":
        return digits.load_digits(limit)
    if str(spec) == "webvision":
        return webvision.load_webvision(_data_folder(data_dir), image_size, skip_broken, limit)
    if str(spec) in NAMES:
        return cifar.load_cifar(str(spec), _data_folder(data_dir), limit)
    _check_path(path, spec)
    if path.is_dir():
        return image_folder.load_folder(path, image_size, skip_broken, limit)
    if path.suffix.lower() == ".npz":
        return npz_dataset.load_npz(path, limit)
    return table_dataset.load_table(path, label_column, limit, columns, text_column)


def _data_folder(data_dir: str | Path | None) -> Path:
    """Where named datasets are."""
    return Path(data_dir or os.environ.get("CRUST_DATA") or "data")


def _check_path(path: Path, spec: str | Path) -> None:
    suffixes = (".npz", *TABLES)
    if not path.exists():
        raise InputError(
            f"there is no file or folder {spec}: check the path, or use one of {', '.join(NAMES)}", code="missing-file"
        )
    check_regular(path)
    if not path.is_dir() and path.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot train on {spec}: give a folder, or a file ending in one of {', '.join(suffixes)}", code="file-type"
        )
