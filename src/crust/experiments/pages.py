"""Pages of results in docs, built from the result lines and from nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crust.experiments import findings
from crust.experiments.outputs import figure_page, text
from crust.experiments.paper import EXPERIMENTS
from crust.experiments.paper.table1 import own_settings
from crust.experiments.results import find
from crust.experiments.specs import make
from crust.experiments.tables import bold_best, cell, is_ceiling, markdown, of_runs
from crust.methods import METHODS

MISSING = "A dash is a run that has not been made yet. Seconds are not compared yet."
TRIED = (
    "Symmetric noise of 0.5, one seed. `memory`: probabilities averaged over the epochs; `average`: weights "
    "averaged over the steps; `rule=drawn`: a coreset drawn in proportion to the probability of the given label; "
    "`weights=trust`: weighted by it. Left out of the table, stopped early since far below: partners from the "
    "predicted class that take the label of the example (46% at epoch 33), and partners from all examples with "
    "labels softened by the average."
)
Lines = Sequence[dict[str, Any]]
NOISES = {"symmetric:0.5": "symmetric 0.5", "human:worse": "human `worse`"}
CENTRAL: dict[str, Any] = {"average": 0.0, "mixup": "none", "mix_labels": False, "alpha": 1.0, "least": 0.0}
TRAINING: dict[str, tuple[str, dict[str, Any]]] = {
    "`erm`": ("erm", {}),
    "`mixup`": ("mixup", {}),
    "`random`": ("random", {}),
    "`small-loss`": ("small-loss", {}),
    "`crust-paper`": ("crust-paper", {}),
    "`crust-released`": ("crust-released", {}),
    "plain central rule": ("crust", CENTRAL),
    "`crust`": ("crust", {}),
    "`oracle`": ("oracle", {}),
}
SEEDS = range(5)
INTRODUCTION = (
    "CIFAR-10, the first 10,000 images (9,000 trained on, 1,000 held out with their noisy labels), ResNet-8, 40 "
    "epochs, no augmentation, batch 128, SGD 0.1 with drops at 2/3 and 5/6, coreset of 50%. Test accuracy on the "
    "10,000 test images in percent: mean ± standard deviation over seeds, and their number. The lines that this page "
    "is made from, with every setting, are in the .jsonl files beside it; "
    "`python -m crust.experiments.pages` builds it anew."
)


def runs(lines: Lines, method: str, labels: str, **settings: Any) -> list[dict[str, Any]]:
    """The results of one specification, all seeds."""
    found = (find(lines, make(method, labels, seed=seed, **settings)) for seed in SEEDS)
    return [line for line in found if line is not None]


def training(lines: Lines) -> str:
    """The page of the accuracies that every selection is read against."""
    parts = [
        "# Training with wrong labels, measured",
        INTRODUCTION,
    ]
    for labels, title in NOISES.items():
        parts += [f"## {title}", _accuracies(lines, labels), _gap(lines, labels)]
    parts += ["## Share of right labels in the coreset", _purity(lines)]
    parts += ["## What was tried for the rule of `crust`", TRIED, _tried(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _accuracies(lines: Lines, labels: str) -> str:
    rows, competes = [], []
    found = {name: runs(lines, method, labels, **settings) for name, (method, settings) in TRAINING.items()}
    found["`erm` on all true labels"] = runs(lines, "erm", "true")
    for name, some in found.items():
        method = TRAINING[name][0] if name in TRAINING else "oracle"
        competes.append(not is_ceiling(method))
        numbers = [cell(of_runs(some, "accuracy", each)) for each in ("last", "last10", "best")]
        clean = cell([line["curves"]["clean"][-1] for line in some], digits=0)
        found_wrong = cell(of_runs(some, "audit", "auroc"), scale=1, digits=3)
        rows.append([name, *numbers, clean, found_wrong, str(len(some))])
    header = ["method", "last epoch", "mean of last 10", "best epoch", "right labels in the last epoch, %"]
    return markdown([*header, "audit AUROC", "seeds"], bold_best(rows, [1, 2], competes))


def _gap(lines: Lines, labels: str) -> str:
    """How much of the way from `random` to `oracle` is covered, by seeds that all of them have."""
    shares: dict[str, list[float]] = {}
    for name in ("`small-loss`", "plain central rule", "`crust-paper`", "`crust-released`", "`crust`"):
        method, settings = TRAINING[name]
        for seed in SEEDS:
            three = [
                find(lines, make(each, labels, seed=seed, **more))
                for each, more in (("random", {}), (method, settings), ("oracle", {}))
            ]
            if all(line is not None for line in three):
                low, ours, high = (line["accuracy"]["last"] for line in three if line is not None)
                shares.setdefault(name, []).append((ours - low) / (high - low))
    if not shares:
        return ""
    words = ", ".join(f"{name} {cell(values, scale=1, digits=2)}" for name, values in shares.items())
    return f"Share of the way from `random` to `oracle` that is covered (last epoch, by seed): {words}."


def _purity(lines: Lines) -> str:
    """Figure 1(a) as a table: symmetric noise of 50%, coresets of 30, 50 and 70%."""
    rows = []
    epochs = (2, 5, 10, 20, 30, 40)
    for share in (0.3, 0.5, 0.7):
        for name, method, more in (("`crust`", "crust", {}), ("plain central rule", "crust", CENTRAL)):
            some = runs(lines, method, "symmetric:0.5", **{**more, "share": share})
            if some:
                values = [cell([line["curves"]["clean"][epoch - 1] for line in some], digits=0) for epoch in epochs]
                rows.append([f"{name}, {share:.0%}", *values, cell(of_runs(some, "accuracy", "last")), str(len(some))])
    header = ["coreset", *(f"epoch {epoch}" for epoch in epochs), "test accuracy, last epoch", "seeds"]
    return markdown(header, rows)


def _tried(lines: Lines) -> str:
    """Variants that have gone; their lines have settings that are no longer there."""
    plain = {
        "memory": 0.0, "average": 0.0, "rule": "central", "mixup": "none", "mix_labels": False, "alpha": 1.0,
        "weights": "none", "targets": "given", "warmup": 1,
    }  # fmt: skip
    rows = []
    for line in lines:
        settings = line["spec"]["settings"]
        if line["spec"]["method"] == "crust" and "memory" in settings:
            words = [f"{name}={settings[name]}" for name in plain if settings.get(name, plain[name]) != plain[name]]
            clean = cell([line["curves"]["clean"][-1]], digits=0)
            found_wrong = cell(of_runs([line], "audit", "auroc"), scale=1, digits=3)
            rows.append(
                (line["accuracy"]["last"], [", ".join(words), cell([line["accuracy"]["last"]]), clean, found_wrong])
            )
    rows.sort(reverse=True)
    return markdown(
        ["different from the plain central rule", "last epoch", "right labels, %", "audit AUROC"],
        [row for _, row in rows],
    )


def methods(lines: Lines) -> str:
    """All methods side by side; what has not been run shows a dash."""
    rows = []
    for name, kind in METHODS.items():
        row = [f"[`{name}`](../methods/{name}.md)"]
        for labels in NOISES:
            some = runs(lines, name, labels, **own_settings(name, "cpu"))
            row += [cell(of_runs(some, "accuracy", each)) for each in ("last", "last10")]
            row += [cell(of_runs(some, "audit", "auroc"), scale=1, digits=3), str(len(some))]
        rows.append([*row, kind.needs])
    parts = [[f"{title}: last epoch", "mean of last 10", "audit AUROC", "seeds"] for title in NOISES.values()]
    table = markdown(["method", *parts[0], *parts[1], "needs to know"], rows)
    return "\n\n".join(["# All methods, measured", INTRODUCTION, MISSING, table]) + "\n"


def of_paper(name: str, kind: str) -> Callable[[Lines], str]:
    """A table or figure of the paper at the `cpu` scale, as `md` or `csv`.

    Seconds are left out: these runs shared their machine with others.
    """
    experiment = EXPERIMENTS[name]

    def build(lines: Lines) -> str:
        summary = experiment.summary(lines, "cpu")
        if kind == "md":
            return experiment.page(summary, seconds=False)
        if experiment.panels:
            return figure_page.as_csv(summary, experiment.panels)
        return text.as_csv(summary, seconds=False)

    return build


def what_holds(lines: Lines) -> str:
    """docs/findings.md."""
    speed = Path("benchmarks/results/training.json")
    return findings.page(lines, json.loads(speed.read_text()) if speed.is_file() else None)


# By their place in docs.
PAGES: dict[str, Callable[[Lines], str]] = {
    "results/training.md": training,
    "results/methods.md": methods,
    **{
        f"results/{name}.{kind}": of_paper(name, kind)
        for name in ("table1", "table2", "figure1")
        for kind in ("md", "csv")
    },
    "findings.md": what_holds,
}


def main() -> None:
    """Build all pages of docs anew, and the pictures of Figure 1."""
    from crust.experiments.results import read
    from crust.files import write_whole

    docs = Path("docs")
    lines = read(docs / "results")
    figure = EXPERIMENTS["figure1"]
    files = {name: page(lines).encode() for name, page in PAGES.items()}
    drawn = figure_page.pictures(figure.summary(lines, "cpu"), figure.panels)
    files |= {f"results/{name}": content for name, content in drawn.items()}
    for name, content in files.items():
        write_whole(docs / name, content)
        sys.stdout.write(f"{docs / name}\n")


if __name__ == "__main__":
    main()
