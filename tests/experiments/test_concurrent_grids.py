"""Two drivers in one folder: what one of them has seen fail, the other does not try again unless it is asked to."""

from __future__ import annotations

import json

from tests.experiments.common import tiny

from crust.experiments import Event, LocalGrid, Work, key, read_results, run_grid
from crust.experiments import task as one_run
from crust.experiments.task import failure, give_up

SPECS = [tiny("erm"), tiny("mixup")]


def go(folder, tell, **more):
    work = Work(folder / "r.jsonl", folder / "runs")
    with LocalGrid() as engine:
        run_grid(SPECS, engine, work, tell, **more)
    return work


def drive(folder, **more):
    """A driver; when its first run ends, another driver has just left an error of the second."""
    told = []

    def tell(event: Event) -> None:
        told.append((event.kind, key(event.spec), event.error))
        if event.kind == "ended" and event.spec["method"] == "erm":
            give_up(SPECS[1], Work(folder / "r.jsonl", folder / "runs"), "no luck")

    go(folder, tell, **more)
    return [each for each in told if each[0] != "epoch"]


def test_a_failure_of_another_driver_is_told_and_not_tried_again(tmp_path):
    told = drive(tmp_path)
    assert told[2:] == [("failed", key(SPECS[1]), "no luck")]
    assert failure(SPECS[1], tmp_path / "runs") == "no luck"
    assert len(read_results(tmp_path / "r.jsonl")) == 1


def test_it_is_tried_again_on_request(tmp_path):
    assert [kind for kind, *_ in drive(tmp_path, retry_failed=True)] == ["begun", "ended", "begun", "ended"]
    assert failure(SPECS[1], tmp_path / "runs") is None


def test_the_error_stays_until_the_run_has_ended(tmp_path, monkeypatch):
    work = Work(tmp_path / "r.jsonl", tmp_path / "runs")
    give_up(SPECS[0], work, "no luck")
    seen = []

    def look(event):
        if event.kind == "epoch":  # a driver that starts now leaves the run alone
            seen.append(failure(event.spec, work.folder))

    go(tmp_path, look, retry_failed=True)
    assert seen[:2] == ["no luck", "no luck"]
    assert failure(SPECS[0], work.folder) is None
    with monkeypatch.context() as patched:
        patched.setattr(one_run, "train_spec", lambda *_, **__: 1 / 0)
        give_up(tiny("crust"), work, "no luck")
        with LocalGrid() as engine:
            run_grid([tiny("crust")], engine, work, lambda event: None, retry_failed=True)
    left = json.loads((work.place(tiny("crust")) / "error.json").read_text())
    assert left["error"] == "ZeroDivisionError: division by zero"
