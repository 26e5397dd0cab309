"""Arrays in memory and in .npz files: images or features, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import as_float32, as_tensor, check_tensor, numbers_of
from crust.data.examples import Bundle, Examples
from crust.data.labels import check_classes, encode_labels, one_each
from crust.data.matrix_io import npz_archive, open_npz, reading
from crust.errors import InputError

# The names that inputs and labels have in .npz files.
TRAIN = (("x_train", "y_train"), ("train_images", "train_labels"), ("x", "y"), ("images", "labels"),
         ("features", "labels"))  # fmt: skip
TEST = (("x_test", "y_test"), ("test_images", "test_labels"))
CHANNELS = (1, 3, 4)

SPARSE, SPARSE_COLUMNS, SPARSE_ALIKE = 1 / 3, 50, 20  # most that is not zero; fewest columns; largest to usual value


def from_arrays(
    x: Any,
    y: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    normalise: bool = True,
    where: str = "the labels",
) -> Examples:
    """Examples from arrays in memory.

    Args:
        x: (n, d) features; or images: (n, height, width), (n, height, width, channels), or a torch tensor
            (n, channels, height, width). Pixels are uint8, or floats of any range.
        y: the labels, numbers or text; None where they are not known.
        classes: the classes; by default the different labels.
        mean, std: what to normalise by; by default what these examples themselves have.
        normalise: whether to normalise at all.
        where: what to call the labels in an error message.

    Returns:
        The examples, kind `images` or `features`.

    Example:
        >>> examples = from_arrays(np.zeros((4, 28, 28), np.uint8), ["a", "b", "a", "b"])
        >>> examples.kind, examples.shape, examples.classes
        ('images', (1, 28, 28), ['a', 'b'])
    """
    inputs, kind = _inputs(x)
    if mean is not None and len(mean) != inputs.shape[1]:
        what = "channels" if kind == "images" else "columns"
        raise InputError(
            f"the inputs have {inputs.shape[1]} {what}, but those trained on had {len(mean)}: give the same ones",
            code="array-shape",
        )
    if y is None:
        codes, names = np.full(len(inputs), -1, np.int64), list(classes or [])
    else:
        codes, names = encode_labels(one_each(y, len(inputs), where), classes, where)
    if mean is None and normalise:
        mean, std = _statistics(inputs)
    scale = (None, None) if mean is None or std is None else (tuple(mean), tuple(std))
    return Examples(inputs, codes, names, kind, *scale)


def load_npz(path: Path, limit: int | None = None) -> Bundle:
    """The arrays of a .npz file: x_train, y_train, and x_test, y_test where they are; or x and y."""
    (x, y), test = read_npz(path)
    where = f"the labels of {path.name}"
    codes, classes = encode_labels(y, where=where)
    rows = np.arange(min(limit or len(codes), len(codes)))
    train = from_arrays(x[: len(rows)], codes[: len(rows)], classes=range(len(classes)))
    train.classes = classes
    check_classes(train.labels, classes, where)
    encoding = encoding_of(train)
    tests = None if test is None else like(*test, encoding, f"the test labels of {path.name}")
    return Bundle(train, tests, encoding, len(codes), rows)


def read_npz(path: Path) -> tuple[tuple[Any, Any], tuple[Any, Any] | None]:
    """Inputs and labels to train on, and those to test with where they are."""
    names = _array_names(path)
    train, test = _pair(names, TRAIN), _pair(names, TEST)
    if train is None:
        raise InputError(
            f"{path.name} holds {', '.join(sorted(names)) or 'nothing'}: save the arrays as x and y, "
            "or x_train, y_train, x_test, y_test",
            code="missing-arrays",
        )
    return _read_pair(path, names, train), None if test is None else _read_pair(path, names, test)


def labels_name(path: Path) -> str:
    """The name of the array that holds the labels to train on."""
    names = _array_names(path)
    pair = _pair(names, TRAIN)
    if pair is None:
        raise InputError(
            f"{path.name} holds no arrays x and y: give the data that was trained on", code="missing-arrays"
        )
    return names[pair[1]]


def encoding_of(train: Examples) -> dict[str, Any]:
    """What brings new arrays into the form of these."""
    return {
        "format": train.kind,
        "classes": train.classes,
        "shape": list(train.shape),
        "mean": train.mean,
        "std": train.std,
        "mirror": train.mirror,
    }


def load_new_npz(path: Path, encoding: dict[str, Any]) -> Examples:
    """New examples: x_test or x of a .npz file, with labels where it has them."""
    names = _array_names(path)
    inputs = [name for name, _ in (*TEST, *TRAIN) if name in names]
    if not inputs:
        raise InputError(
            f"{path.name} holds {', '.join(sorted(names)) or 'nothing'}: save the inputs as x", code="missing-arrays"
        )
    labels = next((y for x, y in (*TEST, *TRAIN) if x == inputs[0] and y in names), None)
    with reading(path):
        x = open_npz(path, names[inputs[0]])
        y = None if labels is None else open_npz(path, names[labels])
    return like(x, y, encoding, path.name)


def like(x: Any, y: Any, encoding: dict[str, Any], where: str) -> Examples:
    """Examples in the form of those that the encoding came from."""
    found = from_arrays(
        x, y, classes=encoding["classes"], mean=encoding["mean"], std=encoding["std"], normalise=False, where=where
    )
    expected = tuple(encoding["shape"])
    if found.shape != expected:
        raise InputError(
            f"the inputs of {where} have shape {found.shape}, but those trained on had {expected}", code="array-shape"
        )
    return found


def _array_names(path: Path) -> dict[str, str]:
    """The arrays of a .npz file, by their names in small letters."""
    with reading(path), npz_archive(path) as archive:
        return {name.lower(): name for name in archive.files}


def _pair(names: dict[str, str], pairs: Any) -> tuple[str, str] | None:
    return next(((x, y) for x, y in pairs if x in names and y in names), None)


def _read_pair(path: Path, names: dict[str, str], pair: tuple[str, str]) -> tuple[Any, Any]:
    with reading(path):
        x, y = (open_npz(path, names[name]) for name in pair)
        if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
            raise InputError(
                f"{path.name} has {len(y) if y.ndim else 'no'} labels in {names[pair[1]]} for "
                f"{len(x) if x.ndim else 'no'} examples in {names[pair[0]]}: give one label an example",
                code="labels-length",
            )
        return x, y


def _inputs(x: Any) -> tuple[Any, Any]:
    """A tensor, channels first, and the kind of examples it holds."""
    import torch

    first = isinstance(x, torch.Tensor)
    if first:
        check_tensor(x, "the inputs")
    array: Any = x.detach() if first else numbers_of(x, "the inputs")
    if array.ndim not in (2, 3, 4) or 0 in tuple(array.shape):
        raise InputError(
            f"the inputs have shape {tuple(array.shape)}: give (n, d) features, or images (n, height, width, channels)",
            code="array-shape",
        )
    if not first:
        array = as_tensor(_as_torch_type(_channels_last(array)))
        if array.ndim == 4:
            array = array.permute(0, 3, 1, 2)
    elif array.ndim == 3:
        array = array[:, None]
    if array.ndim == 4:
        # so that a batch is gathered in the layout that convolutions like
        array = array.contiguous(memory_format=torch.channels_last)
        if array.dtype == torch.uint8:
            return array, "images"
    array = as_float32(array, "the inputs")  # keeps the layout
    return array, "images" if array.ndim == 4 else "features"


def _channels_last(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim < 3:
        return array
    if array.ndim == 3:
        return array[..., None]
    if array.shape[3] in CHANNELS:
        return array
    if array.shape[1] in CHANNELS:
        return array.transpose(0, 2, 3, 1)
    raise InputError(
        f"the images have shape {array.shape}: give (n, height, width, channels), 1, 3 or 4 channels",
        code="array-shape",
    )


def _as_torch_type(array: NDArray[Any]) -> NDArray[Any]:
    """A type that torch knows; whole numbers that fit are pixels."""
    if array.dtype == np.uint8 or (array.dtype.kind == "f" and array.dtype.itemsize == 4):
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.ndim > 2 and array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255:
        return array.astype(np.uint8)
    found: NDArray[Any] = as_float32(array, "the inputs")
    return found


def common_scale(inputs: Any) -> float | None:
    """One scale for all columns of a tensor or an array that is mostly zeros in columns of one kind; None for others.

    So are TF-IDF and one-hot features. Brought to deviation 1 each, the rarest words would become the largest numbers,
    and by them wrong labels are memorised; the mean would make all zeros something else.

    Example:
        >>> words = np.zeros((8, 60))
        >>> words[:, :10] = 0.5
        >>> round(common_scale(words), 3), common_scale(words[:, :20]), common_scale(words + 1)
        (0.204, None, None)
    """
    n, columns = inputs.shape
    if columns < SPARSE_COLUMNS or not n or float((inputs != 0).sum()) > SPARSE * n * columns:
        return None
    largest = np.array([float(abs(inputs[:, column]).max()) for column in range(columns)])
    largest = largest[largest > 0]
    if not len(largest) or largest.max() > SPARSE_ALIKE * np.median(largest):
        return None
    return float((inputs**2).mean() ** 0.5)


def _statistics(inputs: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel or column, pixels counted from 0 to 1; where nothing varies, deviation 1."""
    import torch

    if inputs.ndim == 2:
        std, mean = torch.std_mean(inputs.double(), dim=0, correction=0)
        common = common_scale(inputs)
        if common is not None:
            std, mean = torch.full_like(std, common), torch.zeros_like(mean)
    else:
        columns = []
        for channel in range(inputs.shape[1]):  # one at a time: as float64 they take eight times the room
            values = inputs[:, channel].reshape(-1)
            if values.dtype == torch.uint8:
                counts, level = torch.bincount(values, minlength=256).double(), torch.arange(256).double() / 255
                mean = (counts * level).sum() / counts.sum()
                columns.append(((counts * (level - mean) ** 2).sum().div(counts.sum()).sqrt(), mean))
            else:
                columns.append(torch.std_mean(values.double(), correction=0))
        std, mean = (torch.stack(each) for each in zip(*columns, strict=True))
    std = torch.where(std > 1e-8, std, torch.ones_like(std))
    # Six digits are plenty, and the same on every machine: sums of floats are not.
    return tuple(float(f"{v:.6g}") for v in mean.tolist()), tuple(float(f"{v:.6g}") for v in std.tolist())
