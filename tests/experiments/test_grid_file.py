"""Grids from YAML: lists multiplied out, blocks, and one sentence with the line for everything that is wrong."""

from __future__ import annotations

import re

import pytest

from crust.errors import InputError
from crust.experiments import key, make
from crust.experiments.grid_file import read_grid


@pytest.fixture
def grid(tmp_path):
    def read(text, **more):
        (tmp_path / "grid.yaml").write_text(text)
        return read_grid(tmp_path / "grid.yaml", **more)

    return read


def test_lists_are_multiplied_out(grid):
    specs = grid(
        "method: crust\nlabels: [symmetric:0.2, human:worse]\nseeds: [0, 3]\nfraction: [0.3, auto]\nepochs: 5\n"
    )
    wanted = [
        make("crust", labels, seed=seed, fraction=share, epochs=5)
        for labels in ("symmetric:0.2", "human:worse")
        for share in (0.3, "auto")
        for seed in (0, 3)
    ]
    assert [key(spec) for spec in specs] == [key(spec) for spec in wanted]


def test_blocks_have_what_stands_above_them_unless_they_say_otherwise(grid):
    specs = grid(
        "scale: smoke\nlabels: true\nseeds: 2\nruns:\n"
        "- method: [erm, mixup]\n- {method: erm, epochs: 3, labels: [symmetric:0.1], seeds: [7]}\n"
    )
    assert [(spec["method"], spec["labels"], spec["experiment"]["seed"]) for spec in specs] == [
        ("erm", "true", 0), ("erm", "true", 1), ("mixup", "true", 0), ("mixup", "true", 1), ("erm", "symmetric:0.1", 7),
    ]  # fmt: skip
    assert [spec["experiment"]["epochs"] for spec in specs] == [6, 6, 6, 6, 3]
    assert {spec["data"] for spec in specs} == {"digits"}


def test_what_is_there_twice_counts_once(grid):
    assert len(grid("labels: true\nmethod: [erm, erm]\nruns: [{}, {seeds: [0, 1]}]\n")) == 2


def test_the_command_line_wins(grid):
    specs = grid("labels: true\nmethod: erm\nscale: paper\nseeds: 5\n", scale="smoke", seeds=[9])
    assert [(spec["data"], spec["experiment"]["seed"]) for spec in specs] == [("digits", 9)]


def test_settings_that_are_lists_themselves(grid):
    assert grid("labels: true\nmethod: erm\nlr_milestones: [0.5, 0.9]\n")[0]["experiment"]["lr_milestones"] == [
        0.5,
        0.9,
    ]
    several = grid("labels: true\nmethod: erm\nlr_milestones: [[0.5], [0.5, 0.9]]\n")
    assert [spec["experiment"]["lr_milestones"] for spec in several] == [[0.5], [0.5, 0.9]]


def test_other_data_and_networks(grid):
    specs = grid("labels: given\nmethod: erm\ndata: [a.npz, digits]\nmodel: mlp\nlimit: null\naugment: false\n")
    assert [(spec["data"], spec["model"], spec["limit"], spec["augment"]) for spec in specs] == [
        ("a.npz", "mlp", None, False),
        ("digits", "mlp", None, False),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- erm\n", "is no grid: write one name a line"),
        ("method: [erm\n", "is no YAML"),
        ("labels: true\n", "says no method: add a line such as method: erm"),
        ("method: erm\n", "says no labels: add a line"),
        ("method: erm\nlabels: true\nshar: 0.5\n", "line 3: unknown name 'shar'"),
        ("labels: true\nmethod: urm\n", "line 2: unknown method 'urm': use one of .*; did you mean 'erm'"),
        ("labels: true\nruns:\n- method: erm\n- method: [erm, cruts]\n", "line 4: unknown method 'cruts'"),
        (
            "labels: true\nmethod: [erm, crust]\nfraction: 0.5\n",
            "line 3: erm has no setting fraction: put it into a block",
        ),
        ("labels: true\nmethod: crust\nselect_every: [1, 0]\n", "line 3: setting select_every is 0"),
        ("labels: [true, symetric:0.5]\nmethod: erm\n", "line 1: unknown noise 'symetric'.*did you mean 'symmetric'"),
        ("method: erm\nlabels: symmetric:2\n", "line 2: .*2"),
        ("method: erm\nlabels: [[a]]\n", r"line 2: labels is \['a'\]: write true, given, human:NAME, or a noise"),
        ("labels: true\nmethod: erm\nepochs: many\n", "line 3: setting epochs is 'many'"),
        ("labels: true\nmethod: erm\nlr_milestones: [[0.5], [2]]\n", "line 3: setting lr_milestones"),
        ("labels: true\nmethod: erm\nepochs: []\n", "line 3: the list of epochs is empty"),
        ("labels: true\nmethod: erm\nseeds: 0\n", "line 3: seeds is 0: give how many, as in 3, or a list"),
        ("labels: true\nmethod: erm\nseeds: [a]\n", r"line 3: seeds is \['a'\]"),
        ("labels: true\nmethod: erm\nseed: 1\n", "line 3: seed is called seeds"),
        ("labels: true\nmethod: erm\nscale: tiny\n", "line 3: unknown scale 'tiny'"),
        ("labels: true\nmethod: erm\nstop_after: 1\n", "line 3: unknown name 'stop_after'"),
        ("labels: true\nruns: {method: erm}\n", "line 2: runs is no list"),
        ("labels: true\nruns: []\n", "line 2: runs is no list"),
    ],
)
def test_wrong_grids_get_a_sentence_with_the_line(grid, text, sentence):
    with pytest.raises(InputError) as caught:
        grid(text)
    assert re.search(sentence, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)
