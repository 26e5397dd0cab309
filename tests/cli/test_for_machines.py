"""What `--json` prints, for programs; and where a run computes."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.common import call
from tests.refusals import refused

import crust
from crust.runs.folder import RunFolder
from crust.training.distributed import VARIABLE, Processes

TRAIN = "train digits --limit 120 --model mlp --method erm --epochs 2"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_train_and_predict_speak_json(here, capsys):
    assert call(f"{TRAIN} --json -o run") == 0
    found = json.loads(capsys.readouterr().out)
    result = crust.load("run")
    assert (found["run"], found["examples"], found["epochs"]) == ("run", 120, 2)
    assert found["accuracy"]["test_accuracy"] == pytest.approx(result.accuracy)
    assert found["label_issues"] == result.audit()["is_label_issue"].sum()
    assert found["noise_rate"]["low"] <= found["noise_rate"]["high"]

    assert call("predict run digits --json -o p.csv") == 0
    rows = json.loads(capsys.readouterr().out)
    table = pd.read_csv("p.csv")
    assert [row["predicted"] for row in rows] == table["predicted"].tolist()
    np.testing.assert_allclose([row["p(3)"] for row in rows], table["p(3)"], atol=1e-6)


def test_audit_and_verify_speak_json(here, capsys):
    assert call(f"{TRAIN} --noise symmetric:0.3 -q -o run") == 0
    assert call("verify run --json") == 0
    verified = json.loads(capsys.readouterr().out)
    assert verified == json.loads(Path("run/verified.json").read_text(encoding="utf-8"))

    assert call("audit run --json --top 7 -o all.csv") == 0
    found = json.loads(capsys.readouterr().out)
    table = crust.load("run").audit()
    assert (found["examples"], found["label_issues"]) == (len(table), table["is_label_issue"].sum())
    assert found["differ_from_predicted"] == (table["given_label"] != table["predicted_label"]).sum()
    assert [row["index"] for row in found["worst"]] == pd.read_csv("all.csv")["index"].tolist()[:7]
    assert call("audit run --json --issues --top 100000") == 0
    listed = json.loads(capsys.readouterr().out)["worst"]
    assert [row["index"] for row in listed] == [
        index for index in pd.read_csv("all.csv")["index"] if table["is_label_issue"][index]
    ]


def test_select_speaks_json(here, capsys):
    points = np.random.default_rng(0).normal(size=(60, 3))
    np.save("f.npy", points)
    assert call("select f.npy -k 5 --json") == 0
    found, coreset = json.loads(capsys.readouterr().out), crust.select(points, 5)
    assert (found["indices"], found["weights"]) == (coreset.indices.tolist(), coreset.weights.tolist())
    assert found["points"] == 60


def test_where_it_computes_is_no_part_of_the_run(here, capsys):
    """The same bytes as without, and it goes on elsewhere."""
    assert call(f"{TRAIN} -q -o plain") == 0
    assert call(f"{TRAIN} -q --device cpu --set stop_after=1 -o cpu") == 0
    assert call("train --resume -q -o cpu --set stop_after=2") == 0
    configs = [RunFolder(run).config()["experiment"] for run in ("plain", "cpu")]
    assert configs[0] == configs[1]
    assert Path("plain/model.safetensors").read_bytes() == Path("cpu/model.safetensors").read_bytes()
    assert VARIABLE not in os.environ


def test_several_processes_have_a_device_each(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("crust.training.distributed.check_device", lambda device: device)
    with refused("several-devices"):
        Processes(device="cuda:1")
