"""The report of an audit: what was found in words, how far to trust it, class by class, and all suspects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.audit_tables import classes_of, differing, suspects
from crust.audit.by_class import class_summary
from crust.audit.duplicates import conflicting_duplicates
from crust.audit.noise_rate import NoiseRate, noise_rate
from crust.audit.reliability import warning_of
from crust.data.labels import column_codes
from crust.report.charts import calibration_chart
from crust.report.document import page
from crust.report.payload import pack
from crust.report.previews import Looks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit_page"]

MATRIX = 30  # up to so many classes the whole matrix is shown
PAIRS = 40
ROWS = 60  # of duplicates


def audit_page(
    audit: pd.DataFrame,
    classes: Sequence[Any] | None = None,
    *,
    looks: Looks | None = None,
    calibration: dict[str, Any] | None = None,
    name: str = "",
    without: str | None = None,
    progress: Callable[[int], None] | None = None,
    verify: str | None = None,
    next_steps: Sequence[str] = (),
    points: tuple[NDArray[np.floating], str] | None = None,
    rate: NoiseRate | None = None,
) -> str:
    """One HTML file that needs nothing else: text, charts, and a gallery to filter, sort and search.

    At most 200,000 examples are listed, the worst; at most 4,000 have their picture or row in the page, and all
    together it stays below some 35 MB. Everything that comes from the data is shown as text.

    Args:
        audit: a row an example, as `audit_table` or `crust.audit_labels` give it.
        classes: the classes in their order; None takes the different labels, sorted.
        looks: how the examples are shown (`crust.report.previews`).
        calibration: what `verified.json` holds.
        name: what was audited, such as the folder of the run.
        without: why there are no pictures or rows, where there are none.
        progress: called now and then with the number of pictures or rows that are done.
        verify: the command that measures how many label issues are wrong, where there is one.
        next_steps: the commands that follow.
        points: where the examples lie on the map, from 0 to 1, and what that was made from.
        rate: the noise rate; None: as `crust.audit.noise_rate` estimates it.

    Returns:
        The page.

    Example:
        >>> import pandas as pd
        >>> columns = {"given_label": ["a", "b"], "predicted_label": ["a", "a"], "predicted_prob": [1, 0.7]}
        >>> text = audit_page(pd.DataFrame({"index": [0, 1], **columns, "label_quality": [0.9, 0.1]}))
        >>> "1 of 2 labels" in text, "http" in text.replace("http-equiv", "")
        (True, False)
    """
    if classes is None:
        classes = classes_of(audit)
    counts, differ = differing(audit, classes)
    given, better = (column_codes(audit[column], classes, column) for column in ("given_label", "predicted_label"))
    listed = suspects(audit, calibration)
    rate = noise_rate(audit, len(classes), calibration) if rate is None else rate
    packed = pack(audit, classes, looks, listed=listed, points=None if points is None else points[0], progress=progress)
    few = len(classes) <= MATRIX
    return page(
        "report/report.html.j2",
        f"Label audit{f' of {name}' if name else ''}",
        styles=["report/report.css"],
        scripts=["report/shared.js", "report/map.js", "report/report.js"],
        data=packed,
        classes=classes,
        facts=_facts(audit, listed, differ, len(classes), rate),
        summary=" ".join(_summary(audit, int(listed.sum()), differ, rate, calibration, verify)),
        trust=None if calibration is None or calibration["noise_rate"] is None else _trust(calibration),
        matrix=_matrix(counts) if few else None,
        pairs=[] if few else _pairs(counts),
        selected=bool("selection_rate" in audit and audit["selection_rate"].notna().any()),
        by_class=_classes(audit.assign(given_label=given, predicted_label=better), counts, classes),
        duplicates=_duplicates(audit),
        shown=" ".join(_what_is_shown(packed, looks, without)),
        next_steps=next_steps,
        kind="images" if looks is None or not looks.columns else "text" if len(looks.columns) == 1 else "table",
        map_source=None if points is None else points[1],
    )


def _facts(
    audit: pd.DataFrame, listed: NDArray[np.bool_], differ: int, classes: int, rate: NoiseRate
) -> list[tuple[str, str]]:
    """The three or four numbers that one looks for first, and what they are."""
    found = [
        (f"{int(listed.sum()):,}", "label issues"),
        (f"{len(audit):,}", f"labels of {classes:,} classes"),
        (_percent(differ / max(1, len(audit))), "differ from the predicted ones"),
    ]
    if rate.value is None:
        return [*found, ("cannot say", "noise rate")]
    value, low, high = (f"{100 * share:.{0 if share >= 0.1 else 1}f}" for share in (rate.value, rate.low, rate.high))
    space = "\N{NO-BREAK SPACE}%"
    return [*found, (value + space, f"noise rate (90% interval: {low} to {high}{space})")]


def _summary(
    audit: pd.DataFrame,
    listed: int,
    differ: int,
    rate: NoiseRate,
    calibration: dict[str, Any] | None,
    verify: str | None,
) -> Iterator[str]:
    """What was found, sentence by sentence."""
    total = len(audit)
    warning = warning_of(audit)
    if warning is not None:
        yield f"{warning[0].upper()}{warning[1:]}."
    yield f"{differ:,} of {total:,} labels ({_percent(differ / max(1, total))}) differ from the predicted ones."
    if "is_held_out" in audit and audit["is_held_out"].any():
        yield f"{int(audit['is_held_out'].sum()):,} examples were held out and never trained on."
    said = rate.sentence()
    yield f"{said[0].upper()}{said[1:]}."
    if calibration is None:
        yield _why_listed(listed, differ, total, rate)
        if verify is not None:
            yield f"How many of these are wrong indeed is not measured yet: {verify} does it."
        return
    if calibration["noise_rate"] is None:
        return
    cut = calibration.get("cut")
    yield (
        "No label stands out as wrong."
        if cut is None
        else (
            f"Recommended: look at the {cut['flagged']:,} labels with a label quality of {1 - cut['threshold']:.2f} or "
            f"less; of these, {_estimate(cut['precision'])} are expected to be wrong, "
            f"and they hold {_estimate(cut['recall'])} of all wrong ones."
        )
    )


def _why_listed(listed: int, differ: int, total: int, rate: NoiseRate) -> str:
    """What makes a label an issue, where it was not measured."""
    if rate.value is not None and listed == round(rate.value * total):
        many = "as many as are estimated to be wrong"
        return f"The {listed:,} of the lowest label quality are listed as label issues: {many}."
    if listed == differ:
        return "All of these are listed as label issues."
    return f"{listed:,} are listed as label issues, as the audit has marked them."


def _trust(calibration: dict[str, Any]) -> dict[str, Any]:
    level = f"{100 * calibration.get('level', 0.9):.0f}\N{NO-BREAK SPACE}%"
    count = (calibration.get("injected") or {}).get("count")
    how = f" from {count:,} labels that were made wrong on purpose" if count else ""
    return {
        "hint": f"Measured{how}; the bands are {level} intervals. The upright line is the recommended cut.",
        "chart": calibration_chart(calibration),
        "notes": calibration.get("notes", []),
    }


def _matrix(counts: NDArray[np.int64]) -> list[list[tuple[int, str]]]:
    """How many labels of a class are predicted to be of another, and the class of style that shows how much it is."""

    def kind(given: int, better: int) -> str:
        if counts[given, better] == 0:
            return "none"
        share = counts[given, better] / counts[given].sum()
        return "same" if given == better else f"heat-{min(9, 1 + int(share * 18))}"

    numbers = range(len(counts))
    return [[(int(counts[given, better]), kind(given, better)) for better in numbers] for given in numbers]


def _pairs(counts: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """The most frequent confusions, where the matrix is too large for a screen: how many, given as, predicted as."""
    off = counts * (1 - np.eye(len(counts), dtype=np.int64))
    places = [divmod(place, len(counts)) for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS].tolist()]
    return [(int(off[place]), *place) for place in places if off[place] > 0]


def _classes(audit: pd.DataFrame, counts: NDArray[np.int64], classes: Sequence[Any]) -> list[dict[str, Any]]:
    """The noisiest class first; labels are given as numbers."""
    view = class_summary(audit, range(len(classes)))
    others = counts * (1 - np.eye(len(classes), dtype=np.int64))
    shares = np.nan_to_num(view["label_noise"].to_numpy(np.float64))
    return [
        {
            "name": classes[c],
            "labels": view["n_given"].iloc[c],
            "differ": int(others[c].sum()),
            "often": classes[int(others[c].argmax())],
            "noise": _percent(view["label_noise"].iloc[c]),
            "inverse": _percent(view["inverse_label_noise"].iloc[c]),
            "selected": _percent(view["selection_rate"].iloc[c]),
            "hardly": bool(view["under_selected"].iloc[c]),
        }
        for c in np.argsort(-shares, kind="stable").tolist()
    ]


def _duplicates(audit: pd.DataFrame) -> dict[str, Any] | None:
    """Examples that are the same, with labels that are not."""
    found = conflicting_duplicates(audit)
    if not len(found):
        return None
    more = f" The first {ROWS} are shown." if len(found) > ROWS else ""
    hint = f"{len(found):,} examples are the same to the last bit as others with another label.{more}"
    rows = found.head(ROWS).to_dict("records")
    return {"hint": hint, "rows": [{"name": one.get("id") or f"example {one['index']}", **one} for one in rows]}


def _what_is_shown(packed: dict[str, Any], looks: Looks | None, without: str | None) -> Iterator[str]:
    """Of how many examples there is more than numbers."""
    shown = len(packed["pictures"]) + len(packed["rows"])
    if looks is None:
        yield f"Without the examples themselves{f', since {without}' if without else ''}."
    else:
        what = "picture" if not looks.columns else "text" if len(looks.columns) == 1 else "row"
        if looks.missing:
            yield f"{looks.missing}."
        if shown >= packed["count"]:
            yield f"All{' others' if looks.missing else ''} have their {what} in this file."
        else:
            yield f"The {shown:,} worst and what is near to them have their {what} in this file."
    if packed["count"] < packed["total"]:
        yield f"Only the {packed['count']:,} worst of {packed['total']:,} are listed."


def _estimate(found: dict[str, float] | None) -> str:
    if found is None:
        return "an unknown share"
    low, high = (f"{100 * found[end]:.0f}" for end in ("low", "high"))
    return f"{100 * found['value']:.0f}\N{NO-BREAK SPACE}% ({low} to {high}\N{NO-BREAK SPACE}%)"


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
