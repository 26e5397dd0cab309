"""What is known before a grid begins: what is missing, how much room and how much time it takes."""

from __future__ import annotations

import re
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from tests.experiments.common import tiny

from crust.errors import InputError
from crust.experiments import Work, key, make, train_spec
from crust.experiments.preflight import (
    Estimates,
    RunSize,
    check_room,
    epochs_of,
    look,
    need,
    planned,
    seconds_of_run,
    work_of,
)
from crust.methods import METHODS

SIZE = RunSize(45_000, 10_000, (3, 32, 32), 10, 466_906)


def test_runs_that_can_be_made_have_their_size(tmp_path):
    spec = tiny()
    found = look([spec, tiny("crust")], Work(tmp_path / "r.jsonl", tmp_path / "runs"))
    assert found.problems == {}
    size = found.sizes[key(spec)]
    assert (size.examples, size.tests, size.shape, size.classes) == (100, 500, (1, 8, 8), 10)
    assert size.parameters > 1000


def test_every_problem_is_told_of_its_runs_alone(tmp_path):
    np.savez(tmp_path / "people.npz", worse=np.arange(1297) % 10)
    wrong = {
        tiny(data="nowhere.npz")["data"]: (tiny(data="nowhere.npz"), "there is no file or folder nowhere.npz"),
        "people": (tiny(labels="human:best"), "best"),
        "noise": (tiny(labels="sometimes:0.5"), "unknown noise 'sometimes'"),
        "network": (tiny(model="resnet9"), "unknown model 'resnet9'"),
        "tests": (tiny(tests=["other"]), "digits has no test set 'other' here, only test: add it to the data"),
        "cifar": (tiny(data="cifar100"), "cifar100 is not in"),
    }
    good = [tiny(), tiny(labels="human:worse"), tiny(tests=["test"])]
    work = Work(tmp_path / "r.jsonl", tmp_path / "runs", tmp_path, tmp_path / "people.npz")
    found = look([*good, *(spec for spec, _ in wrong.values())], work, download=False)
    absent = wrong["cifar"][0]  # its size is known all the same
    assert set(found.sizes) == {key(spec) for spec in (*good, absent)}
    assert found.sizes[key(absent)].examples == 100
    for spec, sentence in wrong.values():
        assert re.search(sentence, found.problems[key(spec)])


def test_data_that_is_not_here_has_its_published_size_in_a_dry_run_alone(tmp_path):
    ten, hundred, few, odd, mini = (
        make("erm", "symmetric:0.2", scale="paper"),
        make("erm", "symmetric:0.2", scale="paper", data="cifar100"),
        make("erm", "symmetric:0.2", scale="cpu"),
        make("erm", "symmetric:0.2", scale="paper", model="resnet9"),
        make("erm", "given", scale="paper", data="webvision", model="small_cnn", tests=["test", "imagenet"]),
    )
    other = make("erm", "given", scale="paper", data=str(tmp_path / "mine.npz"))
    specs = [ten, hundred, few, odd, mini, other]
    work = Work(tmp_path / "r.jsonl", tmp_path / "runs", tmp_path)
    found = look(specs, work, download=False)
    assert found.problems.keys() == {key(spec) for spec in specs}
    sizes = [found.sizes[key(spec)] for spec in (ten, hundred, few, mini)]
    assert [(size.examples, size.tests, size.shape, size.classes) for size in sizes] == [
        (50_000, 10_000, (3, 32, 32), 10),
        (50_000, 10_000, (3, 32, 32), 100),
        (10_000, 10_000, (3, 32, 32), 10),
        (65_944, 5_000, (3, 299, 299), 50),
    ]
    assert sizes[0].parameters == 464_154
    assert not found.sizes.keys() & {key(odd), key(other)}
    absent = look([mini], work)
    assert not absent.sizes
    assert "there is no WebVision in" in absent.problems[key(mini)]


def test_the_room_is_not_less_than_a_run_takes(tmp_path):
    for method in ("crust", "co-teaching", "dividemix"):
        spec = tiny(method, limit=1000, epochs=3)
        train_spec(spec, tmp_path / method)
        taken = sum(path.stat().st_size for path in (tmp_path / method).rglob("*") if path.is_file())
        size = look([spec], Work(tmp_path / "r.jsonl", tmp_path)).sizes[key(spec)]
        assert taken < need(size, method) < 10 * taken


def test_no_room(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    specs = [make("crust", "true", scale="paper", seed=seed) for seed in range(10)]
    sizes = {key(spec): SIZE for spec in specs}
    one = need(SIZE, "crust")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 2 * one))
    check_room(specs, sizes, tmp_path / "not" / "yet", 2, keep_runs=False)
    with pytest.raises(InputError, match="make room, or choose another folder"):
        check_room(specs, sizes, Path(tmp_path), 3, keep_runs=False)
    with pytest.raises(InputError, match="leave out --keep-runs"):
        check_room(specs, sizes, Path(tmp_path), 2, keep_runs=True)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_planned(method):
    spec = make(method, "true", scale="paper")
    assert epochs_of(spec, SIZE) >= 120
    assert planned(spec, SIZE) >= 120 * SIZE.examples
    assert planned(make(method, "true", scale="paper", epochs=240), SIZE) > 1.4 * planned(spec, SIZE)


def test_plans_are_near_the_work_that_is_done(tmp_path):
    for method in ("erm", "crust", "co-teaching"):
        spec = tiny(method, limit=400, epochs=6)
        line = train_spec(spec, tmp_path / method)
        size = look([spec], Work(tmp_path / "r.jsonl", tmp_path)).sizes[key(spec)]
        assert 0.4 < planned(spec, size) / (work_of(line) + 6 * size.tests) < 2.5, method
        assert epochs_of(spec, size) == len(line["curves"]["val_accuracy"])


def test_results_that_are_there_are_the_measure():
    spec = make("erm", "true")
    cost = {"forward": 1000, "backward": 500, "seconds": {"epoch": 90.0, "selection": 40.0, "evaluation": 10.0}}
    lines = [{"spec": spec, "cost": cost}, {"spec": spec, "cost": {}}, {"key": "of another kind"}]
    estimates = Estimates(lines, {})
    assert (seconds_of_run(lines[0]), work_of(lines[0])) == (100.0, 2000.0)
    assert estimates.seconds(make("erm", "symmetric:0.5", seed=3)) == pytest.approx(101)
    assert estimates.source([spec]) == "1 result of the same data and network"
    assert estimates.seconds(make("erm", "true", scale="smoke")) is None
    mixup = make("mixup", "true")
    known = Estimates(lines, {key(mixup): RunSize(10_000, 10_000, (3, 32, 32), 10, 1000)})
    assert known.seconds(mixup) == pytest.approx(1 + planned(mixup, known.sizes[key(mixup)]) / 20)
