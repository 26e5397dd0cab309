"""Ctrl-C just after processes have been started: they do not hear it, not even while they still import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.experiments.common import tiny

from crust.experiments import LocalGrid, Work, engines


def deaf(process):
    """Whether a process ignores SIGINT, from its first moment on."""
    words = Path(f"/proc/{process}/status").read_text().split("SigIgn:")[1].split()
    return bool(int(words[0], 16) >> (signal.SIGINT - 1) & 1)


def test_processes_are_deaf_from_the_beginning(tmp_path):
    crew = engines._Crew(LocalGrid(jobs=2), Work(tmp_path / "r.jsonl", tmp_path / "runs"), lambda event: None)
    before = signal.getsignal(signal.SIGINT)
    pipe = crew._start(0, tiny(), 0)
    try:
        assert deaf(crew.busy[pipe].process.pid)
        assert signal.getsignal(signal.SIGINT) is before
        assert not deaf(os.getpid())
    finally:
        crew._end(pipe)


def test_other_threads_may_start_processes_too(tmp_path):
    seen = []

    def enter():
        with engines._unheard():
            seen.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen


@pytest.mark.slow
def test_a_real_one(tmp_path):
    (tmp_path / "grid.yaml").write_text("scale: smoke\nlabels: true\nmethod: erm\nseeds: 2\nepochs: 3000\n")
    words = [sys.executable, "-m", "crust", "reproduce", "--grid", "grid.yaml", "--jobs", "2"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path, env=env
    ) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        while len(children.read_text().split()) < 3:  # two that work, and one that multiprocessing keeps for itself
            assert running.poll() is None
        time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        told = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "Traceback" not in told
    assert "go on from their last epoch" in told
