"""`crust reproduce` from end to end: grids, dry runs, failures, Ctrl-C, and what stops it before it begins."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from tests.cli.common import call
from tests.experiments.common import substance

from crust.cli import reproduce_progress
from crust.experiments import key, make, read_results
from crust.experiments import task as one_run
from crust.experiments.paper import EXPERIMENTS

GRID = """\
scale: smoke
labels: symmetric:0.3
limit: 100
epochs: 2
runs:
  - method: erm
    seeds: 2
  - method: crust
    fraction: [0.3, 0.5]
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRUST_DATA", raising=False)
    Path("grid.yaml").write_text(GRID)
    return tmp_path


def refused(capsys, words, sentence):
    assert call(f"reproduce -q {words}") == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1, shown
    assert sentence in shown, shown


def test_tables_without_running_anything(here, capsys):
    assert call("reproduce --grid grid.yaml --methods erm -q") == 0
    one, two = Path("runs/grid/results.jsonl").read_text().splitlines(keepends=True)
    Path("elsewhere").mkdir()
    Path("elsewhere/mine.jsonl").write_text(two)
    shutil.rmtree("runs")
    refused(capsys, "--grid grid.yaml --tables", "none of the 4 runs has a result in runs/grid: leave out --tables")
    refused(capsys, "--grid grid.yaml --tables --dry-run", "--tables and --dry-run exclude each other")
    assert not Path("runs").exists()
    Path("all").mkdir()
    Path("all/results.jsonl").write_text(one)
    assert call("reproduce --grid grid.yaml --tables --results elsewhere -o all") == 0
    shown = capsys.readouterr()
    assert not shown.err
    assert shown.out.splitlines()[0] == "grid.yaml: 2 of 4 runs are there"
    assert {path.name for path in Path("all").glob("[!.]*")} == {
        "results.jsonl", "grid.md", "grid.csv", "results.html"
    }  # fmt: skip
    assert Path("all/results.jsonl").read_text() == one
    assert "Missing: 2 of 4 runs" in Path("all/grid.md").read_text()


def test_a_grid_is_run_once_and_written_down(here, capsys):
    assert call("reproduce --grid grid.yaml") == 0
    shown = capsys.readouterr()
    assert "grid.yaml: 4 of 4 runs are there" in shown.out
    assert shown.err.splitlines()[1] == "begin digits symmetric:0.3 erm seed 0"
    assert "digits symmetric:0.3 crust fraction=0.5 seed 0" in shown.err
    assert "4 of 4 done" in shown.err.splitlines()[-1]
    assert len(read_results("runs/grid/results.jsonl")) == 4
    assert {"grid.md", "grid.csv", "results.html"} <= {path.name for path in Path("runs/grid").iterdir()}
    assert not list(Path("runs/grid/runs").glob("[0-9a-f]*"))
    before = Path("runs/grid/results.jsonl").read_bytes()
    assert call("reproduce --grid grid.yaml") == 0
    assert "begin" not in capsys.readouterr().err
    assert Path("runs/grid/results.jsonl").read_bytes() == before
    # From elsewhere: only what is not there yet.
    assert call("reproduce --grid grid.yaml --seeds 3 --methods erm --results runs/grid -o other --keep-runs") == 0
    assert [line["spec"]["experiment"]["seed"] for line in read_results("other/results.jsonl")] == [2]
    assert len(list(Path("other/runs").glob("*/model.safetensors"))) == 1
    capsys.readouterr()
    assert call("reproduce --grid grid.yaml -q -o quiet --methods erm") == 0
    assert capsys.readouterr().err == ""


def test_a_table_of_the_paper_by_one_method(here, capsys):
    assert call("reproduce figure1 --scale smoke --seeds 4, --methods crust-half -o out") == 0
    assert {line["spec"]["settings"]["fraction"] for line in read_results("out/results.jsonl")} == {0.3, 0.5, 0.7}
    assert {line["spec"]["experiment"]["seed"] for line in read_results("out/results.jsonl")} == {4}
    assert Path("out/figure1.png").stat().st_size > 1000
    assert "figure1 at scale smoke: 3 of 3 runs" in capsys.readouterr().out


def test_dry_run_of_what_nobody_has_run(here, capsys):
    assert call("reproduce --grid grid.yaml --dry-run --jobs 2") == 0
    shown = capsys.readouterr().out
    assert "grid.yaml: 4 runs, 0 there already, 4 to run" in shown
    assert "estimated from a few timed steps of mlp on this machine" in shown
    assert "with 2 at a time" in shown
    assert "crust fraction=0.3" in shown
    assert not Path("runs").exists()


def test_dry_run_by_results_that_are_there(here, capsys):
    assert call("reproduce --grid grid.yaml --methods erm") == 0
    capsys.readouterr()
    assert call("reproduce --grid grid.yaml --dry-run") == 0
    shown = capsys.readouterr().out
    assert "grid.yaml: 4 runs, 2 there already, 2 to run" in shown
    assert "estimated from 2 results of the same data and network" in shown


def test_dry_run_tells_what_is_not_ready(here, capsys):
    assert call("reproduce table1 --scale cpu --dry-run --data-dir nowhere") == 0
    shown = capsys.readouterr().out
    assert "table1 at scale cpu: 65 runs, 0 there already, 65 to run" in shown
    assert "not ready, 65 runs: cifar10 is not in nowhere, and will be downloaded" in shown


def test_failures_are_told_and_tried_again_on_request(here, capsys, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(one_run, "train_spec", lambda *_, **__: 1 / 0)
        assert call("reproduce --grid grid.yaml") == 1
    shown = capsys.readouterr().out
    assert "failed: digits symmetric:0.3 erm seed 0: ZeroDivisionError: division by zero" in shown
    assert "4 runs failed: --retry-failed tries them again" in shown
    assert call("reproduce --grid grid.yaml") == 1
    assert "4 runs failed" in capsys.readouterr().out
    assert call("reproduce --grid grid.yaml --dry-run") == 0
    assert "4 failed (--retry-failed tries them again), 0 to run" in capsys.readouterr().out
    assert call("reproduce --grid grid.yaml --retry-failed") == 0
    assert "4 of 4 runs are there" in capsys.readouterr().out


def test_ctrl_c_says_how_to_go_on_and_what_follows_is_the_same(here, capsys, monkeypatch):
    assert call("reproduce --grid grid.yaml -q -o whole") == 0
    with monkeypatch.context() as patched:
        shown = reproduce_progress.GridProgress.__call__

        def stop(self, event):
            shown(self, event)
            if event.kind == "epoch" and self.ended == 1:
                raise KeyboardInterrupt

        patched.setattr(reproduce_progress.GridProgress, "__call__", stop)
        assert call("reproduce --grid grid.yaml --cpus 1 -o cut") == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == (
        "crust: stopped; 1 of 4 runs are finished, the others go on from their last epoch with: "
        "crust reproduce --grid grid.yaml --cpus 1 -o cut"
    )
    assert Path("cut/grid.md").exists()
    assert call(f"reproduce {told.partition('crust reproduce ')[2]}") == 0
    assert substance(read_results("cut/results.jsonl")) == substance(read_results("whole/results.jsonl"))
    assert "begin digits symmetric:0.3 erm seed 0" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["--jobs 2", "--engine ray"])
def test_a_real_ctrl_c(here, engine):
    Path("grid.yaml").write_text(GRID.replace("epochs: 2", "epochs: 3000"))
    words = [sys.executable, "-m", "crust", "reproduce", "--grid", "grid.yaml", *engine.split()]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        while not list(Path().glob("runs/grid/runs/*/checkpoint/[0-9]*")):
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: all processes get it
        told = running.communicate()[1]
    assert running.returncode == 130
    assert "Traceback" not in told
    assert told.splitlines()[-1].endswith(f"crust reproduce --grid grid.yaml {engine}")


def test_a_missing_dataset_stops_before_anything_is_run(here, capsys):
    Path("grid.yaml").write_text(GRID + "  - {method: erm, data: [missing.npz, digits]}\n")
    refused(capsys, "--grid grid.yaml", "1 of 5 runs cannot be made: there is no file or folder missing.npz")
    assert not Path("runs/grid/results.jsonl").exists()
    assert call("reproduce --grid grid.yaml --skip-missing") == 0
    shown = capsys.readouterr()
    assert "left out: 1 run, there is no file or folder missing.npz" in shown.err
    assert "4 of 5 runs are there" in shown.out


def test_missing_human_labels(here, capsys):
    Path("grid.yaml").write_text("scale: smoke\nmethod: erm\nlabels: [true, human:worse]\n")
    refused(capsys, "--grid grid.yaml", "labels human:worse need people's labels: name their .npz with --human-labels")
    refused(capsys, "--grid grid.yaml --human-labels no.npz", "no.npz is no file")
    refused(capsys, "table1 --scale smoke --human-labels no.npz", "no.npz is no file")  # also where no run needs them


def test_a_full_disk_is_noticed_before(here, capsys, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
    refused(capsys, "--grid grid.yaml", "MB in runs/grid, and 0 MB are free there: make room")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "there is nothing to run: name table1, table2, table3, figure1 or all, or give a --grid"),
        ("tabel1", "unknown experiment 'tabel1': use one of table1, table2, table3, figure1, all; did you mean"),
        ("table1 --grid grid.yaml", "table1 and --grid exclude each other"),
        ("table1 --scale tiny", "unknown scale 'tiny'"),
        ("all --scale tiny", "unknown scale 'tiny'"),
        ("table3", "table3 is not defined at scale cpu"),
        ("table1 --seeds x", "--seeds x: give how many, as in 5, or which, as in 0,3"),
        ("table1 --seeds 0", "--seeds 0 asks for none"),
        ("table1 --methods urm", "unknown method of these runs 'urm'"),
        ("table1 --engine cloud", "unknown engine 'cloud': use one of local, ray"),
        ("table1 --jobs 0", "jobs is 0"),
        ("table1 --address auto", "--address is for --engine ray"),
        ("table1 --gpus 1", "--gpus is for --engine ray"),
        ("table1 --engine ray --jobs 2", "--jobs is for --engine local"),
        ("table1 --engine ray --gpus 1.5", "gpus is 1.5"),
        ("table1 --cpus 0.5", "--cpus is 0.5: give whole cores"),
        ("table1 --cpus 0", "--cpus is 0: give whole cores, at least 1"),
        ("table1 --cpus nan", "--cpus is nan: give whole cores"),
        ("table1 --cpus inf", "--cpus is inf: give whole cores"),
        ("table1 --engine ray --cpus nan", "cpus is nan: give what each run may use"),
        ("table1 --engine ray --cpus inf", "cpus is inf: give what each run may use"),
        ("table1 --engine ray --gpus nan", "gpus is nan: give what each run may use"),
        ("table1 --workers -1", "--workers is -1: give a number of processes, or 0 for none"),
        ("table1 --seeds ²", "--seeds ²: give how many, as in 5, or which, as in 0,3"),
        (f"table1 --seeds {'9' * 5000}", "9: give how many, as in 5, or which, as in 0,3"),
        ("table1 --seeds 1000000000", "--seeds 1000000000 asks for more than 10000: the one of this number is"),
        ("--grid grid.yaml --seeds 1000000000", "--seeds 1000000000 asks for more than 10000"),
        ("table1 --scale smoke --seeds 9999999999999999999,", "seed 9999999999999999999 is too large: give one up to"),
        ("table1 --methods ,", "--methods names none: give some of erm, f-correction, "),
        (f"table1 -o {'x' * 300}", "cannot be used (file name too long): choose another folder"),
        ("table1 --results nowhere", "there are no results at nowhere"),
        ("table1 -o grid.yaml", "grid.yaml is a file; name a folder"),
        ("--grid nowhere.yaml", "cannot read the grid nowhere.yaml: no such file"),
    ],
)
def test_wrong_words(capsys, words, sentence):
    refused(capsys, words, sentence)


def test_a_folder_that_is_of_no_use_is_refused_before_anything_is_run(here, capsys):
    Path("a/results.jsonl").mkdir(parents=True)
    refused(capsys, "--grid grid.yaml -o a", "a/results.jsonl is a folder, where results go to a file; take it away")
    Path("b").mkdir()
    Path("b/runs").touch()
    refused(capsys, "--grid grid.yaml -o b", "b/runs is a file, where runs go to a folder; take it away")
    assert not Path("a/runs").exists()


def test_no_cluster_is_asked_for_where_nothing_is_to_run(here, capsys):
    pytest.importorskip("ray")
    Path("grid.yaml").write_text(f"{GRID.partition('runs')[0]}method: erm\nseeds: 1\n")
    assert call("reproduce -q --grid grid.yaml -o out") == 0
    assert call("reproduce --grid grid.yaml -o out --engine ray --address 127.0.0.1:1") == 0
    assert "1 of 1 runs are there" in capsys.readouterr().out


def test_all_is_what_the_scale_has(capsys):
    assert call("reproduce all --scale cpu --dry-run --data-dir nowhere") == 0
    assert "table1, table2, figure1 at scale cpu: " in capsys.readouterr().out


@pytest.mark.slow
def test_every_table_and_figure_at_smoke_scale(here, capsys):
    assert call("reproduce all --scale smoke -o out") == 0
    lines = read_results("out/results.jsonl")
    wanted = {key(spec) for one in EXPERIMENTS.values() for spec in one.specs("smoke")}
    assert {line["key"] for line in lines} == wanted
    for name in EXPERIMENTS:
        assert Path(f"out/{name}.md").stat().st_size > 500
        assert Path(f"out/{name}.csv").read_text().count("\n") > 3
    assert Path("out/results.html").stat().st_size > 10_000
    assert f"{len(wanted)} of {len(wanted)} runs are there" in capsys.readouterr().out


def test_help_has_an_example(capsys):
    assert call("reproduce --help") == 0
    assert "crust reproduce table1 --scale cpu --dry-run" in capsys.readouterr().out


def test_what_is_shown_on_a_terminal():
    from rich.console import Console

    from crust.experiments import Event

    specs = [make("erm", "true", scale="smoke", seed=seed) for seed in range(3)]
    names = {key(spec): f"erm [b]{seed}" for seed, spec in enumerate(specs)}
    progress = reproduce_progress.GridProgress(names, dict.fromkeys(names, 6), dict.fromkeys(names, 1.0), 1, quiet=True)
    progress(Event("begun", specs[0]))
    progress(Event("begun", specs[1]))
    progress(Event("epoch", specs[0], {"epoch": 2, "test_accuracy": 0.5}))
    progress(Event("ended", specs[1], json.loads('{"accuracy": {"last": 0.25}}')))
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    console.print(progress.render())
    shown = console.export_text()
    console.file.close()
    assert "2 of 4 done" in shown
    assert "left" in shown
    assert "erm [b]0" in shown
    assert "epoch 3/6 · test 50.0 %" in shown
    assert "last  erm [b]1: 25.0 %" in shown
