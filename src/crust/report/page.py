"""The report of an audit: what was found in words, how far to trust it, class by class, and all suspects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.by_class import class_summary
from crust.audit.duplicates import conflicting_duplicates
from crust.data.labels import column_codes
from crust.report.accuracy_chart import calibration_chart
from crust.report.html.builder import Html, join, tag
from crust.report.html.document import page, section, table
from crust.report.payload import SCALE, as_json, pack
from crust.report.previews import Looks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit_page"]

HERE = Path(__file__).parent
MATRIX = 30  # up to so many classes the whole matrix is shown
PAIRS = 40
ROWS = 60  # of duplicates
ORDERS = {
    "doubt": "lowest label quality first",
    "sure": "highest label quality first",
    "probability": "most probable prediction first",
    "index": "as in the data",
    "given": "given label",
    "suggested": "predicted label",
}


def audit_page(
    audit: pd.DataFrame,
    classes: Sequence[Any] | None = None,
    *,
    looks: Looks | None = None,
    calibration: dict[str, Any] | None = None,
    name: str = "",
    without: str | None = None,
    progress: Callable[[int], None] | None = None,
    run: bool = True,
) -> str:
    """One HTML file that needs nothing else: text, charts, and a gallery to filter, sort and search.

    At most 200,000 examples are listed, the worst; at most 4,000 have their picture or row in the page, and all
    together it stays below some 35 MB. Everything that comes from the data is shown as text.

    Args:
        audit: a row an example, as `audit_table` or `crust.audit_labels` give it.
        classes: the classes in their order; None takes the different labels, sorted.
        looks: how the examples are shown (`crust.report.previews`).
        calibration: what `calibration.json` holds.
        name: what was audited, such as the folder of the run.
        without: why there are no pictures or rows, where there are none.
        progress: called now and then with the number of pictures or rows that are done.
        run: whether it is the audit of a run, which can be calibrated.

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
        found = {*audit["given_label"].tolist(), *audit["predicted_label"].tolist()}
        classes = sorted(found, key=lambda name: (isinstance(name, str), name))
    given, better = (column_codes(audit[column], classes, column) for column in ("given_label", "predicted_label"))
    counts = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(counts, (given, better), 1)
    packed = pack(audit, classes, looks, progress=progress)
    shown = len(packed["pictures"]) + len(packed["rows"])
    return page(
        f"Label audit{f' of {name}' if name else ''}",
        _summary(audit, counts, calibration, run),
        _trust(calibration),
        section(
            "Class by class",
            _matrix(counts, classes) if len(classes) <= MATRIX else _pairs(counts, classes),
            hint="Given labels (rows) and what is predicted for them (columns). A number leads to its examples.",
        ),
        section(
            "Noise in every class",
            _classes(audit.assign(given_label=given, predicted_label=better), counts, classes),
            hint="Suggested otherwise: of those with this label. Labelled otherwise: of those that seem to be of it.",
        ),
        _duplicates(audit),
        _gallery(packed, calibration, looks, without, shown),
        style=(HERE / "report.css").read_text(encoding="utf-8"),
        script=(HERE / "shared.js").read_text(encoding="utf-8") + (HERE / "report.js").read_text(encoding="utf-8"),
        data=as_json(packed),
    )


def _summary(audit: pd.DataFrame, counts: NDArray[np.int64], calibration: dict[str, Any] | None, run: bool) -> Html:
    total, differ = int(counts.sum()), int(counts.sum() - np.trace(counts))
    words = [f"{differ:,} of {total:,} labels ({_percent(differ / max(1, total))}) differ from the predicted ones."]
    if "is_held_out" in audit and audit["is_held_out"].any():
        words.append(f"{int(audit['is_held_out'].sum()):,} examples were held out and never trained on.")
    if calibration is None:
        if run:
            words.append("How many of them are wrong indeed is not measured yet: crust verify RUN does it.")
        return tag("p", " ".join(words), class_="summary")
    rate, cut = calibration["noise_rate"], calibration.get("cut")
    words.append(f"The estimated share of wrong labels is {_estimate(rate)}.")
    if cut is None:
        words.append("No label stands out as wrong.")
    else:
        words.append(
            f"Recommended: look at the {cut['flagged']:,} labels with a label quality of {1 - cut['threshold']:.2f} or "
            f"less; of these, {_estimate(cut['precision'])} are expected to be wrong, "
            f"and they hold {_estimate(cut['recall'])} of all wrong ones."
        )
    return tag("p", " ".join(words), class_="summary")


def _trust(calibration: dict[str, Any] | None) -> Html:
    if calibration is None:
        return Html("")
    level = f"{100 * calibration.get('level', 0.9):.0f}\N{NO-BREAK SPACE}%"
    plants = calibration.get("injected") or {}
    how = f" from {plants['count']:,} labels that were made wrong on purpose" if plants.get("count") else ""
    notes = [tag("p", note, class_="hint") for note in calibration.get("notes", [])]
    return section(
        "How far to trust it",
        tag("div", calibration_chart(calibration), class_="charts"),
        *notes,
        hint=f"Measured{how}; the bands are {level} intervals. The upright line is the recommended cut.",
    )


def _matrix(counts: NDArray[np.int64], classes: Sequence[Any]) -> Html:
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    head = tag("tr", tag("td", "given ↓ predicted →"), *(tag("th", tag("bdi", c), scope="col") for c in classes))
    rows = []
    for i, name in enumerate(classes):
        cells = [_cell(i, j, int(counts[i, j]), float(shares[i, j])) for j in range(len(classes))]
        rows.append(tag("tr", tag("th", tag("bdi", name), scope="row"), *cells))
    return tag("div", tag("table", tag("thead", head), tag("tbody", join(rows)), class_="matrix"), class_="wide")


def _cell(given: int, better: int, count: int, share: float) -> Html:
    if count == 0:
        return tag("td", "·", class_="none")
    heat = 0 if given == better else min(9, 1 + int(share * 18))
    button = tag("button", f"{count:,}", type="button", data_given=given, data_suggested=better)
    return tag("td", button, class_="same" if given == better else f"heat-{heat}")


def _pairs(counts: NDArray[np.int64], classes: Sequence[Any]) -> Html:
    """The most frequent confusions, where the matrix is too large for a screen."""
    off = counts * (1 - np.eye(len(classes), dtype=np.int64))
    rows = []
    for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS].tolist():
        i, j = divmod(place, len(classes))
        if off[i, j] > 0:
            button = tag("button", f"{off[i, j]:,}", type="button", data_given=i, data_suggested=j)
            rows.append([tag("bdi", classes[i]), tag("bdi", classes[j]), button])
    return table(["given", "predicted", "labels"], rows)


def _classes(audit: pd.DataFrame, counts: NDArray[np.int64], classes: Sequence[Any]) -> Html:
    """The noisiest class first; labels are given as numbers."""
    view = class_summary(audit, range(len(classes)))
    shares = np.nan_to_num(view["label_noise"].to_numpy(np.float64))
    heads = ["class", "labels", "predicted otherwise", "share", "most often", "labelled otherwise", "selected", ""]
    rows = []
    for c in np.argsort(-shares, kind="stable").tolist():
        one, other = view.iloc[c], counts[c].copy()
        other[c] = 0
        often = tag("bdi", classes[int(other.argmax())]) if other.any() else "–"
        note = (
            tag("span", "hardly selected", class_="alarm", title="hardly ever predicted or selected")
            if one["under_selected"]
            else ""
        )
        shown = [_percent(one[name]) for name in ("label_noise", "inverse_label_noise", "selection_rate")]
        differ = f"{int(other.sum()):,}"
        rows.append([tag("bdi", classes[c]), f"{one['n_given']:,}", differ, shown[0], often, shown[1], shown[2], note])
    return table(heads, rows)


def _duplicates(audit: pd.DataFrame) -> Html:
    """Examples that are the same, with labels that are not."""
    found = conflicting_duplicates(audit)
    if not len(found):
        return Html("")
    rows = []
    for one in found.head(ROWS).to_dict("records"):
        name = one["id"] if one.get("id") else f"example {one['index']}"
        labels = [tag("bdi", one["given_label"]), tag("bdi", one["predicted_label"])]
        rows.append([tag("bdi", name), f"{one['duplicate_of']}", *labels, f"{one['label_quality']:.3f}"])
    more = f" The first {ROWS} are shown." if len(found) > ROWS else ""
    return section(
        "The same example, different labels",
        table(["example", "same as example", "given", "predicted", "label quality"], rows),
        hint=f"{len(found):,} examples are the same to the last bit as others with another label.{more}",
    )


def _gallery(
    packed: dict[str, Any], calibration: dict[str, Any] | None, looks: Looks | None, without: str | None, shown: int
) -> Html:
    if looks is None:
        words = f"Without the examples themselves{f', since {without}' if without else ''}."
    else:
        what = "row" if looks.columns else "picture"
        words = f"The {shown:,} worst and what is near to them have their {what} in this file."
        if shown >= packed["count"]:
            words = f"All{' others' if looks.missing else ''} have their {what} in this file."
        if looks.missing:
            words = f"{looks.missing}. {words}"
    if packed["count"] < packed["total"]:
        words += f" Only the {packed['count']:,} worst of {packed['total']:,} are listed."
    cut = (calibration or {}).get("cut")
    least = "" if cut is None else _check("cut", "above the recommended cut", round(cut["threshold"] * SCALE))
    form = tag(
        "form",
        _field("given", tag("select", id="given", name="given")),
        _field("predicted", tag("select", id="suggested", name="suggested")),
        _field("order", tag("select", *(tag("option", text, value=key) for key, text in ORDERS.items()), id="sort")),
        _field("search", tag("input", type="search", id="search", placeholder="name, index or text")),
        _check("differs", "predicted otherwise", 1),
        least,
        tag("button", "clear", type="button", id="clear"),
        id="filters",
        class_="controls",
    )
    pager = tag(
        "nav",
        tag("button", "first", type="button", id="first"),
        tag("button", "← back", type="button", id="back"),
        tag("label", "page ", tag("input", type="number", id="page", min=1, value=1, aria_label="page")),
        tag("button", "next →", type="button", id="next"),
        tag("button", "last", type="button", id="last"),
        class_="controls pager",
        aria_label="pages",
    )
    detail = tag(
        "dialog",
        tag("div", id="detail-body"),
        tag(
            "div",
            tag("button", "← back", type="button", id="detail-back"),
            tag("span", id="detail-place"),
            tag("button", "next →", type="button", id="detail-next"),
            tag("button", "close", type="button", id="detail-close"),
            class_="controls",
        ),
        id="detail",
        aria_label="one example",
    )
    keys = "Keys: ← and → turn pages, / searches, Enter opens an example, Esc closes it."
    return tag(
        "section",
        tag("h2", "The labels, one by one"),
        tag("p", f"{words} {keys}", class_="hint"),
        tag("noscript", tag("p", "To show them, the page needs JavaScript; it is all in this file.")),
        form,
        tag("p", id="count", role="status"),
        tag("ul", id="gallery", class_="gallery"),
        pager,
        detail,
        id="suspects",
    )


def _field(name: str, control: Html) -> Html:
    return tag("label", tag("span", name), control)


def _check(name: str, text: str, value: int) -> Html:
    return tag("label", tag("input", type="checkbox", id=name, value=value), tag("span", text), class_="check")


def _estimate(found: dict[str, float] | None) -> str:
    if found is None:
        return "an unknown share"
    low, high = (f"{100 * found[end]:.0f}" for end in ("low", "high"))
    return f"{100 * found['value']:.0f}\N{NO-BREAK SPACE}% ({low} to {high}\N{NO-BREAK SPACE}%)"


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
