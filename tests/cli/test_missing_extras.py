"""Where the package of an extra is missing, a command says how to install it, before any work is done."""

import sys

import numpy as np
import pytest
from PIL import Image
from tests.cli.common import call


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("select f.npy -k 3 --plot p.png", "matplotlib", "plot"),
        ("theory run", "matplotlib", "plot"),
        ("reproduce figure1 --scale smoke", "matplotlib", "plot"),
        ("train images --model timm:resnet18 --epochs 1", "timm", "vision"),
        ("train images --epochs 1 --image-size 16", "torchvision", "vision"),
    ],
)
def test_it_says_what_to_install(words, package, extra, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("f.npy", np.eye(9, dtype=np.float32))
    for number, name in enumerate(["cat", "dog"] * 10):
        (tmp_path / "images" / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((20, 20), 12 * number, np.uint8)).save(tmp_path / "images" / name / f"{number}.png")
    monkeypatch.setitem(sys.modules, package, None)
    assert call(words) == 2
    shown = capsys.readouterr()
    assert shown.err == f"crust: {package} is not installed: run pip install 'crust-learn[{extra}]'\n"
    assert {path.name for path in tmp_path.iterdir()} == {"f.npy", "images"}
