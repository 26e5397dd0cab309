"""Images in class folders: root/class/*.jpg, or root/train/class/*.jpg with a test or val beside it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Bundle, Examples
from crust.data.image_files import FolderImages, broken_image, common_size, in_threads, is_hidden, list_images
from crust.data.labels import check_classes
from crust.errors import InputError, choices

log = logging.getLogger("crust.data")

IN_MEMORY_BYTES = 1 << 30  # decoded images up to this many bytes are held in memory
DEFAULT_IMAGE_SIZE = 224
# Those of ImageNet, as for nearly every network that takes photographs.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TEST_FOLDERS = ("test", "val", "valid", "validation")


@dataclass
class Listing:
    """The files of one part, by name relative to its root, and the class folder that each is in."""

    root: Path
    files: list[str]
    folders: list[str]


def load_folder(
    root: Path, image_size: int | None = None, skip_broken: bool = False, limit: int | None = None
) -> Bundle:
    """Images in class folders; in memory where they fit into 1 GiB, else read by workers as they are needed."""
    base, test_root = _train_and_test_folders(root)
    listing = list_classes(base)
    classes = sorted(set(listing.folders))
    if len(classes) < 2:
        raise InputError(f"{base} has images of one class only, {classes[0]!r}: training needs at least two")
    total, rows = len(listing.files), np.arange(len(listing.files))
    if limit is not None and limit < total:
        rows = round_robin(listing.folders, limit)
        listing = some(listing, rows)
    size = check_size(image_size) or common_size([base / f for f in listing.files]) or DEFAULT_IMAGE_SIZE
    train, kept = read_images(listing, classes, size, skip_broken)
    check_classes(train.labels, classes, f"the labels of {base}")
    encoding = {
        "format": "images", "classes": classes, "shape": [3, size, size], "mean": MEAN, "std": STD, "mirror": True
    }  # fmt: skip
    test = None if test_root is None else read_images(list_classes(test_root), classes, size, skip_broken)[0]
    return Bundle(train, test, encoding, total, rows[kept])


def load_new_folder(root: Path, encoding: dict[str, Any], skip_broken: bool = False) -> Examples:
    """New images, in class folders or not; labels are known where the folder has the name of a class."""
    files = list_images(root)
    if not files:
        raise InputError(f"{root} has no images: give a folder with files such as *.jpg or *.png")
    classes, (channels, size, _) = [str(c) for c in encoding["classes"]], encoding["shape"]
    folders = [Path(file).parts[0] if "/" in file else "" for file in files]
    names = {**{name: name for name in classes}, **encoding.get("folders", {})}
    known = Listing(root, files, [names.get(name, "") for name in folders])
    found, _ = read_images(known, classes, size, skip_broken, channels, encoding.get("resize"))
    found.classes, found.mean, found.std = encoding["classes"], tuple(encoding["mean"]), tuple(encoding["std"])
    return found


def train_root(root: Path) -> Path:
    """The folder that the names of the training images are relative to."""
    return _train_and_test_folders(root)[0]


def list_classes(root: Path) -> Listing:
    """The images of every class folder, class after class."""
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not is_hidden(path.name))
    files: list[str] = []
    names: list[str] = []
    for folder in folders:
        found = list_images(folder)
        if not found:
            log.warning("%s has no images and is left out", folder)
        files += [f"{folder.name}/{file}" for file in found]
        names += [folder.name] * len(found)
    if not files:
        what = "images, but no class folders" if list_images(root) else "no class folders with images"
        raise InputError(f"{root} has {what}: put the images of each class into a folder of its name")
    return Listing(root, files, names)


def read_images(
    listing: Listing,
    classes: list[str],
    size: int,
    skip_broken: bool,
    channels: int = 3,
    resize: int | None = None,
    stream: bool = False,
) -> tuple[Examples, NDArray[np.int64]]:
    """Examples of the files that are whole, and which of them these are; `stream` leaves the images where they are."""
    in_memory = not stream and len(listing.files) * channels * size * size <= IN_MEMORY_BYTES
    images: list[Any] = []
    dataset = FolderImages(listing.root, listing.files, size, channels, resize=resize)
    if in_memory:
        images = in_threads(lambda i: _or_error(dataset, i), range(len(dataset)))
        bad = {i: image for i, image in enumerate(images) if isinstance(image, InputError)}
    else:
        reasons = in_threads(lambda file: broken_image(listing.root / file), listing.files)
        bad = {i: _unreadable_image(listing, i, reason) for i, reason in enumerate(reasons) if reason is not None}
    if bad:
        _report(bad, listing, skip_broken)
    kept = np.array([i for i in range(len(dataset)) if i not in bad], dtype=np.int64)
    left = some(listing, kept)
    position = {name: i for i, name in enumerate(classes)}
    for name in set(left.folders) - {"", *classes}:
        choices(name, classes, f"class folder of {listing.root}")
    labels = np.array([position.get(name, -1) for name in left.folders], dtype=np.int64)
    if in_memory:
        import torch

        tensor = torch.stack([images[i] for i in kept])
        return Examples(tensor, labels, list(classes), "images", MEAN, STD, ids=left.files), kept
    streamed = FolderImages(listing.root, left.files, size, channels, resize=resize)
    return Examples(streamed, labels, list(classes), "dataset", MEAN, STD, ids=left.files), kept


def check_size(size: int | None) -> int | None:
    """The side of the images in pixels, or None."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 4):
        raise InputError(f"the image size is {size!r}: give the side in pixels, such as 224")
    return None if size is None else int(size)


def _train_and_test_folders(root: Path) -> tuple[Path, Path | None]:
    """The folder to train on and the one to test with. A folder `train` of images alone is a class of that name."""
    train = root / "train"
    if not train.is_dir() or not any(path.is_dir() and not is_hidden(path.name) for path in train.iterdir()):
        return root, None
    return train, next((root / name for name in TEST_FOLDERS if (root / name).is_dir()), None)


def some(listing: Listing, rows: NDArray[np.int64]) -> Listing:
    return Listing(listing.root, [listing.files[i] for i in rows], [listing.folders[i] for i in rows])


def round_robin(folders: list[str], limit: int) -> NDArray[np.int64]:
    """The first files of every class in turn: the first of the listing would all be of one class."""
    _, codes = np.unique(folders, return_inverse=True)
    rank = np.zeros(len(codes), dtype=np.int64)
    for c in np.unique(codes):
        rank[codes == c] = np.arange((codes == c).sum())
    return np.sort(np.lexsort((codes, rank))[:limit])


def _or_error(dataset: FolderImages, position: int) -> Any:
    try:
        return dataset[position]
    except InputError as error:
        return error


def _unreadable_image(listing: Listing, position: int, reason: str) -> InputError:
    path = listing.root / listing.files[position]
    return InputError(
        f"{path} cannot be read as an image ({reason}): repair it, or leave it out with skip_broken (--skip-broken)"
    )


def _report(bad: dict[int, InputError], listing: Listing, skip_broken: bool) -> None:
    first = next(iter(bad.values()))
    if not skip_broken:
        more = f"; {len(bad) - 1} more are broken too" if len(bad) > 1 else ""
        raise InputError(f"{first}{more}")
    if len(bad) == len(listing.files):
        raise InputError(f"none of the {len(bad)} images in {listing.root} can be read: give others")
    for position in bad:
        log.warning("left out: %s is broken", listing.root / listing.files[position])
