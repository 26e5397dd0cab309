"""The queue of the scoreboard: killed at any moment, it goes on with what is missing (run by its command alone)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RUNS = r"^vowel/(true|symmetric:0\.2)/mlp (erm|gce) seed [01]$"
pytestmark = pytest.mark.slow


@pytest.fixture
def queue(tmp_path):
    """Starts the queue on a set of 120 rows; its lines are in a file of the test's own."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 40)
    numbers = rng.normal(size=(120, 4)) + 3 * np.eye(4)[np.repeat([0, 1, 2], 40)]
    rows = [",".join([*map(str, row), label]) for row, label in zip(numbers.round(3), labels, strict=True)]
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "vowel.csv").write_text("\n".join(["w,x,y,z,label", *rows]) + "\n")
    command = [sys.executable, "-m", "benchmarks.regret", "--data", str(tmp_path), "--only", RUNS]
    command += ["--results", str(tmp_path / "lines.jsonl"), "--runs", str(tmp_path / "runs"), "--jobs", "2"]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

    def start(*more):
        return subprocess.Popen(
            [*command, *more], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def names(path):
    found = []
    for line in path.read_text().splitlines():
        spec = json.loads(line)["spec"]
        found.append((spec["labels"], spec["method"], spec["experiment"]["seed"]))
    return found


def test_a_killed_queue_goes_on_with_what_is_missing(queue, tmp_path):
    file = tmp_path / "lines.jsonl"
    first = queue()
    end = time.monotonic() + 300
    while not (file.exists() and file.read_text().count("\n")):
        assert first.poll() is None, first.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)  # returns when the last worker has let go of the pipes
    before = file.read_text()
    assert before.endswith("\n")
    assert 1 <= len(names(file)) < 8
    file.write_text(before + '{"key": "cut')  # what a kill in the middle of a line leaves
    waiting = queue("--dry-run")
    assert f"{8 - before.count(chr(10))} runs" in waiting.communicate(timeout=300)[0]
    second = queue()
    errors = second.communicate(timeout=300)[1]
    assert second.returncode == 0, errors
    text = file.read_text()
    assert text.startswith(before)
    whole = [line for line in text.splitlines() if line != '{"key": "cut']
    assert len(whole) == len({json.loads(line)["key"] for line in whole}) == 8
    line = json.loads(whole[-1])
    assert {"spec", "accuracy", "balanced", "val", "audit", "cost", "versions", "wrong"} <= line.keys()
    assert line["accuracy"]["delivered"] > 0.8
    third = queue()
    assert third.communicate(timeout=300)
    assert third.returncode == 0
    assert file.read_text() == text


def test_workers_end_with_the_queue_and_two_queues_do_not_share_a_file(queue, tmp_path):
    first = queue()
    end = time.monotonic() + 300
    while not (tmp_path / "lines.jsonl").exists():
        assert first.poll() is None, first.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)
    second = queue()
    said = second.communicate(timeout=300)[1]
    if first.poll() is None:  # a fast machine may be through
        assert second.returncode == 2, said
        assert "another queue" in said
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)  # returns when the last worker has let go of the pipes
