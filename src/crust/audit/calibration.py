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
noise of before, moved to other examples (`crust.audit.planting`). Two networks do not doubt equally strongly, but both
have as much to find, so a plant counts by its place in the second network's order: its doubt is what the first network
gives the label at that place of its own order. The share of the plants whose doubt is at least t is the recall of the
threshold t. At a high threshold nearly all that is flagged is wrong, so the flagged share divided by the recall there
is the noise rate; precision is the noise rate times the recall divided by the flagged share. Intervals come from
drawing plants and wrong labels anew. All of this holds where the noise does not depend on the example beyond its class;
people err on hard examples, and less of that is found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.planting import Plants
from crust.errors import InputError
from crust.files import write_whole

__all__ = ["calibration", "doubt_by_place", "read_calibration", "write_calibration"]

VERSION = 1
NAME = "calibration.json"
KEYS = ("noise_rate", "transitions", "curve", "cut", "notes", "plants")  # what is shown of it
LEVEL = 0.9
SURE = 0.4  # of the plants are above the threshold at which the noise rate is read: right labels are rare there
PAIRS = 0.7  # of the plants are above that at which pairs of classes are counted: there have to be enough
WORTH = 1.25  # of a plant: places among all that is wrong vary less than a plant's doubt does
DRAWS = 1000
POINTS = 100  # of the curve
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


def doubt_by_place(first: NDArray[np.float64], second: NDArray[np.float64], plants: Plants) -> NDArray[np.float64]:
    """The doubt that the first network has at the places that the planted labels take in the order of the second.

    Where more labels were planted than moved, there is more to find than before: the planted ones count for as many as
    were moved.

    Args:
        first: doubt of all examples, before.
        second: doubt of all examples by the network that was trained with the planted labels.
        plants: which these are.

    Returns:
        One number for each planted label.

    Example:
        >>> plants = Plants(np.array([0, 1, 1, 0]), planted=np.array([1]), moved=np.array([2]))
        >>> doubt_by_place(np.array([0.1, 0.2, 0.6, 0.3]), np.array([0.1, 0.9, 0.4, 0.2]), plants)
        array([0.6])
    """
    _all_known(first)
    _all_known(second)
    n = len(first)
    counts = np.ones(n)
    counts[plants.planted] = len(plants.moved) / max(len(plants.planted), 1)
    order = np.argsort(second, kind="stable")
    below = np.cumsum(counts[order])
    places = np.empty(n)
    places[order] = (below - counts[order] / 2) / max(below[-1], 1e-9)
    return np.interp(places[plants.planted], (np.arange(n) + 0.5) / n, np.sort(first))


def _all_known(doubt: NDArray[np.float64]) -> None:
    if not np.isfinite(doubt).all():
        raise InputError("the audit has no doubt for some examples: let the run end, with at least one look at all")


def calibration(
    audit: Judged, plants: Judged, seemed: NDArray[np.int64], classes: Sequence[Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Noise rate, transitions, and precision and recall over the threshold, from an audit and from planted labels.

    Args:
        audit: all examples of the run.
        plants: the planted ones with their planted labels; their doubt as `doubt_by_place` gives it.
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
    _all_known(audit.doubt)
    if m < 10:
        raise InputError(f"only {m} labels could be planted: calibration needs more examples")
    ordered = np.sort(plants.doubt)
    sure, many = (float(ordered[m - max(1, round(share * m))]) for share in (SURE, PAIRS))
    above, caught = (audit.doubt >= sure).mean(), (ordered >= sure).mean()
    wrong = max(1, round(n * min(1.0, above / caught)))
    thresholds, flagged = _grid(audit, wrong)
    # In every draw, of all thresholds and of the sure one last: what share of such wrong labels is above, and what
    # share of the wrong labels that there are.
    places = np.searchsorted(ordered, [*thresholds, sure], side="left") + 1
    chance, recall = np.empty((DRAWS, len(places))), np.empty((DRAWS, len(thresholds)))
    for draw in range(DRAWS):
        shares = rng.dirichlet(np.concatenate([[0.5], np.full(m, WORTH), [0.5]]))
        chance[draw] = _above(shares)[places]
        recall[draw] = (_above(rng.multinomial(wrong, shares))[places[:-1]] + 0.5) / (wrong + 0.5)
    rates = np.minimum(1.0, above / np.maximum(chance[:, -1], 1e-9))
    precision = np.minimum(1.0, rates[:, None] * chance[:, :-1] / (flagged / n))
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
        "transitions": _transitions(audit, plants, seemed, many, rates, k, rng),
        "curve": curve,
        "cut": _cut(curve, rate["value"] * n),
        "notes": notes,
    }


def _above(parts: NDArray[Any]) -> NDArray[Any]:
    """The sum of each part and all after it, and of none."""
    return np.concatenate([np.cumsum(parts[::-1])[::-1], np.zeros(1, parts.dtype)])


def _grid(audit: Judged, wrong: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds, falling, and how many labels they flag: up to three times what may be wrong."""
    n = len(audit.doubt)
    falling = np.sort(audit.doubt)[::-1]
    most = int(np.clip(max(3 * wrong, 1.5 * (audit.given != audit.suggested).sum(), 20), 1, n))
    ranks = np.unique(np.linspace(1, most, min(POINTS, most)).round().astype(np.int64))
    thresholds = np.unique(falling[ranks - 1])[::-1]
    flagged = n - np.searchsorted(falling[::-1], thresholds, side="left")
    return thresholds, flagged


def _transitions(
    audit: Judged,
    plants: Judged,
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
    caught, planted = plants.doubt >= threshold, np.bincount(seemed, minlength=classes)
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
        >>> write_calibration(folder, {"version": 1, **dict.fromkeys(KEYS), "notes": ["none"]})
        >>> read_calibration(folder)["notes"]
        ['none']
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
        lacking = [name for name in KEYS if name not in found] if version == VERSION else []
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} cannot be read: remove it, and calibrate again") from None
    if version != VERSION:
        raise InputError(f"{path} is of version {version}, not {VERSION}: remove it, and calibrate again")
    if lacking:
        raise InputError(f"{path} has no {lacking[0]}: remove it, and calibrate again")
    return dict(found)


def _plain(value: Any) -> Any:
    """Class names that JSON does not know, such as numpy's numbers."""
    return value.item() if hasattr(value, "item") else str(value)
