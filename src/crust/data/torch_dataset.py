"""Map-style datasets from Python: their labels, some of their rows, items with random numbers of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import cannot_read
from crust.data.examples import Examples
from crust.data.labels import check_classes, encode_labels, one_each, several_labels
from crust.data.npz_dataset import from_arrays
from crust.errors import CrustError, InputError

COMPARED_LABELS = 16  # items whose label is compared with `.targets`


def from_dataset(dataset: Any, labels: Any = None, classes: Sequence[Any] | None = None) -> Examples:
    """Examples from a map-style dataset whose items are (x, y), or x where the labels are given.

    Labels come from `labels`, else from the dataset's own `targets` where the items agree with them, else from
    reading all items once. A plain `TensorDataset` is taken as the tensors it holds, which is faster.

    Args:
        dataset: anything with `len()` and `[i]`.
        labels: one label an example, in place of those in the items.
        classes: the classes; by default the dataset's own `classes`, else the different labels.

    Returns:
        The examples, kind `dataset` (or that of the tensors).

    Example:
        >>> examples = from_dataset([([0.5, 1.0], "cat"), ([2.0, 0.0], "dog"), ([0.1, 0.2], "cat")])
        >>> examples.labels, examples.classes
        (array([0, 1, 0]), ['cat', 'dog'])
    """
    check_dataset(dataset)
    given = labels is not None
    if not given:
        labels = _own_labels(dataset)
    labels = one_each(labels, len(dataset))
    if classes is None:
        classes = _own_classes(dataset)
    codes, names = encode_labels(labels, classes)
    check_classes(codes, names)
    tensors: Any = getattr(dataset, "tensors", ())
    if type(dataset).__name__ == "TensorDataset" and len(tensors) in (1, 2) and tensors[0].ndim in (2, 4):
        return from_arrays(tensors[0], codes, classes=names, normalise=False)
    return Examples(dataset, codes, names, "dataset", ids=_own_ids(dataset))


def check_dataset(dataset: Any) -> None:
    """Hold that this is a map-style dataset, with something in it."""
    known = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not _is_stream(dataset)
    if not known or isinstance(dataset, (str, bytes, bytearray, Mapping, type)) or hasattr(dataset, "toarray"):
        raise InputError(
            f"a {type(dataset).__name__} is no dataset: give arrays, or a map-style dataset with len() and [i]; write "
            "the examples of a stream to files, or audit it by stored probabilities",
            code="not-a-dataset",
        )
    if len(dataset) == 0:
        raise InputError("the dataset is empty: give at least one example of each class", code="empty-dataset")


def _is_stream(dataset: Any) -> bool:
    """Whether a dataset of torch is one to go through only; it may have a length all the same."""
    return any(kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__)


class DatasetRows:
    """Some rows of a dataset, asked for the way the dataset likes to be asked."""

    def __init__(self, dataset: Any, rows: NDArray[np.int64]) -> None:
        self.dataset, self.rows = dataset, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> Any:
        return self.dataset[int(self.rows[position])]  # int(): many datasets know Python's integers only

    def __getitems__(self, positions: Sequence[int]) -> list[Any]:
        return items(self.dataset, [int(self.rows[p]) for p in positions])

    def fingerprint(self) -> str:
        """What the dataset says about itself, and which rows of it."""
        own = getattr(self.dataset, "fingerprint", None)
        about = own() if callable(own) else type(self.dataset).__qualname__
        return f"{about} {self.rows.tolist()}"


def items(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """Items of a dataset, all at once where it can."""
    many = getattr(dataset, "__getitems__", None)
    try:
        return list(many(indices)) if callable(many) else [dataset[i] for i in indices]
    except CrustError:
        raise
    except Exception as error:  # the dataset's own code
        raise cannot_read("the examples of the dataset", error) from error


def augmenting(dataset: Any) -> Any:
    """The twin of a dataset that augments, where it has one; else the dataset itself."""
    if isinstance(dataset, DatasetRows):
        inner = augmenting(dataset.dataset)
        return dataset if inner is dataset.dataset else DatasetRows(inner, dataset.rows)
    twin = getattr(dataset, "augmented", None)
    return twin() if callable(twin) else dataset


def can_augment(examples: Examples, side: int = 32) -> bool:
    """Whether these are images of some size that we know how to augment: in memory, or read from a large folder."""
    if examples.kind == "dataset" and augmenting(examples.inputs) is examples.inputs:
        return False
    return len(examples.shape) == 3 and min(examples.shape[1:]) >= side


def can_mix(examples: Examples) -> bool:
    """Whether inputs can be mixed with each other: numbers that stand for amounts can, token ids cannot.

    Example:
        >>> from crust.data import from_texts, load
        >>> can_mix(load("digits").train), can_mix(from_texts(["so good", "so bad"], [1, 0]))
        (True, False)
    """
    if examples.kind != "dataset":
        return examples.kind != "tokens"
    import torch

    found = first_input(examples.inputs)
    if isinstance(found, dict):
        return any(isinstance(one, torch.Tensor | np.ndarray) and _holds_floats(one) for one in found.values())
    if isinstance(found, np.ndarray | np.generic):
        return found.dtype.kind == "f" or found.dtype == np.uint8  # uint8: pixels, which become floats
    if isinstance(found, torch.Tensor):
        return found.is_floating_point() or found.dtype == torch.uint8
    return isinstance(found, float)


def _holds_floats(values: Any) -> bool:
    return "float" in str(values.dtype)


def first_input(dataset: Any) -> Any:
    """The x of the first item; no random number outside is used up."""
    with fixed_random_state(0):
        return input_of(items(dataset, [0])[0])


def input_of(item: Any) -> Any:
    """The x of an item that is x or (x, …)."""
    return item[0] if isinstance(item, (tuple, list)) else item


@contextmanager
def fixed_random_state(seed: int) -> Iterator[None]:
    """Random numbers of Python, numpy and torch (CPU) from this seed; afterwards all go on as if nothing had been."""
    import torch

    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])


def _own_labels(dataset: Any) -> Any:
    """`targets` where some items that are read agree with them, else every item's own label."""
    found = _targets(dataset)
    n = len(dataset)
    if found is not None and len(found) == n:
        some = np.unique(np.linspace(0, n - 1, min(n, COMPARED_LABELS)).astype(np.int64)).tolist()
        with fixed_random_state(0):
            if all(_equal_values(label_of(items(dataset, [i])[0], i), found[i]) for i in some):
                return found
    with fixed_random_state(0):
        read = [_as_scalar(label_of(items(dataset, [i])[0], i)) for i in range(n)]
    if getattr(read[0], "ndim", 0) != 1:
        return read
    rows = [np.asarray(one) for one in read]  # one-hot, or several labels an example
    if len({row.shape for row in rows}) > 1:
        raise several_labels("the labels of the dataset")
    return np.stack(rows)


def _targets(dataset: Any) -> Any:
    """`targets`, `labels` of the tensors, or those of the rows of a torch Subset."""
    if type(dataset).__name__ == "TensorDataset" and len(dataset.tensors) == 2:
        return _scalars(dataset.tensors[1])
    if isinstance(dataset, DatasetRows) or (hasattr(dataset, "dataset") and hasattr(dataset, "indices")):
        inner, rows = dataset.dataset, getattr(dataset, "rows", getattr(dataset, "indices", ()))
        found = _targets(inner)
        return None if found is None else [found[int(i)] for i in rows]
    found = getattr(dataset, "targets", None)
    return None if found is None else _scalars(found)


def _own_classes(dataset: Any) -> list[Any] | None:
    while hasattr(dataset, "dataset") and not hasattr(dataset, "classes"):
        dataset = dataset.dataset
    found = getattr(dataset, "classes", None)
    return list(found) if isinstance(found, (list, tuple)) and len(found) > 1 else None


def root_of(dataset: Any) -> str | None:
    """The folder that the names of the examples are below, as datasets of torchvision know it."""
    while not hasattr(dataset, "samples") and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    root = getattr(dataset, "root", None)
    return str(Path(root).resolve()) if hasattr(dataset, "samples") and isinstance(root, str | Path) else None


def _own_ids(dataset: Any) -> list[str] | None:
    """The files of the examples, below the folder of the dataset: its `samples`, as torchvision has them."""
    if isinstance(dataset, DatasetRows) or (hasattr(dataset, "dataset") and hasattr(dataset, "indices")):
        inner = _own_ids(dataset.dataset)
        rows = getattr(dataset, "rows", getattr(dataset, "indices", ()))
        return None if inner is None else [inner[int(i)] for i in rows]
    samples = getattr(dataset, "samples", None)
    if not isinstance(samples, list | tuple) or len(samples) != len(dataset):
        return None
    paths = [one[0] if isinstance(one, list | tuple) and one else one for one in samples]
    if not all(isinstance(one, str | Path) for one in paths):
        return None
    root = root_of(dataset)
    whole = [Path(one).resolve() for one in paths]
    below = root is not None and all(one.is_relative_to(root) for one in whole)
    return [one.relative_to(str(root)).as_posix() if below else str(one) for one in whole]


def label_of(item: Any, row: int) -> Any:
    """The y of an item (x, y, …)."""
    if isinstance(item, Mapping):
        names = ", ".join(f"{name!r}" for name in list(item)[:8])
        raise InputError(
            f"item {row} of the dataset has {names} by name and is not a pair (x, y): give a pair of two columns, such "
            'as (data["text"], data["label"])',
            code="dataset-item",
        )
    if not isinstance(item, (tuple, list)) or len(item) < 2:
        raise InputError(
            f"item {row} of the dataset is not a pair (x, y): give the labels separately", code="dataset-item"
        )
    return item[1]


def _scalars(values: Any) -> list[Any] | None:
    """Labels as Python values; None where they are not one a row."""
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    return None if any(isinstance(value, (list, tuple, dict)) for value in found[:1]) else found


def _as_scalar(value: Any) -> Any:
    """The value in an array or a tensor of one; anything else as it is."""
    shape = getattr(value, "shape", None)
    return value.item() if hasattr(value, "item") and (shape is None or math.prod(shape) == 1) else value


def _equal_values(one: Any, other: Any) -> bool:
    return bool(_as_scalar(one) == _as_scalar(other))
