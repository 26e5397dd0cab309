"""Arrays that stay in their file: batches are read from a memory map as they are needed, one ahead of its use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError

__all__ = ["MappedArray", "stays_on_disk"]

AT_ONCE = 2**25  # bytes of a piece, where all are gone through
AHEAD = 2  # batches that are read beside the training


def stays_on_disk(x: Any) -> bool:
    """Whether an array is a memory map of more than is kept in memory, of pixels or of numbers with a point.

    Whole numbers in images may be pixels or not, which only all of them can say.

    Example:
        >>> stays_on_disk(np.zeros((3, 2)))
        False
    """
    from crust.data.image_folder import IN_MEMORY_BYTES

    if not isinstance(x, np.memmap) or x.nbytes <= IN_MEMORY_BYTES or x.ndim not in (2, 3, 4):
        return False
    return x.dtype.kind == "f" or x.dtype == np.uint8 or (x.ndim == 2 and x.dtype.kind in "biu")


def _as_tensor(rows: NDArray[Any]) -> Any:
    """Pixels or float32, channels first; the layout is that of images in memory."""
    import torch

    from crust.data.npz_dataset import channels_last

    with np.errstate(over="ignore"):
        kept = (
            channels_last(rows) if rows.dtype == np.uint8 and rows.ndim > 2 else channels_last(rows).astype(np.float32)
        )
    found = torch.from_numpy(np.ascontiguousarray(kept))
    return found.permute(0, 3, 1, 2) if found.ndim == 4 else found


class MappedArray:
    """Rows of a memory map: what `Examples` has for inputs, in place of a tensor.

    Example:
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/x.npy"
        >>> np.save(path, np.arange(6.0).reshape(3, 2))
        >>> mapped = MappedArray(np.load(path, mmap_mode="r")).subset(np.array([2, 0]))
        >>> len(mapped), mapped.shape, mapped.gather(np.array([0]))
        (2, (2, 2), tensor([[4., 5.]]))
    """

    def __init__(self, array: NDArray[Any], rows: NDArray[np.int64] | None = None):
        self.array, self.rows = array, rows
        self._shape = tuple(_as_tensor(np.array(array[:1])).shape[1:])

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """As a tensor of the whole would have it: channels first."""
        return (len(self), *self._shape)

    @property
    def ndim(self) -> int:
        return 1 + len(self._shape)

    def subset(self, rows: NDArray[np.int64]) -> MappedArray:
        """Some of the rows; nothing is read."""
        return MappedArray(self.array, rows if self.rows is None else self.rows[rows])

    def gather(self, rows: NDArray[np.int64]) -> Any:
        """Some rows as a tensor of their own, read in the order in which they lie in the file."""
        wanted = rows if self.rows is None else self.rows[rows]
        order = np.argsort(wanted, kind="stable")
        found = np.empty((len(wanted), *self.array.shape[1:]), self.array.dtype)
        found[order] = self.array[wanted[order]]
        return _as_tensor(found)

    def __getitem__(self, position: int) -> Any:
        return self.gather(np.array([range(len(self))[position]]))[0]

    def pieces(self) -> Iterator[Any]:
        """All rows as tensors, a piece at a time."""
        step = max(1, AT_ONCE // max(1, self.array[:1].nbytes))
        for first in range(0, len(self), step):
            yield self.gather(np.arange(first, min(len(self), first + step)))

    def ahead(self, parts: list[NDArray[np.int64]]) -> Iterator[Any]:
        """Batch after batch, the next ones being read meanwhile."""
        with ThreadPoolExecutor(1, "crust-read-ahead") as pool:
            waiting = [pool.submit(self.gather, rows) for rows in parts[:AHEAD]]
            for number in range(len(parts)):
                found = waiting.pop(0).result()
                if number + AHEAD < len(parts):
                    waiting.append(pool.submit(self.gather, parts[number + AHEAD]))
                yield found

    def statistics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation of each column or channel in one pass, as `from_arrays` has them of arrays.

        Pixels are counted from 0 to 1; what is no number is refused.
        """
        from crust.data.npz_dataset import SPARSE, SPARSE_COLUMNS, of_one_kind

        count, mean, squares, first = 0, 0.0, 0.0, 0
        filled, largest, power = 0, np.zeros(self.shape[1]), 0.0  # numbers that are not 0
        for piece in self.pieces():
            pixels = not piece.dtype.is_floating_point
            values = piece.double() / 255 if pixels else piece.double()
            if not pixels and not bool(values.isfinite().all()):
                row = first + int((~values.flatten(1).isfinite().all(1)).int().argmax())
                raise InputError(
                    f"row {row} of the inputs holds values that are no numbers in float32: fill them in",
                    code="not-finite",
                )
            axes = (0,) if values.ndim == 2 else (0, 2, 3)
            here, new = values.mean(axes).numpy(), values.numel() // values.shape[1]
            off, total = here - mean, count + new
            squares = squares + values.var(axes, correction=0).numpy() * new + off**2 * (count * new / total)
            if self.ndim == 2:
                filled, power = filled + int((values != 0).sum()), power + float((values**2).sum())
                largest = np.maximum(largest, values.abs().amax(0).numpy())
            mean, count, first = mean + off * (new / total), total, first + len(piece)
        size = count * self.shape[1]
        if self.ndim == 2 and self.shape[1] >= SPARSE_COLUMNS and filled <= SPARSE * size and of_one_kind(largest):
            return np.zeros(self.shape[1]), np.full(self.shape[1], np.sqrt(power / size))
        return np.asarray(mean), np.sqrt(squares / count)
