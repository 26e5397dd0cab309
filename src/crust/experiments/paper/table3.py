"""Table 3: mini WebVision, whose labels come from a search engine; top-1 and top-5 on two test sets.

InceptionResNet-v2, 90 epochs, rate 0.1 with drops at epochs 30 and 60. The paper says neither batch size nor number of
runs: 32 images a GPU (it used four), and one seed. Which labels are right is not known here.
"""

from __future__ import annotations

from typing import Any

from crust.experiments.outputs.table_summary import TableCellSpec
from crust.experiments.paper.table1 import VARIANTS, own_settings

METHODS = ("erm", "f-correction", "decoupling", "co-teaching", "mentornet", "d2l", "incv", *VARIANTS)
TESTS = {"WebVision": "test", "ImageNet": "imagenet"}
PAPER: dict[str, Any] = {
    "data": "webvision",
    "model": "timm:inception_resnet_v2",
    "tests": tuple(TESTS.values()),
    "epochs": 90,
    "batch_size": 32,
    "lr_milestones": (1 / 3, 2 / 3),
}


def table3_cells(scale: str) -> list[TableCellSpec]:
    """Ten methods; each run has the four numbers of its row. At `smoke` scale one test set stands for both.

    Example:
        >>> [entry.column for entry in table3_cells("paper")[:4]]
        ['WebVision top-1', 'WebVision top-5', 'ImageNet top-1', 'ImageNet top-5']
        >>> table3_cells("paper")[0].spec("paper")["tests"]
        ['test', 'imagenet']
    """
    found = []
    for method in METHODS:
        for title, name in TESTS.items():
            for number in (1, 5):
                if scale == "paper":
                    labels, options, test = "given", {**PAPER, **own_settings(method, scale)}, name
                else:
                    labels, options, test = "symmetric:0.2", {"tests": ("test",), **own_settings(method, scale)}, "test"
                measure = ("tests", test, f"top{number}", "last")
                found.append(TableCellSpec(method, f"{title} top-{number}", method, labels, options, measure))
    return found
