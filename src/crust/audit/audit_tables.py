"""Tables of label issues: which labels are suspects, and tables of other tools as ours."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import date
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import INT64, check_text
from crust._util.foreign_files import LONGEST
from crust.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# How other tools call our columns, the first that is there: crust, cleanlab's CleanLearning and Datalab, plain tables.
NAMES = {
    "given_label": ("given_label", "given", "label", "target"),
    "predicted_label": ("predicted_label", "suggested_label", "predicted", "suggested", "prediction", "corrected"),
    "label_quality": ("label_quality", "label_score", "quality", "score"),
    "predicted_prob": ("predicted_prob", "probability", "confidence"),
    "is_label_issue": ("is_label_issue", "is_issue", "issue"),
    "index": ("index", "Unnamed: 0", ""),
    "id": ("id", "file", "path", "filename", "filepath", "image", "name"),
}
WORST = ("error_score", "mistakenness", "doubt")  # scores that are high where a label is bad
NEEDED = ("given_label", "predicted_label", "label_quality")
# Of what kind our own columns are, where they are there, by what numpy calls it; and which hold lists of positions.
KINDS = {"index": "iu", "predicted_prob": "fiu", "label_quality": "fiu", "selection_rate": "fiu", "is_held_out": "b",
         "is_label_issue": "b", "duplicate_of": "iu", "mean_loss": "fiu", "mean_weight": "fiu",
         "aum": "fiu"}  # fmt: skip
MOST = 10_000  # characters of a label
LISTS = ("medoids", "medoid_labels")
TRUE, FALSE = ("true", "1", "1.0", "yes"), ("false", "0", "0.0", "no")
WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")


def as_audit(table: pd.DataFrame, what: str = "the table") -> tuple[pd.DataFrame, list[Any]]:
    """A table of label issues as an audit, and its classes: those that occur, sorted.

    Args:
        table: a row an example. Needed are a given label, a predicted one and a score, called as in crust or in
            cleanlab (`CleanLearning.get_label_issues`, `Datalab.get_issues("label")`); `index` and `id` say which
            example a row means, and without `index` it is the row's place. Other columns stay.
        what: what to call it in messages.

    Example:
        >>> import pandas as pd
        >>> theirs = {"is_label_issue": [True, False], "label_score": [0.1, 0.9], "given_label": ["a", "b"]}
        >>> found, classes = as_audit(pd.DataFrame({**theirs, "predicted_label": ["b", "b"]}))
        >>> found[["index", "given_label", "predicted_label", "label_quality"]].values.tolist(), classes
        ([[0, 'a', 'b', 0.1], [1, 'b', 'b', 0.9]], ['a', 'b'])
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{what} is a {type(table).__name__}: give a table of label issues", code="not-an-audit")
    if not len(table):
        raise InputError(f"{what} has no rows: give at least one example", code="empty")
    every = pd.Series([str(name) for name in table.columns])
    if not every.is_unique:
        twice = every[every.duplicated()].iloc[0]
        raise InputError(f"{what} has the column {twice!r} twice: rename one of them", code="duplicate-column")
    for name, column in table.items():
        if column.dtype == object or pd.api.types.is_string_dtype(column.dtype):
            check_text(column, f"the column {name} of {what}")
    columns = {str(name): name for name in table.columns}
    sources = {ours: next((columns[name] for name in names if name in columns), None) for ours, names in NAMES.items()}
    worst = next((columns[name] for name in WORST if name in columns), None)
    missing = [name for name in NEEDED if sources[name] is None and not (name == "label_quality" and worst is not None)]
    if missing:
        there = ", ".join(list(columns)[:12]) + (", …" if len(columns) > 12 else "")
        raise InputError(
            f"{what} has no column {missing[0]} (it has {there}): an audit needs given_label, predicted_label and "
            "label_quality, or what cleanlab calls them",
            code="missing-column",
        )
    used = {name for name in sources.values() if name is not None}
    found = table[[name for name in table.columns if name not in used and name != worst]].reset_index(drop=True)
    for name in (name for name in found if "f" in KINDS.get(str(name), "") and found[name].dtype == object):
        with contextlib.suppress(ValueError, TypeError):  # else it is refused below
            found = found.assign(**{name: pd.to_numeric(found[name].replace("", np.nan))})
    parts: dict[str, Any] = {"index": _positions(table, sources["index"], what)}
    if sources["id"] is not None:
        parts["id"] = table[sources["id"]].astype(str).to_numpy()
    labels = ("given_label", "predicted_label")
    both = pd.concat([_labels(table[sources[name]], f"the column {sources[name]} of {what}") for name in labels])
    for name, part in zip(labels, np.array_split(_as_numbers(both).to_numpy(), 2), strict=True):
        parts[name] = pd.Series(part)
    score = table[worst if sources["label_quality"] is None else sources["label_quality"]]
    parts["label_quality"] = _scores(score, what, sources["label_quality"] is None)
    prob = sources["predicted_prob"]
    parts["predicted_prob"] = np.nan if prob is None else _scores(table[prob], what, False)
    issue = sources["is_label_issue"]
    differs = parts["given_label"].astype(str) != parts["predicted_label"].astype(str)
    parts["is_label_issue"] = differs.to_numpy() if issue is None else _truths(table[issue], what)
    nothing = {"selection_rate": np.nan, "is_held_out": False}
    parts |= {name: value for name, value in nothing.items() if name not in found}
    head = pd.DataFrame(parts)
    classes = classes_of(head)
    if all(isinstance(name, str) for name in classes):
        for name in ("given_label", "predicted_label"):
            head[name] = head[name].astype(object)
    whole = pd.concat([head, found], axis=1)
    odd = odd_column(whole)
    if odd is not None:
        raise InputError(f"{what} has {odd}, by which crust means something else: rename it", code="column-type")
    return whole, classes


def odd_column(table: pd.DataFrame) -> str | None:
    """One of our own columns that holds something else than we would have written; None where all are as they should.

    Example:
        >>> import pandas as pd
        >>> odd_column(pd.DataFrame({"aum": ["a"]}))
        "a column 'aum' of type str"
    """
    for name, kinds in KINDS.items():
        if name in table and table[name].dtype.kind not in kinds:
            return f"a column {name!r} of type {table[name].dtype}"
    if "medoids" in table:
        for row, value in enumerate(table["medoids"].tolist()):
            whole = value is None or np.asarray(value).dtype.kind in "iu" or not np.size(value)
            if not whole or np.ndim(value) != (value is not None):
                return f"a column 'medoids' whose row {row} is no list of positions"
    return None


def classes_of(audit: pd.DataFrame) -> list[Any]:
    """The classes that occur in an audit, in order."""
    found = {*audit["given_label"].tolist(), *audit["predicted_label"].tolist()}
    return sorted(found, key=lambda name: (isinstance(name, str), name))


def suspects(audit: pd.DataFrame, verified: dict[str, Any] | None = None) -> NDArray[np.bool_]:
    """Which labels are listed as wrong, the same ones wherever they are counted, listed, exported or reviewed.

    Those up to the cut that `crust verify` recommends, where it was asked; else what the audit calls label issues.

    Example:
        >>> import pandas as pd
        >>> found = pd.DataFrame({"label_quality": [0.1, 0.4, 0.9], "is_label_issue": [True, False, False]})
        >>> suspects(found).tolist(), suspects(found, {"cut": {"threshold": 0.5}}).tolist()
        ([True, False, False], [True, True, False])
    """
    cut = (verified or {}).get("cut")
    if cut is not None:
        return np.asarray(1 - audit["label_quality"].to_numpy(np.float64) >= cut["threshold"])
    if "is_label_issue" in audit:
        return audit["is_label_issue"].to_numpy(bool)
    return (audit["given_label"] != audit["predicted_label"]).to_numpy(bool)


def differing(audit: pd.DataFrame, classes: Sequence[Any]) -> tuple[NDArray[np.int64], int]:
    """How many labels are given (rows) and predicted (columns) class by class; and how many differ.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "b", "b"], "predicted_label": ["a", "a", "b"]}
        >>> counts, differ = differing(pd.DataFrame(columns), ["a", "b"])
        >>> counts.tolist(), differ
        ([[1, 0], [1, 1]], 1)
    """
    from crust.data.labels import column_codes

    given, better = (column_codes(audit[name], classes, name) for name in ("given_label", "predicted_label"))
    counts = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(counts, (given, better), 1)
    return counts, int(counts.sum() - np.trace(counts))


def _positions(table: pd.DataFrame, column: Any, what: str) -> NDArray[np.int64]:
    """Which example each row means: as a column says, or the index of the frame, or the place."""
    values: Any = table.index if column is None else table[column]
    numbers = np.asarray(values)
    whole = numbers.dtype.kind in "iu" and bool((numbers <= np.iinfo(np.int64).max).all())
    if numbers.dtype.kind == "f":
        whole = bool((np.isfinite(numbers) & (np.abs(numbers) < INT64)).all()) and bool(
            (numbers == numbers.round()).all()
        )
    if not whole or (numbers < 0).any():
        if column is None:
            return np.arange(len(table))
        raise InputError(f"the column index of {what} holds no positions: give whole numbers from 0", code="index-type")
    numbers = numbers.astype(np.int64)
    unique, counts = np.unique(numbers, return_counts=True)
    if len(unique) < len(numbers):
        twice = unique[counts > 1][0]
        raise InputError(f"{what} has example {twice} twice: leave one of the rows out", code="duplicate-example")
    return numbers


def _labels(values: pd.Series, where: str) -> pd.Series:
    labels = values.tolist()
    missing = np.flatnonzero(values.isna())
    if missing.size:
        raise InputError(f"row {missing[0]} of {where} is empty: give every example a label", code="missing-label")
    kinds = set(map(type, labels))
    odd = next((kind for kind in kinds if not issubclass(kind, str | Real | date | np.bool_)), None)
    if odd is not None:
        row = next(row for row, label in enumerate(labels) if type(label) is odd)
        raise InputError(
            f"row {row} of {where} holds a {odd.__name__}, which is no label: give text or whole numbers",
            code="labels-type",
        )
    if any(len(_label_text(label)) > MOST for label in set(labels)):
        raise InputError(f"a label in {where} is longer than {MOST:,} characters: shorten it", code="labels-type")
    blank = {label for label in set(labels) if isinstance(label, str) and not label.strip()}
    if blank:
        row = next(row for row, label in enumerate(labels) if label in blank)
        raise InputError(f"row {row} of {where} is empty: give every example a label", code="missing-label")
    return values.astype(object)


def _label_text(label: Any) -> str:
    try:
        return str(label)
    except ValueError:  # more digits than Python writes
        return " " * (MOST + 1)


def _as_numbers(values: pd.Series) -> pd.Series:
    """Labels as numbers where all of them are whole ones and written so, else as text: 01 is not 1."""
    import pandas as pd

    labels = values.tolist()
    if len(set(map(type, labels))) > 1:  # 1 and True are equal, and not the same label
        labels = [str(value) for value in labels]
    texts = {value: str(value) for value in set(labels)}  # each once: there are many labels of few classes
    short = {value: text.removesuffix(".0") for value, text in texts.items()}
    whole = all(WHOLE.fullmatch(text) for text in short.values())
    names: dict[Any, Any] = {value: int(text) for value, text in short.items()} if whole else texts
    return pd.Series([names[value] for value in labels], values.index, dtype=object)


def _scores(values: pd.Series, what: str, worst: bool) -> NDArray[np.float64]:
    import pandas as pd

    name = values.name
    try:
        found = (
            np.asarray([np.nan] * len(values)) if values.dtype.kind in "cmM" else pd.to_numeric(values, errors="coerce")
        )
        found = np.asarray(found, np.float64)
    except (TypeError, ValueError):  # lists, and objects of whatever kind
        found = np.full(len(values), np.nan)
    bad = np.flatnonzero(~np.isfinite(found) & values.notna().to_numpy() | (found < 0) | (found > 1))
    if bad.size:
        shown = f"{values.iloc[bad[0]]!s:.{LONGEST}}"
        raise InputError(
            f"row {bad[0]} of {what} has {shown} as {name}: give scores from 0 (bad) to 1 (good)", code="score-range"
        )
    return 1 - found if worst else found


def _truths(values: pd.Series, what: str) -> NDArray[np.bool_]:
    """Truths as tables write them."""
    if values.dtype == bool:
        return values.to_numpy()
    words = values.astype(str).str.strip().str.lower()
    odd = np.flatnonzero(~words.isin([*TRUE, *FALSE]))
    if odd.size:
        shown = f"{values.iloc[odd[0]]!s:.{LONGEST}}"
        raise InputError(f"row {odd[0]} of {what} has {shown} as {values.name}: give true or false", code="not-a-truth")
    return words.isin(TRUE).to_numpy()
