"""Examples that are the same to the last bit: where their labels differ, one of them is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 2**24  # bytes of inputs


def duplicates(parts: Iterable[tuple[Any, NDArray[np.int64]]]) -> dict[int, int]:
    """Examples that were there before: for each its position, and that of the first one like it.

    Args:
        parts: inputs, as a tensor or one array an example, and their positions in the training set.

    Returns:
        Only those that are the same as an earlier one.

    Example:
        >>> duplicates([(np.array([[1, 2], [3, 4]]), np.array([0, 2])), (np.array([[1, 2]]), np.array([1]))])
        {1: 0}
    """
    seen: dict[bytes, list[int]] = {}
    read = [(inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else inputs, index) for inputs, index in parts]
    for (rows, index), once_more in zip(read, _candidates([rows for rows, _ in read]), strict=True):
        for place in range(len(index)) if once_more is None else once_more.tolist():
            digest = hashlib.blake2b(rows[place].tobytes(), digest_size=16).digest()
            seen.setdefault(digest, []).append(int(index[place]))
    groups = [sorted(group) for group in seen.values() if len(group) > 1]
    return {position: group[0] for group in groups for position in group[1:]}


def _candidates(parts: list[Any]) -> list[NDArray[np.int64] | None]:
    """Of each part the rows that may not be the only ones of their kind, by a sum that equal rows share; None: all.

    The sum weighs the bytes of a row, eight at a time, with random odd numbers: of a million rows that differ hardly
    two have the same, so that only real duplicates are left to be compared one by one.
    """
    if not parts or not all(isinstance(rows, np.ndarray) for rows in parts):
        return [None] * len(parts)
    sums = []
    for rows in parts:
        flat = rows.reshape(len(rows), -1) if rows.size else np.empty((len(rows), 0), np.uint8)
        width = flat.shape[1] * flat.itemsize
        weights = np.random.default_rng(0).integers(2**63, size=-(-width // 8), dtype=np.uint64) * 2 + 1
        found, step = np.empty(len(rows), np.uint64), max(1, AT_ONCE // max(1, width))
        for first in range(0, len(rows), step):
            raw = np.ascontiguousarray(flat[first : first + step]).view(np.uint8)
            if width % 8:
                raw = np.pad(raw, ((0, 0), (0, -width % 8)))
            found[first : first + step] = (raw.view(np.uint64) * weights).sum(axis=1, dtype=np.uint64)
        sums.append(found)
    every = np.concatenate(sums) if sums else np.empty(0, np.uint64)
    order = np.argsort(every, kind="stable")
    same = every[order[1:]] == every[order[:-1]]
    twice = np.zeros(len(every), bool)
    twice[order[1:][same]] = twice[order[:-1][same]] = True
    return [np.flatnonzero(part) for part in np.split(twice, np.cumsum([len(one) for one in sums])[:-1])]


def conflicting_duplicates(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of an audit whose examples are the same and whose labels are not.

    Args:
        table: an audit; without the column `duplicate_of`, as in audits of before, there is nothing to find.

    Returns:
        Columns `duplicate_of` (the first of its group), `index`, `id` (where there are any),
        `given_label`, `predicted_label`, `label_quality`; group after group.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"index": [0, 1, 2], "duplicate_of": [-1, 0, -1], "given_label": ["a", "b", "b"],
        ...                       "predicted_label": ["a", "a", "b"], "label_quality": [0.1, 0.9, 0.1]})
        >>> conflicting_duplicates(table)[["duplicate_of", "index", "given_label"]].values.tolist()
        [[0, 0, 'a'], [0, 1, 'b']]
    """
    names = [
        "duplicate_of",
        "index",
        *(["id"] if "id" in table else []),
        "given_label",
        "predicted_label",
        "label_quality",
    ]
    if "duplicate_of" not in table:
        return table.iloc[:0].assign(duplicate_of=[])[names]
    first = table["duplicate_of"].where(table["duplicate_of"] >= 0, table["index"])
    groups = table.assign(duplicate_of=first)
    differ = groups.groupby("duplicate_of")["given_label"].transform("nunique") > 1
    return groups.loc[differ, names].sort_values(["duplicate_of", "index"], ignore_index=True)
