"""Values of a grid that would be found out late or never: refused with their line."""

from __future__ import annotations

import re

import pytest
from tests.refusals import refused

from crust.errors import InputError
from crust.experiments import make
from crust.experiments.grid_file import read_grid

TOP = "labels: true\nmethod: erm\n"


def read(folder, text):
    (folder / "grid.yaml").write_text(text)
    return read_grid(folder / "grid.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('augment: "false"', "line 3: setting augment is 'false': write true or false"),
        ("augment: maybe", "line 3: setting augment is 'maybe'"),
        ("augment: [true, 0]", "line 3: setting augment is 0"),
        ("validation: 2", "line 3: setting validation is 2: give a share from 0 to below 1, such as 0.1"),
        ("validation: [0.1, 1]", "line 3: setting validation is 1:"),
        ("validation: abc", "line 3: setting validation is 'abc'"),
        ("validation: true", "line 3: setting validation is True"),
        ("validation: null", "line 3: setting validation is None"),
        ("validation: .nan", "line 3: setting validation is nan"),
        ("data: 3", "line 3: setting data is 3: give a name such as digits, or a path"),
        ("data: [digits, '']", "line 3: setting data is ''"),
        ("data: {a: b}", "line 3: setting data is "),
        ("model: 8", "line 3: setting model is 8: give a name such as resnet8"),
        ("model: [mlp, resnet9]", "line 3: unknown model 'resnet9': use one of .*; did you mean 'resnet"),
        ("limit: many", "line 3: setting limit is 'many': give a number of examples, at least 1, or null for all"),
        ("limit: [100, 0]", "line 3: setting limit is 0"),
        ("limit: 1.5", r"line 3: setting limit is 1\.5"),
        ("limit: true", "line 3: setting limit is True"),
        ("tests: imagenet", r"line 3: setting tests is 'imagenet': give a list of names such as \[test, imagenet\]"),
        ("tests: [[test], [1]]", r"line 3: setting tests is \[1\]"),
        ("epochs: 3\nepochs: 4", "line 4: epochs is written twice, first in line 3: leave one of them out"),
        (
            "runs:\n- {seeds: 2}\n- epochs: 2\n  seeds: 1\n  epochs: 3",
            "line 7: epochs is written twice, first in line 5",
        ),
        ("runs:\n- seeds: 2\nruns:\n- seeds: 1", "line 5: runs is written twice, first in line 3"),
        ("runs:\n- augment: 1", "line 4: setting augment is 1"),
        ("yes: 3", "unknown name 'True'"),
        ("seeds: 1000000000", "line 3: seeds is 1000000000: give at most 10000, or a list"),
        ("seeds: [99999999999999999999]", "line 3: seed 99999999999999999999 is too large: give one up to"),
        ("learning_rate: .inf", "line 3: setting learning_rate is inf: give a finite number"),
        (
            "runs:\n- method: crust\n  fraction: 5",
            r"line 5: setting fraction is 5\.0: give one above 0 and up to 1",
        ),
        ("runs:\n- method: crust\n  selection: greedy", "line 5: selection=greedy needs the clusters of whole groups"),
        ("model: 2020-13-45", "is no YAML: month must be in 1..12"),
        ("model: &a [*a]", "is no grid: something in it is a part of itself"),
        (f"model: {'[' * 1000}{']' * 1000}", "is no YAML that can be read: it is nested too deeply"),
        ("runs:\n- {1: 2}", "line 4: unknown name '1'"),
    ],
)
def test_wrong_values_get_a_sentence_with_the_line(tmp_path, text, sentence):
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"{TOP}{text}\n")
    assert re.search(sentence, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_right_values(tmp_path):
    specs = read(
        tmp_path,
        f"{TOP}augment: [true, false]\nvalidation: [0, 0.2]\nlimit: [null, 1]\nmodel: [mlp, 'timm:resnet18']\n"
        "tests: [[test], [test, imagenet]]\ndata: a.npz\n",
    )
    assert len(specs) == 32
    assert {spec["validation"] for spec in specs} == {0, 0.2}


def test_no_milestones_are_a_value_too(tmp_path):
    (spec,) = read(tmp_path, f"{TOP}lr_milestones: []\ntests: []\n")
    assert spec["experiment"]["lr_milestones"] == []
    assert "tests" not in spec
    some = read(tmp_path, f"{TOP}lr_milestones: [[], [0.5]]\n")
    assert [spec["experiment"]["lr_milestones"] for spec in some] == [[], [0.5]]


def test_names_may_come_from_an_alias(tmp_path):
    specs = read(tmp_path, f"{TOP}runs:\n- &one {{epochs: 2, seeds: [3]}}\n- {{<<: *one, epochs: 4}}\n")
    assert [(spec["experiment"]["epochs"], spec["experiment"]["seed"]) for spec in specs] == [(2, 3), (4, 3)]
    with refused("bad-setting"):
        read(tmp_path, f"{TOP}runs:\n- &one {{augment: 1}}\n- *one\n")


@pytest.mark.parametrize("words", [{"augment": "false"}, {"validation": 2}, {"data": 3}, {"tests": "imagenet"}])
def test_the_library_refuses_them_too(words):
    (name,) = words
    with pytest.raises(InputError, match=f"setting {name} is "):
        make("erm", "true", **words)
