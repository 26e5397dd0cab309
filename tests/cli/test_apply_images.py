"""Corrections of image folders: odd file names, moves and back, what is shown, and commands that work as printed."""

import csv
import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from tests.cli.common import FAST, call, decided, packed, said
from tests.cli.image_runs import folder_run, images, run_of

from crust._util.output_files import write_table
from crust.corrections import move_image_files as moving
from crust.corrections.move_image_files import Move, plan_moves, read_moves, write_moves
from crust.data import table_io
from crust.data.image_folder import check_inside
from crust.errors import InputError
from crust.report.previews import Gone
from crust.runs.data import looks_of
from crust.runs.folder import RunFolder


def after(out, word):
    """The command that stands behind a word, as `call` takes it."""
    return shlex.split(re.search(rf"{word}: crust ([^;\n]*)", out)[1])


# --- file names


ODD = "a\rb.png"
# Commas, quotes and line feeds have quotes around them anyway.
ODDER = 'a\r"b", c\n d.png'


@pytest.mark.parametrize("odd", [ODD, ODDER])
def test_a_file_name_with_a_carriage_return_goes_there_and_back(tmp_path, monkeypatch, odd):
    monkeypatch.chdir(tmp_path)
    images(tmp_path / "images", ("cat", "dog"))
    Path("images/cat/00.png").rename(f"images/cat/{odd}")
    assert call(f"train images {FAST} -o run") == 0
    table, _ = RunFolder("run").audit()
    row = table["id"].tolist().index(f"cat/{odd}")
    decided("run", **{f"e{row}": "dog"})
    assert call("review run --export c.csv -q") == 0
    assert call("apply run c.csv --move -q") == 0
    assert Path(f"images/dog/{odd}").is_file()
    assert call("apply run --move-back -q") == 0
    assert Path(f"images/cat/{odd}").is_file()
    # and by a file of labels
    table[["id", "given_label"]].rename(columns={"given_label": "label"}).to_parquet("labels.parquet")
    assert call(f"train images --labels labels.parquet {FAST} -o named") == 0
    decided("named", **{f"e{row}": "dog"})
    assert call("apply named -q") == 0
    assert call(f"train images --labels named/corrected.csv {FAST} -o again") == 0
    assert RunFolder("again").audit()[0]["given_label"][row] == "dog"


def test_tables_have_quotes_only_where_they_need_them(tmp_path):
    write_table(pd.DataFrame({"id": ["a", "b"], "n": [1, 2]}), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b"id,n\na,1\nb,2\n"
    odd = pd.DataFrame({"id": [ODD, "b"], "n": [1.5, None], "corrected": ["01", None]})
    write_table(odd, tmp_path / "b.csv")
    with (tmp_path / "b.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["id", "n", "corrected"], [ODD, "1.5", "01"], ["b", "", ""]]
    assert table_io.read_table_file(tmp_path / "b.csv").column("id").to_pylist() == [ODD, "b"]


def test_a_list_that_does_not_read_back_stops_before_the_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(moving, "read_moves", lambda path: [])
    with pytest.raises(InputError, match="does not hold the moves as they were written: nothing was moved"):
        write_moves([Move(0, "cat/a.jpg", "dog/a.jpg")], tmp_path / "moves.csv")


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_backslash_is_a_letter_here(tmp_path, monkeypatch):
    (tmp_path / "images/cat").mkdir(parents=True)
    (tmp_path / "images/cat/a\\b:1.png").write_text("a cat?")
    audit = pd.DataFrame({"index": [0], "id": ["cat/a\\b:1.png"], "given_label": ["cat"]})
    found = plan_moves(tmp_path / "images", audit, {0: 1}, ["cat", "dog"])
    assert [one.new for one in found] == ["dog/a\\b:1.png"]
    write_moves(found, tmp_path / "moves.csv")
    assert read_moves(tmp_path / "moves.csv") == found


@pytest.mark.parametrize("name", ["cat/a\\b.png", "C:/secret/a.png", "cat/..\\..\\a.png"])
def test_on_windows_it_is_a_slash(monkeypatch, name):
    monkeypatch.setattr("crust.data.image_folder.WINDOWS", True)
    with pytest.raises(InputError, match="is no image in a class folder"):
        check_inside(name)


# --- images that are shown


@pytest.mark.parametrize("name", ["../secret.png", "cat/../../secret.png", "/{}/secret.png", "secret.png"])
def test_no_image_outside_of_the_folder_is_shown(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    images(tmp_path / "images", ("cat", "dog"))
    name = name.format(tmp_path)
    for place in (tmp_path, tmp_path / "images"):
        Image.new("RGB", (8, 8)).save(place / "secret.png")
    run = run_of(tmp_path / "run", ["cat/00.png", name], ["cat", "dog"], tmp_path / "images", ["cat", "dog"])
    table, _ = RunFolder(run).audit()
    with pytest.raises(InputError, match=r"secret.png' is no image in a class folder"):
        looks_of(RunFolder(run), table)
    assert call("report run") == 0
    assert "is no image in a class folder" in capsys.readouterr().out
    assert packed("run/report.html")["pictures"] == {}


def test_links_in_the_folder_may_lead_outside(tmp_path):
    run = folder_run(tmp_path)
    (tmp_path / "images/cat/00.png").rename(tmp_path / "elsewhere.png")
    (tmp_path / "images/cat/00.png").symlink_to(tmp_path / "elsewhere.png")
    assert looks_of(RunFolder(run), RunFolder(run).audit()[0]).picture(0).size == (8, 8)


def test_moved_images_are_shown_where_they_are_now(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = folder_run(tmp_path)
    before = looks_of(RunFolder(run), RunFolder(run).audit()[0]).picture(0).tobytes()
    Path("c.csv").write_text("index,corrected\n0,dog\n9,cat\n")
    assert call("apply run c.csv --move -q") == 0
    assert not Path("images/cat/00.png").exists()
    looks = looks_of(RunFolder(run), RunFolder(run).audit()[0])
    assert looks.missing is None
    assert looks.picture(0).tobytes() == before
    assert call("report run") == 0
    assert all(packed("run/report.html")["pictures"].values())
    assert capsys.readouterr().err == ""
    Path("images/dog/00-2.png").unlink()
    (run / "moves.csv").write_text("no list")
    assert looks_of(RunFolder(run), RunFolder(run).audit()[0]).missing.startswith("2 of 16 images are no longer in ")


def test_an_image_that_is_gone_is_said_to_be(tmp_path):
    run = folder_run(tmp_path)
    (tmp_path / "images/cat/00.png").unlink()
    (tmp_path / "images/cat/01.png").write_text("no image")
    looks = looks_of(RunFolder(run), RunFolder(run).audit()[0])
    with pytest.raises(Gone, match=r"cat/00.png is no longer there"):
        looks.picture(0)
    with pytest.raises(InputError, match="cannot be read as an image"):
        looks.picture(1)
    assert looks.picture(2).size == (8, 8)
    assert call(f"report {run} -q") == 0
    found = packed(run / "report.html")["pictures"]
    assert (found["0"], found["1"]) == ("", None)
    assert all(picture for index, picture in found.items() if index not in ("0", "1"))


# --- what is said


def test_moves_that_are_made_are_not_still_to_be_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder_run(tmp_path)
    Path("c.csv").write_text("index,corrected\n0,dog\n9,cat\n")
    assert call("apply run c.csv") == 0
    assert (
        "2 moves listed in: run/moves.csv; nothing is moved yet\nnext: crust apply run c.csv --move\n"
        in capsys.readouterr().out
    )
    assert call("apply run c.csv --move -q") == 0
    assert call("apply run c.csv") == 0
    out = capsys.readouterr().out
    assert "2 moves listed in: run/moves.csv; 2 of them made before\nback: crust apply run --move-back; next: " in out
    Path("images/dog/00-2.png").rename("images/cat/00.png")
    assert call("apply run c.csv") == 0
    out = capsys.readouterr().out
    assert "2 moves listed in: run/moves.csv; 1 of them made before\nnext: crust apply run c.csv --move" in out


def test_the_way_back_is_told_in_full(tmp_path, monkeypatch, capsys):
    """With the list and the folder that were named, in quotes where the shell needs them."""
    monkeypatch.chdir(tmp_path)
    run = folder_run(tmp_path, image_size=8, skip_broken=True)
    run.rename(tmp_path / "my run")
    Path("images").rename("my images")
    Path("c.csv").write_text("index,corrected\n0,dog\n")
    words = ["apply", "my run", "c.csv", "--move", "--data", "my images"]
    assert call([*words, "-o", "my moves.csv"]) == 0
    out = capsys.readouterr().out
    assert "next: crust train 'my images' --image-size 8 --skip-broken --model small_cnn --method erm" in out
    Path("c2.csv").write_text("index,corrected\n1,dog\n")
    other = ["apply", "my run", "c2.csv", "--data", "my images", "-o", "my moves.csv"]
    said(capsys, other, r"go back first with crust apply 'my run' --data 'my images' --move-back -o 'my moves.csv'")
    assert call(after(out, "back")) == 0
    assert "1 files moved back" in capsys.readouterr().out
    assert Path("my images/cat/00.png").is_file()
    assert call([*after(out, "next"), *FAST.split(), "-o", "again"]) == 0


def test_the_next_training_reads_the_data_as_the_run_did(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": range(40), "the kind": ["cat", "dog"] * 20}).to_csv("my table.csv", index=False)
    options = ["--label-column", "the kind", "--noise", "symmetric:0.2", "--limit", "30"]
    assert call(["train", "my table.csv", *options, *FAST.split(), "-o", "run"]) == 0
    table, _ = RunFolder("run").audit()
    decided("run", e0="dog" if table["given_label"][0] == "cat" else "cat")
    assert call("apply run") == 0
    out = capsys.readouterr().out
    assert "--label-column 'the kind' --limit 30 --model " in out
    assert out.endswith(" --labels run/corrected.csv --after run\n")
    assert call([*after(out, "next"), *FAST.split(), "-o", "again"]) == 0
    assert RunFolder("again").audit()[0]["given_label"][0] != table["given_label"][0]
    run_of(tmp_path / "named", ["a", "b"], ["cat", "dog"], "cifar10", ["cat", "dog"], data_dir="/my data")
    Path("c.csv").write_text("index,corrected\n0,dog\n")
    assert call("apply named c.csv") == 0
    out = capsys.readouterr().out
    assert "crust train cifar10 --data-dir '/my data' --model small_cnn --method erm --epochs 1 --labels named" in out
