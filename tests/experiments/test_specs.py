"""Specifications: full, named by what they say, and found again when settings are added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crust.errors import InputError
from crust.experiments import find, key, make, read_results
from crust.experiments.specs import same_spec


def test_a_spec_holds_every_setting_and_survives_json():
    spec = make("crust", "symmetric:0.5", fraction=0.3)
    assert spec["settings"]["fraction"] == 0.3
    assert "alpha" in spec["settings"]
    assert spec["experiment"]["learning_rate"] == 0.1
    assert spec["experiment"]["lr_milestones"] == [2 / 3, 5 / 6]
    again = json.loads(json.dumps(spec))
    assert again == spec
    assert key(again) == key(spec)


@pytest.mark.parametrize(
    "other",
    [
        make("erm", "symmetric:0.5", seed=1),
        make("erm", "symmetric:0.4"),
        make("mixup", "symmetric:0.5"),
        make("erm", "symmetric:0.5", epochs=41),
        make("erm", "symmetric:0.5", scale="paper"),
    ],
)
def test_whatever_differs_changes_the_key(other):
    base = make("erm", "symmetric:0.5")
    assert key(other) != key(base)
    assert not same_spec(other, base)
    assert not same_spec(base, other)


def test_a_result_from_before_a_setting_existed_counts_for_its_default_only():
    spec = make("crust", "true")
    old = json.loads(json.dumps(spec))
    del old["settings"]["weights"], old["experiment"]["test_every"]
    assert not same_spec(old, spec)  # the scale does not use the default of test_every
    assert same_spec(old, make("crust", "true", test_every=1))
    assert not same_spec(old, make("crust", "true", test_every=1, weights="cluster"))


def test_how_a_run_is_carried_out_is_no_part_of_what_it_is():
    assert key(make("erm", "true", workers=2)) == key(make("erm", "true"))


@pytest.mark.parametrize(("method", "extra", "words"), [("urm", {}, "method"), ("erm", {"scale": "huge"}, "scale")])
def test_unknown_names_get_a_sentence(method, extra, words):
    with pytest.raises(InputError, match=words):
        make(method, "true", **extra)


def test_other_data_and_networks_have_their_place():
    spec = make(
        "erm", "given", scale="paper", data="webvision", model="timm:resnet18", limit=7, augment=False, tests=["test"]
    )
    assert (spec["data"], spec["model"], spec["limit"], spec["augment"]) == ("webvision", "timm:resnet18", 7, False)
    assert spec["tests"] == ["test"]
    assert make("erm", "true", scale="paper", validation=0)["validation"] == 0
    assert make("erm", "true", limit=None)["limit"] is None
    assert make("erm", "true")["limit"] == 10000
    assert "tests" not in make("erm", "true")


# Names of specifications as they stand in new result files and as names of folders: they change with a new setting
# only, and lines from before are found by what the setting was then.
KEYS = {
    "erm symmetric:0.5": "a9c054019bd17d41",
    "oracle symmetric:0.5": "62ddb4d35ffa1472",
    "random symmetric:0.5": "d9a7245b88c5f132",
}


@pytest.mark.parametrize("words", KEYS)
def test_names_stay_what_they_are(words):
    method, labels = words.split()
    assert key(make(method, labels)) == KEYS[words]


def test_results_that_are_there_are_found():
    lines = read_results(Path(__file__).parents[2] / "results" / "cpu.jsonl")
    assert lines
    for line in lines:
        old = line["spec"]
        again = make(old["method"], old["labels"], **old["experiment"], **old["settings"])
        assert find(lines, again) is line, line["key"]
