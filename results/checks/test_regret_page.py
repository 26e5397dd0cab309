"""The arithmetic of the scoreboard beside a slow and obvious one, and its page from made-up lines."""

import itertools
import math
import random

import pytest
from benchmarks.regret.conditions import CONFIRM, SEEDS, Job, conditions, jobs
from benchmarks.regret.lines import Lines, delivered
from results import regret_page as page
from results.regret_numbers import Estimate, average, cheap, regret

ACCURACY = {"erm": 80.0, "crust": 82.0, "gce": 81.0, "co-teaching": 85.0, "oracle": 95.0}
PASSES = {"erm": 100, "crust": 105, "gce": 100, "co-teaching": 220, "oracle": 60}


def slow_regret(table, name):
    """By hand: table[method] is a list of accuracies, one a seed."""
    even, odd = [], []
    for seed in range(len(table[name])):
        (even if seed % 2 == 0 else odd).append(seed)
    differences = {}
    for picking, judging in ((even, odd), (odd, even)):
        best, highest = None, -math.inf
        for other in table:
            if other == name:
                continue
            total = 0.0
            for seed in picking:
                total += table[other][seed]
            if total / len(picking) > highest:
                best, highest = other, total / len(picking)
        for seed in judging:
            differences[seed] = table[best][seed] - table[name][seed]
    n = len(differences)
    middle = sum(differences.values()) / n
    variance = sum((value - middle) ** 2 for value in differences.values()) / (n - 1)
    return middle, math.sqrt(variance / n)


@pytest.mark.parametrize("seeds", [2, 5, 10])
def test_regret_is_what_it_is_by_hand(seeds):
    rng = random.Random(seeds)
    for _ in range(20):
        table = {name: [rng.gauss(80, 5) for _ in range(seeds)] for name in "abcd"}
        scores = {name: dict(enumerate(values)) for name, values in table.items()}
        for name in table:
            found = regret(scores, name, scores)
            assert (found.mean, found.error) == pytest.approx(slow_regret(table, name))
            assert found.n == seeds


def test_rivals_without_all_of_the_seeds_do_not_count():
    scores = {"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0, 2: 2.0}, "c": {0: 9.0}}
    assert regret(scores, "a", scores).mean == 1.0
    assert regret(scores, "b", scores) is None
    assert regret(scores, "c", scores) is None  # one seed cannot be halved
    assert regret(scores, "a", ["a"]) is None


def test_errors_of_independent_conditions_add_as_squares():
    assert average([Estimate(0.0, 1.0, 2)] * 4).error == pytest.approx(0.5)
    assert average([Estimate(0.0, 1.0, 2), Estimate(0.0, None, 1)]).error is None
    assert cheap({"erm": {0: 10.0, 1: 10.0}, "a": {0: 11.0, 1: 11.0}, "b": {0: 11.2, 1: 11.2}}) == ["erm", "a"]


def test_the_queue_goes_seed_by_seed_one_network_before_two_and_pictures_last():
    order = jobs(r"^(vowel|ring|cifar10)/true/\w+ (erm|gce|co-teaching) ")
    named = [(job.condition.data, job.contender.name, job.seed) for job in order[:6]]
    assert named == [*itertools.product(("vowel",), ("erm", "gce"), (0,)), ("ring", "erm", 5), ("ring", "gce", 5),
                     ("vowel", "co-teaching", 0), ("ring", "co-teaching", 5)]  # fmt: skip
    assert [job.condition.data for job in order[-6:]] == ["cifar10"] * 6
    assert len({job.name for job in order}) == len(order) == 3 * (5 + 10 + 2)


def test_sets_noises_and_seeds_that_confirm_are_not_those_that_choose():
    parts = {part: [one for one in conditions() if one.part == part] for part in SEEDS}
    chosen, confirmed = ({one.data for one in parts[part]} for part in ("choose", CONFIRM))
    assert not chosen & confirmed
    assert not set(SEEDS["choose"]) & set(SEEDS[CONFIRM])
    assert {one.noise for one in parts[CONFIRM]} > {one.noise for one in parts["choose"]}


def made_up(only="^(ring|letter)/(true|symmetric:0.2)/"):
    """A line a run; odd seeds are a point worse for everybody."""
    lines = []
    for job in jobs(only):
        name = job.contender.name
        if name in ACCURACY:
            reached = (ACCURACY[name] - job.seed % 2) / 100
            cost = {"forward": PASSES[name], "backward": 0, "seconds": {"epoch": 1.0}}
            accuracy = {"last": reached - 0.05 * (name == "crust"), "delivered": reached}
            lines.append(
                {"key": job.name, "spec": job.spec, "accuracy": accuracy, "cost": cost, "audit": {"auroc": 0.9}}
            )
    return lines


def test_the_tables_compare_with_whom_they_say():
    scores = page.scores_of(made_up())
    assert len(scores) == 4
    few, every = page.regrets(scores[0], only_cheap=True), page.regrets(scores[0], only_cheap=False)
    assert {name: round(one.mean, 6) for name, one in few.items()} == {"erm": 2, "crust": -1, "gce": 1, "oracle": -13}
    assert round(every["crust"].mean, 6) == 3
    assert round(every["co-teaching"].mean, 6) == -3
    assert all(one.error == pytest.approx(0, abs=1e-9) for one in few.values())


def test_the_page_says_what_is_reached_and_what_is_missed():
    text = page.regret_page(made_up())
    rows = {row.split(" | ")[0].strip("| "): row for row in text.splitlines() if row.startswith("|")}
    assert rows["clean data, behind `erm`: worst set"].endswith("| reached |")
    assert "(letter, true)" in rows["clean data, behind `erm`: worst set"]
    assert rows["CIFAR-10 in small, symmetric:0.2, accuracy of the last epoch"].endswith("| not measured yet |")
    assert rows["mean regret among all, of `crust-semi`"].endswith("| not measured yet |")
    cheap_table = text.split("### Methods of at most")[1].split("### All methods")[0]
    assert [row.split("`")[1] for row in cheap_table.splitlines() if row.startswith("| `")] == [
        "crust", "gce", "erm", "oracle",
    ]  # fmt: skip
    assert "**-1.00 ± 0.00**" in cheap_table
    worse = [{**line, "accuracy": {"last": 0.1, "delivered": 0.1}} if line["spec"]["method"] == "crust" else line
             for line in made_up()]  # fmt: skip
    assert "missed in 2 of 2" in page.regret_page(worse)
    (alone,) = made_up("^cifar10/symmetric:0.2/cpu crust seed 0")
    for last, verdict in ((0.82, "82.0 (1 seed) | reached"), (0.1, "10.0 (1 seed) | open, one seed")):
        assert verdict in page.regret_page([{**alone, "accuracy": {"last": last, "delivered": 0.5}}])
    assert "No run has been made yet." in page.regret_page([])
    assert page.regret_csv(made_up()).count("\n") == 1 + 4 * len(ACCURACY)
    assert page.regret_png(made_up()).startswith(b"\x89PNG")
    assert page.regret_png([]) is None


def test_a_recorded_line_of_cifar_counts_where_it_knows_the_delivered_model():
    job = jobs(r"^cifar10/symmetric:0\.2/cpu gce seed 0$")[0]
    held, tested = [0.1] * 40, [None] * 40
    held[30] = held[34] = 0.6
    line = {"spec": job.spec, "accuracy": {"last": 0.5}, "curves": {"val_accuracy": held, "test_accuracy": tested}}
    assert Lines([line]).of(job) is None
    tested[34] = 0.55
    assert delivered(line) == 0.55  # the later one of equals is kept
    assert Lines([line]).of(job) is line
    assert Lines([line]).of(Job(job.condition, job.contender, 1)) is None
