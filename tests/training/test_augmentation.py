"""Who sees random crops: training, and nobody else; also where a large folder is read as it goes."""

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from torch import nn

import crust
from crust.data import image_folder
from crust.data.torch_dataset import can_augment

QUICK = {"epochs": 2, "batch_size": 8, "learning_rate": 0.01}


class Marked:
    """Images whose first pixel says whether they were augmented; every label is in the second."""

    def __init__(self, mark=0.0, size=32):
        self.mark, self.size = mark, size
        self.targets = [i % 2 for i in range(40)]

    def __len__(self):
        return 40

    def __getitem__(self, i):
        x = torch.zeros(1, self.size, self.size)
        x[0, 0, :2] = torch.tensor([self.mark, float(i % 2)])
        return x, i % 2

    def augmented(self):
        return Marked(1.0, self.size)


class Noting(nn.Module):
    """A network that notes what it saw, training and evaluating."""

    seen: dict[bool, set] = {}  # noqa: RUF012  (copies of the network share it)

    def __init__(self, size=32):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(size * size, 2))

    def forward(self, x):
        self.seen.setdefault(self.training, set()).update(x[:, 0, 0, 0].tolist())
        return self.net(x)


@pytest.fixture
def seen(monkeypatch):
    found = {}
    monkeypatch.setattr(Noting, "seen", found)
    return found


def test_only_training_sees_augmented_images(seen):
    result = crust.fit(Noting(), Marked(), test_set=Marked(), validation=0.2, **QUICK)
    assert seen == {True: {1.0}, False: {0.0}}
    assert result.config["augment"] is True


@pytest.mark.parametrize(("size", "options"), [(16, {}), (32, {"augment": False})])
def test_small_images_and_those_that_shall_not_be_are_left_alone(seen, size, options):
    result = crust.fit(Noting(size), Marked(size=size), **options, **QUICK)
    assert seen == {True: {0.0}, False: {0.0}}
    assert result.config["augment"] is False


def test_a_dataset_without_another_form_is_not_augmented_by_us():
    examples = crust.data.from_dataset([(torch.zeros(3, 32, 32), i % 2) for i in range(6)])
    assert not can_augment(examples)
    assert not can_augment(examples.subset([4, 1]))
    assert can_augment(crust.data.from_dataset(Marked()).subset([4, 1]))


def test_large_folders_are_augmented_from_the_command_line(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "images" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(256, size=(36, 40, 3), dtype=np.uint8)).save(path)
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 0)
    words = f"train {tmp_path}/images --image-size 32 --model small_cnn --method erm --epochs 1 -q"
    for name, option, expected in (("a", "", True), ("b", " --no-augment", False)):
        with pytest.raises(SystemExit) as caught:
            crust.cli.main(f"{words}{option} -o {tmp_path}/{name}".split())
        assert caught.value.code == 0
        config = yaml.safe_load((tmp_path / name / "config.yaml").read_text())
        assert (config["inputs"]["kind"], config["augment"]) == ("dataset", expected)
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert models[0] != models[1]
