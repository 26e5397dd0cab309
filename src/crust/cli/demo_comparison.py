"""What the demo measures of its two runs, and its page. True labels are used here, and only to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crust.cli.formatting import percent
from crust.report.charts import Line, line_chart
from crust.report.document import page
from crust.report.previews import TINY, as_image, picture_uri

if TYPE_CHECKING:
    from crust.data import Bundle, Examples
    from crust.runs.result import Result

TOP = 0.4  # the share of the labels that the audit's finds are counted in: as many as were made wrong
WORST = 48
FEW = 12
FIXED_PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its sign stay on one line
RIGHT = "those that seem to have right labels"
LOST = 0.05  # accuracy that was lost again is worth a sentence from here on


@dataclass(frozen=True)
class RunFacts:
    """One run in numbers."""

    method: str
    examples: int  # in the training set, those held out too
    tests: int
    held_out: int
    trained_on: int  # in the last epoch
    planted: int  # wrong labels
    found: int  # of them, in the audit's top
    corrected: int  # of those found, with the true label suggested
    repeated: float  # share of the given labels, but for those held out, that the network predicts in the end
    kept: float  # test accuracy of the model that is kept
    accuracy: list[float]  # on the test set, epoch by epoch
    clean: list[float]  # share of right labels among those trained on, epoch by epoch
    share: Any  # of the examples that the method trains on, as it was set; None where it takes all
    audit: Any  # the table, worst first, with the columns `truth` and `planted`

    def numbers(self) -> dict[str, Any]:
        """What fits into JSON."""
        return {name: value for name, value in vars(self).items() if name != "audit"}


@dataclass(frozen=True)
class Facts:
    """Both runs, the noise, and the commands that repeat them."""

    erm: RunFacts
    crust: RunFacts
    noise: str
    commands: list[str]

    def rows(self) -> list[list[str]]:
        """The table that is printed and shown: what is measured, and for each run the outcome."""
        both = (self.erm, self.crust)
        return [
            ["test accuracy after the last epoch", *(percent(run.accuracy[-1]) for run in both)],
            ["test accuracy of the model that is kept¹", *(percent(run.kept) for run in both)],
            ["labels trained on in the last epoch", *(f"{run.trained_on:,}" for run in both)],
            ["right ones among them", *(percent(run.clean[-1]) for run in both)],
            ["planted wrong labels in the audit's top 40 %", *(f"{run.found:,} of {run.planted:,}" for run in both)],
            ["true label suggested for those", *(f"{run.corrected:,} of {run.found:,}" for run in both)],
        ]

    def footnote(self) -> str:
        """What the table says of the model that is kept."""
        return f"¹ the best epoch on {self.crust.held_out:,} held-out digits, whose labels are as noisy as the others"


def measure(result: Result, digits: Bundle) -> RunFacts:
    """Hold a finished run against the true labels and the test set."""
    history = result.history
    table = result.audit().sort_values(["label_quality", "index"], ascending=[True, True], ignore_index=True)
    names = np.array(digits.train.classes, dtype=object)
    table["truth"] = names[digits.train.labels[table["index"].to_numpy()]]
    table["planted"] = table["given_label"] != table["truth"]
    top = table.head(round(TOP * len(table)))
    found = top[top["planted"]]
    assert digits.test is not None
    right = result.predict(digits.test) == np.array(digits.test.decode(digits.test.labels))
    return RunFacts(
        method=result.config["method"],
        examples=len(table),
        tests=len(digits.test),
        held_out=int(table["is_held_out"].sum()),
        trained_on=int(history["n_selected"][-1]),
        planted=int(table["planted"].sum()),
        found=len(found),
        corrected=int((found["predicted_label"] == found["truth"]).sum()),
        repeated=float(history["train_accuracy"][-1]),
        kept=float(right.mean()),
        accuracy=history["test_accuracy"],
        clean=history["clean_fraction"],
        share=result.config["settings"].get("fraction"),
        audit=table,
    )


def demo_page(facts: Facts, examples: Examples) -> str:
    """The whole page."""
    audit, both = facts.crust.audit, (facts.erm, facts.crust)
    accuracy = [Line(run.method, run.accuracy, tone) for tone, run in enumerate(both)]
    clean = [Line(run.method, run.clean, tone) for tone, run in enumerate(both)]
    return page(
        "cli/demo.html.j2",
        "Two trainings on digits with wrong labels",
        summary=summary(facts),
        rows=[[cell.replace(" %", FIXED_PERCENT) for cell in row] for row in facts.rows()],
        footnote=facts.footnote(),
        charts=[
            line_chart(accuracy, "Test accuracy", show=percent, tick=_tick),
            line_chart(clean, "Right labels among those trained on", show=percent, tick=_tick),
        ],
        worst=_suspects(audit.head(WORST), examples),
        false_alarms=_suspects(audit[~audit["planted"]].head(FEW), examples),
        missed=_suspects(audit[audit["planted"]].tail(FEW).iloc[::-1], examples),
        commands=facts.commands,
    )


def summary(facts: Facts) -> str:
    """The outcome in words; it says what was measured, whoever won."""
    erm, crust = facts.erm, facts.crust
    best, share = max(erm.accuracy), crust.share  # as the setting says, which is its default here
    chosen = f"the {100 * share:.0f} % most central ones" if isinstance(share, float) else RIGHT
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
    if crust.trained_on == erm.trained_on:  # so small a set may never say clearly enough whose labels are wrong
        words += (
            "With crust, whose loss hardly follows labels that the network finds unlikely, it is "
            f"{percent(crust.accuracy[-1])}; nobody is left out in the end. "
        )
    else:
        words += (
            "With crust, which computes gradient proxies of all examples again and again and trains on "
            f"{chosen}, it is {percent(crust.accuracy[-1])}. "
            f"Of all labels {percent(1 - crust.planted / crust.examples)} are right; "
            f"of those that crust trains on in the last epoch, {percent(crust.clean[-1])}. "
        )
    words += (
        f"Among the 40 % of the labels of the lowest quality are {crust.found:,} of the {crust.planted:,} wrong ones."
    )
    return words.replace(" %", FIXED_PERCENT)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _tick(share: float) -> str:
    return f"{100 * share:.0f} %"


def _suspects(rows: Any, examples: Examples) -> list[dict[str, Any]]:
    """Rows of the audit with their images, dark ink on white."""
    pixels = 255 - examples.inputs.numpy()[rows["index"].to_numpy()]
    images = [picture_uri(as_image(each), TINY) for each in pixels]
    return [{**row, "image": image} for row, image in zip(rows.to_dict("records"), images, strict=True)]
