"""Images in class folders: root/class/*.jpg, or root/train/class/*.jpg with a test or val beside it.

The files are found, checked, decoded and brought to one size.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data.examples import Bundle, Examples
from crust.data.labels import check_classes
from crust.errors import InputError, choices, require

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
        raise InputError(
            f"{base} has images of one class only, {classes[0]!r}: training needs at least two", code="one-class"
        )
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
        raise InputError(f"{root} has no images: give a folder with files such as *.jpg or *.png", code="no-images")
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
    with reading_folder(root):
        folders = sorted(path for path in root.iterdir() if path.is_dir() and not is_hidden(path.name))
    files: list[str] = []
    names: list[str] = []
    seen = {**_above(root), root.resolve(): root}
    for folder in folders:
        found = list_images(folder, seen)
        if not found:
            log.warning("%s has no images and is left out", folder)
        files += [f"{folder.name}/{file}" for file in found]
        names += [folder.name] * len(found)
    if not files:
        what = "images, but no class folders" if list_images(root) else "no class folders with images"
        raise InputError(f"{root} has {what}: put the images of each class into a folder of its name", code="no-images")
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
        with large_images():
            images = in_threads(lambda i: _or_error(dataset, i), range(len(dataset)))
        bad = {i: image for i, image in enumerate(images) if isinstance(image, InputError)}
    else:
        with large_images():
            reasons = in_threads(lambda file: broken_image(listing.root / file), listing.files)
        paths = [listing.root / file for file in listing.files]
        bad = {i: _unreadable_image(paths[i], reason) for i, reason in enumerate(reasons) if reason is not None}
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
        raise InputError(f"the image size is {size!r}: give the side in pixels, such as 224", code="image-size")
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


def _unreadable_image(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} cannot be read as an image ({reason}): repair it, or leave it out with skip_broken (--skip-broken)",
        code="broken-image",
    )


def _report(bad: dict[int, InputError], listing: Listing, skip_broken: bool) -> None:
    first = next(iter(bad.values()))
    if not skip_broken:
        more = f"; {len(bad) - 1} more are broken too" if len(bad) > 1 else ""
        raise InputError(f"{first}{more}", code="broken-image")
    if len(bad) == len(listing.files):
        raise InputError(
            f"none of the {len(bad)} images in {listing.root} can be read: give others", code="broken-image"
        )
    for position in bad:
        log.warning("left out: %s is broken", listing.root / listing.files[position])


SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# The last bytes of a whole file; trailing bytes after them are common.
END_MARKERS = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}
TAIL_BYTES = 1024
WINDOWS = os.name == "nt"
AFTER, EVERY = 2.0, 10.0  # seconds until the first word on a large folder, and between the others


class FolderImages:
    """A dataset of image files as uint8 tensors of one size: whole and centred, or, augmenting, random crops.

    With a `resize`, crops are cut out of images whose shorter side has that many pixels; without, they vary in scale.
    """

    def __init__(
        self,
        root: Path,
        files: Sequence[str],
        size: int,
        channels: int = 3,
        augment: bool = False,
        resize: int | None = None,
    ) -> None:
        self.root, self.files, self.size, self.channels = root, files, size, channels
        self.augment, self.resize = augment, resize
        self._transform: Any = None

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, position: int) -> Any:
        if self._transform is None:  # made where it is used: a worker builds its own
            self._transform = (_augmenting if self.augment else _eval_transform)(self.size, self.resize)
        return self._transform(open_image(self.root / self.files[position], self.channels))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_transform": None}

    def augmented(self) -> FolderImages:
        """The same files as random crops: what training sees."""
        return FolderImages(self.root, self.files, self.size, self.channels, True, self.resize)

    def fingerprint(self) -> str:
        """Names and sizes of all files; their content would take as long to read as an epoch."""
        resized = "" if self.resize is None else f" {self.resize}"
        digest = hashlib.sha256(f"{self.size} {self.channels}{resized}".encode())
        for file in self.files:
            digest.update(f"\n{file} {(self.root / file).stat().st_size}".encode())
        return digest.hexdigest()


def _eval_transform(size: int, resize: int | None) -> Any:
    require("torchvision", extra="vision")
    from torchvision.transforms import v2

    # 256 for 224, as is usual; small images are wanted whole
    shorter = resize or (round(size * 256 / 224) if size >= 112 else size)
    return v2.Compose([v2.Resize(shorter, antialias=True), v2.CenterCrop(size), v2.PILToTensor()])


def _augmenting(size: int, resize: int | None) -> Any:
    require("torchvision", extra="vision")
    from torchvision.transforms import v2

    if resize is None:
        crop = [v2.RandomResizedCrop(size, antialias=True)]
    else:
        crop = [v2.Resize(resize, antialias=True), v2.RandomCrop(size)]
    return v2.Compose([*crop, v2.RandomHorizontalFlip(), v2.PILToTensor()])


def open_image(path: Path, channels: int = 3) -> Any:
    """A decoded PIL image in colour or grey, or one sentence that names the file."""
    from PIL import Image

    try:
        _check_file(path)
        with Image.open(path) as image:
            if "transparency" in image.info:
                image = image.convert("RGBA")
            return image.convert("L" if channels == 1 else "RGB")
    except Exception as error:  # PIL raises all kinds of errors on a broken file
        raise _unreadable_image(path, _reason(error)) from None


def _check_file(path: Path) -> None:
    """Whoever opens a pipe waits for somebody who writes."""
    if path.exists() and not path.is_file():
        raise OSError("it is a pipe, a device or a folder")


def broken_image(path: Path) -> str | None:
    """Why a file is not a whole image, or None. Quick: a file with the right beginning and end is not decoded."""
    from PIL import Image

    try:
        _check_file(path)
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
            file.seek(0)
            with Image.open(file) as image:
                end = END_MARKERS.get(image.format or "")
                if end is None or end not in tail:
                    image.load()
        return None
    except Exception as error:
        return _reason(error)


@contextmanager
def large_images() -> Iterator[None]:
    """Images of 90 megapixels and more are read without a warning; from twice as many on PIL takes them for a bomb."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def in_threads(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Work on all items, in order, on all cores: PIL decodes outside of Python's lock."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(_reported(pool.map(work, items), len(items)))


def _reported(results: Iterator[Any], total: int) -> Iterator[Any]:
    """The results, with a word now and then where they take their time."""
    due = time.monotonic() + AFTER
    for done, result in enumerate(results, 1):
        yield result
        if time.monotonic() > due:
            log.info("looked at %s of %s images", f"{done:,}", f"{total:,}")
            due = time.monotonic() + EVERY


@contextmanager
def reading_folder(folder: Path) -> Iterator[None]:
    """A folder that is closed, or not there, in a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot read the folder {error.filename or folder}: {(error.strerror or str(error)).lower()}",
            code="cannot-read",
        ) from None


def list_images(folder: Path, seen: dict[Path, Path] | None = None) -> list[str]:
    """All image files below a folder, by name relative to it, sorted; hidden ones are left out.

    Links are followed, but no folder is counted twice: not in a loop of links, nor in two classes.

    Args:
        folder: where to look.
        seen: the folders that were looked at, with their links followed; filled.
    """
    found, seen = [], _above(folder) if seen is None else seen

    def refuse(error: OSError) -> None:
        raise error

    with reading_folder(folder):
        for parent, folders, files in os.walk(folder, followlinks=True, onerror=refuse):
            _refuse_second(Path(parent), seen)
            folders[:] = sorted(name for name in folders if not is_hidden(name))
            below = Path(parent).relative_to(folder)
            found += [(below / n).as_posix() for n in files if n.lower().endswith(SUFFIXES) and not is_hidden(n)]
    for name in (folder.name, *found):
        try:
            name.encode()
        except UnicodeEncodeError:  # before a long training, since no table or page could name it
            raise InputError(
                f"the name {os.fsencode(name)!r} in {folder.parent} is not UTF-8: rename it", code="not-utf8"
            ) from None
    return sorted(found)


def _refuse_second(folder: Path, seen: dict[Path, Path]) -> None:
    first = seen.setdefault(folder.resolve(), folder)
    if first is not folder:
        raise InputError(
            f"{folder} and {first} are one folder by a link, whose images would be counted twice: remove the link",
            code="link-loop",
        )


def _above(root: Path) -> dict[Path, Path]:
    """The folders around one, which no link in it may lead to."""
    return {each: each for each in root.resolve().parents}


def check_inside(name: str, parts: int = 2) -> None:
    """A name from anybody's list or table stays below the folder; links in there lead where their owner wants."""
    steps = PurePosixPath(name).parts
    # On Windows a backslash is a slash, and a colon ends the name of a drive; elsewhere both are letters.
    foreign = WINDOWS and any(sign in name for sign in "\\:")
    if len(steps) < parts or ".." in steps or name.startswith("/") or "\0" in name or foreign:
        raise InputError(f"{name!r} is no image in a class folder: give names such as cat/a.jpg", code="outside-folder")


def is_hidden(name: str) -> bool:
    """Files and folders that systems leave behind."""
    return name.startswith(".") or name == "__MACOSX"


def common_size(paths: Sequence[Path]) -> int | None:
    """The side of the images, where all of some that are read are square and of one size."""
    from PIL import Image

    sizes = set()
    for path in paths[:: max(1, len(paths) // 50)]:
        try:
            _check_file(path)
            with large_images(), Image.open(path) as image:
                sizes.add(image.size)
        except Exception:
            continue  # a broken file is reported elsewhere, by name
    if len(sizes) == 1:
        width, height = sizes.pop()
        return width if width == height else None
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is not there"
    text = next(iter(str(error).splitlines()), "")
    return "not an image" if not text or "cannot identify" in text else text.rstrip(". ")
