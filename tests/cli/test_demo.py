"""`crust demo` from end to end: what it prints, what it leaves, what its page holds, and what it never touches."""

import json
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tests.cli.common import call

from crust._util import progress
from crust.cli import demo_comparison
from crust.data import Examples
from crust.runs.folder import RunFolder

HOSTILE = '"><script src=https://evil.example/x.js></script><img src=//evil.example onerror=alert(1)>\u202e'


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.open = [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if self.open[-1:] != ["style"] else ""

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def check_alone(text):
    """Nothing is fetched and nothing is run."""
    page = Page(text)
    assert not page.open
    for tag, attributes in page.elements:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base", "form", "a")
        assert not any(name.startswith("on") or name in ("href", "srcset", "action", "style") for name in attributes)
        if "src" in attributes:
            assert attributes["src"].startswith("data:image/png;base64,")
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert not re.search(r"url\(|@import|https?:", style)
    assert "prefers-color-scheme: dark" in style
    return page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert call(f"demo --epochs 2 --seed 3 -q -o {folder}/out") == 0
    return folder / "out"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_it_leaves(made):
    assert {path.name for path in made.iterdir()} == {"crust", "demo.json", "erm", "report.html"}
    left = json.loads((made / "demo.json").read_text())
    assert [run["method"] for run in left["runs"]] == ["erm", "crust"]
    assert (left["epochs"], left["seed"], left["noise"]) == (2, 3, "symmetric:0.4")
    table, _ = RunFolder(made / "crust").audit()
    with np.load(made / "crust/noise.npz") as one, np.load(made / "erm/noise.npz") as other:
        assert (one["labels"] == other["labels"]).all()
        assert (table["given_label"] == one["labels"]).all()


def test_numbers_are_those_of_the_runs(made):
    """Counted again from the files alone."""
    from sklearn.datasets import load_digits

    from crust.data import load

    left = json.loads((made / "demo.json").read_text())
    train = load("digits").train
    assert len(train) + 500 == len(load_digits().target)
    for run in left["runs"]:
        table, _ = RunFolder(made / run["method"]).audit()
        wrong = table["given_label"].to_numpy() != train.labels
        worst = np.lexsort((table["index"], table["label_quality"]))[: round(0.4 * len(table))]
        assert run["planted"] == wrong.sum()
        assert run["found"] == wrong[worst].sum()
        right = table["predicted_label"].to_numpy() == train.labels
        assert run["corrected"] == (wrong & right)[worst].sum()
        lines = [json.loads(line) for line in (made / run["method"] / "history.jsonl").read_text().splitlines()]
        assert run["accuracy"] == [line["test_accuracy"] for line in lines]
        assert run["clean"][-1] == lines[-1]["clean_fraction"]
        assert run["trained_on"] == lines[-1]["n_selected"]


def test_the_page_stands_alone(made):
    page = check_alone((made / "report.html").read_text(encoding="utf-8"))
    assert (page.count("svg"), page.count("polyline")) == (2, 4)
    assert page.count("img") == demo_comparison.WORST + 2 * demo_comparison.FEW
    run = json.loads((made / "demo.json").read_text())["runs"][1]
    assert f"{run['found']} of {run['planted']}" in page.text
    assert f"{100 * run['accuracy'][-1]:.1f}\N{NO-BREAK SPACE}%" in page.text
    table, _ = RunFolder(made / "crust").audit()
    first = table.sort_values(["label_quality", "index"]).iloc[0]
    assert (
        f"given {first['given_label']} suggested {first['predicted_label']} probability {first['predicted_prob']:.2f}"
        in " ".join(page.text.split())
    )


def test_what_it_prints_and_the_next_command(here, capsys):
    assert call("demo --epochs 1") == 0
    shown = capsys.readouterr()
    assert len([line for line in shown.err.splitlines() if line.startswith("epoch 1/1 · test")]) == 2
    for words in ("after the last epoch", "model that is kept", "right ones among them", "in the audit's top 40 %"):
        assert words in shown.out
    assert re.search(r"look at: demo-output.report\.html\n", shown.out)
    next_command = re.search(r"^next: crust (audit .*)\n\Z", shown.out, re.MULTILINE)[1]
    assert call(next_command) == 0
    commands = re.findall(r"^\$ crust (train .*)$", shown.out, re.MULTILINE)
    assert len(commands) == 2
    # the command that it shows leads to the same weights
    assert call(f"{commands[1].replace('demo-output', 'again')} -q") == 0
    same = [(here / folder / "crust/model.safetensors").read_bytes() for folder in ("demo-output", "again")]
    assert same[0] == same[1]


def test_a_demo_is_replaced_and_nothing_else(made, here, capsys, monkeypatch):
    shutil.copytree(made, here / "out")
    (here / "out/mine.txt").write_text("kept")
    # Ctrl-C in the first epoch: no half report, no old one beside new runs
    with monkeypatch.context() as patched:

        def stop(self, line):
            raise KeyboardInterrupt

        patched.setattr(progress.EpochProgress, "__call__", stop)
        assert call("demo --epochs 1 -o out") == 130
    assert "crust: stopped before the demo was finished: start again with crust demo" in capsys.readouterr().err
    assert not (here / "out/report.html").exists()
    assert call("demo --epochs 1 -q -o out") == 0
    assert (here / "out/mine.txt").read_text() == "kept"
    assert len((here / "out/crust/history.jsonl").read_text().splitlines()) == 1
    assert not list((here / "out").glob(".*"))


@pytest.mark.parametrize("name", ["crust/model.py", "erm/a", "report.html"])
def test_what_is_not_from_a_demo_is_not_touched(here, capsys, name):
    path = here / "src" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert call("demo --epochs 1 -o src") == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert "is there already and not from a demo: choose another folder with -o" in shown.err
    assert path.read_text() == "mine"
    assert not (here / "src/demo.json").exists()


@pytest.mark.parametrize("words", ["-o file", "-o file/below", "--epochs 0", "--seed -1"])
def test_one_sentence_for_what_is_wrong(here, capsys, words):
    (here / "file").write_text("in the way")
    assert call(f"demo {words}") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("crust: ")
    assert shown.err.count("\n") == 1
    assert (here / "file").read_text() == "in the way"


def test_help_has_an_example(capsys):
    assert call("demo --help") == 0
    assert "crust demo -o demo-output" in capsys.readouterr().out


def facts_of(erm, crust, label="0", trained_on=1):
    """Two runs of one epoch or more with these test accuracies, and labels of these names; erm trains on two."""
    audit = pd.DataFrame({
        "index": [0, 1], "given_label": [label, "0"], "predicted_label": ["1", label], "predicted_prob": [0.9, 0.5],
        "label_quality": [0.0, 0.8], "truth": ["1", label], "planted": [True, False],
    })  # fmt: skip
    runs = [
        demo_comparison.RunFacts(name, 2, 5, 0, taken, 1, 1, 1, 0.99, 0.5, accuracy, [0.5] * len(accuracy), 0.5, audit)
        for name, accuracy, taken in (("erm", erm, 2), ("crust", crust, trained_on))
    ]
    return demo_comparison.Facts(*runs, "symmetric:0.4", [f"crust train -o {label}"])


def test_hostile_names_are_text():
    examples = Examples(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), np.array([0, 1]), [HOSTILE, "1"], "images")
    text = demo_comparison.demo_page(facts_of([0.5], [0.6], HOSTILE), examples)
    page = check_alone(str(text))
    assert page.text.count(HOSTILE) >= 3
    assert "<script" not in text


def test_the_words_say_what_was_measured_whoever_won():
    text = demo_comparison.summary(facts_of([0.9, 0.6], [0.7, 0.8]))
    assert "It had 90.0\N{NO-BREAK SPACE}% after epoch 1; in the end it repeats 99.0\N{NO-BREAK SPACE}%" in text
    assert "for 2 epochs each" in text
    text = demo_comparison.summary(facts_of([0.9], [0.1]))
    assert "It had" not in text
    assert "for 1 epoch each" in text
    assert "it is 10.0\N{NO-BREAK SPACE}%" in text
    assert "of those that crust trains on in the last epoch" in text
    text = demo_comparison.summary(facts_of([0.9], [0.1], trained_on=2))
    assert "it is 10.0\N{NO-BREAK SPACE}%; nobody is left out in the end" in text
    assert "trains on" not in text


def test_a_run_is_measured_by_its_own_table():
    """A case that can be counted by hand: five labels, the top 40 % are two."""
    table = pd.DataFrame({
        "index": [0, 1, 2, 3, 4], "given_label": [1, 1, 0, 0, 1], "predicted_label": [0, 1, 1, 0, 0],
        "label_quality": [0.1, 0.9, 0.5, 0.9, 0.2], "predicted_prob": 0.5,
        "is_held_out": [False, False, False, True, False],
    })  # fmt: skip
    history = {
        "n_selected": [4, 2],
        "train_accuracy": [None, 0.7],
        "test_accuracy": [0.1, 0.2],
        "clean_fraction": [0.4, 0.5],
    }
    result = SimpleNamespace(
        history=history,
        audit=lambda: table,
        config={"method": "crust", "settings": {"fraction": 0.5}},
        predict=lambda data: np.array([0, 1]),
    )
    train = Examples(torch.zeros(5, 1), np.array([0, 1, 1, 0, 1]), [0, 1], "features")
    test = Examples(torch.zeros(2, 1), np.array([0, 0]), [0, 1], "features")
    run = demo_comparison.measure(result, SimpleNamespace(train=train, test=test))
    assert (run.planted, run.found, run.corrected, run.held_out, run.kept) == (2, 1, 1, 1, 0.5)


@pytest.mark.slow
def test_the_demo_shows_what_it_is_for(here):
    """The real one. Bounds are loose: what must hold is that crust is clearly ahead, and that the audit finds most."""
    assert call("demo -q") == 0
    erm, crust = json.loads((here / "demo-output/demo.json").read_text())["runs"]
    assert crust["accuracy"][-1] > erm["accuracy"][-1] + 0.1
    assert crust["kept"] > erm["kept"] - 0.02
    assert 0.35 < crust["planted"] / crust["examples"] < 0.45
    assert crust["found"] > max(0.9 * crust["planted"], erm["found"])
    assert crust["corrected"] > 0.8 * crust["found"]
