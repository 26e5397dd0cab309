"""An audit without training: from probabilities or features that the user has already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import as_array, check_text, numbers_of
from crust._util.progress import progress_bar
from crust.audit.duplicates import duplicates
from crust.audit.judged_by_features import from_features
from crust.audit.label_quality import balanced, class_factors, issues, label_quality
from crust.audit.noise_rate import noise_rate
from crust.audit.reliability import mark
from crust.data.labels import encode_labels
from crust.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SUM = 0.01  # how far from one the probabilities of an example may sum: half precision comes so near


def find_label_issues(
    labels: Any, pred_probs: Any = None, features: Any = None, *, progress: bool = False
) -> pd.DataFrame:
    """Label issues without training: from out-of-sample probabilities, or from features such as embeddings.

    Args:
        labels: one label an example: whole numbers or text, as a list, an array or a pandas Series.
        pred_probs: (n, classes) probabilities of networks that were not trained on the examples they judge. Labels
            that are whole numbers are columns; with labels as text the columns are those that a DataFrame names, or
            else the classes in sorted order.
        features: (n, d) numbers, on one scale; probabilities are then made from them (`from_features`).
        progress: show a bar on stderr where it takes longer than two seconds.

    Returns:
        The table that `Result.audit` returns, one row an example; `selection_rate` and `mean_weight` are empty, since
        nothing was selected.

    Example:
        >>> table = find_label_issues(["cat", "dog", "cat"], [[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]])
        >>> table["predicted_label"].tolist(), int(table["label_quality"].argmin())
        (['cat', 'dog', 'dog'], 2)
    """
    import pandas as pd

    if (pred_probs is None) == (features is None):
        both = "neither pred_probs nor features are" if pred_probs is None else "pred_probs and features are both"
        raise InputError(f"{both} given: give one of them", code="pred-probs-or-features")
    labels = _one_each(labels)
    p: NDArray[np.floating]
    if features is not None:
        codes, classes = encode_labels(labels)
        x = _numbers(features, "the features", len(codes))
        with progress_bar("comparing features", progress) as report:
            p = from_features(x, codes, len(classes), report)
    else:
        p = _probabilities(pred_probs)
        codes, classes = _encode(labels, pred_probs, p.shape[1])
        if len(codes) != len(p):
            raise InputError(
                f"there are {len(codes)} labels for {len(p)} rows of probabilities: give one label a row",
                code="labels-length",
            )
    p = balanced(p, class_factors(p, codes))
    rows = np.arange(len(codes))
    given = p[rows, codes]
    others = p.copy()
    others[rows, codes] = -1
    names = np.empty(len(classes), dtype=object)
    names[:] = list(classes)
    nothing = np.full(len(codes), np.nan)
    table = {
        "index": rows,
        "given_label": pd.Series(names[codes], dtype=object).infer_objects(),
        "predicted_label": pd.Series(names[p.argmax(axis=1)], dtype=object).infer_objects(),
        "predicted_prob": p.max(axis=1),
        "label_quality": label_quality(p, codes),
        "is_label_issue": np.zeros(len(codes), bool),  # by the whole table, below
        "selection_rate": nothing,
        "mean_weight": nothing,
        "mean_loss": -np.log(np.maximum(given, 1e-12)),
        "aum": given - others.max(axis=1),
        "is_held_out": np.zeros(len(codes), bool),
    }
    if features is not None:
        same = duplicates([(x, rows)])
        table["duplicate_of"] = np.array([same.get(row, -1) for row in range(len(codes))])
    found = pd.DataFrame(table)
    rate = noise_rate(found, len(classes)).value
    found["is_label_issue"] = issues(found["label_quality"].to_numpy(), codes, p.argmax(axis=1), rate)
    return mark(found)


def _one_each(labels: Any) -> Any:
    """The labels, refused where an example has several or where they cannot be read as text."""
    try:
        labels = values = as_array(labels, "the labels")
    except InputError as error:
        if error.code != "ragged":
            raise
        values = np.array([[]])  # lists of different lengths
    several = (list, tuple, set, frozenset, dict, np.ndarray)
    if values.ndim != 1 or (values.dtype.kind == "O" and any(isinstance(value, several) for value in values)):
        raise InputError(
            "the labels are not one an example: several labels an example cannot be audited, so give one",
            code="labels-shape",
        )
    if values.dtype.kind in "SUO":
        check_text(values.tolist(), "the labels")
    return labels


def _encode(labels: Any, probs: Any, columns: int) -> tuple[NDArray[np.int64], list[Any]]:
    """Labels as numbers of columns, and the names of the columns."""
    values = np.asarray(labels)
    text = values.dtype.kind in "US" or (values.dtype.kind == "O" and any(isinstance(v, str) for v in values.flat))
    named = list(getattr(probs, "columns", []))
    if not text:
        _check_numbers(values, named)
        return encode_labels(labels, list(range(columns)))
    if any(isinstance(name, str) for name in named):
        # By name or not at all: columns in another order than the names' would make good labels wrong.
        named = [str(name) for name in named]
        for row, value in enumerate(values.flat):
            label = value.decode() if isinstance(value, bytes) else str(value)
            if label not in named:
                raise InputError(
                    f"label {label!r} in row {row} is no column of the probabilities, which are "
                    f"{', '.join(named[:10])}{' …' if len(named) > 10 else ''}: name the columns as the labels are",
                    code="unknown-column",
                )
        return encode_labels(labels, named)
    codes, classes = encode_labels(labels)
    if len(classes) != columns:
        raise InputError(
            f"the labels name {len(classes)} classes, but there are {columns} columns of probabilities: give a "
            "DataFrame whose columns have the names of the classes",
            code="columns-count",
        )
    return codes, classes


def _check_numbers(values: NDArray[Any], named: list[Any]) -> None:
    """Refuse labels that are numbers where the columns are called by other ones: 1, 2, 3 in place of 0, 1, 2."""
    names = [str(name) for name in named]
    if not names or not all(name.isdecimal() for name in names) or names == [str(i) for i in range(len(names))]:
        return
    raise InputError(
        f"the labels are numbers of columns, from 0, but the columns of the probabilities are called "
        f"{', '.join(names[:10])}{' …' if len(names) > 10 else ''}: give the labels as text, or columns without names",
        code="unknown-column",
    )


def _probabilities(probs: Any) -> NDArray[np.float64]:
    p = _numbers(probs, "the probabilities")
    if p.shape[1] < 2:
        raise InputError("the probabilities have one column: give a column for each class", code="columns-count")
    for bad, what in ((p < -SUM, "negative"), (p > 1 + SUM, "above one")):
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"row {row} of the probabilities holds {p[row, column]:g}, which is {what}: use a softmax",
                code="not-probabilities",
            )
    total = p.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > SUM)
    if off.size:
        raise InputError(
            f"row {off[0]} of the probabilities sums to {total[off[0]]:.3g}, not to one: use a softmax",
            code="not-probabilities",
        )
    return np.maximum(p, 0)


def _numbers(values: Any, what: str, n: int | None = None) -> NDArray[np.float64]:
    """A matrix of finite numbers, with as many rows as there are labels."""
    found = numbers_of(values, what).astype(np.float64)
    if found.ndim != 2:
        raise InputError(f"{what} have shape {found.shape}: give one row an example, shape (n, columns)", code="shape")
    if not found.size:
        raise InputError(f"{what} are empty, shape {found.shape}: give at least one row and one column", code="empty")
    if n is not None and len(found) != n:
        raise InputError(
            f"there are {n} labels for {len(found)} rows of {what}: give one label a row", code="labels-length"
        )
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"row {row}, column {column} of {what} holds {found[row, column]}: give finite numbers", code="not-finite"
        )
    return found
