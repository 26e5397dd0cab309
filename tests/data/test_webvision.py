"""mini WebVision and ImageNet's validation images in the layouts they come in."""

import json
import logging
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat
from tests.data.webvision_files import SYNSETS, write_webvision
from tests.refusals import refused

from crust.data import batches, image_folder, load, load_new
from crust.data.webvision import read_synsets
from crust.errors import InputError

NAMES = ["tench", "goldfish", "great white shark"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write_webvision(tmp_path_factory.mktemp("data"))


@pytest.fixture
def files(made, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(made, tmp_path / "data")


def test_the_three_sets(made):
    bundle = load("webvision", data_dir=made, image_size=64, skip_broken=True)
    assert bundle.train.classes == NAMES
    assert (len(bundle.train), bundle.total) == (18, 19)
    assert bundle.rows.tolist() == [row for row in range(19) if row != 2]  # the broken one is the third of its list
    assert np.bincount(bundle.train.labels).tolist() == [6, 6, 6]
    assert bundle.train.ids[:3] == ["google/q0001/0_0.jpg", "google/q0001/0_1.jpg", "google/q0001/0_2.jpg"]
    assert bundle.test.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert bundle.test.ids[3] == "val000004.jpg"
    assert list(bundle.more_tests) == ["imagenet"]
    other = bundle.more_tests["imagenet"]
    assert other.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert other.ids[2] == "n01443537/ILSVRC2012_val_00000003.JPEG"
    for examples in (bundle.train, bundle.test, other):
        assert examples.shape == (3, 64, 64)
        for x, rows in batches(examples, None, 8):  # every picture has the colour of its class, or is grey
            strongest = x.mean(dim=(2, 3)).argmax(dim=1).numpy()
            grey = (x - x.mean(dim=1, keepdim=True)).abs().mean(dim=(1, 2, 3)).numpy() < 0.3
            assert ((strongest == examples.labels[rows]) | grey).all()
            assert not grey.all()


def test_images_are_resized_to_320_for_crops_of_299(made):
    bundle = load("webvision", data_dir=made, skip_broken=True)
    assert bundle.train.shape == (3, 299, 299)
    assert bundle.encoding["resize"] == 320
    position = bundle.train.ids.index("google/q0002/1_1.jpg")
    image = Image.open(made / "webvision/google/q0002/1_1.jpg")  # 140 by 97
    wide = np.asarray(image.resize((round(140 * 320 / 97) - 1, 320), Image.Resampling.BILINEAR)).astype(float)
    left, top = round((wide.shape[1] - 299) / 2), round((320 - 299) / 2)
    middle = wide[top : top + 299, left : left + 299].transpose(2, 0, 1)
    found = bundle.train.inputs[position].numpy().astype(float)
    assert np.abs(found - middle).mean() < 6  # the same region, within a pixel
    assert np.abs(found - middle[:, :, ::-1]).mean() > 6

    def augmented(seed):
        generator = torch.Generator().manual_seed(seed)
        return next(batches(bundle.train, [position], 1, augment=True, generator=generator))[0]

    plain = next(batches(bundle.train, [position], 1))[0]
    crops = [augmented(seed) for seed in range(6)]
    assert torch.equal(crops[0], augmented(0))
    assert len({tuple(crop.flatten()[::997].tolist()) for crop in crops}) == 6
    assert not any(torch.equal(crop, plain) for crop in crops)


def test_broken_and_missing_images_are_named(files, caplog):
    (files / "webvision/google/q0003/2_0.jpg").unlink()
    with pytest.raises(InputError, match=r"broken\.jpg cannot be read .*skip-broken\); 1 more are broken") as caught:
        load("webvision", data_dir=files, image_size=32)
    assert "\n" not in str(caught.value)
    with caplog.at_level(logging.WARNING, logger="crust.data"):
        bundle = load("webvision", data_dir=files, image_size=32, skip_broken=True)
    assert len(bundle.train) == 17
    assert "2_0.jpg is broken" in caplog.text
    (files / "webvision/google/q0001/broken.jpg").unlink()
    with pytest.raises(InputError, match=r"broken\.jpg cannot be read as an image \(it is not there\)"):
        load("webvision", data_dir=files, image_size=32)


def test_a_limit_takes_from_every_class_in_turn(made):
    bundle = load("webvision", data_dir=made, image_size=32, skip_broken=True, limit=9)
    assert np.bincount(bundle.train.labels).tolist() == [2, 3, 3]  # the broken one was among the first nine
    assert bundle.total == 19


def test_large_folders_say_how_far_they_are(made, monkeypatch, caplog):
    for name, seconds in (("AFTER", -1.0), ("EVERY", 1000.0)):
        monkeypatch.setattr(image_folder, name, seconds)
    with caplog.at_level(logging.INFO, logger="crust.data"):
        load("webvision", data_dir=made, image_size=32, skip_broken=True)
    assert [text for text in caplog.messages if "looked at" in text] == [
        "looked at 1 of 19 images", "looked at 1 of 6 images", "looked at 1 of 6 images"
    ]  # fmt: skip


def test_without_imagenet_there_is_one_test_set(files, caplog):
    shutil.rmtree(files / "imagenet")
    with caplog.at_level(logging.WARNING, logger="crust.data"):
        assert load("webvision", data_dir=files, image_size=32, skip_broken=True).more_tests == {}
    assert "no validation images of ImageNet" in caplog.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("webvision", "webvision1.0"),
        ("webvision/google", "webvision/train/google"),
        ("webvision/google", "webvision/google_resized_256/google"),
        ("webvision/val_images_256", "webvision/val_images"),
        ("imagenet", "webvision/imagenet"),
        ("imagenet/val", "ILSVRC2012/ILSVRC2012_img_val"),
    ],
)
def test_other_places(files, old, new):
    (files / new).parent.mkdir(parents=True, exist_ok=True)
    (files / old).rename(files / new)
    bundle = load("webvision", data_dir=files, image_size=32, skip_broken=True)
    assert (len(bundle.train), len(bundle.test), len(bundle.more_tests["imagenet"])) == (18, 6, 6)


def test_its_own_folder_may_be_named(made):
    assert len(load("webvision", data_dir=made / "webvision", image_size=32, skip_broken=True).more_tests) == 1


def flat(files):
    """All of ImageNet's images in one folder; what each shows, by its number."""
    classes = {}
    for path in sorted((files / "imagenet/val").rglob("*.JPEG")):
        classes[int(path.stem[-8:])] = path.parent.name
        path.rename(files / "imagenet/val" / path.name)
    for folder in [path for path in (files / "imagenet/val").iterdir() if path.is_dir()]:
        folder.rmdir()
    return classes


def test_all_images_in_one_folder_with_the_file_of_kaggle(files):
    expected = load("webvision", data_dir=files, image_size=32, skip_broken=True).more_tests["imagenet"]
    pixels = next(batches(expected))[0]
    rows = [f"ILSVRC2012_val_{i:08},{wnid} 1 2 3 4 {wnid} 5 6 7 8 " for i, wnid in reversed(flat(files).items())]
    (files / "imagenet/LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *rows]))
    found = load("webvision", data_dir=files, image_size=32, skip_broken=True).more_tests["imagenet"]
    assert found.labels.tolist() == expected.labels.tolist()
    assert torch.equal(next(batches(found))[0], pixels)


def test_all_images_in_one_folder_with_the_development_kit(files):
    expected = load("webvision", data_dir=files, image_size=32, skip_broken=True).more_tests["imagenet"]
    classes = flat(files)
    ids = {"n01443537": 2, "n01440764": 490, "n01484850": 7}  # the kit has an order of its own
    kit = files / "imagenet/ILSVRC2012_devkit_t12/data"
    kit.mkdir(parents=True)
    table = np.array([(number, wnid, "words") for wnid, number in ids.items()],
                     dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])  # fmt: skip
    savemat(kit / "meta.mat", {"synsets": table[:, None]})
    truth = kit / "ILSVRC2012_validation_ground_truth.txt"
    truth.write_text("".join(f"{ids[wnid]}\n" for _, wnid in sorted(classes.items())))
    found = load("webvision", data_dir=files, image_size=32, skip_broken=True).more_tests["imagenet"]
    assert found.labels.tolist() == expected.labels.tolist()
    (kit / "meta.mat").write_bytes(b"none")
    with refused("bad-file"):
        load("webvision", data_dir=files, image_size=32, skip_broken=True)


def damage(files, what):
    root = files / "webvision"
    match what:
        case "nothing":
            shutil.rmtree(root)
        case "list":
            (root / "info/train_filelist_google.txt").unlink()
        case "google":
            shutil.rmtree(root / "google")
        case "val":
            shutil.rmtree(root / "val_images_256")
        case "line":
            (root / "info/val_filelist.txt").write_text("val000001.jpg\n")
        case "none of ours":
            (root / "info/val_filelist.txt").write_text("val000001.jpg 77\n")
        case "synset":
            (root / "info/synsets.txt").write_text("tench\n")
        case "class":
            shutil.rmtree(files / "imagenet/val/n01443537")
        case "flat":
            flat(files)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nothing", "there is no WebVision in .*unpack info.tar, google_resized_256.tar and val_images_256.tar"),
        ("list", r"train_filelist_google\.txt is not there: unpack info\.tar"),
        ("google", r"has no folder google with the training images: unpack google_resized_256\.tar"),
        ("val", r"has no folder val_images_256 .*: unpack val_images_256\.tar"),
        ("line", r"line 1 of .*val_filelist\.txt is 'val000001\.jpg'"),
        ("none of ours", r"val_filelist\.txt lists no image of the first 3 classes"),
        ("synset", "line 1 of .* is 'tench': it must begin with an id"),
        ("class", "has no images in a folder n01443537: name the class folders by their WordNet ids"),
        ("flat", "nothing says what they show: .*LOC_val_solution.csv"),
    ],
)
def test_what_is_missing_gets_a_sentence(files, what, words):
    damage(files, what)
    with pytest.raises(InputError, match=words) as caught:
        load("webvision", data_dir=files, image_size=32, skip_broken=True)
    assert "\n" not in str(caught.value)


def test_only_the_first_fifty_classes_count(files):
    root = files / "webvision/info"
    more = [f"n{number:08} thing {number}, other" for number in range(2_000_000, 2_000_097)]
    (root / "synsets.txt").write_text("\n".join([f"{wnid} {words}" for wnid, words in SYNSETS.items()] + more))
    found = read_synsets(root / "synsets.txt")
    assert len(found) == 50
    assert list(found.values())[2:4] == ["great white shark", "thing 2000000"]
    (root / "synsets.txt").write_text("n02012849 crane\nn03126707 crane, machine\n")
    assert list(read_synsets(root / "synsets.txt").values()) == ["crane (n02012849)", "crane (n03126707)"]


def test_more_of_the_same_for_predictions(made):
    bundle = load("webvision", data_dir=made, image_size=48, skip_broken=True)
    encoding = json.loads(json.dumps(bundle.encoding))
    again = load_new("webvision", encoding, data_dir=made)
    assert (again.shape, again.labels.tolist()) == ((3, 48, 48), bundle.test.labels.tolist())
    assert torch.equal(next(batches(again))[0], next(batches(bundle.test))[0])
    shutil.rmtree(made / "imagenet/val/n01491361", ignore_errors=True)
    images = load_new(made / "imagenet/val", encoding)  # class folders by WordNet id are known by it
    assert images.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert torch.equal(next(batches(images))[0], next(batches(bundle.more_tests["imagenet"]))[0])
