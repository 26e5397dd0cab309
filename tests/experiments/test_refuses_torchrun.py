"""A grid is not run by processes that train together: they would take different runs and average their steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.common import call
from tests.experiments.common import tiny
from tests.refusals import refused

from crust.experiments import LocalGrid, Work, run_grid


@pytest.mark.parametrize("name", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_a_grid_refuses_several_processes(tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "2")
    with LocalGrid() as engine, refused("several-processes"):
        run_grid([tiny()], engine, Work(tmp_path / "r.jsonl", tmp_path / "runs"), print)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["figure1 --scale smoke", "figure1 --scale smoke --engine ray", "table1 --dry-run"])
def test_the_command_refuses_several_processes(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert call(f"reproduce {words} -o out") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("crust: this is one of 2 processes that train together")
    assert len(shown.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["", "1", "no number"])
def test_one_process_is_no_group(monkeypatch, value):
    from crust.experiments.task import check_alone

    monkeypatch.setenv("WORLD_SIZE", value)
    check_alone()


@pytest.mark.slow
def test_under_torchrun(tmp_path):
    words = "-m torch.distributed.run --nproc-per-node 2 --master-port 29517 -m crust reproduce figure1 --scale smoke"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    done = subprocess.run([sys.executable, *words.split()], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert "crust: this is one of 2 processes that train together" in done.stderr
    assert not (tmp_path / "runs").exists()
