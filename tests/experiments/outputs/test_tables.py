"""Tables from made-up lines: every number can be checked by hand."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from tests.experiments.outputs.made import line

from crust.experiments import append, make, read_results
from crust.experiments.grid import write_grid
from crust.experiments.outputs.setting_diff import grid_cells
from crust.experiments.outputs.table_markdown import accuracy_table, knows, missing_words, table_csv, table_page
from crust.experiments.outputs.table_summary import Reported, ResultIndex, TableCellSpec, summarise

HALF = "symmetric:0.5"
ESTIMATED = {
    "noise_rate": {"value": 0.4, "source": "estimated"},
    "noise_type": {"value": "symmetric", "source": "estimated"},
}
TRUE = {"noise_rate": {"value": 0.5, "source": "true"}}


def summary_of(lines, seeds=(0, 1), methods=("erm", "co-teaching", "crust"), reported=None, **more):
    entries = [TableCellSpec(method, "half", method, HALF) for method in methods]
    return summarise("t", "A title", "About it.", entries, ResultIndex(lines), "cpu", list(seeds), reported, **more)


def rows_of(text):
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines() if row.startswith("|")]


def test_mean_deviation_and_number_of_runs():
    found = summary_of([line("erm", HALF, 0.50), line("erm", HALF, 0.52, 1), line("crust", HALF, 0.6)])
    cell = found.cells["erm", "half"]
    assert cell.values == [50.0, 52.0]
    assert cell.mean == 51.0
    assert round(cell.deviation, 4) == 1.4142
    header, _, erm, co, crust = rows_of(accuracy_table(found))
    assert header == ["", "half", "passes", "seconds", "knows"]
    assert erm == ["`erm`", "51.0 ± 1.4 (2)", "1.00×", "1.00×", "nothing"]
    assert co == ["`co-teaching`", "missing", "–", "–", "the noise rate (estimated)"]
    assert crust == ["`crust`", "**60.0** (1 of 2)", "1.00×", "1.00×", "nothing"]


def test_cost_is_relative_to_erm_with_the_same_seed():
    lines = [
        line("erm", HALF, 0.5, 0, passes=(100, 100), seconds=10),
        line("erm", HALF, 0.5, 1, passes=(100, 100), seconds=20),
        line("crust", HALF, 0.5, 0, passes=(120, 40), seconds=15),
        line("crust", HALF, 0.5, 1, passes=(150, 90), seconds=10),
        line("crust", HALF, 0.5, 2, passes=(9, 9), seconds=999),  # erm has no such seed
        line("co-teaching", HALF, 0.5, 0, passes=(200, 200), seconds=5, machine="arm64"),
    ]
    found = summary_of(lines)
    crust, co = found.cells["crust", "half"], found.cells["co-teaching", "half"]
    assert crust.passes == pytest.approx((0.8 + 1.2) / 2)
    assert crust.seconds == pytest.approx((1.5 + 0.5) / 2)  # selection is a part of the epoch, not added to it
    assert co.passes == 2.0
    assert co.seconds is None  # another kind of machine


@pytest.mark.parametrize(
    ("erm", "crust", "ratio"),
    [
        ({}, {}, 1.5),  # lines from before there was more than processor, threads and torch
        ({"cpu": "a"}, {"cpu": "a"}, 1.5),
        ({"cpu": "a", "gpu": "A100"}, {"cpu": "a", "gpu": "A100"}, 1.5),
        ({"cpu": "a"}, {"cpu": "b"}, None),
        ({"cpu": "a", "gpu": "A100"}, {"cpu": "a"}, None),
        ({"cpu": "a", "gpu": "A100"}, {"cpu": "a", "gpu": "A10"}, None),
        ({}, {"cpu": "a"}, None),
        ({"cpu": "a", "shared": True}, {"cpu": "a", "shared": True}, None),  # they took time from each other
        ({"cpu": "a"}, {"cpu": "a", "shared": True}, None),
    ],
)
def test_seconds_are_compared_by_how_runs_were_made(erm, crust, ratio):
    lines = [
        line("erm", HALF, 0.5, seconds=10, more_machine=erm),
        line("crust", HALF, 0.5, seconds=15, more_machine=crust),
    ]
    assert summary_of(lines).cells["crust", "half"].seconds == ratio


def test_seconds_are_no_column_where_no_time_can_be_compared(tmp_path):
    specs = [make("erm", HALF), make("crust", HALF)]
    for shared, column in (({"shared": True}, False), ({}, True)):
        lines = [line(name, HALF, 0.5, more_machine=shared) for name in ("erm", "crust")]
        text, rows, page = (path.read_text() for path in write_grid(specs, lines, tmp_path))
        assert ("seconds" in rows_of(text)[0]) == column
        assert ("seconds likewise" in text) == column
        assert ("seconds likewise" in page) == column
        assert all(bool(row["seconds_relative"]) == column for row in csv.DictReader(StringIO(rows)))


def test_erm_of_another_column_does_not_count():
    assert summary_of([line("erm", "true", 0.5), line("crust", HALF, 0.5)]).cells["crust", "half"].passes is None


def test_the_best_is_bold_as_it_is_shown():
    lines = [line("erm", HALF, 0.6001), line("co-teaching", HALF, 0.6004), line("crust", HALF, 0.5)]
    assert summary_of(lines).best("half") == {"erm", "co-teaching"}  # both are 60.0
    assert summary_of(lines, digits=2).best("half") == {"co-teaching"}
    assert summary_of(lines[:1]).best("half") == set()  # one alone is not the best of anything


def test_who_knows_the_truth_is_marked_and_never_the_best():
    lines = [
        line("erm", HALF, 0.5),
        line("crust", HALF, 0.6),
        line("oracle", HALF, 0.9),
        line("co-teaching", HALF, 0.8, knowledge=TRUE),
    ]
    found = summary_of(lines, [0], ("erm", "co-teaching", "crust", "oracle"))
    assert found.best("half") == {"crust"}
    rows = {row[0]: row for row in rows_of(accuracy_table(found))}
    assert rows["`co-teaching`"][1] == "80.0‡ (1)"
    assert rows["`co-teaching`"][-1] == "noise rate (true)"
    assert rows["`oracle`"][1] == "90.0‡ (1)"
    assert rows["`oracle`"][-1] == "all labels (true)"
    assert "‡ marks" in table_page(found)


def test_what_was_used_and_where_it_is_from():
    used = knows([summary_of([line("co-teaching", HALF, 0.5, knowledge=ESTIMATED)]).cells["co-teaching", "half"]])
    assert used == "noise rate (estimated)"  # the noise type was estimated too, but co-teaching does not ask for it
    given = {"noise_rate": {"value": 0.3, "source": "given"}}
    both = [line("co-teaching", HALF, 0.5, 0, knowledge=ESTIMATED), line("co-teaching", HALF, 0.5, 1, knowledge=given)]
    cells = [summary_of([each]).cells["co-teaching", "half"] for each in both]
    assert knows(cells) == "noise rate (estimated and given)"


def test_the_paper_stands_beside_ours():
    reported = {("co-teaching", "half"): Reported(82.1, 0.6), ("crust", "half"): Reported(86.3)}
    found = summary_of([line("crust", HALF, 0.6)], [0], reported=reported)
    header, _, erm, co, crust = rows_of(accuracy_table(found))
    assert header == ["", "half", "paper", "passes", "knows"]
    assert erm[:3] == ["`erm`", "missing", "–"]
    assert co[:3] == ["`co-teaching`", "missing", "82.1 ± 0.6"]
    assert crust[:3] == ["`crust`", "60.0 (1)", "**86.3**"]


def test_missing_runs_are_named():
    found = summary_of([line("erm", HALF, 0.5), line("crust", HALF, 0.5), line("crust", HALF, 0.5, 1)])
    assert (found.wanted, found.missing) == (6, 3)
    assert missing_words(found) == "Missing: 3 of 6 runs. half: `erm` (seed 1), `co-teaching`."
    whole = summary_of([line(name, HALF, 0.5) for name in ("erm", "co-teaching", "crust")], [0])
    assert missing_words(whole) == "No run is missing."


def test_seeds_beyond_those_that_are_asked_for_count_too():
    found = summary_of([line("erm", HALF, 0.5, seed) for seed in (0, 1, 7)], [0])
    assert found.cells["erm", "half"].n == 3
    assert found.cells["erm", "half"].missing == []


def test_what_is_optional_appears_only_with_runs():
    entries = [TableCellSpec("erm", "half", "erm", HALF), TableCellSpec("erm", "extra", "erm", "true", optional=True)]
    assert summarise("t", "T", "", entries, ResultIndex([]), "cpu", [0]).columns == ["half"]
    found = summarise("t", "T", "", entries, ResultIndex([line("erm", "true", 0.7)]), "cpu", [0])
    assert found.columns == ["half", "extra"]
    assert (found.wanted, found.missing) == (1, 1)


def test_two_cells_of_one_run_ask_for_it_once():
    entries = [TableCellSpec("erm", name, "erm", HALF, measure=("accuracy", name)) for name in ("last", "best")]
    found = summarise("t", "T", "", entries, ResultIndex([line("erm", HALF, 0.5)]), "cpu", [0, 1])
    assert (found.wanted, found.missing) == (2, 1)
    assert [found.cells["erm", name].mean for name in ("last", "best")] == [50.0, 52.0]


def test_lines_of_other_versions_do_no_harm():
    odd = [{"key": "a"}, {"key": "b", "spec": {"method": "gone", "experiment": {}, "settings": {}}, "accuracy": {}}]
    failed = {"key": "c", "spec": make("erm", HALF), "error": "it fell over"}
    assert summary_of([*odd, failed]).missing == 6


def test_csv_says_the_same():
    reported = {("crust", "half"): Reported(86.3, 0.3)}
    lines = [line("erm", HALF, 0.50), line("erm", HALF, 0.52, 1), line("co-teaching", HALF, 0.5, knowledge=TRUE)]
    rows = {row["row"]: row for row in csv.DictReader(StringIO(table_csv(summary_of(lines, reported=reported))))}
    assert set(rows) == {"erm", "co-teaching", "crust"}
    erm = rows["erm"]
    assert (erm["mean"], erm["sd"], erm["n"], erm["last10"], erm["best_epoch"]) == (
        "51.000", "1.414", "2", "50.000", "53.000",
    )  # fmt: skip
    assert (erm["audit_auroc"], erm["passes_relative"], erm["missing_seeds"]) == ("0.9000", "1.0000", "")
    assert (rows["co-teaching"]["noise_info"], rows["co-teaching"]["true_noise_info"]) == ("noise rate true", "yes")
    crust = rows["crust"]
    assert (crust["n"], crust["mean"], crust["sd"], crust["missing_seeds"]) == ("0", "", "", "0 1")
    assert (crust["paper_mean"], crust["paper_sd"]) == ("86.3", "0.3")


def test_blocks_of_a_grid_with_seeds_of_their_own(tmp_path):
    specs = [make("erm", HALF, seed=0), *(make("crust", HALF, seed=seed) for seed in range(3))]
    text = write_grid(specs, [line("erm", HALF, 0.4)], tmp_path)[0].read_text()
    assert "Missing: 3 of 4 runs" in text


def test_a_grid_of_ones_own(tmp_path):
    specs = [
        make("crust", labels, fraction=share, seed=seed, data=data, epochs=2)
        for labels in ("symmetric:0.2", HALF)
        for share in (0.3, 0.7)
        for data in ("cifar10", 'a",=b|<i>')
        for seed in (0, 1)
    ]
    entries = grid_cells(specs)
    assert len(entries) == 8
    assert {entry.row for entry in entries} == {"crust fraction=0.3", "crust fraction=0.7"}
    assert {entry.column for entry in entries} > {"symmetric:0.5 data=cifar10"}
    append(tmp_path / "r.jsonl", line("crust", HALF, 0.5, fraction=0.3, epochs=2))
    paths = write_grid(specs, read_results(tmp_path / "r.jsonl"), tmp_path / "out", title="Mine & <yours>")
    text, rows, page = (path.read_text() for path in paths)
    assert "# Mine & &lt;yours>" in text
    assert "<i>" not in text
    assert "Missing: 15 of 16 runs" in text
    found = {(row["row"], row["column"]): row for row in csv.DictReader(StringIO(rows))}
    assert found["crust fraction=0.3", "symmetric:0.5 data=cifar10"]["mean"] == "50.000"
    assert found["crust fraction=0.7", 'symmetric:0.5 data=a",=b|<i>']["n"] == "0"
    assert "<i>" not in page
    assert "Mine &amp; &lt;yours&gt;" in page
    # a pipe in a name must not cut a row of the Markdown table in two
    bars = {row.replace("\\|", "").count("|") for row in text.splitlines() if row.startswith("|")}
    assert len(bars) == 1


@pytest.mark.parametrize(
    ("runs", "rows"),
    [
        (
            [("erm", {"epochs": 1, "model": "mlp"}), ("mixup", {"epochs": 3, "model": "small_cnn"})],
            ["erm model=mlp epochs=1", "mixup model=small_cnn epochs=3"],
        ),
        # one that differs is enough for all rows to say it
        ([("erm", {}), ("mixup", {"epochs": 3}), ("gce", {})], ["erm epochs=6", "mixup epochs=3", "gce epochs=6"]),
        # a setting that some methods have; `erm` has none such, `crust` has its default
        ([("erm", {}), ("random", {"fraction": 0.3}), ("crust", {})], ["erm", "random fraction=0.3", "crust"]),
        # defaults may differ, here those of `warmup`
        ([("random", {}), ("crust", {}), ("incv", {})], ["random", "crust", "incv"]),
        ([("erm", {"epochs": 3}), ("mixup", {"epochs": 3})], ["erm", "mixup"]),
        ([("erm", {"data": "digits"}), ("mixup", {"data": "a"})], ["erm", "mixup"]),  # this makes columns
    ],
)
def test_rows_of_a_grid_say_what_differs_between_methods(runs, rows):
    specs = [make(method, HALF, scale="smoke", **settings) for method, settings in runs]
    assert [entry.row for entry in grid_cells(specs)] == rows
