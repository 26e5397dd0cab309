"""How far an audit can be trusted: noise rate, precision and recall, from held-out labels and from injected errors.

Two things are known: what is said of labels that nobody trained on (`crust.audit.noise_rate`), those that the run held
out and those that a second training held out; and where errors stand that were injected for this second training, in
the place of labels that the run takes for wrong (`inject_errors`). Scores of two networks are not on one scale, so an
injected error counts by its place among the labels that both have seen. One model holds both together: of the labels
at place u, the surest suspects last, the share L σ(k (logit u − c)) is wrong. It rises with the place, k says how
steeply, L how sure the surest are, and c follows from the noise rate, which is the mean over all places. Rate, k and L
are laid on a grid; injected errors, taken for less than they are since they are no real ones, and held-out labels say
what is likely, and from this noise rates are drawn, each with its recall and its precision at every threshold. All of
this holds where the noise does not depend on the example beyond its class; people err on hard examples, and less of
that is found. Where it cannot hold, nothing is estimated, and the reason is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crust.audit.accuracy.inject_errors import InjectedErrors
from crust.audit.accuracy.verified_file import VERSION
from crust.audit.noise_rate import FEWEST, LEVEL, RATES, interval, near_chance, posterior
from crust.errors import InputError

Array = NDArray[np.float64]

PAIRS = 0.8  # of the errors are above the threshold at which pairs of classes are counted: enough, and few right ones
WORTH = 0.25  # of an injected error: it is no real one, and another network has judged it
STEEP = np.exp(np.linspace(np.log(0.3), np.log(8), 11))  # k
STEEP_LOG, STEEP_SPREAD = 0.6, 0.8  # of log k, mean and standard deviation, before anything was seen
SUREST = np.array([0.4, 0.6, 0.75, 0.85, 0.93, 1.0])  # L
SUREST_PRIOR = np.array([0.1, 0.15, 0.2, 0.2, 0.2, 0.15])
PLACES = (np.arange(200) + 0.5) / 200  # u
LEAST = 0.005  # the noise rate whose curve stands for all that are smaller
OFF_RECALL, OFF_PRECISION = 0.5, 1.4  # in logits, by which truth is off the model: of recall, and of precision
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
    rates, recall, precision = _draws(error_score, thresholds, audit, likely, errors, rng)
    rate = _with_interval(rates)
    curve: list[dict[str, Any]] = [
        {
            "threshold": float(threshold),
            "flagged": int(count),
            "precision": _with_interval(precision[:, i]),
            "recall": _with_interval(recall[:, i]),
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


def gap(audit: AuditArrays) -> float:
    """How much oftener predictions agree with labels that were trained on: labels that were memorised."""
    agree = audit.given == audit.suggested
    return float(agree[~audit.held].mean() - agree[audit.held].mean()) if 0 < audit.held.sum() < len(agree) else 0.0


def likely_rates(audit: AuditArrays, others: AuditArrays, errors: InjectedErrors, classes: int) -> Array:
    """How likely each of `RATES` is, by what both trainings say of the labels that they held out."""
    one, two = (
        posterior((part.given == part.suggested)[part.held], part.probability[part.held], classes, gap(part))
        for part in (audit, others)
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
    audit: AuditArrays,
    likely: Array,
    errors: InjectedErrors,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Noise rates that are likely, and with each of them recall and precision of every threshold."""
    ordered, n = np.sort(audit.error_score), len(audit.error_score)
    places = (np.searchsorted(ordered, error_score, "left") + np.searchsorted(ordered, error_score, "right")) / 2 / n
    share, logs = _wrong_by_place(), np.log(np.maximum(likely, 1e-300))
    rate = np.maximum(RATES, LEAST)
    # Injected labels that are right by accident stand where right ones do.
    right = np.minimum(0.5, errors.p_injected_is_true * np.maximum(0, RATES - len(errors.dropped) / n))
    there = np.bincount(np.minimum((places * len(PLACES)).astype(np.int64), len(PLACES) - 1), minlength=len(PLACES))
    odds = (1 - right)[:, None] * share / rate[:, None] + right[:, None] * (1 - share) / (1 - rate)[:, None]
    logs = WORTH * np.log(odds + 1e-9) @ there + logs + np.log(SUREST_PRIOR)[:, None]
    logs -= 0.5 * (((np.log(STEEP) - STEEP_LOG) / STEEP_SPREAD) ** 2)[:, None, None]
    weights = np.where(np.isfinite(share[..., 0]), np.exp(logs - np.nanmax(logs)), 0.0).ravel()
    k, surest, at = np.unravel_index(rng.choice(weights.size, DRAWS, p=weights / weights.sum()), logs.shape)
    step = RATES[1] - RATES[0]
    rates = np.abs(RATES[at] + rng.uniform(-step / 2, step / 2, DRAWS)) * (at > 0)
    above = np.concatenate([np.zeros((DRAWS, 1)), share[k, surest, at][:, ::-1].cumsum(axis=1) / len(PLACES)], axis=1)
    flagged = (n - np.searchsorted(ordered, thresholds, "left")) / n
    found = np.array([np.interp(flagged, np.arange(len(PLACES) + 1) / len(PLACES), one) for one in above])
    recall = _spread(found / rate[at][:, None], np.maximum(1, n * rates)[:, None], OFF_RECALL, rng)
    precision = _spread(found / flagged, n * flagged, OFF_PRECISION, rng) * (at > 0)[:, None]
    return rates, np.maximum.accumulate(recall, axis=1), precision


def _spread(values: Array, count: Array, off: float, rng: np.random.Generator) -> Array:
    """Shares of so many, with what chance and the model's own errors may add: a row a draw."""
    values = np.clip(values, 1e-4, 1 - 1e-4)
    deviation = np.sqrt(1 / np.maximum(count * values * (1 - values), 1) + off**2)
    return np.asarray(expit(logit(values) + deviation * rng.standard_normal((len(values), 1))))


@cache
def _wrong_by_place() -> Array:
    """The share of wrong labels at each place, for every k, L and noise rate; NaN where L allows no such rate."""
    at, center = logit(PLACES), np.linspace(-12, 25, 400)
    found = np.full((len(STEEP), len(SUREST), len(RATES), len(PLACES)), np.nan)
    for i, k in enumerate(STEEP):
        means = expit(k * (at - center[:, None])).mean(axis=1)
        for j, surest in enumerate(SUREST):
            rates = np.maximum(RATES, LEAST) / surest
            c = np.interp(-rates, -means, center)
            curve = expit(k * (at - c[:, None]))
            fits = rates < means[0]
            found[i, j, fits] = np.maximum(RATES, LEAST)[fits, None] * (curve / curve.mean(axis=1, keepdims=True))[fits]
    return np.minimum(found, 1.0)


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
