"""The results page: everything is text, nothing is fetched, and it says what the tables say."""

from __future__ import annotations

import re

from tests.experiments.outputs.made import line
from tests.refusals import refused

from crust.experiments import make
from crust.experiments.grid import write_grid
from crust.experiments.outputs.results_html import build
from crust.experiments.outputs.setting_diff import differing
from crust.experiments.outputs.table_summary import ResultIndex, TableCellSpec, summarise
from crust.experiments.paper import EXPERIMENTS, write_results_page

HALF = "symmetric:0.5"
HOSTILE = "<script>alert(1)</script>\"'&\x00"


def test_hostile_names_stay_text():
    entries = [TableCellSpec(HOSTILE, HOSTILE, "erm", HALF), TableCellSpec("other", HOSTILE, "crust", HALF)]
    run = line("erm", HALF, 0.5, data="cifar10")
    run["date"] = run["key"] = HOSTILE
    other = {**line("mixup", HALF, 0.5), "spec": {"method": HOSTILE, "data": HOSTILE, "labels": HOSTILE}}
    summary = summarise("t", HOSTILE, HOSTILE, entries, ResultIndex([run]), "cpu", [0])
    text = build(HOSTILE, HOSTILE, [summary], lines=[run, other, {"key": "x"}], source=HOSTILE)
    assert text.count("<script>") == 1  # our own
    assert "alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\x00" not in text


def test_it_needs_nothing_else(tmp_path):
    lines = [line("erm", HALF, 0.5), line("crust", HALF, 0.6), line("crust", HALF, 0.62, 1)]
    text = write_results_page(EXPERIMENTS, lines, "cpu", tmp_path / "results.html").read_text()
    assert not re.search(r"https?://", text)
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "<b>61.0 ± 1.4</b>" in text
    assert "table3" not in text  # not defined at this scale
    assert text.count('<table class="sortable">') == 3  # two tables, all runs
    assert text.count("<polygon") >= 1  # the band of two runs
    assert "Missing: 63 of 65 runs" in text


def test_a_run_is_listed_once_and_those_of_others_are_not(tmp_path):
    lines = [line("crust", HALF, 0.6), line("dividemix", HALF, 0.7)]
    text = write_results_page(["table1", "table2", "figure1"], lines, "cpu", tmp_path / "results.html").read_text()
    assert text.count(lines[0]["key"]) == 2  # shown, and sorted by
    assert lines[1]["key"] not in text


def test_an_unknown_experiment_gets_a_sentence(tmp_path):
    with refused("unknown-experiment"):
        write_results_page(["table9"], [], "cpu", tmp_path / "results.html")


def part(text, name):
    """A section of the page."""
    return re.search(rf'<div id="{name}">.*?</section>', text, re.DOTALL)[0]


def ends(text):
    """The names at the ends of curves, with their colours."""
    found = re.findall(r'<text [^>]*class="end tone-(\d)"[^>]*>(.*?)</text>', text)
    return [(" ".join(re.findall(r'class="name"[^>]*>(.*?)</tspan>', inner)), int(tone)) for tone, inner in found]


def test_rows_with_long_names_have_curves_and_names_that_differ(tmp_path):
    lines = [line("crust-half", HALF, 0.5), line("crust-half", HALF, 0.48, mixup="none")]
    lines += [line("crust-paper", HALF, 0.4), line("crust-released", HALF, 0.45)]
    text = write_results_page(["table2"], lines, "cpu", tmp_path / "results.html").read_text()
    assert sorted(ends(part(text, "table2"))) == [
        ("crust-half: by prediction, mixup", 0),
        ("crust-half: by prediction, no mixup", 4),
        ("crust-paper: by prediction, mixup", 2),
        ("crust-released: by label, mixup", 3),
    ]  # all in different colours, those of the methods where they can be
    long = [{"model": "small_cnn", "epochs": 3, "learning_rate": rate} for rate in (0.1, 0.2)]
    runs = [line("crust", HALF, 0.5, scale="smoke", **more) for more in [{}, *long]]
    text = write_grid([run["spec"] for run in runs], runs, tmp_path)[2].read_text()
    names = [name for name, _ in ends(text)]
    assert len(set(names)) == 3
    assert all(len(row) <= 20 for row in re.findall(r'<tspan[^>]*class="name"[^>]*>(.*?)</tspan>', text))
    assert "crust model=small_cnn epochs=3 learning_rate=0.1, epoch 1" in text  # pointed at, it is said in full


def test_a_name_has_one_colour_on_the_whole_page(tmp_path):
    shares = [line("crust-half", HALF, 0.5, fraction=share) for share in (0.3, 0.5, 0.7)]
    lines = [*shares, line("crust-released", HALF, 0.5), line("crust-paper", HALF, 0.5)]
    tones = {}
    for name, tone in ends(
        part(write_results_page(["figure1"], lines, "cpu", tmp_path / "a.html").read_text(), "figure1")
    ):
        tones.setdefault(name, set()).add(tone)
    assert tones == {"30%": {0}, "50%": {1}, "70%": {2}}
    # the best of the others, once alone beside CRUST and once among several
    columns = {"one": ["crust", "gce"], "two": ["sce", "gce", "elr", "crust"], "three": ["elr", "mixup"]}
    best = {"sce": 0.9, "elr": 0.8, "gce": 0.7, "mixup": 0.6, "crust": 0.5}
    labels = dict(zip(columns, ("true", HALF, "symmetric:0.2"), strict=True))
    entries = [TableCellSpec(row, column, row, labels[column]) for column, rows in columns.items() for row in rows]
    runs = [line(entry.method, entry.labels, best[entry.method]) for entry in entries]
    found = ends(build("a", "b", [summarise("t", "T", "", entries, ResultIndex(runs), "cpu", [0])]))
    assert len(found) == 8
    assert len(dict(found)) == len(set(found)) == 5  # a colour each
    assert len({dict(found)[row] for row in columns["two"]}) == 4


def test_all_runs_say_what_tells_them_apart(tmp_path):
    lines = [line("crust-half", HALF, 0.5, fraction=share) for share in (0.3, 0.5, 0.7)]
    text = part(write_results_page(["figure1"], lines, "cpu", tmp_path / "results.html").read_text(), "runs")
    assert re.findall(r'<td class="words settings"[^>]*>(.*?)</td>', text) == ["fraction=0.3", "–", "fraction=0.7"]
    assert "those of scale cpu" in text


def test_settings_are_told_from_the_scale_that_is_nearest():
    runs = [make("erm", "true", scale="smoke", epochs=2), make("crust", HALF, scale="smoke", data="a", seed=3)]
    assert differing(runs) == ("smoke", ["epochs=2", ""])
    scale, words = differing(runs, ["paper"])
    assert scale == "paper"
    assert words[0] == "limit=400 model=mlp augment=False epochs=2 batch_size=32 learning_rate=0.05"
    old = {**runs[0], "settings": {"gone": 1}}
    odd = [{"method": "x"}, {"method": "erm", "experiment": 1, "settings": []}]
    assert differing([old, *odd, runs[0]], ["smoke"])[1] == ["epochs=2 gone=1", "", "", "epochs=2"]
    assert differing([])[1] == []
