"""Image files: found, checked, decoded and brought to one size."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from crust.errors import InputError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# The last bytes of a whole file; trailing bytes after them are common.
END_MARKERS = {"JPEG": b"\xff\xd9", "PNG": b"IEND"}
TAIL_BYTES = 1024
WINDOWS = os.name == "nt"
AFTER, EVERY = 2.0, 10.0  # seconds until the first word on a large folder, and between the others

log = logging.getLogger("crust.data")


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
    from torchvision.transforms import v2

    # 256 for 224, as is usual; small images are wanted whole
    shorter = resize or (round(size * 256 / 224) if size >= 112 else size)
    return v2.Compose([v2.Resize(shorter, antialias=True), v2.CenterCrop(size), v2.PILToTensor()])


def _augmenting(size: int, resize: int | None) -> Any:
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
        with Image.open(path) as image:
            if "transparency" in image.info:
                image = image.convert("RGBA")
            return image.convert("L" if channels == 1 else "RGB")
    except Exception as error:  # PIL raises all kinds of errors on a broken file
        raise InputError(
            f"{path} cannot be read as an image ({_reason(error)}): repair it, or leave it out with skip_broken "
            "(--skip-broken)"
        ) from None


def broken_image(path: Path) -> str | None:
    """Why a file is not a whole image, or None. Quick: a file with the right beginning and end is not decoded."""
    from PIL import Image

    try:
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


def list_images(folder: Path) -> list[str]:
    """All image files below a folder, by name relative to it, sorted; hidden ones are left out."""
    found = []
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        below = Path(parent).relative_to(folder)
        found += [(below / n).as_posix() for n in files if n.lower().endswith(SUFFIXES) and not is_hidden(n)]
    for name in (folder.name, *found):
        try:
            name.encode()
        except UnicodeEncodeError:  # before a long training, since no table or page could name it
            raise InputError(f"the name {os.fsencode(name)!r} in {folder.parent} is not UTF-8: rename it") from None
    return sorted(found)


def check_inside(name: str) -> None:
    """A name from anybody's list or table stays below the folder; links in there lead where their owner wants.

    Example:
        >>> check_inside("cat/a.jpg")
        >>> check_inside("../a.jpg")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: '../a.jpg' is no image in a class folder: give names such as cat/a.jpg
    """
    parts = PurePosixPath(name).parts
    # On Windows a backslash is a slash, and a colon ends the name of a drive; elsewhere both are letters.
    foreign = WINDOWS and any(sign in name for sign in "\\:")
    if len(parts) < 2 or ".." in parts or name.startswith("/") or "\0" in name or foreign:
        raise InputError(f"{name!r} is no image in a class folder: give names such as cat/a.jpg")


def is_hidden(name: str) -> bool:
    """Files and folders that systems leave behind."""
    return name.startswith(".") or name == "__MACOSX"


def common_size(paths: Sequence[Path]) -> int | None:
    """The side of the images where a look at some finds all of them square and alike."""
    from PIL import Image

    sizes = set()
    for path in paths[:: max(1, len(paths) // 50)]:
        try:
            with Image.open(path) as image:
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
