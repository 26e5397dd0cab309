"""docs/findings.md: what holds of the paper and what does not, every word of it derived from result lines.

A comparison is made between runs with the same labels and seed. What has not been run is said to be missing; the page
gets fuller as lines come in, and its verdicts change with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.outputs.table_summary import ResultIndex
from crust.experiments.specs import make
from results.findings import costs, full, methods, parts
from results.findings.numbers import CLEAR, HALF, NOISES, Finding, Runs
from results.tables import CENTRAL

__all__ = ["findings", "page", "specs"]

# Runs that no table asks for: what the weights are worth, what every selection is read against, the coresets of
# other sizes for the paper's own method, by its text and by its code, and a size by the noise rate for ours.
EXTRA: list[tuple[str, str, dict[str, Any]]] = [
    ("crust-paper", HALF, {"weights": "none"}),
    ("crust-half", HALF, CENTRAL),
    ("crust-half", HALF, {**CENTRAL, "weights": "cluster"}),
    ("random", HALF, {}),
    ("oracle", HALF, {}),
    *((method, HALF, {"fraction": share}) for share in (0.3, 0.7) for method in methods.PAPERS),
    *(("crust-half", labels, {"fraction": "noise-rate"}) for labels in NOISES),
]
INTRODUCTION = (
    "CIFAR-10 in small: the first 10,000 images, ResNet-8, 40 epochs, no augmentation, coresets of 50% (`crust "
    "reproduce` at its `cpu` scale). The paper trains ResNet-32 on 50,000 images for 120 epochs, so what is compared "
    "here is which of two things is better, not how good they are. Accuracy is that of the last epoch on 10,000 test "
    "images, in percent; differences are taken between runs with the same labels and the same seed. One is clear from "
    f"{CLEAR:.0f} point on, and where there are several seeds beyond two standard errors of their differences. In "
    "brackets: the number of runs, or of pairs of runs. What holds in part is clear under some conditions and not, or "
    "the other way round, under others. A verdict names whose result it is: `crust-paper` is the "
    "algorithm as written, `crust-released` the published code, `crust-half` our rule of a fixed size, `crust` ours "
    "that sizes its coreset itself. Every word below is made from "
    "the lines in [results](results/README.md), and `python -m results.generate_pages` makes it anew when there are "
    "more."
)


def specs(seeds: Iterable[int] = (0,)) -> list[dict[str, Any]]:
    """The runs that the page needs and no table asks for.

    Example:
        >>> [spec["method"] for spec in specs()][:5]
        ['crust-paper', 'crust-half', 'crust-half', 'random', 'oracle']
    """
    return [make(method, labels, seed=seed, **settings) for seed in seeds for method, labels, settings in EXTRA]


def findings(found: ResultIndex, speed: Mapping[str, Any] | None = None) -> list[Finding]:
    """All of them.

    Args:
        found: the results.
        speed: what `benchmarks/training.py` measured, where it is there.

    Example:
        >>> {one.verdict for one in findings(ResultIndex([])) if one.claim}
        {'not measured yet'}
    """
    runs = Runs(found)
    return [
        methods.everyone(runs),
        methods.rule(runs),
        parts.grouping(runs),
        parts.mixup(runs),
        parts.weights(runs),
        *parts.size(runs),
        parts.by_noise(runs),
        costs.speed(runs, speed),
        costs.best_epoch(runs),
        full.everything(runs),
    ]


def page(lines: Iterable[dict[str, Any]], speed: Mapping[str, Any] | None = None) -> str:
    """The whole page.

    Example:
        >>> page([]).startswith("# What holds of the paper")
        True
    """
    found = findings(ResultIndex(lines), speed)
    parts = ["# What holds of the paper", INTRODUCTION]
    parts.append(
        markdown(["the paper says", "here"], [[one.claim, f"**{one.verdict}**"] for one in found if one.claim])
    )
    for one in found:
        parts.append(f"## {one.title}")
        if one.claim:
            parts.append(f"The paper: {one.claim} Here: **{one.verdict}**.")
        parts += [" ".join(one.sentences), one.table]
    return "\n\n".join(part for part in parts if part) + "\n"
