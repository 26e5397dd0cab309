"""The example scripts run as they stand, and each leaves the picture that it promises."""

import runpy
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from PIL import Image

from crust.training.distributed import own_accelerate_state

EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = ["a_diverse_tenth", "theory_of_a_run"]
LONGER = [
    "wrong_labels_in_a_table",
    "wrong_labels_in_images",
    "wrong_labels_in_texts",
    "train_your_own_network",
    "compare_methods",
]


LOOPS = {
    "plain": "torch",
    "with_accelerate": "accelerate",
    "with_trainer": "transformers",
    "with_lightning": "lightning",
}
LOOPS["with_skorch"] = "skorch"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_makes_every_planned_step_and_its_audit_finds_wrong_labels(name, monkeypatch):
    pytest.importorskip(LOOPS[name])
    monkeypatch.syspath_prepend(str(EXAMPLES / "loops"))
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    with own_accelerate_state():
        found = runpy.run_path(str(EXAMPLES / "loops" / f"{name}.py"), run_name="__main__")
    assert found["steps"] == found["planned"]
    assert found.get("last_rate", 0) < 1e-4
    assert found["accuracy"] > 0.85
    assert found["auroc"] > 0.95


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in LONGER)])
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    matplotlib.use("agg")
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        plt.close("all")
    with Image.open(f"{name}.png") as picture:
        assert len(set(picture.convert("L").get_flattened_data())) > 20  # something is drawn
