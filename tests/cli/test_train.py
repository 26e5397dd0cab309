"""`crust train`, `predict`, `audit` and `methods` from end to end, and one sentence for everything that is wrong."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.cli.common import call

from crust._util import progress
from crust.methods import METHODS
from crust.runs import recipe
from crust.training.settings import TrainSettings, split_settings

SMALL = "digits --model mlp --limit 300 --batch-size 32 --epochs 2"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run, and one that stopped after its first epoch."""
    folder = tmp_path_factory.mktemp("made")
    assert call(f"train {SMALL} --noise symmetric:0.4 -q -o {folder}/run") == 0
    assert call(f"train {SMALL} --noise symmetric:0.4 -q -o {folder}/half --set stop_after=1") == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A fresh folder with both runs and some bad files in it, as the current one."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    np.savez("labels.npz", short=np.zeros(299, int), human=np.arange(1297) % 10, far=np.full(1297, 11))
    (folder / "table.csv").write_text("a,b,kind\n" + "\n".join(f"{i},{i % 3},{i % 2}" for i in range(40)))
    (folder / "images").mkdir()
    (folder / "list.yaml").write_text("- 1\n- 2\n")
    (folder / "broken.yaml").write_text("a: [1\n")
    (folder / "file").write_text("in the way")
    return folder


def test_a_run_leaves_what_it_should(here):
    assert {path.name for path in (here / "run").iterdir()} == {
        ".lock", "audit.parquet", "checkpoint", "config.yaml", "encoding.json", "history.jsonl", "model.safetensors",
        "noise.npz", "probabilities.npy", "recipe.yaml",
    }  # fmt: skip
    lines = [json.loads(line) for line in (here / "run/history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1]
    assert all("clean_fraction" in line and "test_accuracy" in line for line in lines)
    full = yaml.safe_load((here / "run/recipe.yaml").read_text())
    assert set(full) >= {*TrainSettings.model_fields, *METHODS["crust"].Settings.model_fields} - {"stop_after"}
    assert full["noise"] == "symmetric:0.4"


def test_lines_and_summary(here, capfd):
    assert call(f"train {SMALL} --method erm --set learning_rate=0.05") == 0
    shown = capfd.readouterr()
    lines = [line for line in shown.err.splitlines() if line.startswith("epoch")]
    assert len(lines) == 2
    assert re.match(r"epoch 1/2 · test [\d.]+ % · val [\d.]+ % · .* left$", lines[0])
    assert re.search(r"test accuracy: last [\d.]+ %, mean of the last ten [\d.]+ %, best [\d.]+ %", shown.out)
    assert shown.out.endswith("next: crust audit runs/digits-erm-1\n")
    assert (here / "runs/digits-erm-1/model.safetensors").exists()


def test_resume_reaches_the_same_end(here, capsys):
    assert call(f"train {SMALL} --noise symmetric:0.4 -o half") == 2
    assert re.search("half holds a run already, .* --resume", capsys.readouterr().err)
    assert call(f"train {SMALL} --noise symmetric:0.4 --seed 1 -o half") == 2
    assert "another run, with seed (was 0, is 1)" in capsys.readouterr().err
    assert call("train --resume -q -o half") == 0
    assert capsys.readouterr().out == ""
    assert (here / "half/model.safetensors").read_bytes() == (here / "run/model.safetensors").read_bytes()
    assert call("train --resume --set weight_decay=0 -o half") == 2
    assert "weight_decay (was " in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(here, capsys, monkeypatch):
    with monkeypatch.context() as patched:

        def stop(self, line):
            self.finished = line["epoch"] + 1
            raise KeyboardInterrupt

        patched.setattr(progress.EpochProgress, "__call__", stop)
        assert call(f"train {SMALL} --method erm -o stopped") == 130
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown == "crust: stopped; epoch 1 of 2 is saved, go on with: crust train --resume -o stopped"
    assert call("train --resume -q -o stopped") == 0
    assert len((here / "stopped/history.jsonl").read_text().splitlines()) == 2


def test_predict(here, capsys):
    assert call("predict run digits -o out.csv") == 0
    shown = capsys.readouterr().out
    assert re.search(r"accuracy on 500 examples with labels: [\d.]+ %", shown)
    table = pd.read_csv("out.csv")
    assert table.shape == (500, 14)
    np.testing.assert_allclose(table.filter(like="p(").sum(axis=1), 1)
    assert call("predict run digits -q -o out.parquet") == 0
    assert (pd.read_parquet("out.parquet")["predicted"] == table["predicted"]).all()
    assert call("predict run digits") == 0
    assert "490 more" in capsys.readouterr().out


def test_audit(here, capsys):
    assert call("audit run --top 5 -o table.parquet") == 0
    shown = capsys.readouterr().out
    assert "the labels of the lowest quality" in shown
    assert re.search(r"[\d.]+ % of 300 labels differ from the predicted ones", shown)
    table = pd.read_parquet("table.parquet")
    assert len(table) == 300
    assert table["label_quality"].is_monotonic_increasing


def test_text_labels_from_a_table(here, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{v + 3 * (v > 0):.3f},{'[b]cat' if v > 0 else 'dog'}" for v in rng.normal(size=80)]
    (here / "pets.csv").write_text("\n".join(["size,label", *rows]))
    assert call("train pets.csv --epochs 2 --method erm --set weight_decay=0 -q -o pets") == 0
    assert call("audit pets --top 3") == 0
    assert "[b]cat" in capsys.readouterr().out
    assert call("predict pets pets.csv -q -o out.csv") == 0
    assert set(pd.read_csv("out.csv")["predicted"]) <= {"[b]cat", "dog"}


def test_labels_from_a_file(here):
    words = f"train {SMALL} --method erm --labels labels.npz:human --true-labels labels.npz:human -q -o human"
    assert call(words) == 0
    lines = [json.loads(line) for line in (here / "human/history.jsonl").read_text().splitlines()]
    assert [line["clean_fraction"] for line in lines] == [1.0, 1.0]


def test_methods(capsys):
    assert call("methods") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in METHODS)
    assert "all true labels" in shown
    assert call("methods crust") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in [*METHODS["crust"].Settings.model_fields, *TrainSettings.model_fields])


def test_every_setting_says_what_it_means(capsys):
    from crust.cli.methods import setting_rows

    kinds = [TrainSettings, *(kind.Settings for kind in METHODS.values())]
    assert not [(kind.__name__, row[0]) for kind in kinds for row in setting_rows(kind) if not row[3]]
    assert call("methods crust-paper") == 0  # a variant says what the settings mean that it takes over
    assert "size of the coreset" in " ".join(capsys.readouterr().out.split())


def test_methods_for_machines(capsys):
    assert call("methods gce --json") == 0
    (gce,) = json.loads(capsys.readouterr().out)
    assert gce["method"] == "gce"
    assert [row["setting"] for row in gce["settings"]] == ["q"]
    assert call("methods --json") == 0
    assert [each["method"] for each in json.loads(capsys.readouterr().out)] == list(METHODS)


@pytest.mark.parametrize("name", recipe.recipe_names())
def test_recipes_have_every_setting(name):
    found = recipe.read_recipe(name)
    kind = METHODS[found["method"]]
    settings = {key: value for key, value in found.items() if key not in recipe.OPTIONS}
    assert set(settings) == {*TrainSettings.model_fields, *kind.Settings.model_fields} - {"stop_after", "device"}
    experiment, own = split_settings(settings, kind.Settings)
    assert kind(own).settings.fraction == 0.5
    where = {"cifar10-paper": (80, 100), "webvision-paper": (30, 60)}[name]
    rates = [experiment.rate_at(epoch, experiment.epochs) for epoch in range(experiment.epochs)]
    assert tuple(i for i in range(1, len(rates)) if rates[i] != rates[i - 1]) == where


def test_another_method_leaves_out_the_settings_of_the_recipes_own():
    options, settings = recipe.merge_recipe(recipe.read_recipe("cifar10-paper"), {"method": "erm"}, {"epochs": 3})
    assert (options["method"], settings["epochs"], settings["momentum"]) == ("erm", 3, 0.9)
    assert "fraction" not in settings


WRONG = {
    "train": r"nothing to train on",
    "train digits --method crst": r"unknown method 'crst'.*did you mean 'crust'",
    "train digits --model resnet33": r"unknown model 'resnet33'.*did you mean",
    "train digits --set lr=0.5": r"unknown setting 'lr': it is learning_rate here",
    "train digits --device cuda:77": r"device 'cuda:77' is not there",
    "train digits --set fractio=0.5": r"unknown setting 'fractio'.*did you mean 'fraction'",
    "train digits --set fraction": r"--set fraction has no value",
    "train digits --set fraction=2": r"fraction is 2",
    "train digits --fraction most": r"fraction.* is 'most'",
    "train digits --epochs 0": r"epochs is 0",
    "train digits --mixed-precision half": r"mixed_precision is 'half'",
    "train digits --noise symetric:0.5": r"unknown noise 'symetric'.*did you mean 'symmetric'",
    "train digits --noise symmetric:1.5": r"1\.5",
    "train digits --noise symmetric:0.5 --labels labels.npz:human": r"leave out --labels",
    "train digits --labels labels.npz:short": r"short holds 299 labels, but there are 1297 examples",
    "train digits --labels labels.npz:far": r"11",
    "train digits --labels labels.npz:humn": r"did you mean 'human'",
    "train digits --labels nowhere.npz:a": r"there is no file nowhere.npz",
    "train digits --validation 1.5": r"validation share is 1\.5",
    "train digits --method oracle --limit 300 --model mlp": r"oracle needs true labels",
    "train digits --limit 0": r"limit is 0",
    "train digits --model mlp --limit 300 -o file": r"file is a file: name a folder",
    "train digits --recipe cifar10": r"unknown recipe 'cifar10'.*did you mean 'cifar10-paper'",
    "train digits --recipe nowhere.yaml": r"cannot read the recipe nowhere.yaml: no such file",
    "train digits --recipe list.yaml": r"list.yaml is no recipe",
    "train digits --recipe broken.yaml": r"broken.yaml is no YAML",
    "train digits --label-column a": r"digits has no columns",
    "train nowhere": r"there is no file or folder nowhere",
    "train images": r"images has no class folders",
    "train table.csv": r"table.csv has no column 'label'.*--label-column",
    "train table.csv --label-column knd": r"did you mean 'kind'",
    "train --resume": r"name its folder with -o",
    "train --resume -o nowhere": r"no run in nowhere",
    "predict nowhere digits": r"there is no folder nowhere",
    "predict run table.csv": r"does not hold images",
    "predict run nowhere.npz": r"there is no file or folder nowhere.npz",
    "predict run digits -o out.txt": r"must end in .csv or .parquet",
    "audit nowhere": r"there is no folder nowhere",
    "audit images": r"images holds no run",
    "methods crst": r"did you mean 'crust'",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_input_gets_one_sentence(here, capsys, words):
    assert call(words) == 2
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert shown.startswith("crust: ")
    assert re.search(WRONG[words], shown), shown


def test_images_in_folders_with_a_broken_one(here, capsys):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (here / "images" / name).mkdir()
        for i in range(12):
            Image.fromarray(rng.integers(256, size=(8, 8, 3), dtype=np.uint8)).save(f"images/{name}/{i:02d}.png")
    (here / "images/cat/05.png").write_bytes(b"no image")
    words = "train images --epochs 1 --method erm -q -o pictures"
    assert call(words) == 2
    assert re.search(r"05.png cannot be read as an image.*--skip-broken", capsys.readouterr().err)
    assert call(f"{words} --skip-broken") == 0
    assert call("predict pictures images --skip-broken -q -o out.csv") == 0
    table = pd.read_csv("out.csv")
    assert len(table) == 23
    assert table["id"][0] == "cat/00.png"
    assert call("audit pictures") == 0
    assert "cat/00.png" in capsys.readouterr().out


def test_an_unfinished_run_has_no_audit(here, capsys):
    (here / "half/audit.parquet").unlink()
    assert call("audit half") == 2
    assert "half holds no audit yet: let the run end with crust train --resume -o half" in capsys.readouterr().err
