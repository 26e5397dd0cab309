"""Images in class folders: in memory and streamed, broken ones, and folders that are none."""

import json
import logging
import os

import numpy as np
import pytest
import torch
from PIL import Image
from tests.refusals import refused

from crust.data import batches, image_folder, load, load_new
from crust.errors import InputError

RNG = np.random.default_rng(0)


def write_image(path, size=(20, 16), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = RNG.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return pixels


def write_classes(root, n=4, suffix=".png", **options):
    for name in ("cat", "dog", "eel"):
        for i in range(n):
            write_image(root / name / f"{i}{suffix}", **options)
    return root


@pytest.fixture
def streamed(monkeypatch):
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 0)


def test_small_folders_are_held_in_memory(tmp_path):
    bundle = load(write_classes(tmp_path, size=(16, 16)))
    assert (bundle.train.kind, bundle.train.shape, bundle.train.classes) == (
        "images",
        (3, 16, 16),
        ["cat", "dog", "eel"],
    )
    assert bundle.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert bundle.train.ids[5] == "dog/1.png"
    assert bundle.test is None
    pixels = np.asarray(Image.open(tmp_path / "dog" / "1.png"))
    np.testing.assert_array_equal(bundle.train.inputs[5].permute(1, 2, 0), pixels)  # images of that size stay untouched


@pytest.mark.parametrize("name", ["test", "val", "validation"])
def test_train_and_test_folders(tmp_path, name):
    write_classes(tmp_path / "train", 3)
    write_classes(tmp_path / name, 2)
    bundle = load(tmp_path, image_size=8)
    assert (len(bundle.train), len(bundle.test), bundle.test.shape) == (9, 6, (3, 8, 8))


def test_a_class_may_be_called_train(tmp_path):
    for name in ("train", "bus"):
        write_image(tmp_path / name / "a.jpg")
        write_image(tmp_path / name / "b.jpg")
    assert load(tmp_path, image_size=8).train.classes == ["bus", "train"]


def test_photographs_become_224_and_small_images_keep_their_size(tmp_path):
    assert load(write_classes(tmp_path / "a", 1, size=(300, 240))).train.shape == (3, 224, 224)
    assert load(write_classes(tmp_path / "b", 1, size=(32, 32))).train.shape == (3, 32, 32)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_any_mode_becomes_colour(tmp_path, mode):
    assert load(write_classes(tmp_path, 2, mode=mode), image_size=8).train.shape == (3, 8, 8)


def test_hidden_and_other_files_are_left_out(tmp_path):
    write_classes(tmp_path, 2)
    (tmp_path / "cat" / ".hidden.png").write_bytes(b"")
    (tmp_path / "cat" / "notes.txt").write_text("none")
    write_image(tmp_path / "__MACOSX" / "a.png")
    write_image(tmp_path / "dog" / "deeper" / "c.PNG")
    bundle = load(tmp_path, image_size=8)
    assert bundle.train.classes == ["cat", "dog", "eel"]
    assert [name for name in bundle.train.ids if "dog" in name] == ["dog/0.png", "dog/1.png", "dog/deeper/c.PNG"]


@pytest.mark.usefixtures("streamed")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_large_folders_are_read_by_workers(tmp_path):
    write_classes(tmp_path, 3)
    streamed = load(tmp_path, image_size=12).train
    assert (streamed.kind, streamed.shape, len(streamed)) == ("dataset", (3, 12, 12), 9)
    plain = [torch.cat([x for x, _ in batches(streamed, None, 4, workers=w)]) for w in (0, 2)]
    assert plain[0].dtype == torch.float32
    assert torch.equal(*plain)

    def augmented(workers, seed):
        generator = torch.Generator().manual_seed(seed)
        return torch.cat([x for x, _ in batches(streamed, None, 4, augment=True, generator=generator, workers=workers)])

    first = augmented(0, 1)
    assert torch.equal(first, augmented(2, 1))
    assert not torch.equal(first, augmented(0, 2))
    assert not torch.equal(first, plain[0])
    some = streamed.subset([8, 0])
    x, _ = next(batches(some, augment=True, generator=torch.Generator().manual_seed(0)))
    assert not torch.equal(x, plain[0][[8, 0]])


def test_memory_and_stream_show_the_same_images(tmp_path, monkeypatch):
    write_classes(tmp_path, 2, suffix=".jpg", size=(150, 130))
    held = load(tmp_path, image_size=120).train
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 0)
    streamed = load(tmp_path, image_size=120).train
    assert streamed.kind == "dataset"
    assert torch.equal(next(batches(held))[0], next(batches(streamed))[0])


@pytest.mark.usefixtures("streamed")
def test_the_fingerprint_of_a_streamed_folder(tmp_path):
    write_classes(tmp_path, 2)
    before = load(tmp_path, image_size=8).train.fingerprint()
    assert load(tmp_path, image_size=8).train.fingerprint() == before
    assert load(tmp_path, image_size=9).train.fingerprint() != before
    write_image(tmp_path / "cat" / "0.png", size=(30, 30))
    assert load(tmp_path, image_size=8).train.fingerprint() != before


def break_images(root, suffix):
    whole = (root / "cat" / f"0{suffix}").read_bytes()
    (root / "cat" / f"1{suffix}").write_bytes(whole[: len(whole) // 2])
    (root / "eel" / f"2{suffix}").write_bytes(b"no image at all")


@pytest.mark.parametrize("memory", [1 << 30, 0])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp"])
def test_broken_images_are_named_and_can_be_left_out(tmp_path, monkeypatch, caplog, memory, suffix):
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", memory)
    write_classes(tmp_path, 4, suffix, size=(40, 40))
    break_images(tmp_path, suffix)
    with pytest.raises(
        InputError, match=rf"cat.1\{suffix} cannot be read .*skip_broken.*; 1 more are broken"
    ) as caught:
        load(tmp_path, image_size=8)
    assert "\n" not in str(caught.value)
    with caplog.at_level(logging.WARNING, logger="crust.data"):
        bundle = load(tmp_path, image_size=8, skip_broken=True)
    assert (len(bundle.train), bundle.total) == (10, 12)
    assert bundle.rows.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9, 11]
    assert bundle.train.labels.tolist() == [0] * 3 + [1] * 4 + [2] * 3
    assert f"1{suffix} is broken" in caplog.text
    next(batches(bundle.train))


@pytest.mark.usefixtures("streamed")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_image_that_breaks_later_is_named(tmp_path):
    bundle = load(write_classes(tmp_path, 2), image_size=8)
    (tmp_path / "dog" / "1.png").write_bytes(b"gone")
    for workers in (0, 1):
        with pytest.raises(InputError, match=r"dog.1\.png cannot be read as an image"):
            list(batches(bundle.train, workers=workers))


def test_only_broken_images(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"none")
    with refused("broken-image"):
        load(tmp_path, image_size=8, skip_broken=True)


def test_a_limit_takes_from_every_class_in_turn(tmp_path):
    bundle = load(write_classes(tmp_path, 4), image_size=8, limit=5)
    assert bundle.train.ids == ["cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png", "eel/0.png"]
    assert (bundle.rows.tolist(), bundle.total) == ([0, 1, 4, 5, 8], 12)


def test_new_images_with_and_without_classes(tmp_path):
    bundle = load(write_classes(tmp_path / "a", 2), image_size=8)
    encoding = json.loads(json.dumps(bundle.encoding))
    write_image(tmp_path / "b" / "one.png")
    write_image(tmp_path / "b" / "dog" / "two.png")
    write_image(tmp_path / "b" / "unknown" / "three.png")
    new = load_new(tmp_path / "b", encoding)
    assert new.ids == ["dog/two.png", "one.png", "unknown/three.png"]
    assert new.labels.tolist() == [1, -1, -1]
    assert (new.shape, new.mean) == ((3, 8, 8), bundle.train.mean)


def test_grey_images_for_a_network_of_grey_images(tmp_path):
    encoding = load("digits").encoding
    write_image(tmp_path / "7" / "a.png")
    new = load_new(tmp_path, encoding)
    assert (new.shape, new.labels.tolist(), new.classes) == ((1, 8, 8), [7], list(range(10)))
    next(batches(new))


def test_folders_that_are_none(tmp_path):
    (tmp_path / "empty").mkdir()
    write_image(tmp_path / "flat" / "a.png")
    write_image(tmp_path / "one" / "cat" / "a.png")
    (tmp_path / "hollow" / "cat").mkdir(parents=True)
    write_classes(tmp_path / "split" / "train", 1)
    write_image(tmp_path / "split" / "test" / "cow" / "a.png")
    cases = {
        "empty": "no class folders with images",
        "flat": "images, but no class folders: put the images of each class into a folder",
        "one": "one class only, 'cat'",
        "hollow": "no class folders with images",
        "split": "'cow': use one of cat, dog, eel",
    }
    for name, words in cases.items():
        with pytest.raises(InputError, match=words) as caught:
            load(tmp_path / name, image_size=8)
        assert "\n" not in str(caught.value)
    with refused("image-size"):
        load(tmp_path / "split", image_size=0)
    with refused("no-images"):
        load_new(tmp_path / "empty", {"format": "images", "classes": ["a"], "shape": [3, 8, 8]})


@pytest.mark.parametrize("name", [b"cat/caf\xe9.png", b"caf\xe9/0.png"])
def test_names_that_no_table_can_hold(tmp_path, name):
    write_classes(tmp_path, 1)
    write_image(tmp_path / os.fsdecode(name))
    with refused("not-utf8"):
        load(tmp_path)
