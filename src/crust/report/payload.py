"""An audit as compact JSON inside a page: numbers as packed bytes, and pictures or rows of the worst."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
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

__all__ = ["pack", "worst_first"]

MOST = 200_000  # examples in one page; the summary counts all
PICTURES = 4_000  # of the worst
PICTURE_BYTES = 16_000_000  # of all pictures together, as they stand in the page
TEXT = 6_000_000  # bytes of all rows together
NAMES = 8_000_000  # bytes of all names together
SIDE = 96  # pixels of the longer side of a picture
SCALE = 10_000  # error score (1 - label quality) and probability as whole numbers
CHUNK = 200  # pictures or rows at a time
EVIDENCE = 3  # medoids a suspect


def worst_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by falling error score, then by index; unknown ones last.

    Example:
        >>> import pandas as pd
        >>> worst_first(pd.DataFrame({"index": [0, 1, 2], "label_quality": [0.9, None, 0.1]}))["index"].tolist()
        [2, 0, 1]
    """
    return table.sort_values(["label_quality", "index"], ascending=[True, True], na_position="last", ignore_index=True)


def pack(
    table: pd.DataFrame,
    classes: Sequence[Any],
    looks: Looks | None = None,
    *,
    most: int = MOST,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """All that a page needs to list, filter, sort and search the examples of an audit, worst first.

    Args:
        table: from `audit_table` or `find_label_issues`.
        classes: the classes in the order of their numbers.
        looks: how the examples are shown; None where only their numbers and names are.
        most: examples that are listed at most.
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
    shown = worst_first(table).head(most)
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
        "evidence": near,
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
    return {"columns": columns, "rows": found if columns else {}, "pictures": {} if columns else found}


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


def _scaled(values: Any) -> NDArray[np.unsignedinteger]:
    """Numbers from 0 to 1 in two bytes each; what is unknown is the largest."""
    found = np.asarray(values, np.float64)
    known = np.clip(np.nan_to_num(found), 0, 1)
    return np.where(np.isnan(found), 65535, np.round(known * SCALE)).astype("<u2")


def _names(values: Any) -> list[str]:
    """Names, cut to what there is room for; those of the worst are whole."""
    found, room = [], NAMES
    for value in values:
        text = _text(value)
        room -= _size(text)
        found.append(text if room >= 0 else "")
    return found


def _size(value: Any) -> int:
    """Bytes in the page."""
    return len(as_json(value).encode())


def _text(value: object) -> str:
    """Text that JSON and a page can hold."""
    return UNFIT.sub("\ufffd", str(value))
