"""Pages of results in docs, built from the result lines and from nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from crust.experiments.outputs import figures, table_markdown
from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper import EXPERIMENTS
from crust.experiments.results_file import find
from crust.experiments.specs import make, same_spec
from crust.methods import METHODS
from crust.training.epoch_scaling import warmup_of
from results import findings
from results.audit_page import audit_page, calibrated, compared
from results.methods_page import methods_page, own_page
from results.regret_page import PICTURE, regret_csv, regret_page, regret_png
from results.tables import (
    CENTRAL,
    INTRODUCTION,
    NOISES,
    SEEDS,
    bold_best,
    cell,
    first_choice,
    is_ceiling,
    of_runs,
    runs,
)

TRIED = (
    "`budget=label`: every given label has its part of the share, else every predicted class; `least`: every "
    "label has at least this part of its part. `average`: all examples looked at with weights averaged over the steps; "
    "`memory`: with probabilities averaged over the epochs. `selection=drawn`: a coreset drawn in proportion to the "
    "probability of the given label; `weights=trust`: weighted by it. Left out of the table, stopped early since far "
    "below: partners from the predicted class that take the label of the example (46% at epoch 33), and partners from "
    "all examples with labels softened by the average. `warmup`: epochs on everything before the first selection. On "
    "human labels what steadies the network's judgement did harm: "
    "it agrees with its own mistakes, and classes that it seldom predicts are under-selected."
)
Lines = Sequence[dict[str, Any]]
TRAINING: dict[str, tuple[str, dict[str, Any]]] = {
    "`erm`": ("erm", {}),
    "`mixup`": ("mixup", {}),
    "`random`": ("random", {}),
    "`small-loss`": ("small-loss", {}),
    "`crust-paper`": ("crust-paper", {}),
    "`crust-released`": ("crust-released", {}),
    "plain central rule": ("crust-half", CENTRAL),
    "`crust-half`": ("crust-half", {}),
    "`crust`": ("crust", {}),
    "`oracle`": ("oracle", {}),
}


def training(lines: Lines) -> str:
    """The page of the accuracies that every selection is read against."""
    parts = [
        "# Training with wrong labels, measured",
        INTRODUCTION,
    ]
    for labels, title in NOISES.items():
        parts += [f"## {title}", _accuracies(lines, labels), _gap(lines, labels)]
    parts += ["## Share of right labels in the coreset", _purity(lines)]
    parts += ["## What was tried for the rule of `crust-half`", TRIED, _tried(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _accuracies(lines: Lines, labels: str) -> str:
    rows, competes = [], []
    found = {name: runs(lines, method, labels, **settings) for name, (method, settings) in TRAINING.items()}
    found["`erm` on all true labels"] = runs(lines, "erm", "true")
    for name, some in found.items():
        method = TRAINING[name][0] if name in TRAINING else "oracle"
        competes.append(not is_ceiling(method))
        numbers = [cell(of_runs(some, "accuracy", each)) for each in ("last", "last10", "best")]
        clean = cell([line["curves"]["clean_fraction"][-1] for line in some], digits=0)
        found_wrong = cell(of_runs(some, "audit", "auroc"), scale=1, digits=3)
        rows.append([name, *numbers, clean, found_wrong, str(len(some))])
    header = ["method", "last epoch", "mean of last 10", "best epoch", "right labels in the last epoch, %"]
    return markdown([*header, "audit AUROC", "seeds"], bold_best(rows, [1, 2], competes))


def _gap(lines: Lines, labels: str) -> str:
    """How much of the way from `random` to `oracle` is covered, by seeds that all of them have."""
    shares: dict[str, list[float]] = {}
    for name in ("`small-loss`", "plain central rule", "`crust-paper`", "`crust-released`", "`crust-half`", "`crust`"):
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
    epochs = (10, 20, 30, 40)
    for share in (0.3, 0.5, 0.7):
        for name, method, more in (("`crust-half`", "crust-half", {}), ("plain central rule", "crust-half", CENTRAL)):
            some = runs(lines, method, "symmetric:0.5", **{**more, "fraction": share})
            if some:
                first = cell([line["curves"]["clean_fraction"][first_choice(line)] for line in some], digits=0)
                values = [
                    cell([line["curves"]["clean_fraction"][epoch - 1] for line in some], digits=0) for epoch in epochs
                ]
                rows.append(
                    [f"{name}, {share:.0%}", first, *values, cell(of_runs(some, "accuracy", "last")), str(len(some))]
                )
    header = ["coreset", "first choice", *(f"epoch {epoch}" for epoch in epochs), "test accuracy, last epoch", "seeds"]
    return markdown(header, rows)


def _tried(lines: Lines) -> str:
    """Variants that were tried; some of their settings have gone since."""
    plain = {
        "memory": 0.0, "average": 0.0, "selection": "central", "budget": "group", "mixup": "none", "mix_labels": False,
        "alpha": 1.0, "weights": "none", "targets": "given", "select_after": 5, "least": 0.0, "grouping": "prediction",
    }  # fmt: skip
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        spec = line["spec"]
        rule = same_spec(spec, make("crust-half", spec["labels"], seed=spec["experiment"]["seed"]))
        if not line.get("tried") and not (rule and spec["labels"] in NOISES):
            continue
        settings = {**plain, **spec["settings"]}
        settings["select_after"] = warmup_of(settings["select_after"], spec["experiment"]["epochs"])
        unmixed = settings["mixup"] == "none"
        words = [
            f"{name}={settings[name]}"
            for name in plain
            if settings[name] != plain[name] and not (unmixed and name in ("alpha", "mix_labels"))
        ]
        if spec["method"] != "crust-half":
            words.insert(0, f"`{spec['method']}`")
        if not line.get("tried"):
            words[-1] += " (the rule)"
        found.setdefault((spec["labels"], ", ".join(words)), []).append(line)
    rows = []
    for (labels, name), some in found.items():
        last, clean = of_runs(some, "accuracy", "last"), [line["curves"]["clean_fraction"][-1] for line in some]
        wrong = cell(of_runs(some, "audit", "auroc"), scale=1, digits=3)
        shown = [NOISES.get(labels, labels), name, cell(last), cell(clean, digits=0), wrong, str(len(some))]
        rows.append((labels, mean(last), shown))
    rows.sort(key=lambda row: (row[0] != "symmetric:0.5", row[0], -row[1]))
    header = [
        "labels",
        "different from the plain central rule",
        "last epoch",
        "right labels, %",
        "audit AUROC",
        "runs",
    ]
    return markdown(header, [row for *_, row in rows])


def of_paper(name: str, kind: str) -> Callable[[Lines], str]:
    """A table or figure of the paper at the `cpu` scale, as `md` or `csv`."""
    experiment = EXPERIMENTS[name]

    def build(lines: Lines) -> str:
        summary = experiment.summary(lines, "cpu")
        if kind == "md":
            return experiment.page(summary)
        if experiment.panels:
            return figures.figure_csv(summary, experiment.panels)
        return table_markdown.table_csv(summary)

    return build


def what_holds(lines: Lines) -> str:
    """docs/findings.md."""
    speed = Path("benchmarks/results/training.json")
    return findings.page(lines, json.loads(speed.read_text()) if speed.is_file() else None)


# By their place in docs.
PAGES: dict[str, Callable[[Lines], str]] = {
    "results/training.md": training,
    "results/methods.md": methods_page,
    **{
        f"results/{name}.{kind}": of_paper(name, kind)
        for name in ("table1", "table2", "figure1")
        for kind in ("md", "csv")
    },
    "results/audit.md": lambda _: audit_page(compared(), calibrated()),
    "results/regret.md": regret_page,
    "results/regret.csv": regret_csv,
    "findings.md": what_holds,
    **{f"methods/{name}.md": partial(own_page, name) for name in METHODS},
}


def main() -> None:
    """Build all pages of docs anew, and the pictures of Figure 1 and of the scoreboard."""
    from crust._util.atomic_write import write_atomic
    from crust.experiments.results_file import read_results

    docs = Path("docs")
    lines = read_results(Path("results"))
    figure = EXPERIMENTS["figure1"]
    files = {name: page(lines).encode() for name, page in PAGES.items()}
    drawn = figures.figure_pngs(figure.summary(lines, "cpu"), figure.panels)
    regrets = regret_png(lines)
    drawn |= {} if regrets is None else {PICTURE: regrets}
    files |= {f"results/{name}": content for name, content in drawn.items()}
    for name, content in files.items():
        write_atomic(docs / name, content)
        sys.stdout.write(f"{docs / name}\n")


if __name__ == "__main__":
    main()
