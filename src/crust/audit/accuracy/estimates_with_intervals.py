"""How far an audit can be trusted: noise rate, precision and recall, from held-out labels and from injected errors.

The noise rate comes from labels that nobody trained on (`crust.audit.noise_rate`): those that the run held out, and
those that a second training held out. Recall comes from errors that were injected for this second training: they take
the place of labels that the run takes for wrong (`inject_errors`). Scores of two networks are not on one scale, so an
injected error counts by its place among the labels that both have seen: its error score is what the first network
gives the label at that place of its own order. The share of the errors with a score of at least t is the recall of
the threshold t, and precision is the noise rate times the recall divided by the flagged share. That no more can be
wrong above a threshold than is flagged there is a bound on both. Intervals come from drawing noise rates from what is
likely, and errors anew. All of this holds where the noise does not depend on the example beyond its class; people err
on hard examples, and less of that is found. Where it cannot hold, nothing is estimated, and the reason is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.accuracy.inject_errors import InjectedErrors
from crust.audit.accuracy.verified_file import VERSION
from crust.audit.noise_rate import FEWEST, LEVEL, RATES, interval, near_chance, posterior
from crust.errors import InputError

Array = NDArray[np.float64]

PAIRS = 0.8  # of the errors are above the threshold at which pairs of classes are counted: enough, and few right ones
WORTH = 0.5  # of an injected error for the recall: what two networks find differs by more than chance
SLACK = 0.05  # of all labels by which more may be wrong than is flagged: what two networks flag differs
CHANCE = 1.5  # standard deviations that are left to chance before that
DRAWS = 2000
POINTS = 100  # of the curve
HOLDS = (
    "The estimates hold for noise that depends on the class alone; people err on hard examples, of which more are "
    "wrong and fewer are found than is said here."
)
LIKE = 10  # errors whose weight the overall recall has in that of a class


@dataclass(frozen=True)
class AuditArrays:
    """Examples as an audit sees them, all as numbers."""

    error_score: Array  # of the given label
    given: NDArray[np.int64]  # the label
    suggested: NDArray[np.int64]  # what the network takes it for
    probability: Array  # how probable that is
    held: NDArray[np.bool_]  # whether nobody has trained on it

    def rows(self, some: NDArray[np.bool_]) -> AuditArrays:
        return AuditArrays(*(values[some] for values in vars(self).values()))


def error_score_by_place(first: Array, second: Array, errors: InjectedErrors) -> Array:
    """The first network's error scores at the places that the injected labels take in the order of the second.

    Places are counted among the labels that both have seen, neither injected nor dropped. `first` is the error score of
    all examples, before; `second` that of those that were kept, by the network trained with the injected labels.

    Example:
        >>> errors = InjectedErrors(np.array([0, 1, 1, 0]), np.array([1]), np.array([2]), p_injected_is_true=0.0)
        >>> error_score_by_place(np.array([0.1, 0.2, 0.6, 0.3]), np.array([0.2, 0.9, 0.4]), errors)
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


def _all_known(error_score: Array) -> None:
    if not np.isfinite(error_score).all():
        raise InputError(
            "the audit has no label quality for some examples: let the run end, so that all are looked at once",
            code="not-finite",
        )


def estimate_accuracy(
    audit: AuditArrays,
    second: AuditArrays,
    errors: InjectedErrors,
    classes: Sequence[Any],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Noise rate, transitions, and precision and recall over the threshold, with intervals; or why there are none.

    Args:
        audit: all examples of the run.
        second: those that were kept, by the training with the injected labels; `given` has these.
        errors: which were injected, and which were dropped.
        classes: the user's names.
        rng: draws for the intervals.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.integers(0, 2, 1000)
        >>> given = np.where(rng.random(1000) < 0.2, 1 - true, true)
        >>> def judged(labels):
        ...     error_score = np.where(labels == true, rng.beta(1, 9, 1000), rng.beta(9, 1, 1000))
        ...     return AuditArrays(error_score, labels, true, np.full(1000, 0.99), np.arange(1000) % 5 == 0)
        >>> labels = np.where(np.arange(1000) < 100, 1 - given, given)
        >>> errors = InjectedErrors(labels, np.arange(100), np.empty(0, np.int64), p_injected_is_true=1.0)
        >>> found = estimate_accuracy(judged(given), judged(labels), errors, ["a", "b"], rng)["noise_rate"]
        >>> bool(found["low"] < np.mean(given != true) < found["high"])
        True
    """
    n, m = len(audit.error_score), len(errors.injected)
    _all_known(audit.error_score)
    check_injected(errors)
    head = {"version": VERSION, "level": LEVEL, "examples": n, "classes": list(classes)}
    injected = np.isin(errors.kept, errors.injected)
    reason = cannot_say(audit, second.rows(~injected), second.rows(injected), errors)
    if reason is not None:
        nothing: dict[str, Any] = {"noise_rate": None, "transitions": None, "curve": [], "cut": None}
        return {**head, **nothing, "cannot_say": reason, "notes": []}
    likely = likely_rates(audit, second.rows(~injected), errors, len(classes))
    error_score = error_score_by_place(audit.error_score, second.error_score, errors)
    wrong = max(1, round(n * float(interval(RATES, likely).value or 0)))
    thresholds, flagged = _threshold_grid(audit, wrong)
    rates, recall, sample = _draws(error_score, thresholds, flagged / n, likely, errors, n, rng)
    rate = _with_interval(rates)
    precision = np.minimum(1.0, rates[:, None] * recall / (flagged / n))
    curve: list[dict[str, Any]] = [
        {
            "threshold": float(threshold),
            "flagged": int(count),
            "precision": _with_interval(precision[:, i]),
            "recall": _with_interval(sample[:, i]),
        }
        for i, (threshold, count) in enumerate(zip(thresholds, flagged, strict=True))
    ]
    if rate["low"] == 0:
        for point in curve:  # where no label is wrong, no flagged one is
            point["precision"]["low"] = 0.0
    notes = [HOLDS]
    if m < 100:
        notes.append(f"Only {m} label errors were injected, so the intervals are wide.")
    many = float(np.sort(error_score)[m - max(1, round(PAIRS * m))])
    return {
        **head,
        "noise_rate": rate,
        "transitions": _transitions(
            audit, error_score >= many, audit.given[errors.injected], many, rates, len(classes), rng
        ),
        "curve": curve,
        "cut": _recommended_cut(curve, rate["value"] * n),
        "cannot_say": None,
        "notes": notes,
    }


def check_injected(errors: InjectedErrors) -> None:
    """Hold that something can be measured by the injected errors: better known before the training than after it."""
    if len(errors.injected) < 10:
        raise InputError(
            f"only {len(errors.injected)} labels could be given errors: verifying an audit needs more examples",
            code="too-few-examples",
        )


def cannot_say(audit: AuditArrays, others: AuditArrays, injected: AuditArrays, errors: InjectedErrors) -> str | None:
    """Why nothing can be said of an audit, or None where something can.

    Args:
        audit: all examples of the run.
        others: those of the second training that are as they were.
        injected: those with injected labels.
        errors: which were injected, and how.
    """
    held = [audit.rows(audit.held), others.rows(others.held)]
    count = sum(len(one.given) for one in held)
    if count < FEWEST:
        return f"only {count} labels were held out by the two trainings: train with a larger validation share"
    given, suggested = (np.concatenate([getattr(one, name) for one in held]) for name in ("given", "suggested"))
    return near_chance(given, suggested)


def likely_rates(audit: AuditArrays, others: AuditArrays, errors: InjectedErrors, classes: int) -> Array:
    """How likely each of `RATES` is, by what both trainings say of the labels that they held out."""
    one, two = (
        posterior(part.given == part.suggested, part.probability, classes)
        for part in (audit.rows(audit.held), others.rows(others.held))
    )
    n, dropped = len(audit.given), len(errors.dropped)
    differ = max(1, int((audit.given != audit.suggested).sum()))
    right = dropped * (1 - np.clip(n * RATES / differ, 0.5, 1.0)) / 2  # the suspects that were dropped were the surest
    without = np.clip((n * RATES - dropped + right) / (n - dropped), 0, RATES[-1])
    found = one * np.interp(without, RATES, two)
    return np.asarray(found / found.sum())


def _draws(
    error_score: Array,
    thresholds: Array,
    flagged: Array,
    likely: Array,
    errors: InjectedErrors,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Noise rates that are likely; with each of them the recall of every threshold, and that of as many wrong labels.

    Kept are those draws by which no more labels are wrong above any threshold than are flagged.
    """
    m, dropped = len(error_score), len(errors.dropped) / n
    places = np.searchsorted(np.sort(error_score), thresholds, side="left") + 1
    step = RATES[1] - RATES[0]
    rates = rng.choice(RATES, DRAWS, p=likely)
    rates = np.abs(rates + rng.uniform(-step / 2, step / 2, DRAWS)) * (rates > 0)
    weights, fewer = (np.concatenate([[0.5], np.full(m, each), [0.5]]) for each in (1.0, WORTH))
    recall, sample = np.empty((DRAWS, len(places))), np.empty((DRAWS, len(places)))
    for draw, rate in enumerate(rates):
        # Injected labels that are right by accident are found as right ones are: found = (1 - a) recall + a alarms.
        a = min(0.5, errors.p_injected_is_true * max(0.0, rate - dropped))
        share = 1 - a - a * rate / (1 - rate)
        wrong = max(1, round(n * rate))
        for kept, parts in ((recall, weights), (sample, fewer)):
            drawn = rng.dirichlet(parts)
            if kept is sample:
                drawn = rng.multinomial(wrong, drawn) / wrong
            found = _above(drawn)[places]
            kept[draw] = np.maximum.accumulate(np.clip((found - a * flagged / (1 - rate)) / max(share, 0.1), 0, 1))
    caught = recall.mean(axis=0)
    spread = np.sqrt(caught * (1 - caught) * (rates[:, None] ** 2 / m + rates[:, None] / n))
    beyond = np.maximum(0, (rates[:, None] * caught - CHANCE * spread - flagged).max(axis=1))
    fits = np.exp(-0.5 * (beyond / SLACK) ** 2) + 1e-12
    picked = rng.choice(DRAWS, DRAWS, p=fits / fits.sum())
    return rates[picked], recall[picked], sample[picked]


def _above(parts: NDArray[Any]) -> NDArray[Any]:
    """The sum of each part and all after it, and of none."""
    return np.concatenate([np.cumsum(parts[::-1])[::-1], np.zeros(1, parts.dtype)])


def _threshold_grid(audit: AuditArrays, wrong: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds, falling, and how many labels they flag: up to three times what may be wrong."""
    n = len(audit.error_score)
    falling = np.sort(audit.error_score)[::-1]
    most = int(np.clip(max(3 * wrong, 1.5 * (audit.given != audit.suggested).sum(), 20), 1, n))
    ranks = np.unique(np.linspace(1, most, min(POINTS, most)).round().astype(np.int64))
    thresholds = np.unique(falling[ranks - 1])[::-1]
    flagged = n - np.searchsorted(falling[::-1], thresholds, side="left")
    return thresholds, flagged


def _transitions(
    audit: AuditArrays,
    caught: NDArray[np.bool_],
    seemed: NDArray[np.int64],
    threshold: float,
    rates: Array,
    classes: int,
    rng: np.random.Generator,
) -> dict[str, list[list[float]]]:
    """P(given | true) from the pairs above a threshold, made up for what is missed of each class.

    `caught` says which of the injected errors are above it, and `seemed` what these were labelled before.
    """
    n = len(audit.error_score)
    top = (audit.error_score >= threshold) & (audit.given != audit.suggested)
    pairs = _counts(audit.suggested[top], audit.given[top], classes).astype(np.float64)
    injected = np.bincount(seemed, minlength=classes)
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
