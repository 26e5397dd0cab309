"""The `paper` scale is the paper's protocol."""

import pytest

from crust.experiments.paper import EXPERIMENTS
from crust.experiments.paper.tables_and_figures import CHOOSE


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_nothing_is_held_out_but_by_those_who_choose_by_it(name):
    for spec in EXPERIMENTS[name].specs("paper"):
        assert spec["validation"] == (0.1 if spec["method"] in CHOOSE else 0)


@pytest.mark.parametrize("name", ["table1", "table2", "figure1"])
def test_cifar_runs_are_the_papers(name):
    for spec in EXPERIMENTS[name].specs("paper"):
        run = spec["experiment"]
        assert (spec["model"], spec["limit"], spec["augment"]) == ("resnet32", None, True)
        assert (run["epochs"], run["batch_size"], run["learning_rate"]) == (120, 128, 0.1)
        assert (run["momentum"], run["weight_decay"]) == (0.9, 5e-4)
        assert [round(share * 120) for share in run["lr_milestones"]] == [80, 100]


def test_webvision_runs_are_the_papers():
    for spec in EXPERIMENTS["table3"].specs("paper"):
        run = spec["experiment"]
        assert (spec["model"], spec["data"], run["epochs"]) == ("timm:inception_resnet_v2", "webvision", 90)
        assert [round(share * 90) for share in run["lr_milestones"]] == [30, 60]
