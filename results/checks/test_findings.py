"""The findings say what the lines say: made-up runs in which each claim is known to hold or not."""

from __future__ import annotations

import re

import pytest
from results.findings import findings, page, specs
from results.findings.numbers import NOISES, Runs, differences, every, on_average
from results.tables import CENTRAL
from tests.experiments.outputs.made import line

from crust.experiments import make
from crust.experiments.outputs.table_summary import ResultIndex
from crust.experiments.paper import EXPERIMENTS
from crust.experiments.paper.tables_and_figures import BASELINES, VARIANTS, own_settings

HALF = "symmetric:0.5"
TIMED = {"what": "an epoch of crust-half over one of erm", "found": 0.8, "spread": [0.75, 0.85]}
SPEED = {"cases": [{"case": "resnet32", "rows": [TIMED]}]}


def found_of(lines, speed=None):
    return {one.title: one for one in findings(ResultIndex(lines), speed)}


def made(method, labels, last, seed=0, clean=(0.5, 0.6, 0.7), **options):
    curves = {
        "test_accuracy": [None, last],
        "clean_fraction": list(clean),
        "clean_fraction_weighted": list(clean),
        "n_selected": [90, *[45] * (len(clean) - 1)],
    }
    return line(method, labels, last, seed, curves=curves, **own_settings(method, "cpu"), **options)


def test_nothing_is_claimed_without_runs():
    for one in findings(ResultIndex([])):
        assert one.verdict == ("not measured yet" if one.claim else "")
    text = page([])
    assert "**holds" not in text
    assert "**does not" not in text
    assert not re.search(r"[+-]?\d+\.\d ± ", text)


def test_what_every_page_needs_is_asked_for():
    tables = [spec for name in ("table1", "table2", "figure1") for spec in EXPERIMENTS[name].specs("cpu")]
    tables += [*EXPERIMENTS["table1"].specs("full"), make("oracle", HALF)]
    lines = [
        {**made(spec["method"], spec["labels"], 0.5, spec["experiment"]["seed"]), "spec": spec}
        for spec in [*tables, *specs()]
    ]
    assert "missing" not in page(lines, SPEED)
    assert "not measured yet" not in page(lines, SPEED)
    assert "so far" not in page(lines, SPEED)


def test_differences_are_taken_seed_by_seed():
    assert differences({0: 1.0, 2: 5.0}, {2: 3.0, 0: 1.5, 1: 9.0}) == [-0.5, 2.0]


@pytest.mark.parametrize(
    ("comparisons", "all_of_them", "on_the_whole"),
    [
        ([], "not measured yet", "not measured yet"),
        ([[1.0]], "holds", "holds"),
        ([[0.9]], "does not hold", "no clear difference"),
        ([[-3.0], [-2.0]], "does not hold", "the other way round"),
        ([[5.0], [0.5]], "holds in part", "holds"),
        ([[5.0], [-2.0]], "holds in part", "holds in part"),
        ([[5.0, 5.2], [-2.0, 3.0]], "holds in part", "holds"),  # the second is scattered
        ([[4.0, -1.0]], "does not hold", "no clear difference"),  # 1.5 on average, but scattered
        ([[0.5], [0.6], [0.7]], "does not hold", "holds"),  # small, but beyond two standard errors
        ([[-0.5], [0.6], [0.7]], "does not hold", "no clear difference"),
        ([[1.2], [4.9], [-0.5], [5.4]], "holds in part", "holds in part"),  # under some conditions
        ([[-3.0], [0.0], [0.2]], "does not hold", "no clear difference"),
    ],
)
def test_verdicts(comparisons, all_of_them, on_the_whole):
    assert every(comparisons) == all_of_them
    assert on_average(comparisons) == on_the_whole


def test_a_size_by_the_noise_is_read_against_half():
    told = {"noise_info": {"noise_rate": {"value": 0.25, "source": "estimated"}}}
    lines = [
        *(made("crust-half", "symmetric:0.2", last, seed) for seed, last in enumerate((0.60, 0.62))),
        {**made("crust-half", "symmetric:0.2", 0.64, 1, fraction="noise-rate"), "facts": told},
        made("crust-half", "symmetric:0.8", 0.2, fraction="noise-rate"),  # nothing to be read against
    ]
    one = found_of(lines)["As many as are right"]
    assert one.sentences[1:] == ["Against half of the examples: symmetric 0.2 +2.0 points."]
    rows = {row.split(" | ")[0].strip("| "): row.strip("| ").split(" | ")[1:] for row in one.table.splitlines()[2:]}
    assert rows["symmetric 0.2"] == ["61.0 ± 1.4 (2)", "64.0 (1)", "75%", "+2.0 (1)", "missing", "missing"]
    assert rows["symmetric 0.8"] == ["missing", "20.0 (1)", "–", "missing", "missing", "missing"]
    assert rows["asymmetric 0.4"] == ["missing", "missing", "–", "missing", "missing", "missing"]
    one = found_of([*lines, made("crust", "symmetric:0.2", 0.66, 1)])["As many as are right"]
    assert (
        one.sentences[2]
        == "`crust`, which sizes its coreset as it trains, against half of them: symmetric 0.2 +4.0 points."
    )
    assert "| 66.0 (1) | +4.0 (1) |" in one.table


def baselines(labels, last):
    return [made(name, labels, last) for name in ("erm", *BASELINES)]


def test_crust_against_the_baselines():
    title = "CRUST against the baselines"
    lines = [*baselines(HALF, 0.5), made("incv", HALF, 0.55)]
    won = [made(name, HALF, 0.6) for name in VARIANTS]
    one = found_of([*lines, *won])[title]
    assert one.verdict == "holds so far (1 of 5 comparisons) for `crust-paper` and `crust-released`"
    assert (
        one.sentences[0]
        == "`crust-paper` against the best baseline: symmetric 0.5 +5.0 points; clearly ahead in 1 of 1."
    )
    assert (
        "| symmetric 0.5 | `incv` 55.0 (1) | 60.0 (1) | 60.0 (1) | 60.0 (1) | 60.0 (1) | 50.0 (1) | 8 of 8 |"
        in one.table
    )
    lost = [made("crust-paper", HALF, 0.5), *won[1:]]
    one = found_of([*lines, *lost])[title]
    assert one.verdict == (
        "does not hold so far (1 of 5 comparisons) for `crust-paper`; "
        "holds so far (1 of 5 comparisons) for `crust-released`"
    )
    assert "symmetric 0.5 -5.0 points; clearly ahead in 0 of 1" in one.sentences[0]
    some = [each for each in lines if each["spec"]["method"] != "d2l"]
    assert found_of([*some, *won])[title].verdict == "not measured yet"  # not before all of them have been run
    behind = found_of([*lines, *won[:2], made("crust-half", HALF, 0.3)])[title]
    assert behind.verdict.startswith("holds so far")  # our own rule is no claim of the paper
    assert "-25.0 points" in behind.sentences[2]
    everything = [
        run for labels in NOISES for run in (*baselines(labels, 0.4), *(made(name, labels, 0.6) for name in VARIANTS))
    ]
    assert found_of(everything)[title].verdict == "holds for `crust-paper` and `crust-released`"


def test_facility_location_against_central_points():
    lines = [
        made("erm", HALF, 0.4, clean=(0.5, 0.5, 0.5)),
        made("crust-paper", HALF, 0.45, clean=(0.5, 0.46, 0.44)),
        made("crust-released", HALF, 0.5, clean=(0.5, 0.6, 0.64)),
        made("crust-half", HALF, 0.55, clean=(0.5, 0.7, 0.8)),
        made("random", HALF, 0.4),
        made("oracle", HALF, 0.6),
    ]
    one = found_of(lines)["Facility location against central points"]
    assert one.verdict == "does not hold so far (1 of 5 comparisons) for `crust-paper`"
    assert one.sentences[0].endswith("(facility location by prediction, as the text has it): -6.0 points.")
    assert "+14.0 points" in one.sentences[1]
    assert "+30.0 points" in one.sentences[2]
    assert "`crust-paper` 0.25, `crust-released` 0.50, `crust-half` 0.75" in one.sentences[3]
    assert "| symmetric 0.5 | 50.0 (1) | 44.0 (1) | 64.0 (1) | 80.0 (1) |" in one.table


def test_prediction_against_label_and_mixup():
    lines = []
    for seed in (0, 1):
        lines += [
            made("crust-half", HALF, 0.50 + seed / 100, seed, grouping="label", mixup="none"),
            made("crust-half", HALF, 0.48, seed, grouping="label"),
            made("crust-half", HALF, 0.54 + seed / 100, seed, mixup="none"),
            made("crust-half", HALF, 0.52, seed),
        ]
    found = found_of(lines)
    grouping = found["Prediction against label"]
    assert grouping.verdict == "holds so far (2 of 4 comparisons) for `crust-half`; not measured yet for `crust-paper`"
    assert "| `crust-half` | no mixup | symmetric 0.5 | +4.0 ± 0.0 (2) | – |" in grouping.table
    assert "| `crust-paper` | mixup | symmetric 0.5 | missing | +1.04 |" in grouping.table
    mixup = found["Mixup"]
    assert mixup.verdict.startswith("the other way round so far (2 of 4 comparisons) for `crust-half`; not measured")
    assert "| `crust-half` | by label | symmetric 0.5 | -2.5 ± 0.7 (2) | – |" in mixup.table
    assert "`crust-half`: -2.5 points on average over 2 of 4 comparisons; clearly better in 0, clearly worse in 2." in (
        mixup.sentences
    )


def test_crust_has_a_row_without_mixup_and_one_of_its_own_size():
    found = found_of([made("crust", HALF, 0.56, clean=(0.5, 0.6, 0.9)), made("crust", HALF, 0.54, mixup="none")])
    mixup = found["Mixup"]
    assert mixup.sentences[-1] == (
        "`crust`: +2.0 points on average over 1 of 2 comparisons; clearly better in 1, clearly worse in 0."
    )
    assert "| `crust` | by prediction | symmetric 0.2 | missing | – |" in mixup.table
    assert "`crust`" not in found["Prediction against label"].table
    assert "| `crust` | its own size | – | 90.0 (1) | 56.0 (1) |" in found["Coreset size (symmetric 0.5)"].table


def test_weights():
    lines = [
        made("crust-paper", HALF, 0.52),
        made("crust-paper", HALF, 0.48, weights="none"),
        made("crust-half", HALF, 0.55, **CENTRAL),
        made("crust-half", HALF, 0.10, **CENTRAL, weights="cluster"),
    ]
    one = found_of(lines)["Weights (symmetric 0.5)"]
    assert one.verdict == "holds for `crust-paper`; the other way round for `crust-half`"
    assert one.sentences == [
        "`crust-paper`: weights by cluster size change accuracy by +4.0 points.",
        "`crust-half`: weights by cluster size change accuracy by -45.0 points.",
    ]


def sizes(method, *rows):
    return [made(method, HALF, last, fraction=share, clean=(0.5, early, late)) for share, last, early, late in rows]


def test_coreset_size():
    lines = sizes("crust-half", (0.3, 0.50, 0.8, 0.9), (0.5, 0.55, 0.7, 0.8), (0.7, 0.53, 0.6, 0.6))
    found = found_of(lines)
    unknown = "not measured yet for `crust-paper` and `crust-released`; "
    assert found["Coreset size (symmetric 0.5)"].verdict == f"{unknown}holds for `crust-half`"
    assert (
        "`crust-half`: 30% 90.0 (1), 50% 80.0 (1), 70% 60.0 (1)" in found["Coreset size (symmetric 0.5)"].sentences[0]
    )
    assert found["Over the epochs"].verdict == f"{unknown}holds in part for `crust-half`"
    assert "`crust-half`: 30% +10.0 (1), 50% +10.0 (1), 70% +0.0 (1)" in found["Over the epochs"].sentences[0]
    assert found["The best size"].verdict == f"{unknown}holds for `crust-half`"
    worse = [made("crust-half", HALF, 0.6, fraction=0.7), *lines[:2]]
    assert found_of(worse)["The best size"].verdict == f"{unknown}holds in part for `crust-half`"


def test_a_claim_is_judged_by_each_variant():
    lines = [
        *sizes("crust-half", (0.3, 0.50, 0.8, 0.9), (0.5, 0.55, 0.7, 0.8), (0.7, 0.53, 0.6, 0.7)),
        *sizes("crust-released", (0.3, 0.52, 0.7, 0.8), (0.5, 0.50, 0.6, 0.7), (0.7, 0.45, 0.5, 0.6)),
        *sizes("crust-paper", (0.5, 0.47, 0.48, 0.42)),
    ]
    found = found_of(lines)
    both = "holds for `crust-released` and `crust-half`"
    assert found["Coreset size (symmetric 0.5)"].verdict == f"not measured yet for `crust-paper`; {both}"
    epochs = found["Over the epochs"]
    assert epochs.verdict == f"does not hold so far (1 of 3 comparisons) for `crust-paper`; {both}"
    assert epochs.sentences[0].endswith("`crust-paper`: 30% missing, 50% -6.0 (1), 70% missing.")
    assert found["The best size"].verdict == (
        "not measured yet for `crust-paper`; holds in part for `crust-released`; holds for `crust-half`"
    )
    assert "| `crust-paper` | 50% | 48.0 (1) | 42.0 (1) | 47.0 (1) |" in found["Coreset size (symmetric 0.5)"].table
    assert f"| Coresets get cleaner as training goes on. | **{epochs.verdict}** |" in page(lines)  # at the top as well


def test_speed_and_the_epoch_that_is_reported():
    lines = [line("erm", HALF, 0.5, passes=(400, 400)), line("crust-half", HALF, 0.5, passes=(500, 100))]
    one = found_of(lines, SPEED)["Speed against full training"]
    assert one.verdict == "holds for `crust-half`"
    assert "`crust-half` 0.75×" in one.sentences[0]
    assert "0.80 (0.75 to 0.85)" in one.sentences[1]
    assert found_of(lines)["Speed against full training"].verdict == "not measured yet"
    slow = {"cases": [{"case": "a", "rows": [{**TIMED, "found": 1.2}]}]}
    assert found_of(lines, slow)["Speed against full training"].verdict == "does not hold for `crust-half`"
    epoch = found_of(lines)["The epoch that is reported"]
    assert "`erm` +2.0, `crust-half` +2.0 points" in epoch.sentences[0]


def test_labels_that_are_right_among_all():
    runs = Runs(
        ResultIndex([made("crust-half", HALF, 0.5, clean=(0.51, 0.7)), made("erm", HALF, 0.5, 1, clean=(0.4, 0.49))])
    )
    assert runs.clean_of_all(HALF) == {0: 51.0, 1: 49.0}
