"""What a run was made on: names of processors and GPUs, and whether others ran beside it."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import torch
from tests.cli.common import call
from tests.experiments.common import tiny
from tests.forked import CONTEXT

from crust.experiments import read_results, run_spec
from crust.experiments.run_spec import machine, train_spec

CPU = torch.device("cpu")


def test_the_processor_has_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(run_spec, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(run_spec.platform, "processor", lambda: "a spare name")
    assert machine(CPU)["cpu"] == "a spare name"  # where there is no such file
    run_spec.CPUINFO.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz: fast\nmodel name\t: other\n")
    assert machine(CPU)["cpu"] == "Some CPU @ 3 GHz: fast"


def test_a_gpu_counts_where_it_was_used(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card {device.index}")
    assert machine(torch.device("cuda", 1))["gpu"] == "card 1"
    assert "gpu" not in machine(CPU)


def test_a_process_of_several_says_so():
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as pool:
        assert pool.submit(machine, CPU).result()["shared"] is True
    assert "shared" not in machine(CPU)


def test_a_result_line_says_what_it_was_made_on(tmp_path):
    assert machine(CPU).items() <= train_spec(tiny(epochs=1), tmp_path / "run")["machine"].items()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["--jobs 2", "--engine ray"])
def test_runs_that_are_made_beside_each_other_say_so(tmp_path, monkeypatch, engine):
    if "ray" in engine:
        pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    Path("g.yaml").write_text("{scale: smoke, labels: true, limit: 100, epochs: 1, runs: [{method: [erm, mixup]}]}")
    assert call(f"reproduce -q --grid g.yaml -o several {engine}") == 0
    assert [line["machine"].get("shared") for line in read_results("several/results.jsonl")] == [True, True]
    assert call("reproduce -q --grid g.yaml -o one") == 0
    assert [line["machine"].get("shared") for line in read_results("one/results.jsonl")] == [None, None]
