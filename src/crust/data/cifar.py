"""CIFAR-10 and CIFAR-100: from torchvision's folder, from a .npz file, or downloaded by torchvision."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Bundle, Examples
from crust.data.labels import check_classes
from crust.data.npz_dataset import encoding_of, from_arrays, read_npz
from crust.data.safe_pickle import read_pickle
from crust.errors import InputError, require

log = logging.getLogger("crust.data")

# What the released code of CRUST normalises by, for both datasets.
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)

FOLDERS = {"cifar10": "cifar-10-batches-py", "cifar100": "cifar-100-python"}
FILES = {
    "cifar10": ([f"data_batch_{i}" for i in range(1, 6)], ["test_batch"]),
    "cifar100": (["train"], ["test"]),
}
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100 = """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm"""
CLASSES = {"cifar10": CIFAR10.split(), "cifar100": CIFAR100.split()}


def load_cifar(name: str, folder: Path, limit: int | None = None) -> Bundle:
    """Read `cifar10` or `cifar100` from a data folder; what is not there is downloaded by torchvision."""
    batches, archive = folder / FOLDERS[name], folder / f"{name}.npz"
    if not batches.is_dir():
        if archive.is_file():
            return _from_npz(name, archive, limit)
        _download(name, folder)
    return _from_batches(name, batches, limit)


def _from_batches(name: str, folder: Path, limit: int | None) -> Bundle:
    (x, y, coarse), (x_test, y_test, _) = (_read_batches(name, folder, files) for files in FILES[name])
    superclasses = None
    if coarse is not None:
        superclasses = np.full(100, -1, np.int64)
        superclasses[y] = coarse
        if (superclasses < 0).any() or (superclasses[y] != coarse).any():
            log.warning("the coarse labels of %s do not fit the fine ones: the published superclasses are used", folder)
            superclasses = None
    return _bundle(name, (x, y), (x_test, y_test), limit, superclasses)


def _read_batches(name: str, folder: Path, files: list[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Images, fine labels and, for CIFAR-100, coarse labels of some batches."""
    key = "labels" if name == "cifar10" else "fine_labels"
    images, labels, coarse = [], [], []
    for file in files:
        if not (folder / file).is_file():
            raise InputError(f"{folder} has no file {file}: download {name} again", code="missing-file")
        content = read_pickle(folder / file)
        if not isinstance(content, dict):
            raise InputError(f"{folder / file} is no batch of {name}: download it again", code="bad-file")
        batch = {k.decode("latin1") if isinstance(k, bytes) else k: v for k, v in content.items()}
        data, fine = np.asarray(batch.get("data")), np.asarray(batch.get(key))
        whole = data.ndim == 2 and data.shape[1] == 3072 and data.dtype == np.uint8 and fine.shape == (len(data),)
        if not whole or fine.dtype.kind not in "iu":
            raise InputError(f"{folder / file} is no batch of {name}: download it again", code="bad-file")
        images.append(data.reshape(-1, 3, 32, 32))
        labels.append(fine)
        coarse.append(np.asarray(batch.get("coarse_labels")))
    has_coarse = all(c.shape == fine.shape for c, fine in zip(coarse, labels, strict=True))
    return np.concatenate(images), np.concatenate(labels), np.concatenate(coarse) if has_coarse else None


def _from_npz(name: str, path: Path, limit: int | None) -> Bundle:
    """A file with x_train, y_train, x_test and y_test, the images as (n, 32, 32, 3)."""
    train, test = read_npz(path)
    if test is None or any(x.shape[1:] != (32, 32, 3) or x.dtype != np.uint8 for x, _ in (train, test)):
        raise InputError(
            f"{path} does not hold {name}: save x_train (n, 32, 32, 3), y_train, x_test and y_test", code="bad-arrays"
        )
    return _bundle(name, train, test, limit, None)


def _bundle(name: str, train: Any, test: Any, limit: int | None, superclasses: Any) -> Bundle:
    classes, total = CLASSES[name], len(train[1])
    rows = np.arange(min(limit or total, total))
    (x, y), (x_test, y_test) = train, test
    examples = _cifar_examples(x[: len(rows)], y[: len(rows)], classes, "train")
    check_classes(examples.labels, classes, f"the labels of {name}")
    tests = _cifar_examples(x_test, y_test, classes, "test")
    return Bundle(examples, tests, encoding_of(examples), total, rows, superclasses)


def _cifar_examples(x: NDArray[Any], y: NDArray[Any], classes: list[str], part: str) -> Examples:
    import torch

    images = torch.from_numpy(x) if x.shape[1] == 3 else x  # else (n, height, width, channels)
    return from_arrays(images, y, classes=classes, mean=MEAN, std=STD, where=f"the {part} labels")


def _download(name: str, folder: Path) -> None:
    require("torchvision", extra="vision")
    from torchvision import datasets
    from torchvision.datasets.utils import download_and_extract_archive

    kind = datasets.CIFAR10 if name == "cifar10" else datasets.CIFAR100
    log.info("downloading %s to %s", name, folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        download_and_extract_archive(kind.url, str(folder), filename=kind.filename, md5=kind.tgz_md5)
    except Exception as error:  # no network, no space, a wrong checksum: the user needs the same one thing
        if new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()  # a wrong name leaves nothing behind
        cause = getattr(error, "reason", error)  # of a URLError
        told = getattr(cause, "strerror", None) or str(cause)
        reason = next(iter(told.splitlines()), type(error).__name__).rstrip(". ")
        raise InputError(
            f"{folder} has neither {FOLDERS[name]} nor {name}.npz, and the download failed ({reason}): "
            f"put one of them there, or name the folder that has it with data_dir (--data-dir)",
            code="download",
        ) from None
