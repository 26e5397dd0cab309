"""How far an audit can be trusted: noise rate, precision and recall from labels that were made wrong on purpose.

A second network is trained like the first on labels among which some are known to be wrong; they take the place of
labels that the run takes for wrong (`inject_errors`). Two networks do not doubt equally strongly, so an injected error
counts by its place among the labels that both have seen: its doubt is what the first network gives the label at that
place of its own order. The share of the errors whose doubt is at least t is the recall of the threshold t, and from it
and from all that is flagged at several thresholds comes the noise rate (`binormal_model`). Precision is the noise rate
times the recall divided by the flagged share. Intervals come from drawing errors and labels anew. All of this holds
where the noise does not depend on the example beyond its class; people err on hard examples, and less of that is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.accuracy.binormal_model import BinormalModel
from crust.audit.accuracy.confident_disagreement import SILENT, Surest
from crust.audit.accuracy.inject_errors import InjectedErrors
from crust.audit.accuracy.verified_file import VERSION
from crust.errors import InputError

LEVEL = 0.9
EDGES = (0.2, 0.4, 0.6, 0.8, 0.9)  # of the errors are above the thresholds that the noise rate is read from
PAIRS = 0.8  # of the errors are above the threshold at which pairs of classes are counted: enough, and few right ones
WORTH = 0.75  # of an injected error for the recall: what two networks find differs by more than chance
DRAWS = 1000
POINTS = 100  # of the curve
HOLDS = (
    "The estimates hold for noise that depends on the class alone; people err on hard examples, of which more are "
    "wrong and fewer are found than is said here."
)
LIKE = 10  # errors whose weight the overall recall has in that of a class


@dataclass(frozen=True)
class AuditArrays:
    """Examples as an audit sees them, all as numbers."""

    doubt: NDArray[np.float64]  # of the given label
    given: NDArray[np.int64]  # the label
    suggested: NDArray[np.int64]  # what the network takes it for
    probability: NDArray[np.float64]  # how probable that is

    def rows(self, some: NDArray[np.bool_], doubt: NDArray[np.float64]) -> AuditArrays:
        """Some of the examples, with another doubt."""
        return AuditArrays(doubt, self.given[some], self.suggested[some], self.probability[some])


def doubt_by_place(
    first: NDArray[np.float64], second: NDArray[np.float64], errors: InjectedErrors
) -> NDArray[np.float64]:
    """The doubt that the first network has at the places that the injected labels take in the order of the second.

    Places are counted among the labels that both have seen, neither injected nor dropped. `first` is the doubt of
    all examples, before; `second` that of those that were kept, by the network trained with the injected labels.

    Example:
        >>> errors = InjectedErrors(np.array([0, 1, 1, 0]), np.array([1]), np.array([2]), p_injected_is_true=0.0)
        >>> doubt_by_place(np.array([0.1, 0.2, 0.6, 0.3]), np.array([0.2, 0.9, 0.4]), errors)
        array([0.3])
    """
    _all_known(first)
    _all_known(second)
    kept = errors.kept
    injected = np.isin(kept, errors.injected)
    before, after = np.sort(first[kept[~injected]]), np.sort(second[~injected])
    own = second[injected]
    places = (np.searchsorted(after, own, side="left") + np.searchsorted(after, own, side="right")) / 2
    return np.interp(places, np.arange(len(before)) + 0.5, before)


def _all_known(doubt: NDArray[np.float64]) -> None:
    if not np.isfinite(doubt).all():
        raise InputError("the audit has no doubt for some examples: let the run look at all", code="not-finite")


def estimate_accuracy(
    audit: AuditArrays,
    errors: AuditArrays,
    seemed: NDArray[np.int64],
    classes: Sequence[Any],
    rng: np.random.Generator,
    *,
    p_injected_is_true: float = 0.0,
    dropped: float = 0.0,
    surest: Surest = SILENT,
) -> dict[str, Any]:
    """Noise rate, transitions, and precision and recall over the threshold, from an audit and from injected labels.

    Args:
        audit: all examples of the run.
        errors: the injected ones with their injected labels; their doubt as `doubt_by_place` gives it.
        seemed: what the injected ones were labelled before.
        classes: the user's names.
        rng: draws for the intervals.
        p_injected_is_true: how often injected labels are right by accident (`InjectedErrors`).
        dropped: the share of all examples that was left out when labels were injected.
        surest: what the surest examples say; nothing, where it is left out.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.integers(0, 2, 1000)
        >>> given = np.where(rng.random(1000) < 0.2, 1 - true, true)
        >>> doubt = np.where(given == true, rng.beta(1, 9, 1000), rng.beta(9, 1, 1000))
        >>> injected = AuditArrays(rng.beta(9, 1, 200), 1 - true[:200], true[:200], np.ones(200))
        >>> audit = AuditArrays(doubt, given, true, np.ones(1000))
        >>> found = estimate_accuracy(audit, injected, true[:200], ["a", "b"], rng)["noise_rate"]
        >>> bool(found["low"] < np.mean(given != true) < found["high"])
        True
    """
    n, m = len(audit.doubt), len(errors.doubt)
    _all_known(audit.doubt)
    if m < 10:
        raise InputError(f"only {m} labels could take errors: verifying needs more examples", code="too-few-examples")
    model = BinormalModel(m, n, p_injected_is_true, dropped, surest)
    ordered, everyone = np.sort(errors.doubt), np.sort(audit.doubt)
    edges = np.unique([ordered[m - max(1, round(share * m))] for share in EDGES])[::-1]
    caught, above = _share_above(ordered, edges), _share_above(everyone, edges)
    x = model.fit(caught, above)
    wrong = max(1, round(n * float(model.rates(caught, x)[0])))
    thresholds, flagged = _threshold_grid(audit, wrong)
    chance, sample = _drawn_shares(ordered, np.concatenate([thresholds, edges]), wrong, rng)
    parts = np.diff(above, prepend=0.0, append=1.0)
    all_above = np.cumsum(rng.multinomial(n, parts, DRAWS), axis=1)[:, :-1] / n
    xs = model.bootstrap(x, chance[:, len(thresholds) :], all_above, model.draw_surest(DRAWS, rng))
    rates, found, _ = model.rates(chance[:, : len(thresholds)], xs)
    precision = np.minimum(1.0, rates[:, None] * found / (flagged / n))
    recall = model.rates(sample[:, : len(thresholds)], xs)[1]
    curve = [
        {
            "threshold": float(threshold),
            "flagged": int(count),
            "precision": _with_interval(precision[:, i]),
            "recall": _with_interval(recall[:, i]),
        }
        for i, (threshold, count) in enumerate(zip(thresholds, flagged, strict=True))
    ]
    rate = _with_interval(rates)
    many = float(ordered[m - max(1, round(PAIRS * m))])
    notes = [HOLDS]
    if m < 100:
        notes.append(f"Only {m} label errors were injected, so the intervals are wide.")
    return {
        "version": VERSION,
        "level": LEVEL,
        "examples": n,
        "noise_rate": rate,
        "classes": list(classes),
        "transitions": _transitions(audit, errors, seemed, many, rates, len(classes), rng),
        "curve": curve,
        "cut": _recommended_cut(curve, rate["value"] * n),
        "notes": notes,
    }


def _drawn_shares(
    ordered: NDArray[np.float64], thresholds: NDArray[np.float64], wrong: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """In every draw: what share of such labels as were injected is above each threshold, and of `wrong` of them."""
    places = np.searchsorted(ordered, thresholds, side="left") + 1
    weights = np.concatenate([[0.5], np.ones(len(ordered)), [0.5]])
    fewer = np.concatenate([[0.5], np.full(len(ordered), WORTH), [0.5]])
    chance, sample = np.empty((DRAWS, len(places))), np.empty((DRAWS, len(places)))
    for draw in range(DRAWS):
        chance[draw] = _above(rng.dirichlet(weights))[places]
        sample[draw] = _above(rng.multinomial(wrong, rng.dirichlet(fewer)))[places] / wrong
    return chance, sample


def _share_above(ordered: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 - np.searchsorted(ordered, thresholds, side="left") / len(ordered)


def _above(parts: NDArray[Any]) -> NDArray[Any]:
    """The sum of each part and all after it, and of none."""
    return np.concatenate([np.cumsum(parts[::-1])[::-1], np.zeros(1, parts.dtype)])


def _threshold_grid(audit: AuditArrays, wrong: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds, falling, and how many labels they flag: up to three times what may be wrong."""
    n = len(audit.doubt)
    falling = np.sort(audit.doubt)[::-1]
    most = int(np.clip(max(3 * wrong, 1.5 * (audit.given != audit.suggested).sum(), 20), 1, n))
    ranks = np.unique(np.linspace(1, most, min(POINTS, most)).round().astype(np.int64))
    thresholds = np.unique(falling[ranks - 1])[::-1]
    flagged = n - np.searchsorted(falling[::-1], thresholds, side="left")
    return thresholds, flagged


def _transitions(
    audit: AuditArrays,
    errors: AuditArrays,
    seemed: NDArray[np.int64],
    threshold: float,
    rates: NDArray[np.float64],
    classes: int,
    rng: np.random.Generator,
) -> dict[str, list[list[float]]]:
    """P(given | true) from the pairs above a threshold, made up for what is missed of each class."""
    n = len(audit.doubt)
    top = (audit.doubt >= threshold) & (audit.given != audit.suggested)
    pairs = _counts(audit.suggested[top], audit.given[top], classes).astype(np.float64)
    caught, injected = errors.doubt >= threshold, np.bincount(seemed, minlength=classes)
    seen = (np.bincount(seemed[caught], minlength=classes) + LIKE * caught.mean()) / (injected + LIKE)
    given = np.bincount(audit.given, minlength=classes).astype(np.float64)
    draws = np.empty((min(len(rates), max(20, 20_000_000 // classes**2)), classes, classes))
    for i in range(len(draws)):
        drawn = rng.gamma(pairs + 1e-9) / seen[:, None]
        wrong = rates[i] * n * drawn / max(drawn.sum(), 1e-12)
        right = np.maximum(given - wrong.sum(axis=0), 0)
        total = np.maximum(wrong.sum(axis=1) + right, 1e-9)
        draws[i] = wrong / total[:, None]
        draws[i][np.diag_indices(classes)] = np.where(given + wrong.sum(axis=1) > 0, right / total, 1.0)
    tail = (1 - LEVEL) / 2
    low, value, high = np.quantile(draws, [tail, 0.5, 1 - tail], axis=0)
    value /= np.maximum(value.sum(axis=1, keepdims=True), 1e-12)
    found = {"value": value, "low": np.minimum(low, value), "high": np.maximum(high, value)}
    return {name: np.round(matrix, 5).tolist() for name, matrix in found.items()}


def _counts(rows: NDArray[np.int64], columns: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    return np.bincount(rows * classes + columns, minlength=classes**2).reshape(classes, classes)


def _with_interval(draws: NDArray[np.float64]) -> dict[str, float]:
    """The median, and the shortest interval with nine tenths of the draws: next to 0 or 1 it ends there."""
    ordered = np.sort(draws)
    inside = round(LEVEL * len(ordered))
    first = int(np.argmin(ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]))
    low, value, high = ordered[first], np.median(ordered), ordered[first + inside - 1]
    return {"value": round(float(value), 5), "low": round(float(low), 5), "high": round(float(high), 5)}


def _recommended_cut(curve: list[dict[str, Any]], wrong: float) -> dict[str, Any] | None:
    """Where as many are flagged as are wrong, so that precision and recall are alike.

    The threshold with the best estimates would be one whose estimates are too good.
    """
    return min(curve, key=lambda point: abs(point["flagged"] - wrong)) if wrong >= 1 else None
