"""Result lines as tables: mean, standard deviation and number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

from crust.experiments.outputs.table_markdown import mean_sd
from crust.experiments.outputs.table_summary import passes_of_line
from crust.experiments.results_file import find
from crust.experiments.specs import make
from crust.methods import METHODS

SEEDS = range(5)
# The k most central examples of each predicted class, and nothing else.
CENTRAL: dict[str, Any] = {"mixup": "none", "mix_labels": False, "alpha": 1.0, "budget": "group"}
NOISES = {"symmetric:0.5": "symmetric 0.5", "human:worse": "human `worse`"}
INTRODUCTION = (
    "CIFAR-10, the first 10,000 images (9,000 trained on, 1,000 held out with their noisy labels), ResNet-8, 40 "
    "epochs, no augmentation, batch 128, SGD 0.1 with drops at 2/3 and 5/6, coreset of 50%. Test accuracy on the "
    "10,000 test images in percent: mean ± standard deviation over seeds, and their number. The lines that this page "
    "is made from, with every setting, are in the .jsonl files of [results](../../results); "
    "`python -m results.generate_pages` builds it anew."
)


def runs(lines: Iterable[dict[str, Any]], method: str, labels: str, **settings: Any) -> list[dict[str, Any]]:
    """The results of one specification, all seeds.

    Example:
        >>> runs([{"key": "x", "spec": make("erm", "true", seed=1)}], "erm", "true")[0]["key"]
        'x'
    """
    found = (find(lines, make(method, labels, seed=seed, **settings)) for seed in SEEDS)
    return [line for line in found if line is not None]


def cell(values: Sequence[float], *, scale: float = 100.0, digits: int = 1, sign: str = "") -> str:
    """Mean ± standard deviation; the mean alone where there is one run.

    Example:
        >>> cell([0.5, 0.52]), cell([0.5]), cell([])
        ('51.0 ± 1.4', '50.0', '–')
    """
    if not values:
        return "–"
    return mean_sd(scale * mean(values), scale * stdev(values) if len(values) > 1 else None, digits, sign)


def passes(lines: Iterable[dict[str, Any]]) -> float | None:
    """Examples through a network, forward and backward, in a run on average; None without runs.

    Example:
        >>> passes([{"cost": {"forward": 10, "backward": 4}}, {"cost": {"forward": 12, "backward": 4}}]), passes([])
        (15.0, None)
    """
    known = [value for value in map(passes_of_line, lines) if value is not None]
    return mean(known) if known else None


def first_choice(line: dict[str, Any]) -> int:
    """The position of the first epoch that was not trained on everything.

    Example:
        >>> first_choice({"curves": {"n_selected": [9, 9, 5, 5]}}), first_choice({"curves": {"n_selected": [9, 9]}})
        (2, 0)
    """
    chosen = line["curves"].get("n_selected", [])
    return next((at for at, n in enumerate(chosen) if n < max(chosen)), 0)


def of_runs(lines: Iterable[dict[str, Any]], *path: str) -> list[float]:
    """One number of each line, where it is there.

    Example:
        >>> of_runs([{"accuracy": {"last": 0.5}}, {"accuracy": {}}], "accuracy", "last")
        [0.5]
    """
    found = []
    for line in lines:
        value: Any = line
        for name in path:
            value = None if value is None else value.get(name)
        if value is not None:
            found.append(float(value))
    return found


def bold_best(rows: list[list[str]], columns: Iterable[int], among: Sequence[bool]) -> list[list[str]]:
    """The largest mean of each column in bold, among the rows that count.

    Example:
        >>> bold_best([["a", "1.0"], ["b", "2.0"], ["ceiling", "9.0"]], [1], [True, True, False])
        [['a', '1.0'], ['b', '**2.0**'], ['ceiling', '9.0']]
    """
    for column in columns:
        values = [_number(row[column]) if ok else None for row, ok in zip(rows, among, strict=True)]
        known = [value for value in values if value is not None]
        for row, value in zip(rows, values, strict=True):
            if known and value == max(known):
                row[column] = f"**{row[column]}**"
    return rows


def _number(text: str) -> float | None:
    try:
        return float(text.split(" ")[0])
    except ValueError:
        return None


def is_ceiling(method: str) -> bool:
    """Whether a method is told the truth, so that it bounds the others instead of competing."""
    return method in METHODS and METHODS[method].needs == "all true labels"
