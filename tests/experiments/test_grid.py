"""The runner: nothing twice, nothing lost, resumed where it was, failures once; human labels from a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from crust.data import load
from crust.errors import InputError
from crust.experiments import LocalGrid, Work, append, key, make, read_results, run_grid, train_spec
from crust.experiments import task as one_run
from crust.runs.data import labels_of_spec


def tiny(method="erm", labels="symmetric:0.3", **more):
    return make(method, labels, scale="smoke", **{"epochs": 2, "limit": 100, **more})


BAD = tiny(labels="human:nobody")


def go(specs, folder, **more):
    """Run on the simplest engine; what was told."""
    told = []
    with LocalGrid() as engine:
        run_grid(specs, engine, Work(folder / "r.jsonl", folder / "runs"), told.append, **more)
    return [(event.kind, key(event.spec)) for event in told if event.kind != "epoch"]


def test_what_is_there_is_not_run_again(tmp_path):
    specs = [tiny("erm"), tiny("crust"), tiny("erm")]
    assert [kind for kind, _ in go(specs, tmp_path)] == ["begun", "ended"] * 2
    assert len(read_results(tmp_path / "r.jsonl")) == 2
    assert go(specs, tmp_path) == []


def test_results_from_elsewhere_count(tmp_path):
    go([tiny("erm")], tmp_path / "there")
    known = read_results(tmp_path / "there" / "r.jsonl")
    assert [kind for kind, _ in go([tiny("erm"), tiny("mixup")], tmp_path / "here", known=known)] == ["begun", "ended"]
    assert [line["spec"]["method"] for line in read_results(tmp_path / "here" / "r.jsonl")] == ["mixup"]


def test_a_run_that_another_process_holds_is_left_to_it(tmp_path):
    spec = tiny()
    with one_run.claim(tmp_path / "runs" / key(spec)) as mine:
        assert mine
        assert go([spec, tiny("mixup")], tmp_path)[-1] == ("held", key(spec))
        assert len(read_results(tmp_path / "r.jsonl")) == 1
    assert go([spec, tiny("mixup")], tmp_path) == [("begun", key(spec)), ("ended", key(spec))]


def test_a_run_that_was_cut_off_goes_on_and_says_the_same(tmp_path):
    spec = tiny("crust", epochs=3)
    whole = train_spec(spec, tmp_path / "whole")

    class Cut(Exception):
        pass

    def cut(line):
        if line["epoch"] == 1:
            raise Cut

    with pytest.raises(Cut):
        train_spec(spec, tmp_path / "cut", report=cut)
    again = train_spec(spec, tmp_path / "cut")
    for name in ("accuracy", "curves", "audit"):
        assert again[name] == whole[name]
    assert again["cost"]["forward"] == whole["cost"]["forward"]


def test_a_result_whose_starter_died_is_not_lost(tmp_path):
    spec = tiny()
    go([spec], tmp_path)
    line = read_results(tmp_path / "r.jsonl")[0]
    (tmp_path / "r.jsonl").unlink()  # the run ended, and nobody was there to write it down
    assert go([spec], tmp_path) == [("ended", key(spec))]
    assert read_results(tmp_path / "r.jsonl") == [line]


def test_a_failed_run_leaves_its_error_and_is_tried_again_on_request(tmp_path):
    specs = [BAD, tiny(labels="true")]
    assert [kind for kind, _ in go(specs, tmp_path)] == ["begun", "failed", "begun", "ended"]
    error = json.loads((tmp_path / "runs" / key(BAD) / "error.json").read_text())
    assert error["error"] == "labels human:nobody need people's labels: name their .npz with human_labels"
    assert "Traceback" in error["trace"]
    assert error["spec"] == BAD
    assert go(specs, tmp_path) == []
    assert go(specs, tmp_path, retry_failed=True) == [("begun", key(BAD)), ("failed", key(BAD))]
    assert len(read_results(tmp_path / "r.jsonl")) == 1


def test_a_retried_run_that_ends_has_no_error_left(tmp_path, monkeypatch):
    spec = tiny()
    with monkeypatch.context() as patched:
        patched.setattr(one_run, "train_spec", lambda *_, **__: 1 / 0)
        assert go([spec], tmp_path)[-1][0] == "failed"
    assert one_run.failure(spec, tmp_path / "runs") == "ZeroDivisionError: division by zero"
    assert go([spec], tmp_path, retry_failed=True)[-1][0] == "ended"
    assert one_run.failure(spec, tmp_path / "runs") is None


def test_folders_go_when_they_are_not_kept_but_those_of_failures_stay(tmp_path):
    go([BAD, tiny()], tmp_path, keep_runs=False)
    assert [path.name for path in (tmp_path / "runs").iterdir() if path.name != ".locks"] == [key(BAD)]


def test_results_of_two_folders_are_merged_by_concatenation(tmp_path):
    for name, method in (("a", "erm"), ("b", "mixup")):
        go([tiny(method)], tmp_path / name)
    both = tmp_path / "c" / "r.jsonl"
    both.parent.mkdir()
    both.write_bytes(b"".join((tmp_path / name / "r.jsonl").read_bytes() for name in "ab"))
    assert go([tiny("erm"), tiny("mixup")], tmp_path / "c") == []
    append(both, {"key": "x", "spec": tiny("crust"), "accuracy": {}})
    assert len(read_results(both)) == 3


def test_labels_by_name(tmp_path):
    digits = load("digits", limit=100)
    people = np.random.default_rng(0).integers(0, 10, len(load("digits").train))
    np.savez(tmp_path / "people.npz", worse=people)
    given, truth = labels_of_spec(digits, "human:worse", 0, tmp_path / "people.npz")
    assert (given == people[:100]).all()
    assert (truth == digits.train.labels).all()
    given, truth = labels_of_spec(digits, "true", 0)
    assert (given == truth).all()
    flipped = labels_of_spec(digits, "symmetric:0.5", 3)[0]
    assert 0.3 < (flipped != truth).mean() < 0.7
    assert (flipped == labels_of_spec(digits, "symmetric:0.5", 3)[0]).all()
    given, truth = labels_of_spec(digits, "given", 0)
    assert (given == digits.train.labels).all()
    assert truth is None


def test_no_such_labels(tmp_path):
    with pytest.raises(InputError):
        labels_of_spec(load("digits", limit=10), "sometimes:0.5", 0)


def test_labels_of_which_nobody_knows_the_truth(tmp_path):
    line = train_spec(tiny("crust", labels="given"), tmp_path / "run")
    assert line["audit"] is None
    assert "clean_fraction" not in line["curves"]
