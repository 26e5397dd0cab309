"""The paper's tables and figures: runs that are generated at a scale, and how their results are written down."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crust.errors import choices
from crust.experiments.outputs.results_html import build
from crust.experiments.outputs.table_summary import ResultIndex
from crust.experiments.paper import published
from crust.experiments.paper.experiment import Experiment
from crust.experiments.paper.tables_and_figures import PANELS, figure1_cells, table1_cells, table2_cells, table3_cells
from crust.experiments.results_file import write_pages

__all__ = ["EXPERIMENTS", "write_results_page"]

CIFAR = {
    "paper": (
        "The paper's protocol: ResNet-32, 120 epochs, batch 128, SGD 0.1 with drops at epochs 80 and 100, random crops "
        "and mirroring, coresets of 50% where nothing else is said. Nothing is held out, but for `f-correction`, "
        "`t-revision`, `l-dmi` and `crust` a tenth of the training set with its noisy labels, by which they choose "
        "weights or the size of the coreset."
    ),
    "full": (
        "CIFAR-10, all 50,000 images (45,000 trained on, 5,000 held out with their noisy labels), ResNet-14, 50 "
        "epochs, random crops and mirroring, batch 128, SGD 0.1 with drops at 2/3 and 5/6, coresets of 50% where "
        "nothing else is said. The paper trains ResNet-32 for 120 epochs."
    ),
    "cpu": (
        "CIFAR-10, the first 10,000 images (9,000 trained on, 1,000 held out with their noisy labels), ResNet-8, 40 "
        "epochs, no augmentation, batch 128, SGD 0.1 with drops at 2/3 and 5/6, coresets of 50% where nothing else is "
        "said. The paper trains ResNet-32 on 50,000 images for 120 epochs: its numbers are higher, and only the order "
        "of methods can be compared."
    ),
}
SMOKE = (
    "A smoke test: 400 handwritten digits of 8×8 pixels stand for every dataset; a small network, 6 epochs. It shows "
    "that everything runs; the numbers say nothing about the methods, and the paper's are there for the form only."
)
WEBVISION = (
    "The paper's protocol: mini WebVision, the first 50 classes of the Google part, InceptionResNet-v2, 90 epochs, SGD "
    "0.1 with drops at epochs 30 and 60, coresets of 50% where nothing else is said. Nothing is held out, "
    "but for `f-correction` and `crust` a tenth of the training set, by which they choose weights or the size of the "
    "coreset."
)
ASYMMETRIC = (
    "Asymmetric noise is the paper's own kind: a random permutation without fixed points, drawn with each seed, and "
    "each class is flipped to its image with the given chance (`derangement`)."
)
PARTS = (
    "What varies is how examples are grouped before coresets are chosen, by given label or by prediction, and whether "
    "they are mixed; nothing else. With mixup, `crust-half` takes partners from the whole coreset, `crust-paper` from "
    "an example's cluster. `crust-released`, the published code, groups by label and mixes, and has no such settings. "
    "`crust`, which sizes its coreset itself, stands with its defaults and without mixup."
)
CURVES = "Symmetric noise of 0.5. `crust` sizes its coreset itself."

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "table1",
            "Table 1: test accuracy with noisy labels",
            table1_cells,
            {"paper": 5, "full": 1, "cpu": 1, "smoke": 2},
            {**{scale: f"{words} {ASYMMETRIC}" for scale, words in CIFAR.items()}, "smoke": SMOKE},
            published.TABLE1,
        ),
        Experiment(
            "table2",
            "Table 2: the parts of CRUST",
            table2_cells,
            {"paper": 5, "cpu": 2, "smoke": 2},
            {**{scale: f"{words} {PARTS}" for scale, words in CIFAR.items()}, "smoke": f"{SMOKE} {PARTS}"},
            published.TABLE2,
            digits=2,
            why_not="full is the decisive column of table1; use cpu, smoke or paper",
        ),
        Experiment(
            "table3",
            "Table 3: mini WebVision",
            table3_cells,
            {"paper": 1, "smoke": 2},
            {"paper": WEBVISION, "smoke": SMOKE},
            published.TABLE3,
            digits=2,
            why_not="InceptionResNet-v2 on 66,000 large images needs GPUs; use paper, or smoke to see that it runs",
        ),
        Experiment(
            "figure1",
            "Figure 1: training with coresets of 30, 50 and 70%",
            figure1_cells,
            {"paper": 5, "full": 1, "cpu": 2, "smoke": 2},
            {scale: f"{words} {CURVES}" for scale, words in {**CIFAR, "smoke": SMOKE}.items()},
            panels=PANELS,
        ),
    )
}


def write_results_page(
    names: Iterable[str],
    lines: Iterable[dict[str, Any]],
    scale: str,
    path: str | Path,
    *,
    seeds: int | Iterable[int] | None = None,
) -> Path:
    """Write one page with tables that can be sorted, curves, and all runs: an HTML file that needs nothing else.

    Args:
        names: of `EXPERIMENTS`; those that are not defined at the scale are left out.
        lines: from `read_results`.
        scale: `paper`, `full`, `cpu` or `smoke`.
        path: of the page.
        seeds: those that are asked for; by default the scale's.

    Returns:
        The path.

    Example:
        >>> import tempfile
        >>> path = write_results_page(["figure1"], [], "cpu", tempfile.mkdtemp() + "/results.html")
        >>> "8 of 8 runs" in path.read_text()
        True
    """
    asked = [EXPERIMENTS[choices(name, EXPERIMENTS, "experiment")] for name in names]
    there = [each for each in asked if scale in each.scales]
    every = list(lines)
    found = ResultIndex(every)
    kept = list(seeds) if isinstance(seeds, Iterable) else seeds
    summaries = [each.summary(found, scale, kept) for each in there]
    used = {id(line) for summary in summaries for cell in summary.cells.values() for line in cell.lines.values()}
    wanted = sum(summary.wanted for summary in summaries)
    done = wanted - sum(summary.missing for summary in summaries)
    text = build(
        "CRUST: the paper's experiments",
        f"At scale {scale}; {done} of {wanted} runs are there, counting those that two tables share twice.",
        summaries,
        panels={each.name: each.panels for each in there if each.panels},
        lines=[line for line in every if id(line) in used],
        source=published.SOURCE,
    )
    return write_pages(Path(path).parent, {Path(path).name: text.encode()})[0]
