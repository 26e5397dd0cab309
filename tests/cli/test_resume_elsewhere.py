"""A run that was given relative paths goes on from any folder, even when it has been moved."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.cli.common import call

from crust.runs import recipe


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with a table, other labels for it, and a matrix of noise; another folder beside it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}" for a, b in rng.normal(size=(60, 2))]
    Path("table.csv").write_text("\n".join(["a,b,label", *rows]))
    Path("more.csv").write_text("\n".join(["a,b,label", *rows[:20]]))
    np.savez("human.npz", worse=rng.integers(2, size=60))
    np.save("T.npy", np.array([[0.8, 0.2], [0.3, 0.7]]))
    return folder


@pytest.mark.parametrize(
    "options", ["--labels human.npz:worse --true-labels human.npz:worse", "--noise matrix:T.npy", "--test more.csv"]
)
def test_the_same_end_from_another_folder(work, monkeypatch, options):
    words = f"train table.csv --method erm --epochs 2 --set learning_rate=0.01 -q {options}"
    assert call(f"{words} -o whole") == 0
    assert call(f"{words} -o half --set stop_after=1") == 0
    monkeypatch.chdir(work.parent / "else")
    shutil.move(work / "half", "moved")
    assert call("train --resume -q -o moved") == 0
    assert Path("moved/model.safetensors").read_bytes() == (work / "whole/model.safetensors").read_bytes()


def test_names_stay_names_and_the_data_folder_is_kept(work, monkeypatch):
    monkeypatch.delenv("CRUST_DATA", raising=False)
    assert recipe.absolute_paths({"data": "digits", "noise": "symmetric:0.5"}) == {
        "data": "digits",
        "noise": "symmetric:0.5",
    }
    assert recipe.absolute_paths({"data": "cifar10"}) == {"data": "cifar10", "data_dir": str(work / "data")}
    monkeypatch.setenv("CRUST_DATA", "sets")
    assert recipe.absolute_paths({"data": "cifar10"})["data_dir"] == str(work / "sets")
    assert recipe.absolute_paths({"data": "cifar10", "data_dir": "mine"})["data_dir"] == str(work / "mine")
    Path("digits").mkdir()
    assert recipe.absolute_paths({"data": "digits", "test": "digits"}) == {
        "data": "digits",
        "test": str(work / "digits"),
    }
    assert yaml.safe_load(recipe.recipe_text({"data": "a.csv"}, *settings()))["data"] == str(work / "a.csv")


def settings():
    from crust.methods import METHODS
    from crust.training.settings import split_settings

    return split_settings({}, METHODS["erm"].Settings)
