"""Specifications: full, named by what they say, and found again when settings are added."""

from __future__ import annotations

import json

import pytest

from crust.errors import InputError
from crust.experiments import key, make
from crust.experiments.specs import same


def test_a_spec_holds_every_setting_and_survives_json():
    spec = make("crust", "symmetric:0.5", share=0.3)
    assert spec["settings"]["share"] == 0.3
    assert "alpha" in spec["settings"]
    assert spec["experiment"]["learning_rate"] == 0.1
    assert spec["experiment"]["drops"] == [2 / 3, 5 / 6]
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
    assert not same(other, base)
    assert not same(base, other)


def test_a_result_from_before_a_setting_existed_counts_for_its_default_only():
    spec = make("crust", "true")
    old = json.loads(json.dumps(spec))
    del old["settings"]["weights"], old["experiment"]["test_every"]
    assert not same(old, spec)  # the scale does not use the default of test_every
    assert same(old, make("crust", "true", test_every=1))
    assert not same(old, make("crust", "true", test_every=1, weights="cluster"))


def test_how_a_run_is_carried_out_is_no_part_of_what_it_is():
    assert key(make("erm", "true", workers=2)) == key(make("erm", "true"))


@pytest.mark.parametrize(("method", "extra", "words"), [("urm", {}, "method"), ("erm", {"scale": "huge"}, "scale")])
def test_unknown_names_get_a_sentence(method, extra, words):
    with pytest.raises(InputError, match=words):
        make(method, "true", **extra)
