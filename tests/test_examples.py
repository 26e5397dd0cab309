"""The example scripts run as they stand, and each leaves the picture that it promises."""

import runpy
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[1] / "examples"
QUICK = ["a_diverse_tenth", "theory_of_a_run"]
LONGER = [
    "wrong_labels_in_a_table",
    "wrong_labels_in_images",
    "wrong_labels_in_texts",
    "train_your_own_network",
    "compare_methods",
]


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
