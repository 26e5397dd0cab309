"""The queue: nothing twice, nothing lost, resumed where it was; human labels from a file."""

from __future__ import annotations

import fcntl

import numpy as np
import pytest

from crust.data import load
from crust.errors import InputError
from crust.experiments import key, make, read, run, run_all
from crust.experiments.running import labels_of


def test_what_is_there_is_not_run_again(tmp_path):
    specs = [make(name, "symmetric:0.3", scale="smoke", epochs=2) for name in ("erm", "crust")]
    said = []
    assert run_all(specs, tmp_path / "r.jsonl", tmp_path / "runs", say=said.append) == 0
    assert len(said) == 4
    assert len(read(tmp_path / "r.jsonl")) == 2
    assert run_all(specs, tmp_path / "r.jsonl", tmp_path / "runs", say=said.append) == 0
    assert len(said) == 4


def test_a_run_that_another_process_holds_is_left_to_it(tmp_path):
    spec = make("erm", "true", scale="smoke", epochs=1)
    place = tmp_path / "runs" / key(spec)
    place.mkdir(parents=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_all([spec], tmp_path / "r.jsonl", tmp_path / "runs", say=lambda text: None)
        assert read(tmp_path / "r.jsonl") == []
    run_all([spec], tmp_path / "r.jsonl", tmp_path / "runs", say=lambda text: None)
    assert len(read(tmp_path / "r.jsonl")) == 1


def test_a_run_that_was_cut_off_goes_on_and_says_the_same(tmp_path):
    spec = make("crust", "symmetric:0.3", scale="smoke", epochs=3)
    whole = run(spec, tmp_path / "whole")

    class Cut(Exception):
        pass

    def cut(line):
        if line["epoch"] == 1:
            raise Cut

    with pytest.raises(Cut):
        run(spec, tmp_path / "cut", report=cut)
    again = run(spec, tmp_path / "cut")
    for name in ("accuracy", "curves", "audit"):
        assert again[name] == whole[name]
    assert again["cost"]["forward"] == whole["cost"]["forward"]


def test_a_failed_run_leaves_its_error_and_the_others_go_on(tmp_path):
    specs = [make("erm", labels, scale="smoke", epochs=1) for labels in ("human:nobody", "true")]
    said = []
    assert run_all(specs, tmp_path / "r.jsonl", tmp_path / "runs", say=said.append) == 1
    assert len(read(tmp_path / "r.jsonl")) == 1
    assert (tmp_path / "runs" / key(specs[0]) / "error.txt").read_text()


def test_labels_by_name(tmp_path):
    digits = load("digits", limit=100)
    people = np.random.default_rng(0).integers(0, 10, len(load("digits").train))
    np.savez(tmp_path / "people.npz", worse=people)
    given, truth = labels_of(digits, "human:worse", 0, tmp_path / "people.npz")
    assert (given == people[:100]).all()
    assert (truth == digits.train.labels).all()
    given, truth = labels_of(digits, "true", 0)
    assert (given == truth).all()
    flipped = labels_of(digits, "symmetric:0.5", 3)[0]
    assert 0.3 < (flipped != truth).mean() < 0.7
    assert (flipped == labels_of(digits, "symmetric:0.5", 3)[0]).all()


def test_no_such_labels(tmp_path):
    with pytest.raises(InputError):
        labels_of(load("digits", limit=10), "sometimes:0.5", 0)
