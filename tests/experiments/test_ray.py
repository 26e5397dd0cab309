"""The Ray engine, on a real Ray: the same results, also where a worker or the driver is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.experiments.common import SPECS, substance, tiny
from tests.refusals import refused

from crust.errors import InputError
from crust.experiments import LocalGrid, RayGrid, Work, engines, key, read_results, run_grid
from crust.experiments.task import failure

pytest.importorskip("ray")
# Ray leaves its sockets and log files to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def cluster():
    import ray

    ray.init(
        address="local", num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    yield
    ray.shutdown()


def go(specs, folder, engine, tell=lambda event: None):
    with engine:
        run_grid(specs, engine, Work(folder / "r.jsonl", folder / "runs"), tell)
    return substance(read_results(folder / "r.jsonl"))


@pytest.mark.slow
def test_ray_says_what_one_process_says(tmp_path, cluster):
    told = []
    specs = [*SPECS, tiny(labels="human:nobody")]
    there = go(specs, tmp_path / "ray", RayGrid(gpus=0.5), told.append)
    assert there == go(SPECS, tmp_path / "local", LocalGrid(threads=1))
    assert len(there) == 3
    for spec in specs:
        kinds = [event.kind for event in told if key(event.spec) == key(spec)]
        assert (kinds[0], kinds[-1]) == ("begun", "failed" if spec["labels"] == "human:nobody" else "ended")
    assert {event.kind for event in told} == {"begun", "epoch", "ended", "failed"}
    assert go(specs, tmp_path / "ray", RayGrid(), told.append) == there
    assert RayGrid().at_once == 2
    assert RayGrid(cpus=2).at_once == 1
    assert RayGrid(gpus=1).at_once == 1
    assert RayGrid(gpus=0.25).at_once == 2


def test_more_than_the_cluster_has_is_refused(cluster):
    with refused("cluster-size"):
        RayGrid(cpus=3).__enter__()


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_what_came_after_its_last_checkpoint(tmp_path, cluster):
    spec = tiny("crust", epochs=60)
    told = []

    def kill(event):
        told.append(event)
        begun = [one for one in told if one.kind == "begun"]
        if event.kind == "epoch" and event.line["epoch"] >= 1 and len(begun) == 1:
            os.kill(begun[0].process, signal.SIGKILL)

    there = go([spec], tmp_path / "ray", RayGrid(), kill)
    assert there == go([spec], tmp_path / "local", LocalGrid(threads=1))
    assert sum(event.kind == "begun" for event in told) == 2
    again = [event.line["epoch"] for event in told if event.kind == "epoch"]
    assert again.count(0) == 1  # what was saved before is not done again


@pytest.mark.slow
def test_a_run_that_kills_its_worker_each_time_is_a_failure(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(engines, "RETRIES", 1)
    told = []

    def kill(event):
        told.append(event)
        if event.kind == "begun" and event.spec["method"] == "crust":
            os.kill(event.process, signal.SIGKILL)

    found = go([tiny("crust", epochs=300), tiny("erm")], tmp_path, RayGrid(), kill)
    assert [line["spec"]["method"] for line in found.values()] == ["erm"]
    assert [event.error[:27] for event in told if event.kind == "failed"] == ["its process died 2 times (o"]
    assert failure(tiny("crust", epochs=300), tmp_path / "runs")


DRIVER = """
import sys
from pathlib import Path
from crust.experiments import RayGrid, Work, run_grid
from tests.experiments.common import tiny

here = Path(sys.argv[1])
with RayGrid() as engine:
    run_grid(
        [tiny("erm"), tiny("crust", epochs=60)],
        engine,
        Work(here / "r.jsonl", here / "runs"),
        lambda event: print(event.kind, event.spec["method"], event.line and event.line.get("epoch"), flush=True),
    )
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_and_started_again_does_what_is_missing(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    first = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
    seen = set()
    for line in first.stdout:
        seen.add(tuple(line.split()[:2]))
        if {("ended", "erm"), ("epoch", "crust")} <= seen:
            break
    first.kill()
    first.communicate()
    assert [line["spec"]["method"] for line in read_results(tmp_path / "r.jsonl")] == ["erm"]
    again = subprocess.run(words, capture_output=True, text=True, env=env, check=True).stdout
    assert "erm" not in again
    assert "epoch crust 0" not in again  # the other one went on
    assert "ended crust" in again
    specs = [tiny("erm"), tiny("crust", epochs=60)]
    assert substance(read_results(tmp_path / "r.jsonl")) == go(specs, tmp_path / "local", LocalGrid(threads=1))


def test_impossible_shares():
    with refused("gpus-range"):
        RayGrid(gpus=-0.1)


@pytest.mark.parametrize("gpus", [1.5, 2])
def test_more_than_one_gpu_would_be_idle(gpus):
    with pytest.raises(InputError, match=rf"gpus is {gpus}, and a run uses one at most: .* -m crust train"):
        RayGrid(gpus=gpus)
