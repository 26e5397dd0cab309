"""How far an audit can be trusted, as a plain JSON file in the run's folder: `calibration.json`.

Version 1. All shares are from 0 to 1; every estimate is `{"value": v, "low": l, "high": h}` with a 90% interval:

    {
      "version": 1,
      "level": 0.9,
      "examples": 1297,                    # rows of the audit that were judged
      "plants": {"count": 130, "share": 0.1, "seed": 0, "seconds": 12.3},
      "noise_rate": ESTIMATE,
      "classes": ["cat", "dog"],           # in the order of the matrix, the user's own names
      "transitions": {"value": [[..]], "low": [[..]], "high": [[..]]},   # row: true class, column: given label
      "curve": [                           # thresholds falling, flagged rising; at most 101 points
        {"threshold": 0.97, "flagged": 12, "precision": ESTIMATE, "recall": ESTIMATE}
      ],
      "cut": {"threshold": 0.71, "flagged": 260, "precision": ESTIMATE, "recall": ESTIMATE},
      "notes": ["one sentence each: what to keep in mind"]
    }

A label is flagged where its doubt is at least the threshold. `cut` is the recommended one, or null where the run finds
no wrong labels.

How it is estimated. A second network is trained like the first on labels among which some are known to be wrong: the
noise of before, moved to other examples (`crust.audit.planting`). The share of the plants whose doubt is at least t is
the recall of the threshold t. At a high threshold nearly all that is flagged is wrong, so the flagged share divided by
the recall there is the noise rate; precision is the noise rate times the recall divided by the flagged share. Plants
are made of examples that the network takes for their class. Of real examples some look like the very class that they
are wrongly labelled as, which no plant does: the recall is lowered by their share, taken from the right labels that
disagree with the suggestion. Intervals come from drawing plants and wrong labels anew. All of this holds where the
noise does not depend on the example beyond its class; people err on hard examples, and less of that is found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.files import write_whole

__all__ = ["calibration", "read_calibration", "write_calibration"]

VERSION = 1
NAME = "calibration.json"
LEVEL = 0.9
SURE = (0.7, 0.5, 0.3)  # of the plants are above the threshold at which the noise rate is read
CHANCE = 2.0  # standard errors: a noise rate lower by more than this at a higher threshold is no chance
DRAWS = 1000
POINTS = 100  # of the curve
WORTH = 0.5  # of a plant: networks differ from run to run, which makes the plants worth less than their number
HOLDS = (
    "The estimates hold for noise that depends on the class alone; people err on hard examples, of which less is found "
    "than is said here."
)
LIKE = 10  # plants whose weight the overall recall has in that of a class


@dataclass(frozen=True)
class Judged:
    """Examples as an audit sees them, all as numbers.

    Args:
        doubt: of the given label.
        given: the label.
        suggested: what the network takes it for.
    """

    doubt: NDArray[np.float64]
    given: NDArray[np.int64]
    suggested: NDArray[np.int64]


def calibration(
    audit: Judged, plants: Judged, seemed: NDArray[np.int64], classes: Sequence[Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Noise rate, transitions, and precision and recall over the threshold, from an audit and from planted labels.

    Args:
        audit: all examples of the run.
        plants: the planted ones, as the second network judges them with their planted labels.
        seemed: what the first run took the planted ones for.
        classes: the user's names.
        rng: draws for the intervals.

    Returns:
        What `calibration.json` holds, but for the facts about the run.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.integers(0, 2, 1000)
        >>> given = np.where(rng.random(1000) < 0.2, 1 - true, true)
        >>> doubt = np.where(given == true, rng.beta(1, 9, 1000), rng.beta(9, 1, 1000))
        >>> planted = Judged(rng.beta(9, 1, 200), 1 - true[:200], true[:200])
        >>> found = calibration(Judged(doubt, given, true), planted, true[:200], ["a", "b"], rng)["noise_rate"]
        >>> bool(found["low"] < np.mean(given != true) < found["high"])
        True
    """
    n, m, k = len(audit.doubt), len(plants.doubt), len(classes)
    if not np.isfinite(audit.doubt).all() or not np.isfinite(plants.doubt).all():
        raise InputError("the audit has no doubt for some examples: let the run end, with at least one look at all")
    if m < 10:
        raise InputError(f"only {m} labels could be planted: calibration needs more examples")
    ordered = np.sort(plants.doubt)
    sure = _sure(audit, ordered)
    unlike = 1 - _alike(audit, plants, seemed, sure, k)
    thresholds, flagged = _grid(audit, sure, unlike * (plants.doubt >= sure).mean())
    # Recall of all thresholds, and of the sure one last, in every draw.
    places = np.searchsorted(ordered, [*thresholds, sure], side="left")
    above = (audit.doubt >= sure).mean()
    wrong = max(1, round(n * min(1.0, above / max(unlike * (ordered >= sure).mean(), 1e-9))))
    found = np.empty((DRAWS, len(places)))
    for draw in range(DRAWS):
        shares = rng.dirichlet(np.concatenate([[0.5], np.full(m, WORTH), [0.5]]))
        counts = rng.multinomial(wrong, shares)
        tail = np.concatenate([np.cumsum(counts[::-1])[::-1], [0]])
        found[draw] = (tail[places + 1] + 0.5) / (wrong + 0.5)
    rates = np.minimum(1.0, above / np.maximum(unlike * found[:, -1], 1e-9))
    recall = unlike * found[:, :-1]
    precision = np.minimum(1.0, rates[:, None] * recall / (flagged / n))
    curve = [
        {
            "threshold": float(threshold),
            "flagged": int(count),
            "precision": _estimate(precision[:, i]),
            "recall": _estimate(recall[:, i]),
        }
        for i, (threshold, count) in enumerate(zip(thresholds, flagged, strict=True))
    ]
    rate = _estimate(rates)
    notes = [HOLDS]
    if m < 100:
        notes.append(f"Only {m} labels were planted, so the intervals are wide.")
    return {
        "version": VERSION,
        "level": LEVEL,
        "examples": n,
        "noise_rate": rate,
        "classes": list(classes),
        "transitions": _transitions(audit, plants, seemed, sure, rates, k, rng),
        "curve": curve,
        "cut": _cut(curve, rate["value"] * n),
        "notes": notes,
    }


def _sure(audit: Judged, plants: NDArray[np.float64]) -> float:
    """The threshold at which the noise rate is read: a higher one where right labels are still among the flagged.

    There the rate falls as the threshold rises. Where nothing but wrong labels is flagged it changes by chance alone.
    """
    m = len(plants)
    thresholds = [float(plants[m - max(1, round(share * m))]) for share in SURE]
    rates = [(audit.doubt >= t).mean() / (plants >= t).mean() for t in thresholds]
    place = 0
    for i in range(1, len(SURE)):
        error = np.sqrt((1 / SURE[i] - 1 / SURE[place]) / (WORTH * m))
        if rates[i] < rates[place] * (1 - CHANCE * error):
            place = i
    return thresholds[place]


def _alike(audit: Judged, plants: Judged, seemed: NDArray[np.int64], sure: float, classes: int) -> float:
    """The share of wrong labels whose examples look like the wrong class, which no plant does."""
    suspect = audit.given != audit.suggested
    if not suspect.any():
        return 0.0
    above, seen = (audit.doubt >= sure).mean(), (plants.doubt >= sure).mean()
    caught = (plants.suggested != plants.given).mean()  # of the wrong labels are suspects
    cells = _counts(audit.given[suspect], audit.suggested[suspect], classes)
    sizes = np.maximum(np.bincount(audit.given, minlength=classes), 1)[:, None]
    noise = _counts(seemed, plants.given, classes) / len(seemed)
    alike = 0.0
    for _ in range(3):  # the noise rate that it takes depends on it a little
        rate = min(1.0, above / max((1 - alike) * seen, 1e-9))
        hard = max(0.0, suspect.mean() - rate * caught) / suspect.mean()  # of the suspects have right labels
        alike = float((noise * np.minimum(1.0, hard * cells / sizes)).sum())
    return min(alike, 0.9)


def _grid(audit: Judged, sure: float, recall: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds, falling, and how many labels they flag: up to three times what may be wrong."""
    n = len(audit.doubt)
    falling = np.sort(audit.doubt)[::-1]
    wrong = (audit.doubt >= sure).sum() / max(recall, 1e-9)
    most = int(np.clip(max(3 * wrong, 1.5 * (audit.given != audit.suggested).sum(), 20), 1, n))
    ranks = np.unique(np.linspace(1, most, min(POINTS, most)).round().astype(np.int64))
    thresholds = np.unique(falling[ranks - 1])[::-1]
    flagged = n - np.searchsorted(falling[::-1], thresholds, side="left")
    return thresholds, flagged


def _transitions(
    audit: Judged,
    plants: Judged,
    seemed: NDArray[np.int64],
    sure: float,
    rates: NDArray[np.float64],
    classes: int,
    rng: np.random.Generator,
) -> dict[str, list[list[float]]]:
    """P(given | true) from the pairs above the sure threshold, made up for what is missed of each class."""
    n = len(audit.doubt)
    top = (audit.doubt >= sure) & (audit.given != audit.suggested)
    pairs = _counts(audit.suggested[top], audit.given[top], classes).astype(np.float64)
    caught, planted = plants.doubt >= sure, np.bincount(seemed, minlength=classes)
    seen = (np.bincount(seemed[caught], minlength=classes) + LIKE * caught.mean()) / (planted + LIKE)
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


def _estimate(draws: NDArray[np.float64]) -> dict[str, float]:
    tail = (1 - LEVEL) / 2
    low, value, high = np.quantile(draws, [tail, 0.5, 1 - tail])
    return {"value": round(float(value), 5), "low": round(float(low), 5), "high": round(float(high), 5)}


def _cut(curve: list[dict[str, Any]], wrong: float) -> dict[str, Any] | None:
    """Where as many are flagged as are wrong, so that precision and recall are alike.

    The threshold with the best estimates would be one whose estimates are too good.
    """
    return min(curve, key=lambda point: abs(point["flagged"] - wrong)) if wrong >= 1 else None


def write_calibration(run_dir: str | Path, found: dict[str, Any]) -> None:
    """Leave it in the run's folder, whole or not at all.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> write_calibration(folder, {"version": 1, "noise_rate": {"value": 0.2, "low": 0.1, "high": 0.3}})
        >>> read_calibration(folder)["noise_rate"]["value"]
        0.2
    """
    write_whole(Path(run_dir) / NAME, json.dumps(found, indent=1, ensure_ascii=False, default=_plain).encode())


def read_calibration(run_dir: str | Path) -> dict[str, Any] | None:
    """What `crust audit --calibrate` has left, or None.

    Example:
        >>> import tempfile
        >>> read_calibration(tempfile.mkdtemp()) is None
        True
    """
    path = Path(run_dir) / NAME
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} cannot be read: remove it, and calibrate again") from None
    if version != VERSION:
        raise InputError(f"{path} is of version {version}, not {VERSION}: remove it, and calibrate again")
    return dict(found)


def _plain(value: Any) -> Any:
    """Class names that JSON does not know, such as numpy's numbers."""
    return value.item() if hasattr(value, "item") else str(value)
