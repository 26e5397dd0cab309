"""mini WebVision from end to end: the paper's recipe on a small set in the layout of the real one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from tests.cli.common import call
from tests.data.webvision_files import write_webvision

import crust
from crust import data
from crust.experiments import make, train_spec

ROOT = Path(__file__).parents[2]
SMALL = "--model resnet8 --image-size 32 --epochs 2 --batch-size 6 --learning-rate 0.01 --workers 0 --set top=2"
KEYS = ["test_accuracy", "test_top2", "test_accuracy_imagenet", "test_top2_imagenet"]


def lines_of(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def measured(folder, files, size):
    """Accuracy and top-2 on both sets, of the model that a run has kept."""
    result = crust.load(folder)
    bundle = data.load("webvision", data_dir=files, image_size=size, skip_broken=True)
    found = []
    for examples in (bundle.test, bundle.more_tests["imagenet"]):
        ranks = (-result.predict_proba(examples)).argsort(axis=1, kind="stable")
        own = examples.labels[:, None]
        found += [(ranks[:, :1] == own).any(axis=1).mean(), (ranks[:, :2] == own).any(axis=1).mean()]
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_webvision(tmp_path_factory.mktemp("data"))


def test_the_recipe_on_a_small_network(files, tmp_path, capsys):
    folder = tmp_path / "run"
    words = f"train webvision --recipe webvision-paper --data-dir {files} {SMALL} -o {folder}"
    assert call(words) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "broken.jpg cannot be read as an image" in shown
    assert "--skip-broken" in shown
    assert not folder.exists()

    assert call(f"{words} --skip-broken --set stop_after=1") == 0
    assert call(f"train --resume -o {folder}") == 0
    lines = lines_of(folder)
    assert [[key for key in line if key.startswith("test_")] for line in lines] == [KEYS, KEYS]
    assert [lines[-1][key] for key in KEYS] == pytest.approx(measured(folder, files, 32))
    assert lines[0]["n_selected"] == 9  # half of the 18 that are whole
    assert "clean_fraction" not in lines[0]  # nobody knows which labels are right
    full = yaml.safe_load((folder / "recipe.yaml").read_text())
    assert (full["data"], full["data_dir"], full["method"]) == ("webvision", str(files), "crust-paper")
    told = capsys.readouterr().out
    for name in ("test accuracy", "test top-2 accuracy", "imagenet accuracy", "imagenet top-2 accuracy"):
        assert f"{name}: last" in told
    audit = pd.read_parquet(folder / "audit.parquet")
    assert set(audit["given_label"]) == {"tench", "goldfish", "great white shark"}
    assert "google/q0002/1_0.jpg" in set(audit["id"])

    assert call(f"predict {folder} webvision --data-dir {files} -o {tmp_path}/val.csv") == 0
    assert call(f"predict {folder} {files}/imagenet/val -o {tmp_path}/imagenet.csv") == 0
    for name, key in (("val", KEYS[0]), ("imagenet", KEYS[2])):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        assert (table["label"] == table["predicted"]).mean() == pytest.approx(lines[-1][key])


def test_a_result_line_has_both_test_sets(tmp_path):
    whole = write_webvision(tmp_path / "whole", train=2, test=1, broken=False)
    spec = make(
        "erm", "given", scale="smoke", data="webvision", limit=None, model="small_cnn", tests=["test", "imagenet"],
        epochs=1,
    )  # fmt: skip
    line = train_spec(spec, tmp_path / "run", data_dir=whole)
    history = lines_of(tmp_path / "run")[-1]
    assert line["tests"]["test"]["top1"]["last"] == line["accuracy"]["last"] == round(history["test_accuracy"], 5)
    assert line["tests"]["imagenet"]["top1"]["last"] == round(history["test_accuracy_imagenet"], 5)
    assert line["tests"]["imagenet"]["top5"] == {"last": None, "last10": None, "best": None}  # three classes
    assert line["audit"] is None
    missing = write_webvision(tmp_path / "missing", train=2, broken=False, imagenet=False)
    with pytest.raises(crust.InputError, match="webvision has no test set 'imagenet' here, only test"):
        train_spec(spec, tmp_path / "other", data_dir=missing)


@pytest.mark.slow
def test_the_recipe_with_its_own_network(files, tmp_path):
    folder = tmp_path / "run"
    words = "--recipe webvision-paper --image-size 96 --limit 12 --epochs 1 --batch-size 4 --workers 2 --set top=2"
    assert call(f"train webvision {words} --data-dir {files} --skip-broken -q -o {folder}") == 0
    (line,) = lines_of(folder)
    assert [line[key] for key in KEYS] == pytest.approx(measured(folder, files, 96))
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert (config["model"], config["inputs"]["shape"]) == ("timm:inception_resnet_v2", [3, 96, 96])
    assert config["parameters"] > 50e6


@pytest.mark.slow
def test_two_processes(files, tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    folder = tmp_path / "run"
    words = f"train webvision --recipe webvision-paper --data-dir {files} {SMALL} --skip-broken -o {folder}"
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "crust"]
    done = subprocess.run([*start, *words.split()], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = lines_of(folder)
    assert [line["n_selected"] for line in lines] == [9, 9]
    assert [lines[-1][key] for key in KEYS] == pytest.approx(measured(folder, files, 32))
    assert done.stdout.count("imagenet top-2 accuracy: last") == 1  # one of them speaks
