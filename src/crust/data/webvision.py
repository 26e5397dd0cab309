"""mini WebVision: the first 50 classes of the Google part of WebVision 1.0, as its archives unpack.

    webvision/info/synsets.txt                `n01440764 tench, Tinca tinca`, a line a class, in the order of the labels
    webvision/info/train_filelist_google.txt  `google/q0001/name.jpg 0`
    webvision/info/val_filelist.txt           `val000001.jpg 0`
    webvision/google/q0001/name.jpg           from google_resized_256.tar, or the images in full size
    webvision/val_images_256/val000001.jpg    from val_images_256.tar
    imagenet/val/n01440764/name.JPEG          ImageNet's validation images, optional: beside webvision or inside it

Images keep their proportions: their shorter side is brought to 320 pixels for crops of 299 (other sizes in
proportion), of the middle for tests, at random and mirrored for training. The paper does not say how; crops at a fixed
scale are what the released code of DivideMix does on this set (227 out of 256), in proportion our choice.

ImageNet's validation images (ILSVRC 2012) come in class folders, or all in one with a file that says what they show.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Bundle, Examples
from crust.data.image_folder import (
    MEAN,
    STD,
    Listing,
    check_size,
    is_hidden,
    list_images,
    read_images,
    round_robin,
    some,
)
from crust.data.labels import check_classes
from crust.errors import InputError

log = logging.getLogger("crust.data")

CLASSES = 50
SIZE, RESIZE = 299, 320
ROOTS = ("", "webvision", "WebVision", "webvision1.0", "webvision-1.0")
TRAIN, VAL, SYNSETS = "info/train_filelist_google.txt", "info/val_filelist.txt", "info/synsets.txt"
TRAIN_FOLDERS = ("", "google_resized_256", "train", "images")  # above google/
VAL_FOLDERS = ("val_images_256", "val_images", "val", "val/val_images_256")


def load_webvision(
    folder: Path, image_size: int | None = None, skip_broken: bool = False, limit: int | None = None
) -> Bundle:
    """Its training and validation images, and ImageNet's validation images of the same classes where they are found.

    `folder` has `webvision` in it, or is it; of the training images `limit` takes so many, of every class in turn.
    """
    root, size = _webvision_root(folder), check_size(image_size) or SIZE
    synsets = read_synsets(root / SYNSETS)
    classes = list(synsets.values())
    listing = _training_list(root, classes)
    total, rows = len(listing.files), np.arange(len(listing.files))
    if limit is not None and limit < total:
        rows = round_robin(listing.folders, limit)
        listing = some(listing, rows)
    validation = _validation_list(root, classes)  # what is missing is missed before all images are looked at
    train, kept = _read_listing(listing, classes, size, skip_broken)
    check_classes(train.labels, classes, f"the labels of {root}")
    encoding = {
        "format": "images", "classes": classes, "shape": [3, size, size], "mean": MEAN, "std": STD, "mirror": True,
        "resize": _resize(size), "folders": synsets,
    }  # fmt: skip
    test, _ = _read_listing(validation, classes, size, skip_broken)
    return Bundle(train, test, encoding, total, rows[kept], more_tests=_imagenet(root, synsets, size, skip_broken))


def load_validation(folder: Path, size: int, skip_broken: bool = False) -> Examples:
    """Its validation images alone."""
    root = _webvision_root(folder)
    classes = list(read_synsets(root / SYNSETS).values())
    return _read_listing(_validation_list(root, classes), classes, size, skip_broken)[0]


def read_synsets(path: Path) -> dict[str, str]:
    """The first 50 classes: their WordNet ids, and what each is called; two of one name are told apart by the id."""
    found = {}
    for number, words in enumerate(_list_lines(path)[:CLASSES], 1):
        wnid, _, names = words.partition(" ")
        if not (len(wnid) == 9 and wnid[0] == "n" and wnid[1:].isdigit()):
            raise InputError(
                f"line {number} of {path} is {words!r}: it must begin with an id such as n01440764", code="bad-line"
            )
        found[wnid] = names.split(",")[0].strip() or wnid
    shared = {name for name in found.values() if list(found.values()).count(name) > 1}
    return {wnid: f"{name} ({wnid})" if name in shared else name for wnid, name in found.items()}


def read_list(path: Path, classes: int) -> tuple[list[str], NDArray[np.int64]]:
    """The files of the first classes in a list of `NAME LABEL`, and their labels."""
    files, labels = [], []
    for number, words in enumerate(_list_lines(path), 1):
        name, _, label = words.rpartition(" ")
        if not name or not label.isdigit():
            raise InputError(
                f"line {number} of {path} is {words!r}: it must be a file and a label, such as a.jpg 0", code="bad-line"
            )
        if int(label) < classes:
            files.append(name.strip())
            labels.append(int(label))
    if not files:
        raise InputError(
            f"{path} lists no image of the first {classes} classes: download info.tar again", code="no-images"
        )
    return files, np.array(labels, np.int64)


def _webvision_root(folder: Path) -> Path:
    for name in ROOTS:
        if (folder / name / "info").is_dir():
            return folder / name
    raise InputError(
        f"there is no WebVision in {folder}: unpack info.tar, google_resized_256.tar and val_images_256.tar of "
        f"WebVision 1.0 into {folder / 'webvision'}, or name its folder with data_dir (--data-dir)",
        code="missing-data",
    )


def _list_lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise InputError(f"{path} is not there: unpack info.tar of WebVision 1.0 again", code="missing-file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", code="cannot-read") from None


def _training_list(root: Path, classes: list[str]) -> Listing:
    files, labels = read_list(root / TRAIN, len(classes))
    top = files[0].split("/")[0]  # google
    base = next((root / name for name in TRAIN_FOLDERS if (root / name / top).is_dir()), None)
    if base is None:
        raise InputError(
            f"{root} has no folder {top} with the training images: unpack google_resized_256.tar there",
            code="missing-data",
        )
    return Listing(base, files, [classes[label] for label in labels])


def _validation_list(root: Path, classes: list[str]) -> Listing:
    files, labels = read_list(root / VAL, len(classes))
    base = next((root / name for name in VAL_FOLDERS if (root / name).is_dir()), None)
    if base is None:
        raise InputError(
            f"{root} has no folder {VAL_FOLDERS[0]} with the validation images: unpack val_images_256.tar",
            code="missing-data",
        )
    return Listing(base, files, [classes[label] for label in labels])


def _imagenet(root: Path, synsets: dict[str, str], size: int, skip_broken: bool) -> dict[str, Examples]:
    found = find_imagenet([root, root.parent])
    if found is None:
        log.warning(
            "there are no validation images of ImageNet beside %s (imagenet/val): only WebVision's are measured", root
        )
        return {}
    files, wnids = list_imagenet(found, list(synsets))
    listing = Listing(found, files, [synsets[wnid] for wnid in wnids])
    return {"imagenet": _read_listing(listing, list(synsets.values()), size, skip_broken)[0]}


def _read_listing(listing: Listing, classes: list[str], size: int, skip_broken: bool) -> tuple[Examples, Any]:
    """Always read as they are needed: images in memory would be augmented in another way."""
    return read_images(listing, classes, size, skip_broken, resize=_resize(size), stream=True)


def _resize(size: int) -> int:
    return round(size * RESIZE / SIZE)


# Where people keep them: the folder with the class folders, or with all 50,000 images.
PLACES = (
    "imagenet/val",
    "imagenet/ILSVRC2012_img_val",
    "imagenet/ILSVRC/Data/CLS-LOC/val",
    "ILSVRC2012/val",
    "ILSVRC2012/ILSVRC2012_img_val",
    "ILSVRC2012_img_val",
)
SOLUTION = "LOC_val_solution.csv"  # of the release on Kaggle: `ILSVRC2012_val_00000001,n01751748 111 108 477 302`
TRUTH, META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"  # of the development kit
KITS = ("", "data", "devkit/data", "ILSVRC2012_devkit_t12/data")


def find_imagenet(roots: Iterable[Path]) -> Path | None:
    """The folder of the validation images below one of some folders, or None."""
    return next((root / place for root in roots for place in PLACES if (root / place).is_dir()), None)


def list_imagenet(folder: Path, wnids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The images of some classes (WordNet ids) below what `find_imagenet` found: their names, and the class of each."""
    if any(path.is_dir() and not is_hidden(path.name) for path in folder.iterdir()):
        return _in_class_folders(folder, wnids)
    truth = _ground_truth(folder)
    wanted, names = set(wnids), sorted(list_images(folder))
    if not names:
        raise InputError(f"{folder} has no images: unpack ILSVRC2012_img_val.tar there", code="no-images")
    unknown = [name for name in names if Path(name).stem not in truth]
    if unknown:
        raise InputError(
            f"nothing says what {folder / unknown[0]} shows: take it away, or download the labels again",
            code="missing-label",
        )
    files = [name for name in names if truth[Path(name).stem] in wanted]
    return files, [truth[Path(name).stem] for name in files]


def _in_class_folders(folder: Path, wnids: Sequence[str]) -> tuple[list[str], list[str]]:
    files: list[str] = []
    classes: list[str] = []
    for wnid in wnids:
        found = list_images(folder / wnid) if (folder / wnid).is_dir() else []
        if not found:
            raise InputError(
                f"{folder} has no images in a folder {wnid}: name the class folders by their WordNet ids",
                code="no-images",
            )
        files += [f"{wnid}/{name}" for name in found]
        classes += [wnid] * len(found)
    return files, classes


def _ground_truth(folder: Path) -> dict[str, str]:
    """The class of every validation image, by the name of the image without its ending."""
    for above in (folder, *list(folder.parents)[:4]):
        if (above / SOLUTION).is_file():
            return _solution(above / SOLUTION)
        for kit in KITS:
            if (above / kit / TRUTH).is_file():
                return _kit(above / kit / TRUTH, above / kit / META)
    raise InputError(
        f"{folder} has all images in one folder, and nothing says what they show: sort them into folders by id, "
        f"or put {SOLUTION}, or {TRUTH} with {META}, beside it",
        code="missing-label",
    )


def _solution(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) == 2 and row[0] != "ImageId"]
    found = {name: words.split()[0] for name, words in rows if words.split()}
    if not found:
        raise InputError(f"{path} has no lines with an image and its class: download it again", code="bad-file")
    return found


def _kit(truth: Path, meta: Path) -> dict[str, str]:
    from scipy.io import loadmat

    try:
        synsets = loadmat(meta, squeeze_me=True)["synsets"]
        wnids = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets}
        numbers = [int(word) for word in truth.read_text(encoding="utf-8").split()]
        return {f"ILSVRC2012_val_{i:08}": wnids[number] for i, number in enumerate(numbers, 1)}
    except Exception as error:  # readers of others on files of others
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(". ")
        raise InputError(
            f"cannot read {truth.name} with {meta} ({reason}): download the development kit again", code="bad-file"
        ) from None
