"""The page on which the audit stands beside cross-validation with cleanlab and the loss of plain training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from crust.experiments.outputs.table_markdown import markdown
from results.tables import bold_best

HERE = Path(__file__).parent
JUDGED = HERE / "audit.json"
CUTS = HERE / "audit-cuts.json"
LABELS = {  # in order of importance
    "symmetric:0.5": "symmetric 0.5",
    "human:worse": "human `worse`",
    "human:aggre": "human `aggre`",
    "symmetric:0.2": "symmetric 0.2",
    "human:random1": "human `random1`",
}
JUDGES = {
    "crust-half": "`crust-half`, one run",
    "crust": "`crust`, one run",
    "self-confidence": "cleanlab, self-confidence, 5 folds",
    "confident": "cleanlab, confident learning, 5 folds",
    "short": "cleanlab, self-confidence, 5 folds of a quarter of the epochs",
    "loss": "loss of `erm`, one run",
}
ESTIMATES = {"noise_rate": "noise rate", "precision": "precision at the cut", "recall": "recall at the cut"}
INTRODUCTION = (
    "Who finds the wrong labels, on the same data with the same network: CIFAR-10, the first 10,000 images, ResNet-8, "
    "40 epochs, no augmentation, batch 128, SGD 0.1 with drops at 2/3 and 5/6, one seed. `crust-half` and `crust`: the "
    "label quality of the audit that one run leaves. cleanlab: out-of-sample probabilities of 5-fold cross-validation "
    "by plain training (`erm`, five trainings on 8,000 images each), ranked by self-confidence, or with the labels "
    "that confident learning (`find_label_issues`) flags first; and the same with a quarter of the epochs, before much "
    "is memorised. Loss: of the given label, the mean over the ten evaluation passes of one `erm` run. A flagged label "
    "is one of the first N in a ranking, where N is the number of wrong labels; the suggestion is right where it is "
    "the true label. Seconds: training and looking on one core each, cross-validation all five folds; they were taken "
    "while other work was running on the machine, so only large ratios mean anything, and the examples that went "
    "through the network, forward and backward, stand beside them. A dash has not been measured yet. `python -m "
    "results.generate_pages` builds this page from [audit.json](../../results/audit.json)."
)
SURE = (
    "`crust verify RUN` on the same runs of `crust-half`, which trains each once more with planted label errors. It "
    "assumes noise that depends on the class alone. That this network knows little over half of the images, and "
    "suspects right labels of hard ones as well, is taken into account and makes the intervals wide. People err on "
    "hard images, of which less is found than is said: recall is too high there. `python -m benchmarks.audit_cuts` "
    "makes these lines."
)


def compared(judged: Path = JUDGED) -> list[dict[str, Any]]:
    """What `benchmarks.audit` has compared so far."""
    return json.loads(judged.read_text()) if judged.exists() else []


def calibrated(file: Path = CUTS) -> dict[str, dict[str, Any]]:
    """What `benchmarks.audit_cuts` has calibrated so far, by labels."""
    return json.loads(file.read_text()) if file.is_file() else {}


def audit_page(lines: Sequence[dict[str, Any]], estimated: dict[str, dict[str, Any]], scale: str = "cpu") -> str:
    """docs/results/audit.md; what is missing is shown as missing."""
    there = {(line["labels"], line["judge"]): line for line in lines if line.get("scale") == scale}
    parts = ["# Finding wrong labels, measured", INTRODUCTION, "## In short", _summary(there)]
    for labels, title in LABELS.items():
        rate = next((there[labels, judge]["wrong"] for judge in JUDGES if (labels, judge) in there), None)
        parts += [f"## {title}" + ("" if rate is None else f": {100 * rate:.1f} % of the labels are wrong")]
        parts.append(_table({judge: there.get((labels, judge)) for judge in JUDGES}))
    parts += ["## How sure it is", SURE, _estimates(estimated)]
    return "\n\n".join(parts) + "\n"


def _table(found: dict[str, dict[str, Any] | None]) -> str:
    header = [
        "judge", "AUROC", "average precision", "precision at N", "suggestions right among flagged", "seconds", "passes"
    ]  # fmt: skip
    names = ("auroc", "average_precision", "precision_at_count", "suggested_right")
    rows = []
    for judge, line in found.items():
        if line is None:
            rows.append([JUDGES[judge], *["–"] * 6])
            continue
        numbers = [f"{line[name]:.3f}" for name in names]
        rows.append([JUDGES[judge], *numbers, f"{line['seconds']:,}", f"{line['passes'] / 1e6:.2f} M"])
    return markdown(header, bold_best(rows, range(1, 5), [True] * len(rows)))


def _summary(there: dict[tuple[str, str], dict[str, Any]]) -> str:
    """AUROC of all judges on all labels; the mean where all are there."""
    rows = []
    for judge, title in JUDGES.items():
        values = [there[labels, judge]["auroc"] if (labels, judge) in there else None for labels in LABELS]
        known = [value for value in values if value is not None]
        mean = f"{fmean(known):.3f}" if len(known) == len(LABELS) else "–"
        rows.append([title, *("–" if value is None else f"{value:.3f}" for value in values), mean])
    header = ["AUROC", *LABELS.values(), "mean"]
    text = markdown(header, bold_best(rows, range(1, len(header)), [True] * len(rows)))
    full, short = ("self-confidence", "confident", "loss"), ("short",)
    for others, name, dear in (
        (full, "the best other with full trainings", "self-confidence"),
        (short, JUDGES["short"], "short"),
    ):
        text += "".join(_ahead(there, ours, others, name, dear) for ours in ("crust-half", "crust"))
    return text


def _ahead(there: dict[tuple[str, str], dict[str, Any]], our: str, others: Sequence[str], name: str, dear: str) -> str:
    """A sentence on how far our method is ahead of others, where all are there, and at what part of the cost."""
    gaps, costs = [], []
    for labels in LABELS:
        found = [there.get((labels, judge)) for judge in (our, *others)]
        if all(found):
            ours, *theirs = (line["auroc"] for line in found if line)
            gaps.append(ours - max(theirs))
            costs.append(there[labels, our]["passes"] / there[labels, dear]["passes"])
    if not gaps:
        return ""
    return (
        f"\n\n`{our}` against {name}, on {len(gaps)} of {len(LABELS)} sets of labels: AUROC {min(gaps):+.3f} to "
        f"{max(gaps):+.3f}, {fmean(gaps):+.3f} on average, at {100 * max(costs):.0f} % of the passes of that "
        "cross-validation."
    )


def _estimates(found: dict[str, dict[str, Any]]) -> str:
    """A row for each set of labels: the truth, and what was estimated of it."""
    rows = []
    for labels, title in LABELS.items():
        cells = ["–"] * len(ESTIMATES)
        if labels in found:
            each = [found[labels][name] for name in ESTIMATES]
            cells = [f"{e['true']:.2f}: {e['value']:.2f} ({e['low']:.2f} to {e['high']:.2f})" for e in each]
        rows.append([title, *cells])
    return markdown(["true: estimated (90% interval)", *ESTIMATES.values()], rows)
