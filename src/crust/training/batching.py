"""How an order of examples is cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data import Examples, batches


def cut(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Batches of a size, the last with what is left; a single one left over joins the batch before it.

    BatchNorm cannot be trained on a batch of one.

    Example:
        >>> [part.tolist() for part in cut(np.arange(7), 3)]
        [[0, 1, 2], [3, 4, 5, 6]]
    """
    parts = [order[first : first + size] for first in range(0, len(order), size)]
    if size > 1 and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [np.concatenate(parts[-2:])]
    return parts


def walk(examples: Examples, parts: list[NDArray[np.int64]], **options: Any) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """The inputs of batches that are all of one size, but for the last; options are those of `batches`."""
    if not parts:
        return
    size = len(parts[0])
    if len(parts[-1]) > size:
        yield from batches(examples, np.concatenate(parts[:-1]), size, **options)
        yield from batches(examples, parts[-1], len(parts[-1]), **options)
    else:
        yield from batches(examples, np.concatenate(parts), size, **options)
