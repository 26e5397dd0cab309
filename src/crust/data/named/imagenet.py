"""ImageNet's validation images (ILSVRC 2012): in class folders, or all in one with a file that says what they show."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from crust.data.image_files import is_hidden, list_images
from crust.errors import InputError

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
    """The folder of the validation images below one of some folders, or None.

    Example:
        >>> find_imagenet([Path("nowhere")]) is None
        True
    """
    return next((root / place for root in roots for place in PLACES if (root / place).is_dir()), None)


def list_imagenet(folder: Path, wnids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The images of some classes, by name relative to the folder, and the class of each.

    Args:
        folder: what `find_imagenet` found.
        wnids: WordNet ids, such as `n01440764`.
    """
    if any(path.is_dir() and not is_hidden(path.name) for path in folder.iterdir()):
        return _in_class_folders(folder, wnids)
    truth = _ground_truth(folder)
    wanted, names = set(wnids), sorted(list_images(folder))
    if not names:
        raise InputError(f"{folder} has no images: unpack ILSVRC2012_img_val.tar there")
    unknown = [name for name in names if Path(name).stem not in truth]
    if unknown:
        raise InputError(f"nothing says what {folder / unknown[0]} shows: take it away, or download the labels again")
    files = [name for name in names if truth[Path(name).stem] in wanted]
    return files, [truth[Path(name).stem] for name in files]


def _in_class_folders(folder: Path, wnids: Sequence[str]) -> tuple[list[str], list[str]]:
    files: list[str] = []
    classes: list[str] = []
    for wnid in wnids:
        found = list_images(folder / wnid) if (folder / wnid).is_dir() else []
        if not found:
            raise InputError(f"{folder} has no images in a folder {wnid}: name the class folders by their WordNet ids")
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
        f"or put {SOLUTION}, or {TRUTH} with {META}, beside it"
    )


def _solution(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) == 2 and row[0] != "ImageId"]
    found = {name: words.split()[0] for name, words in rows if words.split()}
    if not found:
        raise InputError(f"{path} has no lines with an image and its class: download it again")
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
            f"cannot read {truth.name} with {meta} ({reason}): download the development kit again"
        ) from None
