"""The local engine: one process or several, the same results; a process that dies costs little."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.experiments.common import SPECS, substance, tiny
from tests.refusals import refused

from crust.experiments import LocalGrid, Work, engines, key, read_results, run_grid
from crust.experiments.task import failure


def go(specs, folder, engine, tell=lambda event: None):
    with engine:
        run_grid(specs, engine, Work(folder / "r.jsonl", folder / "runs"), tell)
    return substance(read_results(folder / "r.jsonl"))


def test_two_processes_say_what_one_says(tmp_path):
    told = []
    one = go(SPECS, tmp_path / "one", LocalGrid(threads=1))
    two = go(SPECS, tmp_path / "two", LocalGrid(jobs=2), told.append)
    assert one == two
    assert len(one) == 3
    begun = {event.process for event in told if event.kind == "begun"}
    assert len(begun) == 2
    assert os.getpid() not in begun
    for spec in SPECS:
        kinds = [event.kind for event in told if key(event.spec) == key(spec)]
        assert (kinds[0], kinds[-1]) == ("begun", "ended")
        epochs = [event.line["epoch"] for event in told if key(event.spec) == key(spec) and event.kind == "epoch"]
        assert epochs == list(range(len(epochs)))
        assert epochs


@pytest.mark.slow
def test_a_process_that_is_killed_costs_what_came_after_its_last_checkpoint(tmp_path):
    specs = [tiny("crust", epochs=6), tiny("erm")]
    whole = go(specs, tmp_path / "whole", LocalGrid(threads=1))
    told = []

    def kill(event):
        told.append(event)
        if event.kind == "epoch" and event.line["epoch"] == 3 and event.spec["method"] == "crust":
            begun = [one for one in told if one.kind == "begun" and one.spec["method"] == "crust"]
            if len(begun) == 1:
                os.kill(begun[0].process, signal.SIGKILL)

    assert go(specs, tmp_path / "killed", LocalGrid(jobs=2), kill) == whole
    lines = [event.line["epoch"] for event in told if event.kind == "epoch" and event.spec["method"] == "crust"]
    assert sorted(set(lines)) == list(range(6))
    assert len(lines) <= 8  # of the epochs before the kill none is done again, but perhaps the last two


@pytest.mark.slow
def test_a_run_that_kills_its_process_each_time_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "RETRIES", 1)
    told = []

    def kill(event):
        told.append(event.kind)
        if event.kind == "begun" and event.spec["method"] == "crust":
            os.kill(event.process, signal.SIGKILL)

    found = go([tiny("crust", epochs=200), tiny("erm")], tmp_path, LocalGrid(jobs=2), kill)
    assert [line["spec"]["method"] for line in found.values()] == ["erm"]
    assert told.count("failed") == 1
    assert "its process died 2 times" in failure(tiny("crust", epochs=200), tmp_path / "runs")


DRIVER = """
import sys
from pathlib import Path
from crust.experiments import LocalGrid, Work, run_grid
from tests.experiments.common import tiny

if __name__ == "__main__":
    here = Path(sys.argv[1])
    with LocalGrid(jobs=2) as engine:
        run_grid(
            [tiny("erm"), tiny("crust", epochs=2000)],
            engine,
            Work(here / "r.jsonl", here / "runs"),
            lambda event: print(event.kind, event.spec["method"], event.process, flush=True),
        )
"""


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
    seen = {}
    for line in driver.stdout:
        kind, method, process = line.split()
        seen[kind, method] = int(process)
        if {("ended", "erm"), ("epoch", "crust")} <= seen.keys():
            break
    driver.kill()
    driver.communicate()
    worker = seen["begun", "crust"]
    deadline = time.monotonic() + 30
    while _alive(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(worker)
    # What was finished is there; the other one is free to be taken up.
    assert [line["spec"]["method"] for line in read_results(tmp_path / "r.jsonl")] == ["erm"]
    from crust.experiments.task import claim

    with claim(tmp_path / "runs" / key(tiny("crust", epochs=2000))) as mine:
        assert mine


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
def test_ctrl_c_ends_the_processes_and_the_rest_can_go_on(tmp_path):
    processes = []

    def stop(event):
        if event.kind == "begun":
            processes.append(event.process)
        if event.kind == "epoch":
            raise KeyboardInterrupt

    specs = [tiny("erm", epochs=300), tiny("mixup", epochs=300)]
    with pytest.raises(KeyboardInterrupt):
        go(specs, tmp_path, LocalGrid(jobs=2), stop)
    assert processes
    assert not any(_alive(process) for process in processes)
    assert read_results(tmp_path / "r.jsonl") == []
    assert list((tmp_path / "runs").glob("*/checkpoint/[0-9]*"))  # from where it goes on


@pytest.mark.parametrize("name", ["jobs", "threads"])
def test_impossible_numbers(name):
    with refused(f"{name}-range"):
        LocalGrid(**{name: 0})


def test_gpus_are_dealt_out(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert engines._devices() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")
    assert engines._devices() == ["3", "GPU-5"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert engines._devices() == []
