"""The label quality of every example: the score, the balancing of classes, and the table of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.large_arrays import ROWS
from crust.audit.judged_by_features import from_features, with_second_opinion
from crust.audit.noise_rate import noise_rate
from crust.audit.supporting_examples import nearest_medoids
from crust.audit.training_dynamics import Watch

if TYPE_CHECKING:
    import pandas as pd

STAY = 1 / 3  # what disagreement counts in how many labels are issues, beside the noise rate


def class_factors(probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each class how much oftener it is given than predicted, on the whole; 1 for a class that is never given.

    All labels of such a class may be wrong, and it must still be possible to suggest it.
    """
    given = np.bincount(labels, minlength=probabilities.shape[1]) / max(1, len(labels))
    predicted = probabilities.mean(axis=0) if len(labels) else np.ones(probabilities.shape[1])
    return np.where(given > 0, given / np.maximum(predicted, 1e-6), 1.0)


def balanced(probabilities: NDArray[np.floating], factors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Probabilities with the classes that a network favours taken back, and the others helped.

    A network that trains on part of the examples may come to neglect a class. All of its examples would
    then seem to be label issues.

    Example:
        >>> balanced(np.array([[0.75, 0.25]]), np.array([1.0, 3.0])).tolist()
        [[0.5, 0.5]]
    """
    if probabilities.dtype == np.float16:  # there are gigabytes of them: a piece at a time
        found = np.empty_like(probabilities)
        for first in range(0, len(found), ROWS):
            found[first : first + ROWS] = balanced(probabilities[first : first + ROWS].astype(np.float32), factors)
        return found
    weighed = probabilities * factors
    return weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-12)


def label_quality(probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far probabilities agree with the given labels, from 0 (bad) to 1 (good); below 0.5 another one is likelier.

    It is the probability of the given label against that of its strongest rival, as if there were only these two, and
    so ranks as their log margin does.

    Example:
        >>> label_quality(np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]]), np.array([0, 2])).round(3).tolist()
        [0.667, 0.143]
    """
    found = np.empty(len(labels))
    for first in range(0, len(labels), ROWS):  # there may be gigabytes of them
        rivals = probabilities[first : first + ROWS].astype(np.float64)
        rows, given = np.arange(len(rivals)), labels[first : first + ROWS]
        own = rivals[rows, given]
        rivals[rows, given] = 0
        found[first : first + ROWS] = own / np.maximum(own + rivals.max(axis=1), 1e-12)
    return found


def on_one_scale(trained: NDArray[np.floating], held: NDArray[np.floating]) -> NDArray[np.float64]:
    """The label qualities of examples that were held out, on the scale of those that were trained on.

    Labels that were trained on are agreed with more readily, so that right ones that were held out would seem worse
    than wrong ones that were not. Which ones were held out is chance: an example gets the quality that those trained
    on have at its place.

    Example:
        >>> on_one_scale(np.array([0.5, 0.9, 1.0]), np.array([0.6, 0.1, 0.2])).tolist()
        [1.0, 0.5, 0.9]
    """
    if not len(trained) or not np.isfinite(trained).all() or not np.isfinite(held).all():
        return np.asarray(held, np.float64)
    ordered = np.sort(held)
    places = (np.searchsorted(ordered, held, "left") + np.searchsorted(ordered, held, "right")) / 2 / max(1, len(held))
    return np.interp(places, (np.arange(len(trained)) + 0.5) / len(trained), np.sort(trained))


def issues(
    quality: NDArray[np.floating], given: NDArray[Any], predicted: NDArray[Any], rate: float | None
) -> NDArray[np.bool_]:
    """Which labels are label issues: the worst, about as many as are estimated to be wrong.

    How many: two parts the noise rate, one part the share that is predicted otherwise. The first is right on average,
    but from few held-out labels it is often far off, to which the second is a stay; and where flagging one more costs
    little, flagging a few more than are wrong finds more of them (docs/results/label-quality.md has what this is
    worth). Where the noise rate is not known, those that are predicted otherwise.

    Example:
        >>> quality, given, predicted = np.array([0.2, 0.4, 0.9, 0.6]), np.array([0, 1, 1, 0]), np.array([1, 1, 1, 0])
        >>> issues(quality, given, predicted, 0.5).tolist(), issues(quality, given, predicted, None).tolist()
        ([True, True, False, False], [True, False, False, False])
    """
    known = np.isfinite(quality)
    if rate is None or not known.all():
        return np.asarray((given != predicted) & known)
    count = (1 - STAY) * rate * len(quality) + STAY * int((given != predicted).sum())
    found = np.zeros(len(quality), bool)
    found[np.argsort(quality, kind="stable")[: round(count)]] = True
    return found


def audit_table(
    watch: Watch,
    labels: NDArray[np.int64],
    index: NDArray[np.int64],
    classes: Sequence[Any],
    *,
    held: tuple[Watch, NDArray[np.int64], NDArray[np.int64]] | None = None,
    ids: Sequence[str] | None = None,
    opinions: Mapping[str, NDArray[np.floating]] | None = None,
    same: Mapping[int, int] | None = None,
    judged: Sequence[NDArray[np.floating]] | None = None,
) -> pd.DataFrame:
    """A row for each example of the training set, in its order.

    Args:
        watch: what the run has seen of the examples it trained on.
        labels: their given labels.
        index: their positions in the training set.
        classes: the user's names for the classes.
        held: the same three for the examples that were held out.
        ids: a name for each example of the training set, such as its file.
        opinions: what the method itself says of the examples that it trained on; one number an example makes a column.
        same: examples that are the same as earlier ones (`crust.audit.duplicates`).
        judged: `judged_probabilities` of both, where they are there already.

    Returns:
        Columns: `index`, `id` (where there are any), `given_label`, `predicted_label`, `predicted_prob`,
        `label_quality` (0 bad, 1 good), `is_label_issue` (`issues`), `selection_rate` (share of the
        selections), `mean_weight` (over the selections), `mean_loss`, `aum` (the mean margin of Pleiss et al. 2020, of
        probabilities), `is_held_out`, `medoids` (where the run has selected: the members of its last coreset that it
        sees most alike, the nearest first, as positions in the training set), `medoid_labels`, `duplicate_of` (the
        first example with the very same input, or -1; where inputs were compared), and the method's own.

    Example:
        >>> watch = Watch(2, 2)
        >>> watch.looks, watch.trust, watch.probabilities[:] = 1, 1.0, [[0.2, 0.8], [0.8, 0.2]]
        >>> table = audit_table(watch, np.array([0, 1]), np.array([0, 1]), ["cat", "dog"])
        >>> table["given_label"][0], table["predicted_label"][0], float(table["label_quality"][0])
        ('cat', 'dog', 0.2)
    """
    import pandas as pd

    every = [(watch, labels, index), *([] if held is None else [held])]
    judged = judged_probabilities(every) if judged is None else judged
    parts = [pd.DataFrame(_part(*one, p, one[0] is not watch)) for one, p in zip(every, judged, strict=True)]
    names = np.empty(len(classes), dtype=object)
    names[:] = list(classes)
    medoids = watch.last if 0 < len(watch.last) < len(labels) else None
    if medoids is not None:
        near = nearest_medoids(judged, medoids, watch.chosen)
        for part, found in zip(parts, near, strict=True):
            part["medoids"] = index[found].tolist()
            part["medoid_labels"] = names[labels[found]].tolist()
    if held is not None:
        parts[1]["label_quality"] = on_one_scale(*(part["label_quality"].to_numpy() for part in parts))
    table = pd.concat(parts).sort_values("index", ignore_index=True)
    quality, given, predicted = (table[name].to_numpy() for name in ("label_quality", "given_label", "predicted_label"))
    table["is_label_issue"] = issues(quality, given, predicted, noise_rate(table, len(classes)).value)
    for name in ("given_label", "predicted_label"):
        table[name] = pd.Series(names[table[name].to_numpy()], table.index, dtype=object).infer_objects()
    if same is not None:
        table["duplicate_of"] = [same.get(position, -1) for position in table["index"].tolist()]
    for name, values in (opinions or {}).items():
        if np.shape(values) == (len(labels),) and name not in table:
            own = pd.Series(np.asarray(values, np.float64), index=index)
            table[name] = own.reindex(table["index"]).to_numpy()
    if ids is not None:
        table.insert(1, "id", [ids[i] for i in table["index"]])
    return table


def judged_probabilities(
    watched: Sequence[tuple[Watch, NDArray[np.int64], NDArray[np.int64]]], columns: NDArray[np.float32] | None = None
) -> list[NDArray[np.floating]]:
    """What label quality goes by, for each part of the training set: means over the looks, classes balanced.

    Args:
        watched: watch, given labels and positions of each part; the first is the one that was trained on.
        columns: the inputs of all parts (`judged_by_features.input_columns`), of which neighbours and a linear
            classifier are then asked too.
    """
    labels = watched[0][1]
    factors = class_factors(watched[0][0].mean(), labels)
    judged = [balanced(watch.mean(), factors) for watch, _, _ in watched]
    if columns is None or judged[0].dtype != np.float64 or not all(np.isfinite(part).all() for part in judged):
        return judged
    given = np.concatenate([part[1] for part in watched])
    opinion = from_features(columns, given, judged[0].shape[1])
    ends = np.cumsum([len(part) for part in judged])[:-1]
    judged = [with_second_opinion(*both) for both in zip(judged, np.split(opinion, ends), strict=True)]
    factors = class_factors(judged[0], labels)
    return [balanced(part, factors) for part in judged]


def _part(
    watch: Watch,
    labels: NDArray[np.int64],
    index: NDArray[np.int64],
    probabilities: NDArray[np.floating],
    held_out: bool,
) -> dict[str, NDArray[Any]]:
    looks, selections = max(1, watch.looks), max(1, watch.selections)
    nothing = np.full(len(labels), np.nan)
    quality, predicted = label_quality(probabilities, labels), probabilities.argmax(axis=1)
    return {
        "index": index,
        "given_label": labels,
        "predicted_label": predicted,
        "predicted_prob": probabilities.max(axis=1).astype(np.float64),
        "label_quality": quality,
        "is_label_issue": np.zeros(len(labels), bool),  # the whole table decides
        "selection_rate": nothing if held_out else watch.chosen / selections,
        "mean_weight": nothing if held_out else watch.weight / selections,
        "mean_loss": watch.losses / looks,
        "aum": watch.margins / looks,
        "is_held_out": np.full(len(labels), held_out),
    }


def estimate_noise_matrix(
    labels: NDArray[np.int64], better: NDArray[np.int64], classes: int
) -> tuple[float, NDArray[np.float64]]:
    """The share of labels that differ from the predicted ones, and the noise matrix P(given | predicted).

    Example:
        >>> rate, matrix = estimate_noise_matrix(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), 2)
        >>> rate, matrix.tolist()
        (0.25, [[0.5, 0.5], [0.0, 1.0]])
    """
    counts = np.zeros((classes, classes))
    np.add.at(counts, (better, labels), 1.0)
    rows = counts.sum(axis=1, keepdims=True)
    matrix = np.where(rows > 0, counts / np.maximum(rows, 1), np.eye(classes))
    return float((labels != better).mean()), matrix
