"""The results page: one HTML file with sortable tables and curves, which needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from markupsafe import Markup

from crust.experiments.outputs.figures import Curve, curve, panels_of, tones_of
from crust.experiments.outputs.setting_diff import differing
from crust.experiments.outputs.table_markdown import (
    TRUTH,
    cost,
    informed,
    knows,
    legend,
    missing_words,
    reported,
    value,
)
from crust.experiments.outputs.table_summary import Summary, TableCell, number_of
from crust.experiments.specs import SCALES
from crust.report.charts import Line, line_chart
from crust.report.document import page

CURVES = 5  # that fit one chart with their names
# The same colours in every chart.
TONES = {"erm": 5, "crust-paper": 2, "crust-released": 3, "crust-half": 0, "crust": 1}
COLOURS = 6  # that the style has
NAME = 20  # letters of a row of a name in a chart, which has at most two
NAMED = ("method", "data", "labels")  # of a specification, in a column each


class Column(NamedTuple):
    """A heading: its text, whether it holds numbers, its class."""

    title: str
    number: bool = True
    kind: str | None = None


class Shown(NamedTuple):
    """A cell: what is seen, and what it is sorted by; None goes to the end."""

    text: str | None
    sort: float | str | None = None
    kind: str | None = None
    code: bool = False
    best: bool = False
    mark: str = ""
    runs: str | None = None


def build(
    title: str,
    about: str,
    summaries: Sequence[Summary],
    *,
    panels: Mapping[str, Mapping[str, str]] | None = None,
    lines: Iterable[dict[str, Any]] = (),
    source: str = "",
) -> str:
    """The whole page.

    Args:
        title: of the page.
        about: its first paragraph.
        summaries: the tables and figures.
        panels: for those that are figures, by name: their curves and titles.
        lines: the runs that are listed one by one.
        source: where the paper's numbers are from.

    Example:
        >>> text = build("a < b", "Nothing yet.", [])
        >>> "a &lt; b" in text, "<script>" in text, "http" in text.replace("http-equiv", "")
        (True, True, False)
    """
    parts = []
    for summary in summaries:
        drawn = (panels or {}).get(summary.name)
        content = _figure(summary, drawn) if drawn else _table(summary)
        parts.append({"name": summary.name, "title": summary.title, "about": summary.about, **content})
    return page(
        "experiments/outputs/results.html.j2",
        title,
        styles=["experiments/outputs/results.css"],
        scripts=["experiments/outputs/sort.js"],
        about=about,
        parts=parts,
        runs=_runs(lines, {summary.scale for summary in summaries} & SCALES.keys() or SCALES),
        source=source,
        marks=marks,
    )


def marks(text: str) -> list[tuple[str | None, str]]:
    """Words with `names` and *stress*, as they stand in Markdown: each piece with the sign around it."""
    parts = re.split(r"(`[^`]+`|\*[^*]+\*)", text)
    return [(part[0], part[1:-1]) if part[:1] in ("`", "*") and len(part) > 2 else (None, part) for part in parts]


# ------------------------------------------------------------ tables


def _table(summary: Summary) -> dict[str, Any]:
    pairs = {name: any(summary.cells[at].reported for at in summary.cells if at[1] == name) for name in summary.columns}
    columns = [Column("method", False)]
    for name, paired in pairs.items():
        columns += [Column(name), Column("paper", kind="paper")] if paired else [Column(name)]
    columns += [Column("passes"), *[Column("seconds")] * summary.timed]
    columns += [Column("knows", False, "words")] * informed(summary)
    rows = []
    for row in summary.rows:
        cells = summary.row(row)
        line = [Shown(row, row, code=True)]
        for name, paired in pairs.items():
            cell = summary.cells.get((row, name))
            line.append(_ours(cell, row in summary.best(name), summary.digits))
            if paired:
                of, best = None if cell is None else cell.reported, row in summary.best_reported(name)
                line.append(Shown(reported(of, summary.digits), None if of is None else of.mean, "paper", best=best))
        line += [_plain(cost(cells, of), "{:.2f}×") for of in ("passes", "seconds")[: 1 + summary.timed]]
        rows.append([*line, Shown(knows(cells), knows(cells), "words")] if informed(summary) else line)
    which = "of all rows" if len(summary.rows) <= CURVES else f"of the {CURVES} best rows of each column"
    if any(row in TONES for row in summary.rows):
        which = "of `erm`, of CRUST and of the best of the others"
    return {
        "table": (columns, rows),
        "legend": legend(summary),
        "missing": _missing(summary),
        "charts": _accuracies(summary),
        "hint": f"Test accuracy over the epochs, {which}; mean over seeds and a band of one standard "
        "deviation. What methods do before, to estimate or to prepare, is left out. Point at a curve to read its "
        "values.",
    }


def _ours(cell: TableCell | None, best: bool, digits: int) -> Shown:
    text, runs = value(cell, digits)
    if cell is None or cell.mean is None:
        return Shown(text, None, "missing")
    return Shown(text, cell.mean, best=best, mark=TRUTH if cell.truth else "", runs=runs)


def _missing(summary: Summary) -> tuple[str, str]:
    """How many runs are missing, and which: what is told, and what is told to those who ask."""
    words = missing_words(summary)
    if not summary.missing:
        return words, ""
    first, _, rest = words.partition(". ")
    return f"{first}.", rest


# ------------------------------------------------------------ curves


def _accuracies(summary: Summary) -> list[Markup]:
    """Test accuracy over the epochs for those that matter most, column by column."""
    drawn = {column: _drawn(summary, column) for column in summary.columns}
    tones = _tones(drawn.values())
    charts = [
        _chart({row: curve(summary.cells[row, column], "test_accuracy") for row in rows}, column, _apart(rows, tones))
        for column, rows in drawn.items()
    ]
    return [chart for chart in charts if chart]


def _drawn(summary: Summary, column: str) -> list[str]:
    there = {row: cell for (row, name), cell in summary.cells.items() if name == column and cell.mean is not None}
    if column != summary.columns[0] and any(cell.entry.measure[0] != "accuracy" for cell in there.values()):
        return []  # of several test sets, curves are those of the first
    others = sorted((row for row in there if row not in TONES), key=lambda row: -(there[row].mean or 0.0))
    drawn = [row for row in TONES if row in there]
    return drawn + (others[: max(0, CURVES - len(drawn))] if len(drawn) < len(TONES) else others[:1])


def _tones(charts: Collection[Sequence[str]]) -> dict[str, int]:
    """A colour for each name, the same in all charts, and as far as there are enough none twice in one of them.

    Example:
        >>> found = _tones([["erm", "a", "b"], ["crust: mixup", "crust: none", "a"]])
        >>> [found[name] for name in ("erm", "crust", "a", "b", "crust: mixup", "crust: none")]
        [5, 1, 4, 0, 1, 2]
    """
    tones = dict(TONES)
    for name in dict.fromkeys(name for chart in charts for name in chart if name not in TONES):
        beside = [tones[other] for chart in charts if name in chart for other in chart if other in tones]
        rest = [tone for key, tone in tones.items() if key not in TONES]
        order = dict.fromkeys(TONES.values(), 2)  # another method's colour at last, that of one's own first
        order[TONES.get(re.split("[: ]", name)[0], -1)] = 0
        # Before all, what no neighbour has; in the end, what few others have, so that charts are told apart as well.
        tones[name] = min(range(COLOURS), key=lambda tone: (beside.count(tone), order.get(tone, 1), rest.count(tone)))
    return tones


def _apart(names: Sequence[str], tones: Mapping[str, int]) -> dict[str, int]:
    """The colours of one chart; a colour that two would have goes to the first."""
    found: dict[str, int] = {}
    for name in names:
        free = [tone for tone in range(COLOURS) if tone not in found.values()]
        found[name] = tones[name] if tones[name] in free or not free else free[0]
    return found


def _figure(summary: Summary, panels: Mapping[str, str]) -> dict[str, Any]:
    tones = {name: number % COLOURS for name, number in tones_of(summary).items()}
    figures = []
    for row in summary.rows:
        charts = [_chart(curves, title, tones) for title, curves in panels_of(summary, row, panels).items()]
        if any(charts):
            figures.append((row, charts))
    return {"table": None, "figures": figures, "missing": _missing(summary)}


def _chart(curves: Mapping[str, Curve | None], title: str, tones: Mapping[str, int]) -> Markup:
    labels = _labels(curves)
    lines = [
        Line(name, one.middle, tones[name], one.deviation, labels[name])
        for name, one in curves.items()
        if one is not None
    ]
    return line_chart(lines, title, top=None) if lines else Markup()


def _labels(names: Iterable[str]) -> dict[str, list[str]]:
    """Names in at most two rows. Of longer ones the end goes, or the middle where they would else look alike.

    Example:
        >>> _labels(["crust: by prediction, no mixup"])
        {'crust: by prediction, no mixup': ['crust: by', 'prediction, no mixup']}
        >>> list(_labels([f"crust model=small_cnn epochs=3 fraction={share}" for share in (0.3, 0.5)]).values())
        [['crust', '…fraction=0.3'], ['crust', '…fraction=0.5']]
    """
    rows = {name: wrap(name, NAME) or [name] for name in names}
    ends = {name: some[:2] if len(some) < 3 else [some[0], f"{some[1][: NAME - 1]}…"] for name, some in rows.items()}
    texts = [" ".join(some) for some in ends.values()]
    return {
        name: ends[name] if texts.count(" ".join(ends[name])) == 1 else [some[0], f"…{some[-1][1 - NAME :]}"]
        for name, some in rows.items()
    }


# ------------------------------------------------------------ runs


def _runs(lines: Iterable[dict[str, Any]], scales: Iterable[str]) -> dict[str, Any]:
    columns = [
        Column("method", False), Column("settings", False, "words"), Column("data", False, "words"),
        Column("labels", False, "words"), Column("seed"),
        Column("last epoch"), Column("mean of last 10"), Column("best epoch"), Column("audit AUROC"),
        Column("forward"), Column("backward"), Column("seconds"), Column("date", False), Column("run", False),
    ]  # fmt: skip
    rows = []
    named = [line for line in lines if all(isinstance((line.get("spec") or {}).get(name), str) for name in NAMED)]
    scale, settings = differing([line["spec"] for line in named], scales)
    for line, words in zip(named, settings, strict=True):
        spec = line["spec"]
        shown = [Shown(spec[name], spec[name], "words") for name in NAMED]
        shown.insert(1, Shown(words or "–", words or None, "words settings"))
        seed = (spec.get("experiment") or {}).get("seed")
        shown.append(Shown(seed, seed))
        shown += [_plain(number_of(line, "accuracy", name), "{:.1%}") for name in ("last", "last10", "best")]
        shown.append(_plain(number_of(line, "audit", "auroc"), "{:.3f}"))
        shown += [_plain(number_of(line, "cost", name), "{:,.0f}") for name in ("forward", "backward")]
        spent = (line.get("cost") or {}).get("seconds") or {}
        known = [spent[name] for name in ("stage", "epoch", "evaluation", "gradients") if name in spent]
        shown.append(_plain(float(sum(known)) if known else None, "{:,.0f}"))
        shown += [Shown(line.get("date"), line.get("date")), Shown(line.get("key"), line.get("key"), code=True)]
        rows.append(shown)
    return {"columns": columns, "rows": rows, "scale": scale}


def _plain(number: float | None, form: str) -> Shown:
    return Shown("–", None) if number is None else Shown(form.format(number), number)
