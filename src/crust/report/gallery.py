"""Examples whose labels are in doubt, as cards.

Images inside a page.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError
from crust.report.html.builder import Html, tag

__all__ = ["Suspect", "gallery", "image_uri"]


@dataclass(frozen=True)
class Suspect:
    """One example of the audit.

    Args:
        name: what to call it, such as its file.
        given: its label.
        suggested: the label it should rather have.
        probability: of the suggested label.
        doubt: of the given label, from 0 to 1.
        image: a data URI, where it is an image.
        note: one more line, such as what is known about it.
        alarm: whether the note says that the label is wrong indeed.

    Example:
        >>> Suspect("example 7", "3", "8", 0.9, 0.95).given
        '3'
    """

    name: str
    given: str
    suggested: str
    probability: float
    doubt: float
    image: str | None = None
    note: str | None = None
    alarm: bool = False


def gallery(suspects: Iterable[Suspect], *, ink: bool = False) -> Html:
    """A card for each of them, as many in a row as the screen has room for.

    Args:
        suspects: in the order they are shown.
        ink: whether the images are dark ink on white, to be inverted where the page is dark.

    Example:
        >>> gallery([Suspect("example 7", "<3>", "8", 0.9, 0.95)])
        '<ul class="gallery"><li title="example 7">...<bdi>&lt;3&gt;</bdi>...</li></ul>'
    """
    return tag("ul", *(_card(one, ink) for one in suspects), class_="gallery")


def _card(one: Suspect, ink: bool) -> Html:
    picture: object = ""
    if one.image is not None:
        picture = tag("img", src=one.image, alt=f"{one.name}, labelled {one.given}", class_="ink" if ink else None)
    return tag(
        "li",
        picture,
        tag(
            "p",
            tag("span", "given "),
            tag("bdi", one.given),
            tag("span", " suggested "),
            tag("bdi", one.suggested, class_=None if one.given == one.suggested else "suggested"),
            class_="labels",
        ),
        tag("p", f"probability {one.probability:.2f}", class_="numbers"),
        tag("p", f"label quality {1 - one.doubt:.2f}", class_="numbers"),
        "" if one.note is None else tag("p", one.note, class_="note alarm" if one.alarm else "note"),
        title=one.name,
    )


def image_uri(pixels: NDArray[np.uint8]) -> str:
    """Pixels as a PNG in a data URI, to be the `src` of an image.

    Args:
        pixels: uint8; (height, width) in grey, or (channels, height, width) with one or three channels.

    Example:
        >>> image_uri(np.zeros((8, 8), np.uint8))
        'data:image/png;base64,iVBORw0...'
    """
    from PIL import Image

    found = np.asarray(pixels)
    if found.ndim == 3 and found.shape[0] in (1, 3):
        found = found[0] if len(found) == 1 else np.moveaxis(found, 0, 2)
    elif found.ndim != 2:
        raise InputError(f"pixels of shape {found.shape} are no image: give (height, width) or (1 or 3, height, width)")
    if found.dtype != np.uint8:
        raise InputError(f"pixels are {found.dtype}: give uint8, from 0 to 255")
    buffer = BytesIO()
    Image.fromarray(np.ascontiguousarray(found)).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
