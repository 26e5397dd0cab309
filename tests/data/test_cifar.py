"""CIFAR in the layouts it comes in. Small files; the real images too where CRUST_DATA points to them."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from tests.refusals import refused

from crust.cli import main
from crust.data import load, load_new
from crust.data.cifar import CLASSES, MEAN
from crust.errors import InputError
from crust.noise import NoisyLabels
from crust.runs.data import labels_of_spec

RNG = np.random.default_rng(0)


def write_batch(path, n, classes, key=b"labels", **more):
    data = RNG.integers(0, 256, (n, 3072), dtype=np.uint8)
    labels = (np.arange(n) % classes).tolist()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps({b"data": data, key: labels, b"batch_label": b"some", **more}, protocol=2))
    return data, labels


def write_cifar10(folder):
    parts = [write_batch(folder / "cifar-10-batches-py" / f"data_batch_{i}", 11, 10) for i in range(1, 6)]
    test = write_batch(folder / "cifar-10-batches-py" / "test_batch", 10, 10)
    return np.concatenate([data for data, _ in parts]), [label for _, labels in parts for label in labels], test


def write_cifar100(folder):
    coarse = (np.arange(200) % 100 // 5).tolist()
    root = folder / "cifar-100-python"
    train = write_batch(root / "train", 200, 100, b"fine_labels", coarse_labels=coarse)
    write_batch(root / "test", 100, 100, b"fine_labels", coarse_labels=coarse[:100])
    return train


def test_cifar10_from_its_batches(tmp_path):
    data, labels, test = write_cifar10(tmp_path)
    bundle = load("cifar10", data_dir=tmp_path)
    assert bundle.train.inputs.dtype == torch.uint8
    np.testing.assert_array_equal(bundle.train.inputs, data.reshape(-1, 3, 32, 32))
    assert bundle.train.labels.tolist() == labels
    np.testing.assert_array_equal(bundle.test.inputs, test[0].reshape(-1, 3, 32, 32))
    assert bundle.train.classes[9] == "truck"
    assert bundle.train.mean == MEAN
    limited = load("cifar10", data_dir=tmp_path, limit=20)
    assert (len(limited.train), len(limited.test), limited.total, limited.rows.tolist()) == (
        20,
        10,
        55,
        list(range(20)),
    )
    assert len(load_new("cifar10", bundle.encoding, data_dir=tmp_path)) == 10


def test_batches_and_archive_give_the_same(tmp_path):
    data, labels, (x_test, y_test) = write_cifar10(tmp_path)
    bundle = load("cifar10", data_dir=tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    images = [x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for x in (data, x_test)]
    np.savez(other / "cifar10.npz", x_train=images[0], y_train=np.uint8(labels), x_test=images[1], y_test=y_test)
    again = load("cifar10", data_dir=other)
    assert again.train.fingerprint() == bundle.train.fingerprint()
    assert again.test.fingerprint() == bundle.test.fingerprint()
    assert again.encoding == bundle.encoding


def test_the_data_folder_of_the_environment(tmp_path, monkeypatch):
    write_cifar10(tmp_path)
    monkeypatch.setenv("CRUST_DATA", str(tmp_path))
    assert len(load("cifar10").train) == 55


def test_cifar100_with_its_superclasses(tmp_path):
    _, labels = write_cifar100(tmp_path)
    bundle = load("cifar100", data_dir=tmp_path)
    assert bundle.train.labels.tolist() == labels
    assert bundle.train.classes[:3] == ["apple", "aquarium_fish", "baby"]
    assert bundle.superclasses.tolist() == (np.arange(100) // 5).tolist()


def test_cifar100_has_its_batches_whole(tmp_path):
    data, labels = write_cifar100(tmp_path)
    bundle = load("cifar100", data_dir=tmp_path)
    np.testing.assert_array_equal(bundle.train.inputs, data.reshape(-1, 3, 32, 32))
    assert (len(bundle.test), bundle.test.labels.tolist()) == (100, labels[:100])
    limited = load("cifar100", data_dir=tmp_path, limit=110)
    assert (len(limited.train), limited.total) == (110, 200)
    assert limited.superclasses.tolist() == bundle.superclasses.tolist()  # of all batches, not of the first rows


def test_coarse_labels_that_fit_nothing_are_told(tmp_path, caplog):
    write_cifar100(tmp_path)
    root = tmp_path / "cifar-100-python"
    mixed = RNG.permutation(np.arange(200) % 20).tolist()  # two images of a class in different superclasses
    write_batch(root / "train", 200, 100, b"fine_labels", coarse_labels=mixed)
    with caplog.at_level("WARNING", logger="crust.data"):
        assert load("cifar100", data_dir=tmp_path).superclasses is None
    assert "do not fit the fine ones: the published superclasses are used" in caplog.text
    write_batch(root / "train", 200, 100, b"fine_labels")
    assert load("cifar100", data_dir=tmp_path).superclasses is None
    write_batch(root / "train", 200, 100, b"coarse_labels")
    with refused("bad-file"):
        load("cifar100", data_dir=tmp_path)


def test_noise_stays_within_the_superclasses_of_the_files(tmp_path):
    write_cifar100(tmp_path)
    bundle = load("cifar100", data_dir=tmp_path)
    given, truth = labels_of_spec(bundle, "asymmetric-cifar100-superclass:0.4", 0)
    wrong = given != truth
    assert 0.25 < wrong.mean() < 0.55
    assert (given[wrong] // 5 == truth[wrong] // 5).all()  # the files' superclasses: blocks of five
    assert (given[wrong] == truth[wrong] // 5 * 5 + (truth[wrong] + 1) % 5).all()  # the next one of its superclass


def test_a_training_on_cifar100_from_the_command_line(tmp_path):
    write_cifar100(tmp_path)
    words = (
        f"train cifar100 --data-dir {tmp_path} --noise asymmetric-cifar100-superclass:0.4 --model resnet8 --method erm"
    )
    with pytest.raises(SystemExit) as caught:
        main([*words.split(), "--epochs", "1", "--set", "top=5", "--no-augment", "-q", "-o", str(tmp_path / "run")])
    assert caught.value.code == 0
    (line,) = [json.loads(text) for text in (tmp_path / "run/history.jsonl").read_text().splitlines()]
    assert {"test_accuracy", "test_top5", "clean_fraction"} <= set(line)
    noise = NoisyLabels.load(tmp_path / "run/noise.npz")
    wrong = np.flatnonzero(noise.labels != np.arange(200) % 100)
    assert 50 < len(wrong) < 110
    assert (noise.labels[wrong] // 5 == wrong % 100 // 5).all()
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert config["classes"] == CLASSES["cifar100"]


def test_the_class_names():
    assert len(CLASSES["cifar10"]) == 10
    assert len(CLASSES["cifar100"]) == 100
    assert CLASSES["cifar100"] == sorted(CLASSES["cifar100"])


def test_the_published_superclasses_group_what_belongs_together():
    from crust.noise.transition_matrices import CIFAR100_SUPERCLASSES

    groups = {}
    for name, group in zip(CLASSES["cifar100"], CIFAR100_SUPERCLASSES, strict=True):
        groups.setdefault(group, []).append(name)
    assert groups == {
        0: ["beaver", "dolphin", "otter", "seal", "whale"],
        1: ["aquarium_fish", "flatfish", "ray", "shark", "trout"],
        2: ["orchid", "poppy", "rose", "sunflower", "tulip"],
        3: ["bottle", "bowl", "can", "cup", "plate"],
        4: ["apple", "mushroom", "orange", "pear", "sweet_pepper"],
        5: ["clock", "keyboard", "lamp", "telephone", "television"],
        6: ["bed", "chair", "couch", "table", "wardrobe"],
        7: ["bee", "beetle", "butterfly", "caterpillar", "cockroach"],
        8: ["bear", "leopard", "lion", "tiger", "wolf"],
        9: ["bridge", "castle", "house", "road", "skyscraper"],
        10: ["cloud", "forest", "mountain", "plain", "sea"],
        11: ["camel", "cattle", "chimpanzee", "elephant", "kangaroo"],
        12: ["fox", "porcupine", "possum", "raccoon", "skunk"],
        13: ["crab", "lobster", "snail", "spider", "worm"],
        14: ["baby", "boy", "girl", "man", "woman"],
        15: ["crocodile", "dinosaur", "lizard", "snake", "turtle"],
        16: ["hamster", "mouse", "rabbit", "shrew", "squirrel"],
        17: ["maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"],
        18: ["bicycle", "bus", "motorcycle", "pickup_truck", "train"],
        19: ["lawn_mower", "rocket", "streetcar", "tank", "tractor"],
    }


def test_folders_that_are_not_whole(tmp_path):
    write_cifar10(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    whole = batch.read_bytes()
    cases = {
        "truncated": whole[:1000],
        "no batch of cifar10": pickle.dumps({b"data": np.zeros((2, 3)), b"labels": [0, 1]}),
        "is no batch": pickle.dumps([1, 2]),
        "out of range": pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]}),
        "nothing was run": pickle.dumps(Path("a")),
    }
    for words, content in cases.items():
        batch.write_bytes(content)
        with pytest.raises(InputError, match=words) as caught:
            load("cifar10", data_dir=tmp_path)
        assert "\n" not in str(caught.value)
    batch.unlink()
    with refused("missing-file"):
        load("cifar10", data_dir=tmp_path)


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "cifar10.npz", x=np.zeros((4, 5)), y=[0, 1, 0, 1])
    with refused("bad-arrays"):
        load("cifar10", data_dir=tmp_path)


def test_nothing_there_and_no_network(tmp_path, monkeypatch):
    def fails(url, root, filename, md5):
        assert (filename, md5) == ("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85")
        raise OSError("no network\nat all")

    monkeypatch.setattr("torchvision.datasets.utils.download_and_extract_archive", fails)
    with pytest.raises(
        InputError, match=r"neither cifar-100-python nor cifar100.npz, .* failed \(no network\)"
    ) as caught:
        load("cifar100", data_dir=tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()  # a name that was mistyped leaves no folder
    (tmp_path / "mine").mkdir()
    with refused("download"):
        load("cifar100", data_dir=tmp_path / "mine")
    assert (tmp_path / "mine").exists()


def test_what_was_downloaded_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "torchvision.datasets.utils.download_and_extract_archive", lambda url, root, **_: write_cifar10(Path(root))
    )
    assert len(load("cifar10", data_dir=tmp_path / "data").train) == 55


@pytest.mark.skipif("CRUST_DATA" not in os.environ, reason="CRUST_DATA does not point to the real images")
def test_the_real_images():
    bundle = load("cifar10")
    assert (len(bundle.train), len(bundle.test)) == (50_000, 10_000)
    assert bundle.train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    np.testing.assert_allclose(bundle.train.inputs.float().mean(dim=(0, 2, 3)) / 255, MEAN, atol=1e-4)
