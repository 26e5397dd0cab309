"""Trackers: what TensorBoard itself reads back is the history."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.refusals import refused
from tests.training.common import fit, told, weights

from crust.cli import main
from crust.errors import InputError, MissingPackage
from crust.training import trackers


def events(folder):
    found = EventAccumulator(str(folder / "trackers" / "crust")).Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def same(found, history):
    for tag, values in found.items():
        name, _, part = tag.partition("/")
        having = {line["epoch"]: line[name] for line in history if name in line}  # some only where all are looked at
        lines = [value[part] if part else value for value in having.values()]
        assert [step for step, _ in values] == list(having)
        assert [value for _, value in values] == pytest.approx(lines, rel=1e-6)


def test_every_number_of_the_history_and_nothing_changes(tmp_path):
    tracked = fit("crust", run_dir=tmp_path / "a", trackers=["tensorboard"])
    found = events(tmp_path / "a")
    assert {"loss", "val_accuracy", "n_selected", "seconds/epoch", "passes/forward"} <= set(found)
    same(found, tracked.history)
    plain = fit("crust")
    assert (told(tracked.history), weights(tracked)) == (told(plain.history), weights(plain))


def test_a_run_that_goes_on_tells_every_epoch_once(tmp_path):
    fit(run_dir=tmp_path, trackers=["tensorboard"], stop_after=2)
    result = fit(run_dir=tmp_path, trackers=["tensorboard"], resume=True)
    same(events(tmp_path), result.history)
    without = tmp_path / "without"
    fit(run_dir=without, stop_after=1)
    result = fit(run_dir=without, trackers=["tensorboard"], resume=True)  # it was not there in the beginning
    same(events(without), result.history)


def test_from_the_command_line(tmp_path):
    words = f"train digits --model mlp --limit 200 --method erm --epochs 2 -q -o {tmp_path}/run --set stop_after=1"
    for command in (f"{words} --tracker tensorboard", f"train --resume -q -o {tmp_path}/run"):
        with pytest.raises(SystemExit) as caught:
            main(command.split())
        assert caught.value.code == 0
    assert [step for step, _ in events(tmp_path / "run")["test_accuracy"]] == [0, 1]  # the recipe knows the tracker


def test_trackers_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"unknown tracker 'tensorbord'.*did you mean 'tensorboard'"):
        fit(run_dir=tmp_path, trackers=["tensorbord"])
    with pytest.raises(InputError, match=r"writes files: give the run a folder"):
        fit(trackers=["tensorboard"])
    with pytest.raises(InputError, match=r"give a list, such as \['tensorboard'\]"):
        fit(run_dir=tmp_path, trackers="tensorboard")
    (tmp_path / "trackers").write_text("in the way")
    with pytest.raises(InputError, match="cannot start the trackers tensorboard: "):
        fit(run_dir=tmp_path, trackers=["tensorboard"])


def test_a_tracker_that_is_not_installed(tmp_path, monkeypatch):
    import accelerate.tracking

    monkeypatch.setattr(accelerate.tracking, "get_available_trackers", list)
    with pytest.raises(MissingPackage, match="the tracker aim is not installed: run pip install aim"):
        trackers.check_trackers(["aim"], tmp_path)


def test_options_of_trackers(tmp_path):
    fit(run_dir=tmp_path, trackers={"tensorboard": {"project": "sorting", "flush_secs": 7}})
    assert list((tmp_path / "trackers" / "sorting").rglob("events.out.tfevents.*"))
    for wrong in ({"tensorboard": "sorting"}, {"tensorboard": {"project": "a"}, "mlflow": {"project": "b"}}):
        with refused("tracker-options"):
            fit(run_dir=tmp_path / "other", trackers=wrong)


def test_within_a_run_of_mlflow_ours_is_a_part_of_it(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # of versions that would rather have a database
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file://{tmp_path}/store")
    try:
        mlflow.set_experiment("sorting")
        with mlflow.start_run() as outer:
            result = fit(trackers={"mlflow": {"run_name": "inner"}}, run_dir=tmp_path / "run")
            assert mlflow.active_run().info.run_id == outer.info.run_id
            mlflow.log_metric("own", 1.0)
        runs = mlflow.search_runs(output_format="list")
        inner = next(run for run in runs if run.info.run_id != outer.info.run_id)
        assert (len(runs), inner.info.run_name) == (2, "inner")
        assert inner.data.tags["mlflow.parentRunId"] == outer.info.run_id
        assert inner.data.metrics["loss"] == pytest.approx(result.history.lines[-1]["loss"])
        assert inner.data.params["experiment/epochs"] == "3"
        assert mlflow.active_run() is None
    finally:
        mlflow.set_tracking_uri(before)
