"""The page of `crust demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crust.cli.formatting import percent
from crust.report.gallery import Suspect, gallery, image_uri
from crust.report.html.builder import Html, tag
from crust.report.html.document import page, section, table
from crust.report.html.line_chart import Line, line_chart

if TYPE_CHECKING:
    from crust.cli.demo_metrics import Facts, RunFacts
    from crust.data import Examples

WORST = 48
FEW = 12
FIXED_PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its sign stay on one line
LOST = 0.05  # accuracy that was lost again is worth a sentence from here on


def build(facts: Facts, examples: Examples) -> str:
    """The whole page."""
    audit = facts.crust.audit
    false_alarms, missed = audit[~audit["planted"]].head(FEW), audit[audit["planted"]].tail(FEW).iloc[::-1]
    worst = audit.head(WORST)
    return page(
        "Two trainings on digits with wrong labels",
        tag("div", summary(facts), _numbers(facts), class_="beside"),
        section("Epoch by epoch", _charts(facts), hint="Point at a curve to read its values."),
        section(
            f"The {len(worst)} labels of the lowest quality, says crust",
            gallery(_suspects(worst, examples), ink=True),
            hint=f"{int(worst['planted'].sum())} of {len(worst)} were planted.",
        ),
        section(
            "Doubted most among the right ones",
            gallery(_suspects(false_alarms, examples), ink=True),
            hint="False alarms: labels that were not touched, the lowest label quality first.",
        ),
        section(
            "Doubted least among the wrong ones",
            gallery(_suspects(missed, examples), ink=True),
            hint="What the audit misses: labels that were made wrong, the highest label quality first.",
        ),
        section("What was run", tag("pre", "\n".join(facts.commands)), hint="To do it again, name other folders."),
    )


def summary(facts: Facts) -> Html:
    """The outcome in words; it says what was measured, whoever won."""
    erm, crust = facts.erm, facts.crust
    best = max(erm.accuracy)
    words = (
        f"Of {crust.examples:,} handwritten digits, {crust.planted:,} were given a wrong label on purpose; "
        f"the same small network then learned from them twice, for {_count(len(crust.accuracy), 'epoch')} each. "
        f"Plain training (erm) believes every label and gets {percent(erm.accuracy[-1])} of {crust.tests:,} clean "
        "test digits right in the end. "
    )
    if best - erm.accuracy[-1] > LOST:
        when = erm.accuracy.index(best) + 1
        words += (
            f"It had {percent(best)} after epoch {when}; in the end it repeats {percent(erm.repeated)} of the labels "
            "it was given, wrong ones included. "
        )
    words += (
        f"With crust, which looks at the gradients of all examples again and again and trains on {_share(crust)} most "
        f"central ones, it is {percent(crust.accuracy[-1])}. "
        f"Of all labels {percent(1 - crust.planted / crust.examples)} are right; "
        f"of those that crust trains on in the last epoch, {percent(crust.clean[-1])}. "
        f"Among the 40 % of the labels of the lowest quality are {crust.found:,} of the {crust.planted:,} wrong ones."
    )
    return tag("p", words.replace(" %", FIXED_PERCENT))


def _numbers(facts: Facts) -> Html:
    rows = [[cell.replace(" %", FIXED_PERCENT) for cell in row] for row in facts.rows()]
    return tag("div", table(["", "erm", "crust"], rows), tag("p", facts.footnote(), class_="hint"))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _share(run: RunFacts) -> str:
    """How much crust trains on: as the setting says, which is its default here."""
    return f"the {run.share:.0%}".replace("%", " %") if isinstance(run.share, float) else "the"


def _tick(share: float) -> str:
    return f"{100 * share:.0f} %"


def _charts(facts: Facts) -> Html:
    both = (facts.erm, facts.crust)
    accuracy = [Line(run.method, run.accuracy, tone) for tone, run in enumerate(both)]
    clean = [Line(run.method, run.clean, tone) for tone, run in enumerate(both)]
    return tag(
        "div",
        line_chart(accuracy, "Test accuracy", show=percent, tick=_tick),
        line_chart(clean, "Right labels among those trained on", show=percent, tick=_tick),
        class_="charts",
    )


def _suspects(rows: Any, examples: Examples) -> list[Suspect]:
    pixels = 255 - examples.inputs.numpy()[rows["index"].to_numpy()]  # dark ink on white
    return [
        Suspect(
            f"digit {row['index']}",
            str(row["given_label"]),
            str(row["predicted_label"]),
            row["predicted_prob"],
            1 - row["label_quality"],
            image_uri(image),
            f"planted, truly {row['truth']}" if row["planted"] else "not planted",
            bool(row["planted"]),
        )
        for row, image in zip(rows.to_dict("records"), pixels, strict=True)
    ]
