"""The audit class by class: which are taken for which, how noisy each one is, and which are hardly ever selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UNDER_SELECTED = 0.25  # of its part among the predictions, or among the selected ones: below it little is known


def overlapping_classes(table: pd.DataFrame) -> pd.DataFrame:
    """Which classes are taken for which: the pairs of a predicted and another given label that occur.

    Args:
        table: an audit.

    Returns:
        Columns `predicted_label`, `given_label`, `count`, `share` (of the examples with that predicted label) and
        `label_quality` (the mean); the most frequent first.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "a", "b"], "predicted_label": ["a", "b", "b"]}
        >>> overlapping_classes(pd.DataFrame({**columns, "label_quality": [0.9, 0.2, 0.8]})).values.tolist()
        [['b', 'a', 1, 0.5, 0.2]]
    """
    pair = ["predicted_label", "given_label"]
    sizes = table["predicted_label"].value_counts()
    differ = table[table["predicted_label"] != table["given_label"]]
    pairs = differ.groupby(pair, sort=True)["label_quality"].agg(["size", "mean"]).reset_index()
    pairs = pairs.rename(columns={"size": "count", "mean": "label_quality"})
    pairs["share"] = pairs["count"] / pairs["predicted_label"].map(sizes).astype(float)
    pairs = pairs[[*pair, "count", "share", "label_quality"]]
    return pairs.sort_values("count", ascending=False, kind="stable", ignore_index=True)


def class_summary(table: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """One row a class.

    Args:
        table: an audit.
        classes: the user's names, in their order.

    Returns:
        Columns `label`; `n_given` and `n_predicted`, how many have it; `label_noise`, the share of the given ones for
        which something else is predicted; `inverse_label_noise`, the share of the predicted ones that are labelled
        otherwise (both as in cleanlab's summary of classes); `selection_rate`, how often its examples were selected on
        average; `under_selected`, whether the class is given but hardly ever predicted or selected, so that little can
        be said about its labels.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "a", "b"], "predicted_label": ["a", "b", "b"]}
        >>> found = class_summary(pd.DataFrame({**columns, "selection_rate": [1.0, 0.5, 0.9]}), ["a", "b"])
        >>> found[["label", "n_given", "label_noise", "inverse_label_noise", "under_selected"]].values.tolist()
        [['a', 2, 0.5, 0.0, False], ['b', 1, 0.0, 0.5, False]]
    """
    import pandas as pd

    differs = table["given_label"] != table["predicted_label"]
    rate = table["selection_rate"] if "selection_rate" in table else pd.Series(float("nan"), table.index)
    found = pd.DataFrame(index=pd.Index(list(classes), name="label"))
    found["n_given"] = table["given_label"].value_counts()
    found["n_predicted"] = table["predicted_label"].value_counts()
    found = found.fillna(0).astype("int64")
    found["label_noise"] = differs.groupby(table["given_label"]).mean()
    found["inverse_label_noise"] = differs.groupby(table["predicted_label"]).mean()
    found["selection_rate"] = rate.groupby(table["given_label"]).mean()
    rarely_predicted = found["n_predicted"] < UNDER_SELECTED * found["n_given"]
    rarely_selected = found["selection_rate"] < UNDER_SELECTED * rate.mean()
    found["under_selected"] = (rarely_predicted | rarely_selected) & (found["n_given"] > 0)
    return found.reset_index()
