"""The paper's tables and figures as lists of runs."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.refusals import refused

from crust.experiments import key, make
from crust.experiments.paper import EXPERIMENTS, published
from crust.experiments.paper.tables_and_figures import BASELINES, VARIANTS
from crust.methods import METHODS

ALL = [(name, scale) for name, experiment in EXPERIMENTS.items() for scale in experiment.scales]


def test_table_1_at_the_scale_of_the_paper():
    specs = EXPERIMENTS["table1"].specs("paper")
    assert len(specs) == 455  # 7 kinds of noise, 13 methods, 5 seeds
    of_the_paper = [spec for spec in specs if spec["method"] in (*BASELINES, "crust-paper")]
    assert len(of_the_paper) == 315  # its nine rows
    assert Counter(spec["data"] for spec in specs) == {"cifar10": 260, "cifar100": 195}
    assert {spec["model"] for spec in specs} == {"resnet32"}
    assert {spec["experiment"]["epochs"] for spec in specs} == {120}
    assert {spec["limit"] for spec in specs} == {None}
    assert all(spec["augment"] for spec in specs)
    assert {spec["experiment"]["seed"] for spec in specs} == set(range(5))


def test_runs_at_cpu_scale_are_those_that_make_names():
    wanted = {key(spec) for spec in EXPERIMENTS["table1"].specs("cpu")}
    assert len(wanted) == 65
    for labels in ("symmetric:0.2", "symmetric:0.5", "symmetric:0.8", "derangement:0.4", "human:worse"):
        for method in ("erm", *BASELINES, *VARIANTS):
            more = {"iterations": 2, "sub_epochs": 10} if method == "incv" else {}
            assert key(make(method, labels, seed=0, **more)) in wanted
    wanted = {key(spec) for spec in EXPERIMENTS["table2"].specs("cpu")}
    assert len(wanted) == 44
    for seed in (0, 1):
        assert key(make("crust-half", "symmetric:0.2", seed=seed, grouping="label", mixup="none")) in wanted
        assert key(make("crust-half", "symmetric:0.5", seed=seed)) in wanted
        assert key(make("crust", "symmetric:0.5", seed=seed)) in wanted
        assert key(make("crust", "symmetric:0.2", seed=seed, mixup="none")) in wanted
        assert key(make("crust-paper", "symmetric:0.5", seed=seed)) in wanted
    halves = [("crust-half", {"fraction": share}) for share in (0.3, 0.5, 0.7)]
    assert {key(spec) for spec in EXPERIMENTS["figure1"].specs("cpu")} == {
        key(make(name, "symmetric:0.5", seed=seed, **more))
        for seed in (0, 1)
        for name, more in [*halves, ("crust", {})]
    }


def test_table_3():
    specs = EXPERIMENTS["table3"].specs("paper")
    assert len(specs) == 11  # four numbers a run
    for spec in specs:
        assert (spec["data"], spec["labels"], spec["model"]) == ("webvision", "given", "timm:inception_resnet_v2")
        assert spec["tests"] == ["test", "imagenet"]
        assert spec["experiment"]["epochs"] == 90
        assert [round(90 * drop) for drop in spec["experiment"]["lr_milestones"]] == [30, 60]
    with refused("undefined-scale"):
        EXPERIMENTS["table3"].specs("cpu")


@pytest.mark.parametrize(("name", "scale"), ALL)
def test_no_run_twice_and_every_method_known(name, scale):
    specs = EXPERIMENTS[name].specs(scale)
    assert len({key(spec) for spec in specs}) == len(specs)
    assert {spec["method"] for spec in specs} <= set(METHODS)
    assert len(EXPERIMENTS[name].specs(scale, seeds=1)) * EXPERIMENTS[name].seeds[scale] == len(specs)


def test_seeds_by_number_or_by_name():
    figure = EXPERIMENTS["figure1"]
    assert {spec["experiment"]["seed"] for spec in figure.specs("cpu", seeds=[7, 3])} == {3, 7}
    assert figure.specs("cpu", seeds=[5])[0]["experiment"]["seed"] == 5
    for wrong in (0, [], [-1]):
        with refused("seeds-range"):
            figure.specs("cpu", seeds=wrong)
    with refused("unknown-scale"):
        figure.specs("huge")


def test_smoke_is_small():
    specs = {key(spec): spec for name in EXPERIMENTS for spec in EXPERIMENTS[name].specs("smoke")}
    assert len(specs) < 200
    assert {spec["data"] for spec in specs.values()} == {"digits"}


def test_the_papers_numbers_have_a_place():
    for name, numbers in (("table1", published.TABLE1), ("table2", published.TABLE2), ("table3", published.TABLE3)):
        places = {(entry.row, entry.column) for entry in EXPERIMENTS[name].entries("paper")}
        assert set(numbers) <= places
    assert published.TABLE1["crust-paper", "CIFAR-10 sym 0.8"] == (58.3, 1.8)
    assert published.TABLE1["crust-released", "CIFAR-100 asym 0.4"] == (53.0, 0.2)
    assert published.TABLE2["crust-paper: by prediction, mixup", "CIFAR-10 sym 0.5"] == (86.27, None)
    assert published.TABLE3["incv", "ImageNet top-5"] == (84.98, None)
    # its text says 3.15 points above INCV on average; its table says this
    columns = [column for row, column in published.TABLE1 if row == "incv"]
    ahead = [published.TABLE1["crust-paper", at].mean - published.TABLE1["incv", at].mean for at in columns]
    assert round(sum(ahead) / len(ahead), 2) == 3.19
