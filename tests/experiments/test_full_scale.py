"""The `full` scale is the decisive column on every image, with the paper's optimizer."""

from tests.refusals import refused

from crust.experiments import key
from crust.experiments.paper import EXPERIMENTS


def test_one_column_on_every_image():
    specs = EXPERIMENTS["table1"].specs("full")
    assert [spec["method"] for spec in specs] == [
        "crust-paper", "erm", "crust-released", "oracle", "crust", "co-teaching",
    ]  # fmt: skip
    for spec in specs:
        run = spec["experiment"]
        assert (spec["data"], spec["limit"], spec["labels"]) == ("cifar10", None, "symmetric:0.5")
        assert (spec["model"], spec["augment"], spec["validation"]) == ("resnet14", True, 0.1)
        assert (run["epochs"], run["batch_size"], run["optimizer"], run["learning_rate"]) == (50, 128, "sgd", 0.1)
        assert (run["momentum"], run["weight_decay"], run["schedule"]) == (0.9, 5e-4, "milestones")
        assert [round(share * 120) for share in run["lr_milestones"]] == [80, 100]  # as in the paper's 120 epochs


def test_its_curves_need_no_run_of_their_own():
    table = {key(spec) for spec in EXPERIMENTS["table1"].specs("full")}
    assert {key(spec) for spec in EXPERIMENTS["figure1"].specs("full")} < table


def test_other_tables_are_refused():
    with refused("undefined-scale"):
        EXPERIMENTS["table2"].specs("full")
