"""The bar appears after two seconds, and only where it is asked for."""

import time

import pytest

from crust._util import progress
from crust.selection.executors import Ticker, WorkStopped, run_in_threads


def test_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SHOW_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    with progress.progress_bar("selecting", show=True) as report:
        assert report is not None
        ticker = Ticker(10.0, report)
        time.sleep(0.2)  # the first line comes by itself, before any step
        ticker.step(5.0)
    assert capsys.readouterr().err.splitlines() == ["selecting: 0%", "selecting: 50%"]
    monkeypatch.setattr(progress, "SHOW_AFTER", 60.0)
    with progress.progress_bar("selecting", show=True) as report:
        report(1.0, 2.0)
    assert capsys.readouterr().err == ""


def test_the_first_error_stops_all():
    ticker, seen = Ticker(), []

    def work(unit, slot):
        seen.append(unit)
        if unit == 3:
            raise RuntimeError("three")

    with pytest.raises(RuntimeError, match="three"):
        run_in_threads(range(1000), work, 2, ticker)
    assert len(seen) < 1000
    with pytest.raises(WorkStopped):
        ticker.step()
