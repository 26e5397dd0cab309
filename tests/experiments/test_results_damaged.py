"""Result files that others wrote to: lines that are no results, files that hold none, lines added at the same time."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.common import call
from tests.experiments.test_results_file import SPEC, one, text
from tests.forked import CONTEXT
from tests.refusals import refused

from crust.errors import InputError
from crust.experiments import append, read_results
from crust.experiments.grid import without_result
from crust.experiments.preflight import Estimates

COST = {"forward": 10, "backward": 3, "seconds": {"epoch": 1.0}}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"no": "key"}, "it has no key"),
        ([1], "it is no object"),
        ("word", "it is no object"),
        (None, "it is no object"),
        ({"key": 1}, "its key is not text"),
        ({"key": "x"}, "it has no spec"),
        (one("x", spec={}), "it has no spec.data"),
        (one("x", spec=None), "its spec is not an object"),
        (one("x", spec={**SPEC, "experiment": {"seed": 1}}), "it has no spec.experiment.epochs"),
        (one("x", spec={**SPEC, "method": None}), "its spec.method is not text"),
        (one("x", accuracy=None), "its accuracy is not an object"),
        (one("x", accuracy={"last": "much"}), "its accuracy.last is not a number or null"),
        (one("x", accuracy={"last": float("nan")}), "its accuracy.last is nan, which is no number"),
        (one("x", cost={**COST, "forward": float("inf")}), "its cost.forward is inf, which is no number"),
        (one("x", cost=None), "its cost is not an object"),
        (one("x", cost={}), "it has no cost.forward"),
        (one("x", cost={**COST, "seconds": {"epoch": None}}), "its cost.seconds.epoch is not a number"),
        (one("x", curves=[1]), "its curves is not an object"),
    ],
)
def test_a_line_that_is_no_result_is_named(tmp_path, broken, why):
    (tmp_path / "a.jsonl").write_text(f"{text('0')}\n{json.dumps(broken)}\n")
    with pytest.raises(InputError) as caught:
        read_results(tmp_path)
    file = tmp_path / "a.jsonl"
    assert str(caught.value) == f"line 2 of {file} is no result, {why}: take it out, or restore the file"


def test_what_passes_can_be_used(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([text("1"), text("2", cost=COST, audit=None, facts={})]))
    lines = read_results(file)
    assert without_result([SPEC], lines) == []
    assert Estimates(lines, {}).seconds(SPEC) == pytest.approx(2.0)


def test_the_command_says_it_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("r.jsonl").write_text('{"key": "x", "spec": {}}\n')
    assert call("reproduce figure1 --scale smoke --results r.jsonl --dry-run") == 2
    assert capsys.readouterr().err == (
        "crust: line 1 of r.jsonl is no result, it has no spec.data: take it out, or restore the file\n"
    )


def test_a_file_that_is_named_and_holds_none(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    Path("grid.csv").write_text("row,column\nerm,true\ncrust,true\n")
    assert call("reproduce figure1 --scale smoke --results grid.csv --dry-run") == 2
    assert capsys.readouterr().err == (
        "crust: grid.csv holds no results: name a .jsonl file of them, or a folder of such files\n"
    )
    Path("empty.jsonl").write_text("\n")
    assert read_results("empty.jsonl", named=True) == []
    Path("cut.jsonl").write_text('{"key": "a')  # a file of our own may be no more than this
    with caplog.at_level(logging.WARNING, logger="crust"):
        assert read_results("cut.jsonl") == []


def test_a_warning_comes_once_for_a_line(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(f'{text("1")}\n{{"key": "2\n{text("3")}\n')
    with caplog.at_level(logging.WARNING, logger="crust"):
        for file in ("a.jsonl", tmp_path / "a.jsonl", "a.jsonl"):
            assert len(read_results(file)) == 2
        Path("a.jsonl").write_text(Path("a.jsonl").read_text() + "{")
        read_results("a.jsonl")
    assert [record.getMessage() for record in caplog.records] == [
        "line 2 of a.jsonl was cut off and is passed over",
        "line 4 of a.jsonl was cut off and is passed over",
    ]


def _write(path, count):
    for i in range(count):
        append(path, one(f"ours{i}", text="x" * 3000))


def test_lines_that_others_add_meanwhile_are_not_lost(tmp_path):
    path = tmp_path / "results.jsonl"
    append(path, one("first"))
    writer = CONTEXT.Process(target=_write, args=(path, 60))
    writer.start()
    added = 0
    while writer.is_alive() or added < 60:
        with path.open("a") as file:  # as `cat more >> results.jsonl` does
            file.write(f"{text(f'theirs{added}')}\n")
        added += 1
        time.sleep(0.002)
    writer.join()
    there = {line["key"] for line in read_results(path)}
    assert there == {"first", *(f"ours{i}" for i in range(60)), *(f"theirs{i}" for i in range(added))}


KILLED = """
import sys
from crust.experiments import append
from tests.experiments.test_results_file import one
print("ready", flush=True)
for i in range(100_000):
    append(sys.argv[1], one(str(i), text="x" * 100_000))
    print(i, flush=True)
"""


def test_a_kill_costs_one_line_at_most(tmp_path):
    path = tmp_path / "results.jsonl"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    words = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as writer:
        for line in writer.stdout:
            if line == "20\n":
                writer.send_signal(signal.SIGKILL)
                break
        said = [20, *(int(line) for line in writer.stdout)]
    append(path, one("after"))
    there = [line["key"] for line in read_results(path)]
    assert there[-1] == "after"
    assert there[:-1] in ([str(i) for i in range(said[-1] + 1)], [str(i) for i in range(said[-1] + 2)])
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".tmp"] == []


def test_what_is_there_is_not_written_again(tmp_path):
    path = tmp_path / "results.jsonl"
    append(path, one("1"))
    before = path.stat().st_ino
    append(path, one("2"))
    assert path.stat().st_ino == before


def test_a_full_disk_is_one_sentence(monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    append(tmp_path / "results.jsonl", one("1"))
    monkeypatch.setattr(os, "fsync", full)
    with refused("cannot-write"):
        append(tmp_path / "results.jsonl", one("2"))
    assert read_results(tmp_path / "results.jsonl")[0]["key"] == "1"


@pytest.mark.parametrize("more", ["", '{"key": "c", "sp'])
def test_files_put_together_without_a_line_end_lose_nothing(tmp_path, caplog, more):
    lines = [{"key": name, "spec": SPEC, "accuracy": {"last": 0.5}} for name in "ab"]
    (tmp_path / "r.jsonl").write_text("".join(map(json.dumps, lines)) + more)
    with caplog.at_level("WARNING", logger="crust"):
        assert [line["key"] for line in read_results(tmp_path / "r.jsonl")] == ["a", "b"]
    assert len(caplog.records) == bool(more)
