"""Result files: whole lines under several writers, the last line of a key, what was cut off costs no other."""

from __future__ import annotations

import json
import logging

import pytest
from tests.forked import CONTEXT

from crust.experiments import append, find, make, read_results

SPEC = make("erm", "true")


def one(key, **more):
    return {"key": key, "spec": SPEC, "accuracy": {"last": 0.5}, **more}


def text(key, **more):
    return json.dumps(one(key, **more), ensure_ascii=False)


def _write(path, name):
    for i in range(20):
        append(path, one(f"{name}{i}", text="x" * 5000))


def test_two_writers_lose_nothing(tmp_path):
    path = tmp_path / "results.jsonl"
    writers = [CONTEXT.Process(target=_write, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {line["key"] for line in read_results(path)} == {f"{name}{i}" for name in "ab" for i in range(20)}


def test_files_can_be_concatenated_even_where_the_last_line_has_no_end(tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{text('1')}\n{text('2')}")
    append(tmp_path / "a.jsonl", one("3"))
    (tmp_path / "b.jsonl").write_text(f"\n{text('2', newer=True)}\n")
    assert [line["key"] for line in read_results(tmp_path)] == ["1", "2", "3"]
    assert read_results(tmp_path)[1]["newer"]


CUT = text("2", text="é").encode()


@pytest.mark.parametrize("end", [*range(1, 30), *range(30, len(CUT) - 10, 97), *range(len(CUT) - 10, len(CUT))])
def test_a_line_that_was_cut_off_costs_no_other(tmp_path, caplog, end):
    cut, file = CUT[:end], tmp_path / "a.jsonl"
    file.write_bytes(text("1").encode() + b"\n" + cut)
    with caplog.at_level(logging.WARNING, logger="crust"):  # whatever a command of an earlier test has set
        assert [line["key"] for line in read_results(file)] == ["1"]
    assert "line 2 of" in caplog.text
    append(file, one("3"))
    assert [line["key"] for line in read_results(file)] == ["1", "3"]
    file.write_bytes(b"\n".join([text("1").encode(), cut + text("4", more={"key": 1}).encode(), text("5").encode()]))
    assert [line["key"] for line in read_results(file)] == ["1", "4", "5"]


def test_find_by_specification(tmp_path):
    lines = [{"key": str(seed), "spec": make("erm", "true", seed=seed)} for seed in range(3)]
    assert find(lines, make("erm", "true", seed=2))["key"] == "2"
    assert find(lines, make("erm", "true", seed=3)) is None
    assert read_results(tmp_path / "nothing.jsonl") == []
