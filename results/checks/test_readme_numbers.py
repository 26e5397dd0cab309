"""The table of accuracies in the README says what the result lines and the benchmark say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean

import pytest
from benchmarks.regret.conditions import CONFIRM
from results.regret_numbers import average
from results.regret_page import noise_table, regrets, scores_of
from results.tables import NOISES, of_runs, runs

from crust.experiments import read_results
from crust.experiments.paper import EXPERIMENTS
from crust.experiments.paper.tables_and_figures import BASELINES
from crust.experiments.results_file import find

ROOT = Path(__file__).parents[2]
NAMES = {"a random half": "random", "smallest losses": "small-loss"}  # rows that do not name their method


def table() -> dict[str, list[str]]:
    """The rows by their method: symmetric, human, passes, seconds."""
    text = (ROOT / "README.md").read_text().partition("\nOn CIFAR-10 ")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    found = {}
    for first, *numbers in rows:
        named = re.search(r"`([a-z-]+)`", first)
        found[named[1] if named else NAMES[first]] = [number.strip("*") for number in numbers]
    return found


def test_the_table_by_kind_of_noise_and_what_stands_below_it_are_those_of_the_scoreboard():
    text, page = ((ROOT / name).read_text() for name in ("README.md", "docs/results/regret.md"))
    measured = scores_of(read_results(ROOT / "results"))
    assert noise_table(measured) in text
    some = [one for one in measured if one.condition.part == CONFIRM]
    found = [regrets(one, only_cheap=True).get("crust") for one in some]
    ahead = -average([one for one in found if one is not None]).mean
    assert f"Over all {len(some)} conditions it is {ahead:.1f} points ahead" in text
    worst = next(line for line in page.splitlines() if line.startswith("| up to 20% wrong labels"))
    behind = re.search(r"\| ([0-9.]+) ± ([0-9.]+) \(spam-vectors, class-dependent:0.2\)", worst)
    assert f"({float(behind[1]):.1f} ± {float(behind[2]):.1f} points behind plain training on word vectors)" in text


def test_what_stands_below_the_table_is_what_was_measured():
    lines = read_results(ROOT / "results")

    def first(*who, **settings):
        (one,) = (run for run in runs(lines, *who, **settings) if run["spec"]["experiment"]["seed"] == 0)
        return one

    def last(*who, **settings):
        return f"{100 * first(*who, **settings)['accuracy']['last']:.1f}"

    def mean_of(*who):
        return f"{100 * mean(of_runs(runs(lines, *who), 'accuracy', 'last')):.1f}"

    def passes(*who, **settings):
        own, base = first(*who, **settings)["cost"], first("erm", who[1])["cost"]
        return f"{(own['forward'] + own['backward']) / (base['forward'] + base['backward']):.2f}"

    few, asymmetric = "symmetric:0.2", "derangement:0.4"
    text = (ROOT / "README.md").read_text()
    assert (
        f"reaches {last('crust-half', few, fraction='noise-rate')} instead of {last('crust-half', few)}, at "
        f"{passes('crust-half', few, fraction='noise-rate')} times the passes of plain training (`co-teaching` "
        f"{last('co-teaching', few)} at {passes('co-teaching', few)}; the same seed)"
    ) in text
    half, people = "symmetric:0.5", "human:worse"
    if len(runs(lines, "crust", half)) == 1:
        assert (
            f"one seed here so far: {last('crust', few)} with a fifth of the labels wrong (`crust-half` "
            f"{mean_of('crust-half', few)}, `co-teaching` {last('co-teaching', few)}), {last('crust', half)} with "
            f"half, {last('crust', people)} with human labels, at {passes('crust', few)} times the passes"
        ) in text
    assert f"{last('co-teaching', asymmetric)} to {last('crust-half', asymmetric)} (one seed)" in text
    most = "symmetric:0.8"
    assert last("crust-half", most) == last("crust-paper", most)
    rivals = [
        spec for spec in EXPERIMENTS["table1"].specs("cpu") if spec["labels"] == most and spec["method"] in BASELINES
    ]
    reached = {spec["method"]: find(lines, spec)["accuracy"]["last"] for spec in rivals}
    assert len(reached) == 8
    best = max(reached, key=reached.get)
    assert (
        f"`crust-half` and `crust-paper` reach {last('crust-half', most)}, the best of the eight baselines, "
        f"`{best}`, {100 * reached[best]:.1f} (one seed), and `crust-half` with "
        f"`fraction=noise-rate` {last('crust-half', most, fraction='noise-rate')}."
    ) in text


def test_crust_has_a_row_as_soon_as_it_has_been_run():
    lines = read_results(ROOT / "results")
    assert ("crust" in table()) == all(len(runs(lines, "crust", labels)) == 2 for labels in NOISES)


def test_the_table_is_found():
    assert len(table()) == 10 + ("crust" in table())
    assert {len(numbers) for numbers in table().values()} == {4}


@pytest.mark.parametrize("method", table())
def test_a_row_is_what_was_measured(method):
    lines = read_results(ROOT / "results")
    *accuracies, passes, seconds = table()[method]
    costs = []
    for labels, shown in zip(NOISES, accuracies, strict=True):
        some, plain = runs(lines, method, labels), runs(lines, "erm", labels)
        assert len(some) == 2, "the README speaks of two seeds"
        assert shown == f"{100 * mean(of_runs(some, 'accuracy', 'last')):.1f}"
        own, base = (sum(mean(of_runs(each, "cost", way)) for way in ("forward", "backward")) for each in (some, plain))
        costs.append(f"{own / base:.2f}")
    low, high = min(costs), max(costs)
    assert passes in ((low, "1") if float(low) == 1 else (low,) if low == high else (f"{low} to {high}",))
    timed = json.loads((ROOT / "benchmarks" / "results" / "methods.json").read_text())["methods"]
    assert float(seconds) == pytest.approx(next(row["seconds"] for row in timed if row["method"] == method), abs=0.006)
