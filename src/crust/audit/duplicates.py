"""Examples that are the same to the last bit: where their labels differ, one of them is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


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
    for inputs, index in parts:
        rows = inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else inputs
        for row, position in zip(rows, index.tolist(), strict=True):
            seen.setdefault(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), []).append(position)
    groups = [sorted(group) for group in seen.values() if len(group) > 1]
    return {position: group[0] for group in groups for position in group[1:]}


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
