"""How the examples of a dataset are shown to people: as pictures, or as rows of text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crust.data import Examples
from crust.errors import InputError

__all__ = ["Looks", "Pictures", "Rows", "as_image", "picture_bytes", "picture_uri", "pictures_of", "rows_of"]

CHANNELS = {1, 3, 4}
TINY = 24  # pixels a side up to which an image is kept as it is, without loss
LONG = 20_000  # characters of one cell that are ever shown


class Looks(Protocol):
    """Either of `Pictures` and `Rows`: whichever is not its own is None.

    Example:
        >>> looks: Looks = rows_of({"text": ["so good", "so bad"]})
        >>> looks.picture(0) is None, looks.row(1)
        (True, ['so bad'])
    """

    columns: list[str]
    missing: str | None  # what is no longer there, in words, where not all is
    files: Mapping[int, Path]  # where images are files

    def picture(self, index: int) -> Any:
        """The example as a PIL image, or None."""

    def row(self, index: int) -> list[str] | None:
        """The example as text, a cell a column, or None."""


class Gone(InputError):
    """An image that was there once, in one sentence."""

    code = "missing-image"


class Pictures:
    """Images by their position.

    Args:
        read: gives the image of a position as PIL has it, or raises an `InputError`.
        missing: what to say of those that are no longer there.
        files: where they are, if they are files.

    Example:
        >>> from PIL import Image
        >>> Pictures(lambda index: Image.new("L", (8, 8), index)).picture(7).getpixel((0, 0))
        7
    """

    def __init__(self, read: Callable[[int], Any], missing: str | None = None, files: Mapping[int, Path] | None = None):
        self.columns: list[str] = []
        self.picture, self.missing, self.files = read, missing, files or {}

    def row(self, index: int) -> None:
        """No text: it is an image."""
        return


class Rows:
    """Rows of a table, or texts, by their position.

    Args:
        columns: what the cells are called.
        read: gives the cells of a position.

    Example:
        >>> Rows(["age"], lambda index: [20 + index]).row(3)
        ['23']
    """

    def __init__(self, columns: Sequence[str], read: Callable[[int], Sequence[Any]]):
        self.columns, self._read = [str(name) for name in columns], read
        self.missing: str | None = None
        self.files: Mapping[int, Path] = {}

    def picture(self, index: int) -> None:
        """No image: it is text."""
        return

    def row(self, index: int) -> list[str]:
        """The cells as text; very long ones are cut."""
        return [_cell(value) for value in self._read(index)]


def pictures_of(examples: Examples) -> Pictures:
    """Examples that are images, as pictures.

    Args:
        examples: images in memory, or a dataset whose items are.

    Example:
        >>> from crust.data import load
        >>> pictures_of(load("digits").train).picture(0).size
        (8, 8)
    """

    def read(index: int) -> Any:
        if examples.kind == "images":
            return as_image(examples.inputs[index].numpy())
        from crust.data.torch_dataset import input_of, items

        return as_image(np.asarray(input_of(items(examples.inputs, [index])[0])))

    return Pictures(read)


def files_of(root: Path, names: Mapping[int, str], parts: int = 2) -> Pictures:
    """Image files below a folder by their position, as large as they are; some of them may be gone, but not all.

    A name has at least so many `parts`: in class folders two.
    """
    from crust.data.image_folder import check_inside, open_image

    for name in names.values():
        check_inside(name, parts)
    gone = [name for name in names.values() if not (root / name).is_file()]
    missing = None
    if gone:
        missing = (
            f"{len(gone):,} of {len(names):,} images are no longer in {root}, such as {gone[0]}: "
            "move them back (crust audit RUN --move-back), or name their folder with --data"
        )
        if len(gone) == len(names):
            raise InputError(
                f"none of the {len(names):,} names leads to an image below {root}, such as {gone[0]}: "
                "give the folder that they are relative to",
                code="missing-image",
            )

    def read(index: int) -> Any:
        path = root / names[index]
        if not path.is_file():
            raise Gone(f"{path} is no longer there: put it back")
        return open_image(path)

    return Pictures(read, missing, {index: root / name for index, name in names.items()})


def rows_of(table: Any, skip: Sequence[str] = ()) -> Rows:
    """The rows of a table.

    Args:
        table: a pandas or Arrow table, or a dict of columns.
        skip: columns that are not shown, such as the labels.

    Example:
        >>> rows_of({"age": [20, 31], "town": ["Ulm", None]}).row(1)
        ['31', '']
    """
    names = list(getattr(table, "column_names", None) or table)
    columns = {str(name): table[name] for name in names if name not in skip}
    columns = {name: values.tolist() if hasattr(values, "tolist") else values for name, values in columns.items()}
    return Rows(list(columns), lambda index: [_plain(values[index]) for values in columns.values()])


def numbers_of(inputs: Any, names: Sequence[str] | None = None) -> Rows:
    """Rows of a matrix of features."""
    known = [f"x{i}" for i in range(inputs.shape[1])] if names is None else names
    return Rows(known, lambda index: [f"{float(value):.4g}" for value in inputs[index]])


def as_image(pixels: Any) -> Any:
    """Pixels as PIL has them.

    Args:
        pixels: (height, width), (channels, height, width) or (height, width, channels); bytes, or numbers of any
            range, which are brought to that of bytes.

    Example:
        >>> as_image(np.zeros((3, 4, 5))).size
        (5, 4)
    """
    from PIL import Image

    found = np.asarray(pixels)
    if not is_image(found.shape):
        raise InputError(f"an example of shape {found.shape} is no image: give 1, 3 or 4 channels", code="no-image")
    if found.ndim == 3 and found.shape[0] in CHANNELS:
        found = np.moveaxis(found, 0, 2)
    if found.ndim == 3 and found.shape[2] == 1:
        found = found[:, :, 0]
    if found.dtype != np.uint8:
        values = np.nan_to_num(found.astype(np.float64))
        low, high = values.min(), values.max()
        found = ((values - low) / (high - low if high > low else 1.0) * 255).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(found)).convert("L" if found.ndim == 2 else "RGB")


def is_image(shape: Sequence[int]) -> bool:
    """Whether pixels of this shape can be shown.

    Example:
        >>> is_image((8, 8)), is_image((3, 8, 8)), is_image((8, 8, 7))
        (True, True, False)
    """
    return min(shape, default=0) > 0 and (
        len(shape) == 2 or (len(shape) == 3 and bool({shape[0], shape[2]} & CHANNELS))
    )


def picture_bytes(image: Any, side: int) -> tuple[bytes, str]:
    """An image as small as asked for, in a form that browsers read.

    Args:
        image: as PIL has it.
        side: pixels of the longer side at most.

    Returns:
        The bytes and their media type.

    Example:
        >>> content, kind = picture_bytes(as_image(np.zeros((400, 200), np.uint8)), 96)
        >>> kind, len(content) < 200
        ('image/webp', True)
    """
    from PIL import Image

    buffer = BytesIO()
    if max(image.size) <= TINY:
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue(), "image/png"
    if max(image.size) > side:
        image = image.copy()
        image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    image.save(buffer, "WEBP", quality=80, method=2)
    return buffer.getvalue(), "image/webp"


def picture_uri(image: Any, side: int) -> str:
    """The same as a data URI, to be the `src` of an image.

    Example:
        >>> picture_uri(as_image(np.zeros((8, 8), np.uint8)), 96)
        'data:image/png;base64,iVBORw0...'
    """
    content, kind = picture_bytes(image, side)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _plain(value: Any) -> Any:
    """Arrow's own values as Python's."""
    return value.as_py() if hasattr(value, "as_py") else value


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONG else f"{text[:LONG]}… ({len(text):,} characters)"
