"""An audit as compact JSON inside a page: numbers as packed bytes, and pictures or rows of the worst."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.data.image_folder import in_threads
from crust.data.labels import column_codes
from crust.errors import CrustError
from crust.report.document import UNFIT, as_json
from crust.report.previews import Gone, Looks, picture_uri

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["marked_cells", "pack", "worst_first"]

ISSUE = "is a label issue"  # a column beside those of the audit, for as long as it is packed

MOST = 200_000  # examples in one page; the summary counts all
PICTURES = 4_000  # of the worst
PICTURE_BYTES = 16_000_000  # of all pictures together, as they stand in the page
TEXT = 6_000_000  # bytes of all rows together
NAMES = 8_000_000  # bytes of all names together
SIDE = 96  # pixels of the longer side of a picture
SCALE = 10_000  # error score (1 - label quality) and probability as whole numbers
CHUNK = 200  # pictures or rows at a time
EVIDENCE = 3  # medoids a suspect
SAME = 8  # duplicates a suspect
MARKED = 3  # cells of a row at most
ODD = 0.75  # of the usual spread of its column that a number lies off the nearest of its neighbours: then it is marked
WIDE = 200  # columns that are compared


def worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by falling error score, then by index; unknown ones last.

    Example:
        >>> import pandas as pd
        >>> worst_first(pd.DataFrame({"index": [0, 1, 2], "label_quality": [0.9, None, 0.1]}))["index"].tolist()
        [2, 0, 1]
    """
    return table.iloc[worst_order(table)].reset_index(drop=True)


def worst_order(table: pd.DataFrame) -> NDArray[np.intp]:
    """The places of the rows in that order, without a copy of the table."""
    quality = table["label_quality"].to_numpy(np.float64)
    return np.lexsort((table["index"].to_numpy(), quality))  # what is no number comes last


def pack(
    table: pd.DataFrame,
    classes: Sequence[Any],
    looks: Looks | None = None,
    *,
    most: int = MOST,
    listed: NDArray[np.bool_] | None = None,
    points: NDArray[np.floating] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """All that a page needs to list, filter, sort and search the examples of an audit, worst first.

    Args:
        table: from `audit_table` or `find_label_issues`.
        classes: the classes in the order of their numbers.
        looks: how the examples are shown; None where only their numbers and names are.
        most: examples that are listed at most.
        listed: which of them are suspects; None takes those whose labels differ from the predicted ones.
        points: where they lie on the map, from 0 to 1.
        progress: called now and then with the number of pictures or rows that are done.

    Returns:
        Plain values for `as_json`.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "b"], "predicted_label": ["a", "a"], "predicted_prob": [1, 0.7]}
        >>> packed = pack(pd.DataFrame({"index": [0, 1], **columns, "label_quality": [0.9, 0.1]}), ["a", "b"])
        >>> packed["count"], packed["total"], packed["ids"]
        (2, 2, None)
    """
    differs = (table["given_label"] != table["predicted_label"]).to_numpy()
    rows = worst_order(table)[:most]
    shown = table.iloc[rows].reset_index(drop=True).assign(**{ISSUE: (differs if listed is None else listed)[rows]})
    indices = shown["index"].to_numpy().astype("<u4")
    near = evidence(table, shown, classes)
    return {
        "total": len(table),
        "count": len(shown),
        "classes": [_text(name) for name in classes],
        "scale": SCALE,
        "index": _packed(indices),
        "given": _packed(column_codes(shown["given_label"], classes, "given_label").astype("<u2")),
        "suggested": _packed(column_codes(shown["predicted_label"], classes, "predicted_label").astype("<u2")),
        "error_score": _packed(_scaled(1 - shown["label_quality"])),
        "probability": _packed(_scaled(shown["predicted_prob"])),
        "held": _packed(shown["is_held_out"].to_numpy().astype("u1")) if "is_held_out" in shown else None,
        "chosen": _packed(_scaled(shown["selection_rate"])) if "selection_rate" in shown else None,
        "ids": _names(shown["id"]) if "id" in shown else None,
        "issue": _packed(shown[ISSUE].to_numpy().astype("u1")),
        "xy": None if points is None else packed_points(points[rows]),
        "evidence": near,
        "same": _duplicates_of(table, shown, classes),
        **_shown(looks, indices.tolist(), near, progress),
    }


def evidence(table: pd.DataFrame, shown: pd.DataFrame, classes: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
    """For the worst, what is known of their nearest medoids: by the example's index."""
    if "medoids" not in shown:
        return {}
    few = shown.head(PICTURES)
    near = {index: [int(i) for i in list(medoids)[:EVIDENCE]] for index, medoids in
            zip(few["index"].tolist(), few["medoids"], strict=True) if medoids is not None}  # fmt: skip
    named = table[table["index"].isin({i for one in near.values() for i in one})]
    codes = column_codes(named["given_label"], classes, "given_label").tolist()
    labels = dict(zip(named["index"].tolist(), codes, strict=True))
    return {str(index): [{"index": i, "label": labels[i]} for i in one if i in labels] for index, one in near.items()}


def _duplicates_of(table: pd.DataFrame, shown: pd.DataFrame, classes: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
    """For the worst, the examples that are the same, with their labels: by the example's index."""
    if "duplicate_of" not in table or not (table["duplicate_of"] >= 0).any():
        return {}
    first = np.where(table["duplicate_of"] >= 0, table["duplicate_of"], table["index"])
    some = table.assign(first=first)[["index", "given_label", "first"]]
    some = some[some["first"].isin(table["duplicate_of"])]
    codes = column_codes(some["given_label"], classes, "given_label").tolist()
    groups: dict[int, list[dict[str, Any]]] = {}
    for index, label, group in zip(some["index"].tolist(), codes, some["first"].tolist(), strict=True):
        groups.setdefault(group, []).append({"index": int(index), "label": label})
    group_of = dict(zip(some["index"].tolist(), some["first"].tolist(), strict=True))
    worst = [index for index in shown.head(PICTURES)["index"].tolist() if index in group_of]
    return {str(index): [one for one in groups[group_of[index]] if one["index"] != index][:SAME] for index in worst}


def _shown(
    looks: Looks | None,
    indices: list[int],
    near: dict[str, list[dict[str, Any]]],
    progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    """Pictures or rows by the example's index: of the worst and of what is near to them, while there is room."""
    columns = [] if looks is None else [_text(name) for name in looks.columns]
    found: dict[str, Any] = {}
    if looks is not None:
        wanted: dict[int, None] = {}
        for index in indices[:PICTURES]:
            wanted |= dict.fromkeys([index, *(one["index"] for one in near.get(str(index), []))])
        room = TEXT if columns else PICTURE_BYTES
        read = partial(_row if columns else _picture, looks)
        for some in _chunks(list(wanted), CHUNK):
            for index, one in zip(some, in_threads(read, some), strict=True):
                room -= _size(one)
                if room >= 0:
                    found[str(index)] = one
            if room < 0:
                break
            if progress is not None:
                progress(len(found))
    marked = marked_cells(found, near) if len(columns) > 1 else {}
    return {"columns": columns, "rows": found if columns else {}, "pictures": {} if columns else found, "marks": marked}


def marked_cells(
    rows: Mapping[str, Sequence[str]], near: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[int]]:
    """Which cells of a row differ most from those of the examples that are near to it, by the example's index.

    A number differs by how far it lies off the nearest of theirs, in units of the usual spread of its column; a word
    where none of them has it, the more the better they agree.

    Example:
        >>> rows = {"0": ["1", "Ulm"], "1": ["1.1", "Ulm"], "2": ["9", "Ulm"], "3": ["1.2", "Bonn"]}
        >>> marked_cells(rows, {"2": [{"index": 0}, {"index": 1}], "3": [{"index": 0}, {"index": 1}]})
        {'2': [0], '3': [1]}
    """
    if not rows:
        return {}
    columns = list(zip(*[list(row)[:WIDE] for row in rows.values()], strict=True))
    numbers = [_numbers_of(cells) for cells in columns]
    spreads = [_spread(values) for values in numbers]
    names = [{name for name in set(cells) if cells.count(name) > 1} if values is None else set()
             for cells, values in zip(columns, numbers, strict=True)]  # fmt: skip
    found = {}
    for index, others in near.items():
        row, beside = rows.get(index), [rows[str(one["index"])] for one in others if str(one["index"]) in rows]
        if row is None or not beside:
            continue
        scores = []
        for column, cell in enumerate(row[:WIDE]):
            theirs = [other[column] for other in beside]
            if spreads[column] > 0 and cell and any(theirs):
                off = min(abs(float(cell) - float(other)) for other in theirs if other)
                scores.append((min(off / spreads[column], 9.0), column))
            elif cell not in theirs and (cell in names[column] or set(theirs) & names[column]):
                scores.append((2.0 if len(set(theirs)) == 1 else ODD, column))
        most = min(MARKED, max(1, len(row) // 3))
        best = sorted(scores, key=lambda one: (-one[0], one[1]))[:most]
        marked = sorted(column for score, column in best if score >= ODD)
        if marked:
            found[index] = marked
    return found


def _numbers_of(cells: Sequence[str]) -> list[float] | None:
    """A column as numbers, where all that is not empty is one."""
    try:
        found = [float(cell) for cell in cells if cell]
    except ValueError:
        return None
    return found if found and all(map(math.isfinite, found)) else None


def _spread(values: list[float] | None) -> float:
    """The usual distance from the middle; 0 for a column of words."""
    if values is None:
        return 0.0
    low, high = np.quantile(values, [0.25, 0.75])
    return float((high - low) / 1.35) or float(np.std(values))


def _chunks(values: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _row(looks: Looks, index: int) -> list[str]:
    return [_text(cell) for cell in looks.row(index) or []]


def _picture(looks: Looks, index: int) -> str | None:
    """A data URI; nothing for one that is gone and None for one that cannot be read, which the page says of it."""
    try:
        return picture_uri(looks.picture(index), SIDE)
    except Gone:
        return ""
    except (CrustError, OSError):
        return None


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def packed_points(points: NDArray[np.floating]) -> str:
    """Points from 0 to 1, two bytes a coordinate."""
    return _packed(np.round(points * 65535).astype("<u2"))


def _scaled(values: Any) -> NDArray[np.unsignedinteger]:
    """Numbers from 0 to 1 in two bytes each; what is unknown is the largest."""
    found = np.asarray(values, np.float64)
    known = np.clip(np.nan_to_num(found), 0, 1)
    return np.where(np.isnan(found), 65535, np.round(known * SCALE)).astype("<u2")


def _names(values: Any) -> list[str]:
    """Names, cut to what there is room for; those of the worst are whole."""
    texts = [_text(value) for value in values]
    if _size(texts) <= NAMES:
        return texts
    found, room = [], NAMES
    for text in texts:
        room -= _size(text)
        found.append(text if room >= 0 else "")
    return found


def _size(value: Any) -> int:
    """Bytes in the page."""
    return len(as_json(value).encode())


def _text(value: object) -> str:
    """Text that JSON and a page can hold."""
    return UNFIT.sub("\ufffd", str(value))
