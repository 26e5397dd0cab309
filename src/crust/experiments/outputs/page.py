"""The results page: one HTML file with sortable tables and curves, which needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crust.audit.report import Html, Line, join, line_chart, page, section, tag
from crust.experiments.outputs.figure_page import panels_of
from crust.experiments.outputs.figures import Curve, curve
from crust.experiments.outputs.summary import Cell, Summary, number_of
from crust.experiments.outputs.words import TRUTH, cost, informed, knows, legend, missing, reported, value

HERE = Path(__file__).parent
CURVES = 5  # that fit one chart with their names
TONES = {"erm": 5, "crust-paper": 2, "crust-released": 3, "crust": 1}  # the same colours in every chart
NAME = 20  # letters of a name in a chart


class Column(NamedTuple):
    """A heading: its text, whether it holds numbers, its class."""

    title: str
    number: bool = True
    kind: str | None = None


class Shown(NamedTuple):
    """A cell: what is seen, and what it is sorted by; None goes to the end."""

    seen: object
    sort: float | str | None = None
    kind: str | None = None


def build(
    title: str,
    about: str,
    summaries: Sequence[Summary],
    *,
    panels: Mapping[str, Mapping[str, str]] | None = None,
    lines: Iterable[dict[str, Any]] = (),
    source: str = "",
    seconds: bool = True,
) -> Html:
    """The whole page.

    Args:
        title: of the page.
        about: its first paragraph.
        summaries: the tables and figures.
        panels: for those that are figures, by name: their curves and titles.
        lines: the runs that are listed one by one.
        source: where the paper's numbers are from.
        seconds: whether time is compared.

    Example:
        >>> text = build("a < b", "Nothing yet.", [])
        >>> "a &lt; b" in text, "<script>" in text, "http" in text.replace("http-equiv", "")
        (True, True, False)
    """
    body: list[object] = [tag("p", about, class_="hint"), _contents(summaries)]
    for summary in summaries:
        drawn = (panels or {}).get(summary.name)
        parts = _figure(summary, drawn) if drawn else _table(summary, seconds)
        body.append(tag("div", section(summary.title, *parts, hint=_marked(summary.about)), id=summary.name))
    body.append(tag("div", _runs(lines), id="runs"))
    if source:
        body.append(tag("footer", f"The paper: {source}."))
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("results.css", "sort.js"))
    return page(title, *body, style=style, script=script)


def _contents(summaries: Sequence[Summary]) -> Html:
    links = [tag("a", summary.title.partition(":")[0], href=f"#{summary.name}") for summary in summaries]
    links.append(tag("a", "All runs", href="#runs"))
    return tag("nav", tag("ul", *(tag("li", link) for link in links)), aria_label="contents")


# ------------------------------------------------------------ tables


def _table(summary: Summary, seconds: bool) -> list[object]:
    pairs = {name: any(summary.cells[at].reported for at in summary.cells if at[1] == name) for name in summary.columns}
    columns = [Column("method", False)]
    for name, paired in pairs.items():
        columns += [Column(name), Column("paper", kind="paper")] if paired else [Column(name)]
    columns += (
        [Column("passes")] + [Column("seconds")] * seconds + [Column("knows", False, "words")] * informed(summary)
    )
    rows = []
    for row in summary.rows:
        cells = summary.row(row)
        line = [Shown(tag("code", row), row)]
        for name, paired in pairs.items():
            cell = summary.cells.get((row, name))
            line.append(_ours(cell, row in summary.best(name), summary.digits))
            if paired:
                line.append(_theirs(cell, row in summary.best_reported(name), summary.digits))
        line += [_times(cost(cells, of)) for of in ("passes", "seconds")[: 1 + seconds]]
        rows.append([*line, Shown(knows(cells), knows(cells), "words")] if informed(summary) else line)
    parts: list[object] = [sortable(summary.title, columns, rows)]
    parts += [tag("p", _marked(legend(summary, seconds)), class_="hint"), _missing(summary)]
    charts = [_accuracies(summary, name) for name in summary.columns]
    if any(charts):
        hint = (
            "Test accuracy over the epochs, of `erm`, of CRUST and of the best of the others; mean over seeds and a "
            "band of one standard deviation. What methods do before, to estimate or to prepare, is left out. Point at "
            "a curve to read its values."
        )
        parts += [tag("h3", "Curves"), tag("p", _marked(hint), class_="hint"), tag("div", *charts, class_="charts")]
    return parts


def _ours(cell: Cell | None, best: bool, digits: int) -> Shown:
    text, runs = value(cell, digits)
    if cell is None or cell.mean is None:
        return Shown(text, None, "missing")
    mark = TRUTH if cell.truth else ""
    parts = [tag("b", text) if best else text, mark, tag("small", f"n {runs}", title="runs")]
    return Shown(join(parts), cell.mean)


def _theirs(cell: Cell | None, best: bool, digits: int) -> Shown:
    of = None if cell is None else cell.reported
    text = reported(of, digits)
    return Shown(tag("b", text) if best else text, None if of is None else of.mean, "paper")


def _times(ratio: float | None) -> Shown:
    return Shown("–", None) if ratio is None else Shown(f"{ratio:.2f}×", ratio)


def sortable(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Shown]]) -> Html:
    """A table whose headings are buttons that sort it; it scrolls by itself where the screen is narrow."""
    heads = [
        tag(
            "th",
            tag("button", join([tag("span", word) for word in column.title.split()], " "), type="button"),
            scope="col",
            class_=column.kind,
            data_kind="number" if column.number else "text",
        )
        for column in columns
    ]
    body = []
    for first, *rest in rows:
        cells = [tag("td", each.seen, class_=each.kind, data_value=each.sort) for each in rest]
        body.append(tag("tr", tag("th", first.seen, scope="row", data_value=first.sort), *cells))
    inner = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", join(body)), class_="sortable")
    return tag("div", inner, class_="wide", role="region", aria_label=caption, tabindex=0)


def _missing(summary: Summary) -> Html:
    words = missing(summary)
    if not summary.missing:
        return tag("p", words, class_="hint")
    first, _, rest = words.partition(". ")
    return tag("details", tag("summary", f"{first}."), tag("p", _marked(rest), class_="hint"))


# ------------------------------------------------------------ curves


def _accuracies(summary: Summary, column: str) -> Html:
    """Test accuracy over the epochs for those that matter most in a column; nothing where names are too long."""
    there = {row: cell for (row, name), cell in summary.cells.items() if name == column and cell.mean is not None}
    if column != summary.columns[0] and any(cell.entry.measure[0] != "accuracy" for cell in there.values()):
        return Html("")  # of several test sets, curves are those of the first
    others = sorted((row for row in there if row not in TONES), key=lambda row: -(there[row].mean or 0.0))
    drawn = [row for row in TONES if row in there]
    drawn += others[: max(0, CURVES - len(drawn))] if len(drawn) < len(TONES) else others[:1]
    if any(len(row) > NAME for row in drawn):
        return Html("")
    curves = {row: curve(there[row], "test_accuracy") for row in drawn}
    free = [tone for tone in range(6) if tone not in TONES.values()]
    tones = TONES | dict(zip([row for row in drawn if row not in TONES], free * CURVES, strict=False))
    return _chart(curves, column, tones)


def _figure(summary: Summary, panels: Mapping[str, str]) -> list[object]:
    parts: list[object] = []
    for row in summary.rows:
        charts = [_chart(curves, title) for title, curves in panels_of(summary, row, panels).items()]
        if any(charts):
            parts += [tag("h3", tag("code", row)), tag("div", *charts, class_="charts three")]
    if parts:
        words = "Mean over seeds, and a band of one standard deviation. Point at a curve to read its values."
        parts.append(tag("p", words, class_="hint"))
    return [*parts, _missing(summary)]


def _chart(curves: Mapping[str, Curve | None], title: str, tones: Mapping[str, int] | None = None) -> Html:
    numbers = tones or {name: number % 6 for number, name in enumerate(curves)}
    lines = [
        Line(name if len(name) <= NAME else f"{name[: NAME - 1]}…", one.middle, numbers[name], one.deviation)
        for name, one in curves.items()
        if one is not None
    ]
    return line_chart(lines, title, top=None) if lines else Html("")


# ------------------------------------------------------------ runs


def _runs(lines: Iterable[dict[str, Any]]) -> Html:
    columns = [
        Column("method", False), Column("data", False, "words"), Column("labels", False, "words"), Column("seed"),
        Column("last epoch"), Column("mean of last 10"), Column("best epoch"), Column("audit AUROC"),
        Column("forward"), Column("backward"), Column("seconds"), Column("date", False), Column("run", False),
    ]  # fmt: skip
    rows = []
    for line in lines:
        spec = line.get("spec") or {}
        words = [spec.get("method"), spec.get("data"), spec.get("labels")]
        if not all(isinstance(word, str) for word in words):
            continue
        shown = [Shown(word, word, "words") for word in words]
        seed = (spec.get("experiment") or {}).get("seed")
        shown.append(Shown(seed, seed))
        shown += [_plain(number_of(line, "accuracy", name), "{:.1%}") for name in ("last", "last10", "best")]
        shown.append(_plain(number_of(line, "audit", "auroc"), "{:.3f}"))
        shown += [_plain(number_of(line, "cost", name), "{:,.0f}") for name in ("forward", "backward")]
        spent = (line.get("cost") or {}).get("seconds") or {}
        known = [spent[name] for name in ("stage", "epoch", "evaluation", "gradients") if name in spent]
        shown.append(_plain(float(sum(known)) if known else None, "{:,.0f}"))
        shown += [Shown(line.get("date"), line.get("date")), Shown(tag("code", line.get("key")), line.get("key"))]
        rows.append(shown)
    if not rows:
        return section("All runs", tag("p", "There are none yet."))
    hint = "A heading sorts its table: once, the other way round, and back. Seconds depend on the machine."
    return section("All runs", sortable("All runs", columns, rows), hint=hint)


def _plain(number: float | None, form: str) -> Shown:
    return Shown("–", None) if number is None else Shown(form.format(number), number)


def _marked(text: str) -> Html:
    """Words with `names` and *stress*, as they stand in Markdown."""
    parts = re.split(r"(`[^`]+`|\*[^*]+\*)", text)
    kinds = {"`": "code", "*": "em"}
    return join(tag(kinds[part[0]], part[1:-1]) if part[:1] in kinds and len(part) > 2 else part for part in parts)
