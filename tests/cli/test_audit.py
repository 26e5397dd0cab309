"""`crust audit` and `crust verify` from end to end: a run, how far it can be trusted, and files without a run."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from rich.console import Console
from tests.cli.common import call
from tests.refusals import refused

import crust
from crust.cli.audit import _worst_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    words = "train digits --model mlp --limit 300 --batch-size 32 --epochs 3 --noise symmetric:0.3"
    assert call(f"{words} -q -o {folder}/run") == 0
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 90)
    given = np.where(np.arange(90) < 9, (true + 1) % 3, true)
    p = np.full((90, 3), 0.1)
    p[np.arange(90), true] = 0.8
    np.savez(folder / "all.npz", p=p, y=given, x=np.eye(3)[true] + 0.1 * rng.normal(size=(90, 3)), short=given[:80])
    names = np.array(["cow", "ant", "bee"])  # not in sorted order: the columns say which is which
    pd.DataFrame(p, columns=names).to_csv(folder / "p.csv", index=False)
    pd.DataFrame({"kind": names[given], "other": 1}).to_parquet(folder / "y.parquet")
    np.savez(folder / "bad.npz", sum=p * 0.5, nan=np.where(p > 0.5, np.nan, p))
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def test_a_run_shows_worst_labels_noise_and_classes(here, capsys):
    assert call("audit run --top 3") == 0
    shown = capsys.readouterr().out
    assert "the labels of the lowest quality" in shown
    assert "labels differ from the predicted ones" in shown
    assert "class by class" in shown
    assert shown.count("noise rate") == 1
    assert crust.load("run").noise_rate().sentence() in shown
    assert "the whole table: run/audit.parquet, or add -o table.csv; only the label issues: add --issues\n" in shown
    assert shown.endswith("next: crust report run, crust verify run, or crust review run\n")


def test_verify_says_what_it_costs_and_what_it_found(here, capsys):
    assert call("verify run") == 0
    shown = capsys.readouterr()
    assert "trains once more with injected label errors: about " in shown.out
    assert "epoch 3/3" in shown.err
    found = json.loads((here / "run/verified.json").read_text())
    assert f"verified with {found['injected']['count']} injected errors" in shown.out
    (said,) = [line for line in shown.out.splitlines() if "noise rate" in line]
    assert "recommended cut: a label quality of" in shown.out
    assert shown.out.endswith("next: crust report run, or crust review run\n")
    assert not (here / "run/verification/checkpoint").exists()
    assert call("audit run --top 0") == 0
    shown = capsys.readouterr().out
    assert "recommended cut" in shown
    assert [line for line in shown.splitlines() if "noise rate" in line] == [said]  # one number everywhere
    assert call("report run") == 0
    assert said[1:] in (here / "run/report.html").read_text()
    assert crust.load("run").noise_rate().sentence() == said
    capsys.readouterr()
    assert call("verify run") == 0
    assert "trains once more" not in capsys.readouterr().out  # it has
    assert call("verify run -q") == 0
    assert capsys.readouterr().out == ""


def test_an_audit_from_files(here, capsys):
    assert call("audit --probs all.npz:p --labels all.npz:y -q -o a.csv") == 0
    assert call("audit --features all.npz:x --labels all.npz:y -q -o b.parquet") == 0
    assert call("audit --probs p.csv --labels y.parquet:kind --top 2 -o c.csv") == 0
    assert "all 90 labels, worst first: c.csv" in capsys.readouterr().out
    for table in (pd.read_csv("a.csv"), pd.read_parquet("b.parquet"), pd.read_csv("c.csv")):
        assert set(table.head(9)["index"]) == set(range(9))
    named = pd.read_csv("c.csv").sort_values("index")
    numbered = pd.read_csv("a.csv").sort_values("index")
    assert named["predicted_label"].tolist() == np.array(["cow", "ant", "bee"])[numbered["predicted_label"]].tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "there is nothing to audit: name the folder of a run or a table, or give --probs or --features"),
        ("nowhere", "there is no folder nowhere: give the folder of a run"),
        (".", "holds no run: give the folder of one"),
        ("--probs all.npz:p", "--probs needs labels: give --labels FILE"),
        ("--labels all.npz:y", "--labels alone cannot be judged"),
        ("run --labels all.npz:y", "--labels and the run run are two audits"),
        ("--probs all.npz:p --features all.npz:x --labels all.npz:y", "--probs and --features are both given"),
        ("--probs all.npz:p --labels all.npz:short", "all.npz:short holds 80 labels, but all.npz:p has 90 rows"),
        ("--probs bad.npz:sum --labels all.npz:y", "sums to 0.5, not to one"),
        ("--probs bad.npz:nan --labels all.npz:y", "of the probabilities holds nan: give finite numbers"),
        ("--probs none.npy --labels all.npz:y", "there is no file none.npy"),
        ("--probs all.npz:p --labels all.npz:y -o all.npz", "the name must end in .csv or .parquet"),
    ],
)
def test_wrong_words_get_one_sentence(here, capsys, words, message):
    assert call(f"audit {words}") == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_a_run_that_is_not_finished_or_has_lost_its_data(here, capsys):
    (here / "run/audit.parquet").rename(here / "kept")
    assert call("verify run") == 2
    assert "run holds no audit yet: let the run end with crust train --resume -o run" in capsys.readouterr().err
    (here / "run/audit.parquet").write_bytes(b"broken")
    assert call("audit run") == 2
    assert "the audit in run cannot be read" in capsys.readouterr().err
    (here / "kept").rename(here / "run/audit.parquet")
    (here / "run/history.jsonl").unlink()
    assert call("verify run") == 2
    assert "run holds no history" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda table: table.drop(columns="label_quality"),
            "the audit in run has no column 'label_quality': copy audit.parquet and",
        ),
        (lambda table: table.head(0), "the audit in run has no rows: copy"),
        (
            lambda table: table.assign(given_label=77),
            "the audit in run has the given_label '77', which is none of the run's",
        ),
    ],
)
@pytest.mark.parametrize("words", ["audit run", "report run", "verify run", "apply run corrections.csv"])
def test_an_audit_of_another_form_is_one_sentence(here, capsys, change, sentence, words):
    (here / "corrections.csv").write_text("index,corrected\n0,1\n")
    change(pd.read_parquet("run/audit.parquet")).to_parquet("run/audit.parquet")
    assert call(words) == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert sentence in shown


def test_names_are_no_commands_to_the_terminal(here, capsys):
    """With few classes and with many, whose matrix is shown as pairs; and twins with different labels."""
    red = "\x1b[31mred\r"
    for classes in (3, 20):
        names = [red, *(f"class {i}" for i in range(1, classes))]
        rng = np.random.default_rng(0)
        x = rng.normal(size=(200, 4))
        x[1] = x[0]
        np.save("x.npy", x)
        labels = [names[i] for i in [0, 1, *rng.integers(0, classes, 198)]]
        pd.DataFrame({"label": labels}).to_parquet("l.parquet")
        assert call("audit --features x.npy --labels l.parquet --top 200") == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert "\ufffd[31mred\ufffd" in shown


def test_a_run_of_an_earlier_version_is_refused_in_one_sentence(here, capsys):
    """As it was before settings and columns got their names: drops, label, doubt, calibration.json."""
    config = yaml.safe_load((here / "run/config.yaml").read_text())
    config["experiment"]["drops"] = config["experiment"].pop("lr_milestones")
    (here / "run/config.yaml").write_text(yaml.safe_dump(config))
    table = pd.read_parquet("run/audit.parquet")
    old = {"given_label": "label", "predicted_label": "suggested", "label_quality": "doubt"}
    table.rename(columns=old).to_parquet("run/audit.parquet")
    (here / "run/calibration.json").write_text("{}")
    (here / "c.csv").write_text("index,corrected\n0,1\n")
    commands = ("audit run", "report run", "verify run", "review run --no-open", "apply run c.csv", "theory run")
    for words in (*commands, "train --resume -o run", "predict run digits"):
        assert call(words) == 2, words
        shown = capsys.readouterr().err
        assert shown == "crust: the run in run is of an earlier version of crust: train again, into another folder\n"
    with refused("old-run"):
        crust.load("run")


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_labels_of_texts_and_files_are_whole_on_any_screen(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    names = {"given_label": "strange news", "predicted_label": "technology and society"}
    row = {"index": 7, **names, "predicted_prob": 0.9, "label_quality": 0.012, "selection_rate": 0.5, "is_held_out": 0}
    long = "a text that is longer than any line of a screen " * 5
    for own in ({"text": long}, {"id": "triangles/image-0066.png"}, {"id": "new.txt", "text": long}):
        Console().print(_worst_table(pd.DataFrame([{**row, **own}])))
        shown = capsys.readouterr().out
        for word in ("strange news", "technology and society", "given_label", "predicted_label", own.get("id", " 7 ")):
            assert word in shown, shown
        assert max(map(len, shown.splitlines())) <= width
        assert ("a text that" in shown) == ("text" in own)
        assert "…" in shown or "text" not in own
