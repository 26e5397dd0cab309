"""`crust train --budget passes=N`: the same count for every method."""

import json

import pytest
from tests.cli.common import call

SMALL = "train digits --limit 150 --model mlp --epochs 9 --batch-size 32 --method erm"


def test_a_budget_stops_a_run_and_says_so(tmp_path, capsys):
    assert call(f"{SMALL} --budget passes=700 -o {tmp_path}/run") == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    passes = sum(lines[-1]["passes"].values())
    assert f"stopped after {passes} passes on examples" in capsys.readouterr().out
    assert 700 <= passes <= 700 + 2 * 33 + 150
    assert lines[-1]["stopped"] == "passes"
    assert len(lines) < 9
    assert "max_passes: 700" in (tmp_path / "run" / "recipe.yaml").read_text()


@pytest.mark.parametrize("words", ["700", "passes", "passes=", "passes=many", "passes=-3", "epochs=3", "passes=nan"])
def test_another_budget_gets_a_sentence(words, tmp_path, capsys):
    assert call(f"{SMALL} --budget {words} -o {tmp_path}/run") == 2
    assert f"--budget {words} is no number of passes: write it as passes=2e6" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "run").exists()
