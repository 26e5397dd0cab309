"""What the demo measures of its two runs. True labels are used here, and only to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crust.cli.formatting import percent

if TYPE_CHECKING:
    from crust.data import Bundle
    from crust.runs.result import Result

TOP = 0.4  # the share of the labels that the audit's finds are counted in: as many as were made wrong


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
