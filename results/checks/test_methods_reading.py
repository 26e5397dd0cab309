"""What is said of who wins holds in the result lines that it is said of."""

from pathlib import Path
from statistics import mean

import pytest
from results.methods_page import BEST, own_page, reading
from results.tables import NOISES, is_ceiling, of_runs, runs

from crust.experiments import read_results
from crust.experiments.paper.tables_and_figures import own_settings
from crust.methods import METHODS

LINES = read_results(Path(__file__).parents[1])


def found(labels):
    """Accuracy of the last epoch and passes of all methods that compete."""
    made = {name: runs(LINES, name, labels, **own_settings(name, "cpu")) for name in METHODS if not is_ceiling(name)}
    return {
        name: (
            mean(of_runs(some, "accuracy", "last")),
            mean(line["cost"]["forward"] + line["cost"]["backward"] for line in some),
        )
        for name, some in made.items()
        if some
    }


@pytest.mark.parametrize("labels", NOISES)
def test_the_best_four_are_the_best_four(labels):
    twice = [item for item in found(labels).items() if len(runs(LINES, item[0], labels)) >= 2]
    order = sorted(twice, key=lambda item: -item[1][0])
    assert {name for name, _ in order[:4]} == set(BEST)


@pytest.mark.parametrize("labels", NOISES)
def test_crust_half_is_first_among_those_that_cost_no_more_than_plain_training(labels):
    made = found(labels)
    cheap = {name: last for name, (last, passes) in made.items() if passes <= 1.01 * made["erm"][1]}
    assert max(cheap, key=cheap.__getitem__) == "crust-half"


def test_the_true_matrix_is_worth_eight_points():
    own = [
        line for line in LINES if line["spec"]["method"] == "f-correction" and line["spec"]["labels"] == "symmetric:0.5"
    ]
    known, estimated = (
        [line for line in own if bool(line["spec"]["settings"]["transitions"]) == told] for told in (1, 0)
    )
    gap = mean(of_runs(known, "accuracy", "last")) - mean(of_runs(estimated, "accuracy", "last"))
    assert round(100 * gap) == 8


def renamed(name, to):
    """The lines of one method as if they were those of another."""
    spec = {"method": to, "settings": METHODS[to].Settings().model_dump(mode="json")}
    return [{**line, "spec": {**line["spec"], **spec}} for line in LINES if line["spec"]["method"] == name]


def test_crust_is_spoken_of_as_soon_as_it_has_been_run(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    without = [line for line in LINES if line["spec"]["method"] != "crust"]
    assert "sizes its coreset itself" not in reading(without)
    assert "55.2" not in own_page("crust", without)
    lines = [*without, *renamed("co-teaching", "crust")]
    assert "`crust`, which sizes its coreset itself, reaches 55.2 and 57.4 at 2.22 times the passes of" in reading(
        lines
    )
    page = own_page("crust", lines)
    assert "\n\nMeasured on CIFAR-10 in small, last epoch" in page
    assert "symmetric 0.5: 55.2 ± 1.2%" in page.splitlines()[-1]


def test_nothing_is_said_where_a_run_is_missing():
    assert reading(LINES)
    assert reading([line for line in LINES if line["spec"]["method"] != "incv"]) == ""
