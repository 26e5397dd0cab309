"""Data without a test set: accuracy cannot be measured, which is said before anything runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.common import call
from tests.experiments.common import tiny

from crust.experiments import Work, key
from crust.experiments.preflight import look


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    np.savez("alone.npz", x=x, y=y)
    np.savez("both.npz", x_train=x, y_train=y, x_test=x[:9], y_test=y[:9])
    rows = "\n".join(f"{a},{b},{label}" for (a, b, *_), label in zip(x, y, strict=True))
    Path("table.csv").write_text(f"a,b,label\n{rows}\n")


@pytest.mark.parametrize("data", ["alone.npz", "table.csv"])
def test_it_is_a_problem_of_its_runs_alone(data):
    specs = [tiny(data=data), tiny(data="both.npz")]
    found = look(specs, Work(Path("r.jsonl"), Path("runs")))
    assert found.problems == {
        key(specs[0]): f"{data} has no test set, which accuracy is measured on: give an .npz with x_test and y_test, "
        "or a folder with train and test"
    }
    assert set(found.sizes) == {key(specs[1])}


def test_nothing_is_run(capsys):
    Path("grid.yaml").write_text(
        "scale: smoke\nlabels: true\nmethod: erm\nlimit: 50\nepochs: 1\ndata: [alone.npz, both.npz]\n"
    )
    assert call("reproduce --grid grid.yaml -q") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("crust: 1 of 2 runs cannot be made: alone.npz has no test set")
    assert len(shown.splitlines()) == 1
    assert not Path("runs/grid/results.jsonl").exists()
    assert call("reproduce --grid grid.yaml --dry-run") == 0
    assert "not ready, 1 run: alone.npz has no test set" in capsys.readouterr().out
    assert call("reproduce --grid grid.yaml -q --skip-missing") == 0
