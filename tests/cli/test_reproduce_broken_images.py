"""`crust reproduce` on a folder with a broken image: refused, or without it; what a run is does not change."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from tests.cli.common import call

from crust.experiments import key, read_results
from crust.experiments.grid_file import read_grid

GRID = "scale: smoke\nlabels: true\nmethod: erm\nlimit: null\nepochs: 1\nmodel: mlp\nseeds: 2\n"


def pictures(root):
    rng = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 3)):
        for name in ("cat", "dog"):
            (root / part / name).mkdir(parents=True)
            for i in range(count):
                image = Image.fromarray(rng.integers(256, size=(8, 8, 3), dtype=np.uint8))
                image.save(root / part / name / f"{i:02d}.png")
    (root / "train/cat/05.png").write_bytes(b"no image")


def test_broken_images_are_left_out_on_request(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pictures(Path("images"))
    Path("grid.yaml").write_text(f"{GRID}data: [images, digits]\n")
    assert call("reproduce --grid grid.yaml -q") == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "05.png cannot be read as an image" in shown
    assert "--skip-broken" in shown
    assert call("reproduce --grid grid.yaml --skip-broken --skip-missing") == 0
    shown = capsys.readouterr()
    assert "4 of 4 runs are there" in shown.out
    assert shown.err.count("05.png is broken") == 1
    lines = read_results("runs/grid/results.jsonl")
    assert {line["key"] for line in lines} == {key(spec) for spec in read_grid("grid.yaml")}
    assert all(line["skip_broken"] for line in lines)
    # What is there counts without the option too.
    assert call("reproduce --grid grid.yaml -q") == 0


def test_it_reaches_other_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures(Path("images"))
    Path("grid.yaml").write_text(f"{GRID}data: images\n")
    assert call("reproduce --grid grid.yaml --skip-broken -q --jobs 2") == 0
    assert len(Path("runs/grid/results.jsonl").read_text().splitlines()) == 2


def test_nothing_says_so_where_nothing_was_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text("scale: smoke\nlabels: true\nmethod: erm\nlimit: 100\nepochs: 1\n")
    assert call("reproduce --grid grid.yaml -q") == 0
    assert "skip_broken" not in json.loads(Path("runs/grid/results.jsonl").read_text())
