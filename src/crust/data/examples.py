"""`Examples`: inputs with one label each, and the names the user has for the classes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crust.data.labels import check_codes
from crust.data.mapped_array import MappedArray
from crust.errors import InputError

CHUNK = 1 << 24  # bytes hashed at a time


@dataclass
class Examples:
    """Inputs and their labels.

    Args:
        inputs: a tensor in memory, `Tokens`, or any map-style dataset whose items are x or (x, …).
        labels: numbers from 0 to C − 1, int64; −1 where a label is not known (only in data to predict).
        classes: what the user calls the classes, in the order of the numbers.
        kind: `images` for a tensor (n, channels, height, width), of uint8 or float32; `features` for a tensor (n, d)
            of float32; `tokens` for ids that are padded by batch; `dataset` for anything else.
        mean: subtracted from each channel or column, after pixels are brought from 0…255 to 0…1; None for nothing.
        std: what each channel or column is then divided by.
        mirror: whether left and right may change places when images are augmented; not so for digits.
        ids: a name for each example, such as its file.
        collate_fn: what makes a batch of a dataset's items, as a DataLoader takes it: the batch then stays as it makes
            it, but for the labels in it. None: the inputs alone are put together.
        encoding: how the columns of a DataFrame became inputs, so that more rows do; plain values.

    Example:
        >>> import torch
        >>> examples = Examples(torch.zeros(3, 2), np.array([0, 1, 1]), ["cat", "dog"], "features")
        >>> len(examples), examples.decode(examples.labels)
        (3, ['cat', 'dog', 'dog'])
    """

    inputs: Any
    labels: NDArray[np.int64]
    classes: list[Any]
    kind: Literal["images", "features", "tokens", "dataset"]
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    mirror: bool = True
    ids: Sequence[str] | None = None
    collate_fn: Callable[[list[Any]], Any] | None = None
    encoding: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.labels = np.asarray(self.labels, dtype=np.int64)
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"there are {len(self.labels)} labels for {len(self.inputs)} examples: give one label an example",
                code="labels-length",
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input as the network sees it; () where it is not a tensor; for tokens how many there are."""
        if self.kind == "tokens":
            return (self.inputs.vocabulary,)
        if self.kind != "dataset":
            return tuple(self.inputs.shape[1:])
        from crust.data.torch_dataset import first_input

        return tuple(getattr(first_input(self.inputs), "shape", ()))

    def with_labels(self, labels: Any) -> Examples:
        """The same inputs with other labels, numbers from 0 to C − 1."""
        return dataclasses.replace(self, labels=check_codes(labels, len(self), len(self.classes)))

    def subset(self, indices: Any) -> Examples:
        """Some of the examples, in the order of the indices; a tensor is copied unless they are a first part."""
        rows = np.asarray(indices, dtype=np.int64)
        if rows.ndim != 1 or (rows.size and not (rows.min() >= 0 and rows.max() < len(self))):
            raise InputError(
                f"the indices do not fit {len(self)} examples: give positions below that", code="index-range"
            )
        ids = None if self.ids is None else [self.ids[i] for i in rows]
        return dataclasses.replace(self, inputs=self._rows(rows), labels=self.labels[rows], ids=ids)

    def _rows(self, rows: NDArray[np.int64]) -> Any:
        if self.kind == "tokens" or isinstance(self.inputs, MappedArray):
            return self.inputs.subset(rows)
        if np.array_equal(rows, np.arange(len(rows))):
            if len(rows) == len(self):
                return self.inputs
            if self.kind != "dataset":
                return self.inputs[: len(rows)]
        if self.kind != "dataset":
            return gather(self.inputs, rows)
        from crust.data.torch_dataset import DatasetRows

        return DatasetRows(self.inputs, rows)

    def decode(self, labels: Any) -> list[Any]:
        """The user's own names for labels given as numbers; None for −1."""
        return [self.classes[i] if i >= 0 else None for i in np.asarray(labels).tolist()]

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with the inputs, the labels, the classes or their normalisation.

        Tensors are hashed byte by byte, at about a second a gigabyte. Of a dataset only its kind, its length and what
        it says about itself (the names and sizes of the files in an image folder) can be known without reading it.
        """
        about = [self.kind, len(self), self.classes, self.mean, self.std]
        digest = hashlib.sha256(json.dumps(about, default=str).encode())
        digest.update(np.ascontiguousarray(self.labels, dtype="<i8").data)
        if self.kind == "dataset":
            own = getattr(self.inputs, "fingerprint", None)
            digest.update((own() if callable(own) else type(self.inputs).__qualname__).encode())
        elif self.kind == "tokens":
            self.inputs.hash_into(digest)
        else:
            first = _pixels_in_a_row(self._part(slice(0, 1)))
            digest.update(f"{first.dtype}{(len(self), *first.shape[1:])}".encode())
            rows = max(1, CHUNK // max(1, first.nbytes))
            for start in range(0, len(self), rows):
                part = _pixels_in_a_row(self._part(slice(start, min(len(self), start + rows))))
                digest.update(part.contiguous().numpy().data)
        return digest.hexdigest()[:16]

    def _part(self, rows: slice) -> Any:
        if isinstance(self.inputs, MappedArray):
            return self.inputs.gather(np.arange(rows.start, rows.stop))
        return self.inputs[rows].detach().cpu()


def gather(inputs: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a tensor, copied, or of a memory map; images keep their layout in memory."""
    if isinstance(inputs, MappedArray):
        return inputs.gather(rows)
    import torch

    index = torch.from_numpy(rows).to(inputs.device)
    if inputs.ndim == 4 and inputs.is_contiguous(memory_format=torch.channels_last):
        return _pixels_in_a_row(inputs).index_select(0, index).permute(0, 3, 1, 2)
    return inputs.index_select(0, index)


def _pixels_in_a_row(inputs: Any) -> Any:
    """Images as (n, height, width, channels): for images that lie so in memory, nothing is moved."""
    return inputs.permute(0, 2, 3, 1) if inputs.ndim == 4 else inputs


@dataclass
class Bundle:
    """What was loaded: a training set, a test set where there is one, and how to read more of the same.

    Args:
        train: the training examples.
        test: the test examples, or None.
        encoding: everything needed to bring new data into the same form, as plain values that JSON can hold: for
            `load_new`.
        total: how many training examples there are in the source, before a limit and before broken ones are left out.
        rows: which of these the training set holds.
        superclasses: the superclass of each class, for CIFAR-100.
        more_tests: further test sets by name, such as `imagenet` for WebVision.

    Example:
        >>> from crust.data import load
        >>> bundle = load("digits")
        >>> len(bundle.train), len(bundle.test), bundle.total
        (1297, 500, 1297)
    """

    train: Examples
    test: Examples | None
    encoding: dict[str, Any]
    total: int
    rows: NDArray[np.int64]
    superclasses: NDArray[np.int64] | None = None
    more_tests: dict[str, Examples] = field(default_factory=dict)
