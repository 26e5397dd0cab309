"""The `next:` line of `crust apply`: followed to the letter, it trains as the run did."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.common import call

from crust.runs.folder import RunFolder


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kinds = np.arange(80) % 2
    for name, rows in (("table.csv", slice(60)), ("test.csv", slice(60, None))):
        frame = pd.DataFrame({"x": rng.normal(size=80) + 3 * kinds, "y": rng.normal(size=80), "kind": kinds})
        frame[rows].to_csv(name, index=False)
    Path("mine.csv").write_text("index,corrected\n0,1\n")


@pytest.mark.parametrize(
    "settings",
    [
        "--epochs 2",
        "--model mlp --epochs 3 --batch-size 8 --optimizer sgd --learning-rate 0.05 --method erm --validation 0.2",
        "--epochs 1 --fraction 0.7 --seed 5 --set schedule=one-cycle --set warmup_steps=4 --set clip_norm=2.5",
        "--epochs 1 --set lr_milestones=[0.5] --set mixup=none --budget passes=1e6",
    ],
)
def test_the_next_line_repeats_the_run(table, capsys, settings):
    assert call(f"train table.csv --label-column kind --test test.csv {settings} -o run") == 0
    capsys.readouterr()
    assert call("apply run mine.csv") == 0
    words = shlex.split(capsys.readouterr().out.split("next: crust ")[1])
    assert {"--model", "--epochs", "--test", "--label-column"} <= set(words)
    assert call([*words, "-o", "again"]) == 0
    old, new = RunFolder("run").config(), RunFolder("again").config()
    for name in ("model", "method", "experiment", "settings", "validation", "augment", "test_data"):
        assert old[name] == new[name], name
    assert old["data"] != new["data"]


def test_what_would_be_chosen_again_is_not_spelled_out(table, capsys):
    assert call("train table.csv --label-column kind --epochs 1 -o run -q") == 0
    assert call("apply run mine.csv") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "next: crust train run/corrected.csv --label-column kind --model mlp --epochs 1 --after run"


def test_a_model_that_got_worse_is_not_passed_over(table, capsys):
    assert call("train table.csv --label-column kind --test test.csv --epochs 20 -o run -q") == 0
    Path("wrong.csv").write_text("index,corrected\n" + "".join(f"{row},{(row + 1) % 2}\n" for row in range(60)))
    assert call("apply run wrong.csv") == 0
    words = shlex.split(capsys.readouterr().out.split("next: crust ")[1])
    assert call([*words, "-o", "again"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "next: crust audit again"
    assert lines[-2].startswith("on the test set: ")
    assert "keep the model in run" in lines[-2]
    assert call([*(word for word in words if word not in ("--test", words[words.index("--test") + 1])), "-o", "x"]) == 0
    assert "on the corrected labels that were held out: " in capsys.readouterr().out
    assert call("train table.csv --label-column kind --after nothing -o y") == 2
    assert not Path("y").exists()
