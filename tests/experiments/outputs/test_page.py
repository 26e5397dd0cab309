"""The results page: everything is text, nothing is fetched, and it says what the tables say."""

from __future__ import annotations

import re

import pytest
from tests.experiments.outputs.made import line

from crust.errors import InputError
from crust.experiments.entries import Entry, Found
from crust.experiments.outputs.page import build
from crust.experiments.outputs.summary import summarise
from crust.experiments.paper import EXPERIMENTS, write_page

HALF = "symmetric:0.5"
HOSTILE = "<script>alert(1)</script>\"'&\x00"


def test_hostile_names_stay_text():
    entries = [Entry(HOSTILE, HOSTILE, "erm", HALF), Entry("other", HOSTILE, "crust", HALF)]
    run = line("erm", HALF, 0.5, data="cifar10")
    run["date"] = run["key"] = HOSTILE
    other = {**line("mixup", HALF, 0.5), "spec": {"method": HOSTILE, "data": HOSTILE, "labels": HOSTILE}}
    summary = summarise("t", HOSTILE, HOSTILE, entries, Found([run]), "cpu", [0])
    text = build(HOSTILE, HOSTILE, [summary], lines=[run, other, {"key": "x"}], source=HOSTILE)
    assert text.count("<script>") == 1  # our own
    assert "alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\x00" not in text


def test_it_needs_nothing_else(tmp_path):
    lines = [line("erm", HALF, 0.5), line("crust", HALF, 0.6), line("crust", HALF, 0.62, 1)]
    text = write_page(EXPERIMENTS, lines, "cpu", tmp_path / "results.html").read_text()
    assert not re.search(r"https?://", text)
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "<b>61.0 ± 1.4</b>" in text
    assert "table3" not in text  # not defined at this scale
    assert text.count('<table class="sortable">') == 3  # two tables, all runs
    assert text.count("<polygon") >= 1  # the band of two runs
    assert "Missing: 58 of 60 runs" in text


def test_a_run_is_listed_once_and_those_of_others_are_not(tmp_path):
    lines = [line("crust", HALF, 0.6), line("dividemix", HALF, 0.7)]
    text = write_page(["table1", "table2", "figure1"], lines, "cpu", tmp_path / "results.html").read_text()
    assert text.count(lines[0]["key"]) == 2  # shown, and sorted by
    assert lines[1]["key"] not in text


def test_an_unknown_experiment_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="table9"):
        write_page(["table9"], [], "cpu", tmp_path / "results.html")
