"""`crust report` and `crust apply`, from end to end, and one sentence for what is wrong."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.cli.common import FAST, call, decided, packed, said

from crust.review import Change, Store, run_key
from crust.runs.folder import RunFolder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on every kind of data."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    frame = pd.DataFrame({"a": x[:, 0].round(3), "town": ["Ulm", "Bonn"] * 30, "kind": np.where(y, "dog", "cat")})
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet")
    np.savez(folder / "arrays.npz", x=x, y=y)
    for i in range(40):
        place = folder / "images" / ("dog" if i % 2 else "cat")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(256, size=(16, 16, 3), dtype=np.uint8)).save(place / f"{i:02d}.png")
    runs = {
        "digits-run": "digits --limit 300 --noise symmetric:0.4",
        "csv-run": f"{folder}/table.csv --label-column kind",
        "parquet-run": f"{folder}/table.parquet --label-column kind",
        "npz-run": f"{folder}/arrays.npz",
        "images-run": f"{folder}/images",
    }
    for name, words in runs.items():
        assert call(f"train {words} {FAST} -o {folder}/{name}") == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A fresh copy of all of it, as the current folder; the recipes name the data by its old, absolute place."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    for path in folder.glob("*/recipe.yaml"):
        path.write_text(path.read_text().replace(str(made), str(folder)))
    monkeypatch.chdir(folder)
    return folder


# --- the report


@pytest.mark.parametrize(
    ("run", "shown"),
    [
        ("digits-run", "pictures"),
        ("images-run", "pictures"),
        ("csv-run", "rows"),
        ("parquet-run", "rows"),
        ("npz-run", "rows"),
    ],
)
def test_a_report_of_every_kind_of_data(here, capsys, run, shown):
    assert call(f"report {run}") == 0
    assert capsys.readouterr().out == f"look at: {run}/report.html\nnext: crust review {run}\n"
    found = packed(here / run / "report.html")
    assert len(found[shown]) == found["count"] == found["total"] > 30
    if run == "csv-run":
        assert found["columns"] == ["a", "town"]
        first = pd.read_csv("table.csv").iloc[7]
        assert found["rows"]["7"] == [f"{first['a']:.6g}", first["town"]]


def test_a_report_without_the_data_says_so(here, capsys):
    (here / "images/cat/00.png").unlink()
    assert call("report images-run -o page.html") == 0
    assert re.search(r"^1 of 40 images are no longer in .*, such as cat/00.png", capsys.readouterr().err)
    found = packed("page.html")["pictures"]
    assert [index for index, picture in found.items() if not picture] == ["0"]
    assert len(found) == 40
    text = Path("page.html").read_text(encoding="utf-8")
    assert re.search(r"1 of 40 images are no longer in .*\. All others have their picture in this file", text)
    (here / "images").rename(here / "gone")
    (here / "images/cat").mkdir(parents=True)
    assert call("report images-run -o page.html") == 0
    out = capsys.readouterr().out
    assert re.search(
        r"without pictures or rows: none of the 40 names leads to an image below .*, such as cat/00.png", out
    )
    assert packed("page.html")["pictures"] == {}
    text = (here / "table.csv").read_text()
    head, *lines = text.splitlines()
    (here / "table.csv").write_text("\n".join([head, *reversed(lines)]))
    assert call("report csv-run") == 0
    assert "table.csv is not what the run in csv-run was trained on" in capsys.readouterr().out
    assert packed("csv-run/report.html")["rows"] == {}
    said(capsys, "report csv-run --data table.csv", "is not what the run in csv-run was trained on")
    (here / "old.csv").write_text(text)
    assert call("report csv-run --data old.csv -q") == 0
    assert len(packed("csv-run/report.html")["rows"]) == 60
    (here / "npz-run/recipe.yaml").unlink()
    assert call("report npz-run") == 0
    assert "npz-run does not say what it was trained on" in capsys.readouterr().out


def test_what_a_report_cannot_be(here, capsys):
    said(capsys, "report nowhere", "there is no folder nowhere")
    said(capsys, "report csv-run -o page.csv", r"-o page.csv: the name must end in .html")
    (here / "csv-run/verified.json").write_text('{"version": 99}')
    said(capsys, "report csv-run", r"verified.json is of version 99")


def test_a_report_without_a_run(here, capsys):
    rng = np.random.default_rng(0)
    np.save("probs.npy", rng.dirichlet(np.ones(3), size=30))
    np.save("labels.npy", rng.integers(3, size=30))
    np.save("images.npy", rng.integers(256, size=(30, 9, 9, 3), dtype=np.uint8))
    np.save("features.npy", rng.normal(size=(30, 4)))
    (here / "texts.txt").write_text("".join(f"text <{i}>\n" for i in range(30)))
    words = "report --probs probs.npy --labels labels.npy"
    assert call(words) == 0
    assert "look at: probs.report.html\n" in capsys.readouterr().out
    assert call(f"{words} -o a.html") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == ["look at: a.html", "next: crust review --probs probs.npy --labels labels.npy"]
    assert packed("a.html")["rows"] == packed("a.html")["pictures"] == {}
    assert call(f"{words} -o a.html -q --data texts.txt") == 0
    assert packed("a.html")["rows"]["7"] == ["text <7>"]
    assert call(f"{words} -o a.html -q --data images.npy") == 0
    assert len(packed("a.html")["pictures"]) == 30
    assert call("report --features features.npy --labels labels.npy -o a.html -q --data features.npy") == 0
    assert packed("a.html")["columns"] == ["x0", "x1", "x2", "x3"]
    said(capsys, f"{words} -o a.html --data table.csv", r"table.csv has 60 examples, but there are 30 labels")
    said(capsys, f"{words} -o a.html --data none.txt", r"cannot read none.txt: no such file or directory")
    said(capsys, f"{words} -o a.csv", r"-o a.csv: the name must end in .html")


# --- applying


def test_csv_comes_back_as_csv(here, capsys):
    decided("csv-run", e0="dog", e7="cat")
    assert call("apply csv-run") == 0
    out = capsys.readouterr().out
    assert "2 of 60 labels changed, written to: csv-run/corrected.csv" in out
    assert "next: crust train csv-run/corrected.csv --label-column kind" in out
    old, new = ((here / name).read_text().splitlines() for name in ("table.csv", "csv-run/corrected.csv"))
    assert [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b] == [1, 8]
    assert new[1] == old[1].replace("cat", "dog")
    assert call(f"train csv-run/corrected.csv --label-column kind {FAST} -o again") == 0
    assert RunFolder("again").audit()[0]["given_label"].tolist()[:2] == ["dog", "dog"]
    said(capsys, f"apply csv-run -o {here}/table.csv", "would overwrite what is read")
    said(capsys, "apply csv-run -o x.parquet", r"the name must end in .csv")
    said(capsys, "apply csv-run --move", "only images in class folders can be moved")


def test_parquet_and_npz_come_back_in_kind(here):
    decided("parquet-run", e0="dog")
    assert call("apply parquet-run -q") == 0
    assert pd.read_parquet("parquet-run/corrected.parquet")["kind"].tolist()[:2] == ["dog", "dog"]
    decided("npz-run", e0="1")
    assert call("apply npz-run -o new.npz -q") == 0
    with np.load("new.npz") as new, np.load("arrays.npz") as old:
        assert new["y"].tolist() == [1, *old["y"].tolist()[1:]]
        assert np.array_equal(new["x"], old["x"])


def test_named_data_gets_a_labels_file_that_training_takes(here, capsys):
    table, _ = RunFolder("digits-run").audit()
    decided("digits-run", e3=str((table["given_label"][3] + 1) % 10))
    assert call("apply digits-run") == 0
    told = "crust train digits --limit 300 --model mlp"
    out = capsys.readouterr().out
    assert f"next: {told}" in out
    assert out.endswith("--labels digits-run/corrected.csv --after digits-run\n")
    told = f"{told} --labels digits-run/corrected.csv"
    assert call(f"{told.removeprefix('crust ')} {FAST} -o again") == 0
    expected = table["given_label"].tolist()
    expected[3] = (expected[3] + 1) % 10
    assert RunFolder("again").audit()[0]["given_label"].tolist() == expected
    said(capsys, f"train digits --labels digits-run/corrected.csv {FAST} -o more", "has no label for the example 300")
    # and the run on corrected labels is corrected in its turn
    decided("again", e4=str((table["given_label"][4] + 1) % 10))
    assert call("apply again -q") == 0
    expected[4] = (expected[4] + 1) % 10
    assert pd.read_csv("again/corrected.csv")["label"].tolist() == expected


def test_exported_corrections_do_the_same(here, capsys):
    decided("csv-run", e0="dog", e7="cat")
    assert call("review csv-run --export corrections.csv") == 0
    assert "2 decisions, 2 of them new labels, written to: corrections.csv" in capsys.readouterr().out
    found = pd.read_csv("corrections.csv")
    assert found.columns.tolist() == ["index", "given", "decision", "corrected", "reason", "note", "who", "at"]
    assert call("apply csv-run corrections.csv -o a.csv -q") == 0
    assert call("apply csv-run csv-run/review.sqlite -o b.csv -q") == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != Path("table.csv").read_bytes()


def test_image_folders_get_a_list_and_move_only_when_asked(here, capsys):
    decided("images-run", e0="dog", e39="cat")
    before = sorted(path.name for path in Path("images/cat").iterdir())
    assert call("apply images-run") == 0
    assert "2 moves listed in: images-run/moves.csv; nothing is moved yet" in capsys.readouterr().out
    assert sorted(path.name for path in Path("images/cat").iterdir()) == before
    first = Path("images/cat/00.png").read_bytes()
    assert call("apply images-run --move") == 0
    assert "2 files moved, as listed in images-run/moves.csv" in capsys.readouterr().out
    assert Path("images/dog/00.png").read_bytes() == first
    assert not Path("images/cat/00.png").exists()
    assert Path("images/cat/39.png").exists()
    assert call("apply images-run --move") == 0  # again: nothing is left to do
    assert "0 files moved, as listed in images-run/moves.csv; 2 had been before" in capsys.readouterr().out
    # other corrections only after going back: the audit knows the files by their old places
    table, classes = RunFolder("images-run").audit()
    store = Store("images-run/review.sqlite", run_key(table, classes))
    store.decide([Change(1, 0, "relabel", 1)], who="first")
    store.close()
    said(capsys, "apply images-run --move", "lists other moves, and some of them are made")
    assert call("apply images-run --move-back") == 0
    assert "2 files moved back" in capsys.readouterr().out
    assert sorted(path.name for path in Path("images/cat").iterdir()) == before
    assert call("apply images-run --move -q") == 0
    assert len(list(Path("images/dog").iterdir())) == 21
    assert call(f"train images {FAST} -o again") == 0


def test_image_folders_with_labels_of_their_own_get_a_labels_file(here, capsys):
    table, _ = RunFolder("images-run").audit()
    table[["id", "given_label"]].rename(columns={"given_label": "label"}).to_csv("labels.csv", index=False)
    assert call(f"train images --labels labels.csv {FAST} -o named-run") == 0
    decided("named-run", e0="dog")
    assert call("apply named-run -q") == 0
    new = pd.read_csv("named-run/corrected.csv")
    assert (new.columns.tolist(), new["label"][0]) == (["id", "label"], "dog")
    assert call(f"train images --labels named-run/corrected.csv {FAST} -o again") == 0
    assert RunFolder("again").audit()[0]["given_label"][0] == "dog"


def test_what_cannot_be_applied(here, capsys):
    said(capsys, "apply csv-run", "csv-run has no review yet: begin one with crust review csv-run")
    said(capsys, "apply csv-run nothing", "there are no corrections nothing: give a .csv or .parquet file")
    said(capsys, "apply images-run --move --move-back", "leave out --move and the corrections")
    said(capsys, "apply csv-run --move-back", "is not of an image folder")
    said(capsys, "apply images-run --move-back", "there is no list of moves")
    (here / "bad.csv").write_text("index,corrected\n99,dog\n")
    said(capsys, "apply csv-run bad.csv", r"row 0 of bad.csv names the example 99")
    (here / "same.csv").write_text("index,corrected\n0,cat\n")
    said(capsys, "apply csv-run same.csv", "none of the corrections changes a label")
    (here / "good.csv").write_text("index,corrected\n0,dog\n")
    (here / "table.csv").rename(here / "elsewhere.csv")
    said(
        capsys,
        "apply csv-run good.csv",
        r"there is no file or folder .*table.csv, which the run was trained on",
    )
    assert call("apply csv-run good.csv --data elsewhere.csv -q") == 0
    decided("csv-run", e0="dog")
    shutil.copy("csv-run/review.sqlite", "npz-run/review.sqlite")
    said(capsys, "apply npz-run", "is the review of another audit")
