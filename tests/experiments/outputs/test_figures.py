"""Curves and their pictures, and the pages of the paper's own tables and figures."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO

import pytest
from PIL import Image
from tests.experiments.outputs.made import line

from crust.experiments.outputs.figures import COLOURS, curve, picture
from crust.experiments.outputs.table_summary import TableCell, TableCellSpec
from crust.experiments.paper import EXPERIMENTS

HALF = "symmetric:0.5"


def shares(curves_of, seeds=(0, 1)):
    return [
        line("crust-half", HALF, 0.5, seed, fraction=share, epochs=40, curves=curves_of(share, seed))
        for share in (0.3, 0.5, 0.7)
        for seed in seeds
    ]


def test_a_curve_is_a_mean_with_its_deviation():
    lines = {
        0: {"curves": {"clean_fraction": [0.4, None, 0.6]}},
        1: {"curves": {"clean_fraction": [0.6, None, 0.9]}},
        2: {"curves": {}},
    }
    cell = TableCell(TableCellSpec("crust-half", "30%", "crust-half", HALF), lines)
    found = curve(cell, "clean_fraction")
    assert [(x, round(y, 3), round(d, 4)) for x, y, d in found.points()] == [(1, 0.5, 0.1414), (3, 0.75, 0.2121)]
    assert curve(cell, "test_accuracy") is None


def test_what_a_method_does_before_is_no_part_of_its_curve():
    long = line("f-correction", HALF, 0.5, epochs=2, curves={"test_accuracy": [0.1, 0.1, 0.4, 0.5]})
    found = curve(TableCell(TableCellSpec("f-correction", "a", "f-correction", HALF), {0: long}), "test_accuracy")
    assert found.middle == [0.4, 0.5]


def test_figure_1_is_written(tmp_path):
    def curves(share, seed):
        return {
            "clean_fraction": [0.5] * 39 + [1 - share + 0.1 * seed],
            "train_true_accuracy": [0.3] * 40,
            "test_accuracy": [None] * 39 + [0.5],
        }

    paths = EXPERIMENTS["figure1"].write(shares(curves), "cpu", tmp_path / "new")
    assert [path.name for path in paths] == ["figure1.md", "figure1.csv", "figure1.png"]
    text = paths[0].read_text()
    assert "| 30% | 50.0 ± 0.0 | 50.0 ± 0.0 |" in text
    assert "| 75.0 ± 7.1 | 2 |" in text  # 70 and 80 in the last epoch
    assert "Missing: 2 of 8 runs. its own size: all." in text
    rows = list(csv.DictReader(StringIO(paths[1].read_text())))
    last = next(
        row for row in rows if row["column"] == "70%" and row["curve"] == "clean_fraction" and row["epoch"] == "40"
    )
    assert (last["mean"], last["sd"], last["n"]) == ("35.000", "7.071", "2")
    assert [row["epoch"] for row in rows if row["curve"] == "test_accuracy"] == ["40"] * 3
    with Image.open(paths[2]) as image:
        assert image.format == "PNG"
        assert image.width > 2 * image.height


def test_a_figure_without_runs_says_so(tmp_path):
    paths = EXPERIMENTS["figure1"].write([], "cpu", tmp_path)
    assert "Missing: 8 of 8 runs" in paths[0].read_text()
    assert (tmp_path / "figure1.png").stat().st_size > 1000


def test_a_picture_differs_where_its_curves_differ():
    cells = [
        TableCell(
            TableCellSpec("crust-half", "30%", "crust-half", HALF), {0: {"curves": {"clean_fraction": [0.5, end]}}}
        )
        for end in (0.6, 0.6, 0.7)
    ]
    one, same, other = (picture({"a": {"30%": curve(cell, "clean_fraction")}, "b": {"30%": None}}) for cell in cells)
    with Image.open(BytesIO(one)) as a, Image.open(BytesIO(same)) as b, Image.open(BytesIO(other)) as c:
        assert a.tobytes() == b.tobytes()
        assert a.tobytes() != c.tobytes()


def colours(content):
    with Image.open(BytesIO(content)) as image:
        return {"#{:02x}{:02x}{:02x}".format(*colour) for _, colour in image.convert("RGB").getcolors(1 << 24)}


def test_the_colour_of_a_curve_follows_its_name(tmp_path):
    one = curve(
        TableCell(
            TableCellSpec("crust-half", "50%", "crust-half", HALF), {0: {"curves": {"clean_fraction": [0.5, 0.6]}}}
        ),
        "clean_fraction",
    )
    assert COLOURS[1] in colours(picture({"a": {"50%": one}}, {"30%": 0, "50%": 1}))
    runs = [line("crust-half", HALF, 0.5, fraction=0.3), line("crust-released", HALF, 0.5)]
    EXPERIMENTS["figure1"].write(runs, "cpu", tmp_path)
    released = colours((tmp_path / "figure1-crust-released.png").read_bytes())  # it has 50% alone
    assert COLOURS[1] in released
    assert COLOURS[0] not in released
    assert COLOURS[0] in colours((tmp_path / "figure1.png").read_bytes())


@pytest.mark.parametrize("name", ["table1", "table2", "table3"])
def test_tables_are_written(tmp_path, name):
    experiment = EXPERIMENTS[name]
    scale = "smoke"
    entry = experiment.entries(scale)[0]
    run = line(entry.method, entry.labels, 0.7, scale=scale, **entry.options)
    run["tests"] = {"test": {"top1": {"last": 0.7}, "top5": {"last": 0.9}}}
    paths = experiment.write([run], scale, tmp_path)
    assert [path.name for path in paths] == [f"{name}.md", f"{name}.csv"]
    assert "70.0" in paths[0].read_text()
    found = {(row["row"], row["column"]): row for row in csv.DictReader(StringIO(paths[1].read_text()))}
    assert found[entry.row, entry.column]["mean"] == "70.000"
    if name == "table3":
        assert found["erm", "ImageNet top-5"]["mean"] == "90.000"
