"""The audit class by class: which are taken for which, how noisy each one is, and which starve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["class_view", "confusions"]

STARVING = 0.25  # of its part among the predictions, or among the chosen: below it a class starves


def confusions(table: pd.DataFrame) -> pd.DataFrame:
    """Which classes are taken for which: the pairs of a suggested and another given label that occur.

    Args:
        table: an audit.

    Returns:
        Columns `suggested`, `label`, `count`, `share` (of the examples that seem to be of the suggested class) and
        `doubt` (the mean); the most frequent first.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"label": ["a", "a", "b"], "suggested": ["a", "b", "b"], "doubt": [0.1, 0.8, 0.2]})
        >>> confusions(table).values.tolist()
        [['b', 'a', 1, 0.5, 0.8]]
    """
    sizes = table["suggested"].value_counts()
    off = table[table["suggested"] != table["label"]]
    found = off.groupby(["suggested", "label"], sort=True)["doubt"].agg(["size", "mean"]).reset_index()
    found = found.rename(columns={"size": "count", "mean": "doubt"})
    found["share"] = found["count"] / found["suggested"].map(sizes).astype(float)
    found = found[["suggested", "label", "count", "share", "doubt"]]
    return found.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def class_view(table: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """One row a class.

    Args:
        table: an audit.
        classes: the user's names, in their order.

    Returns:
        Columns `label`; `given` and `suggested`, how many have it; `doubted`, the share of the given ones for which
        something else is suggested; `missed`, the share of the suggested ones that are labelled otherwise; `chosen`,
        how often its examples were chosen on average; `starving`, whether the class is given but hardly ever suggested
        or chosen, so that little can be said about its labels.

    Example:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"label": ["a", "a", "b"], "suggested": ["a", "b", "b"], "chosen": [1.0, 0.5, 0.9]})
        >>> class_view(table, ["a", "b"])[["label", "given", "doubted", "missed", "starving"]].values.tolist()
        [['a', 2, 0.5, 0.0, False], ['b', 1, 0.0, 0.5, False]]
    """
    import pandas as pd

    differs = table["label"] != table["suggested"]
    chosen = table["chosen"] if "chosen" in table else pd.Series(float("nan"), table.index)
    found = pd.DataFrame(index=pd.Index(list(classes), name="label"))
    found["given"] = table["label"].value_counts()
    found["suggested"] = table["suggested"].value_counts()
    found = found.fillna(0).astype("int64")
    found["doubted"] = differs.groupby(table["label"]).mean()
    found["missed"] = differs.groupby(table["suggested"]).mean()
    found["chosen"] = chosen.groupby(table["label"]).mean()
    hungry = (found["suggested"] < STARVING * found["given"]) | (found["chosen"] < STARVING * chosen.mean())
    found["starving"] = hungry & (found["given"] > 0)
    return found.reset_index()
