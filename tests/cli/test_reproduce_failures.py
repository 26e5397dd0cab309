"""`crust reproduce` where runs fail: the exit code says so for as long as they are there, and -q hides no error."""

from pathlib import Path

import pytest
from tests.cli.common import call

from crust.experiments import task as one_run

GRID = "scale: smoke\nlabels: symmetric:0.3\nlimit: 100\nepochs: 2\nmethod: erm\nseeds: 2\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text(GRID)


def fail(monkeypatch, words):
    with monkeypatch.context() as patched:
        patched.setattr(one_run, "train_spec", lambda *_, **__: 1 / 0)
        return call(words)


def test_failures_that_are_there_are_an_exit_code_of_one(monkeypatch, capsys):
    assert fail(monkeypatch, "reproduce --grid grid.yaml --seeds 1") == 1
    assert call("reproduce --grid grid.yaml") == 1  # the other one is made, and does not hide it
    shown = capsys.readouterr().out
    assert "1 of 2 runs are there" in shown
    assert shown.splitlines()[-1] == "1 run failed: --retry-failed tries them again"
    assert call("reproduce --grid grid.yaml") == 1
    assert call("reproduce --grid grid.yaml --seeds 1,") == 0  # without the one that failed
    capsys.readouterr()
    assert call("reproduce --grid grid.yaml --retry-failed") == 0
    assert "failed" not in capsys.readouterr().out
    assert call("reproduce --grid grid.yaml") == 0


def test_quiet_hides_no_failure(monkeypatch, capsys):
    assert fail(monkeypatch, "reproduce -q --grid grid.yaml") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "failed, digits symmetric:0.3 erm seed 0: ZeroDivisionError: division by zero",
        "failed, digits symmetric:0.3 erm seed 1: ZeroDivisionError: division by zero",
        "2 runs failed: --retry-failed tries them again",
    ]
    assert call("reproduce -q --grid grid.yaml") == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "2 runs failed: --retry-failed tries them again\n")
    assert call("reproduce -q --grid grid.yaml --retry-failed") == 0
    assert capsys.readouterr() == ("", "")
