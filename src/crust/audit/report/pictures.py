"""Images inside a page."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError

__all__ = ["image_uri"]


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
