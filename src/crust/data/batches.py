"""Batches on the device: gathered, augmented and normalised at once from memory, or item by item from a dataset.

How an order of examples is cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust._util.foreign import cannot_read
from crust.data.examples import Examples, gather
from crust.data.mapped_array import MappedArray
from crust.data.torch_dataset import augmenting, fixed_random_state, input_of, items
from crust.errors import InputError

if TYPE_CHECKING:
    import torch


def batches(
    examples: Examples,
    order: Any = None,
    batch_size: int = 128,
    *,
    augment: bool = False,
    generator: torch.Generator | None = None,
    device: Any = "cpu",
    workers: int = 0,
    channels_last: bool = True,
) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Go through examples in a given order, a batch at a time.

    Images in memory are gathered, augmented and normalised a whole batch at a time on the device. Items of a dataset
    are read by a DataLoader; whatever they draw at random is seeded by the generator, batch by batch, so that the
    number of workers changes nothing, and no random number outside is used up.

    Args:
        examples: what to read.
        order: positions, each as often as wanted; None for all of them in the order of the dataset.
        batch_size: how many at a time; the last batch has what is left.
        augment: for images in memory pad-crop and mirror, for image folders the random crops of their dataset;
            features, and datasets that know no other form, stay as they are.
        generator: a CPU generator, where anything is random.
        device: where the batches shall be.
        workers: processes that read a dataset; tensors in memory need none.
        channels_last: whether images lie in memory channel by channel (False) or pixel by pixel (True).

    Returns:
        Pairs: the inputs of a batch on the device, as float32 and normalised, and their positions. Token ids stay whole
        numbers; those of a batch are filled up with 0 to the length of the longest.

    Example:
        >>> from crust.data import load
        >>> x, rows = next(batches(load("digits").test, [5, 3, 8], 2))
        >>> x.shape, rows
        (torch.Size([2, 1, 8, 8]), array([5, 3]))
    """
    rows = np.arange(len(examples)) if order is None else np.asarray(order, dtype=np.int64)
    if rows.ndim != 1 or (rows.size and not (rows.min() >= 0 and rows.max() < len(examples))):
        raise InputError(
            f"the order does not fit {len(examples)} examples: give positions below that", code="index-range"
        )
    if batch_size < 1:
        raise InputError(f"the batch size is {batch_size}: give at least 1", code="batch-size-range")
    if augment and generator is None and examples.kind in ("images", "dataset"):
        raise InputError("augmentation draws random numbers: give a generator", code="missing-generator")
    parts = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    if examples.kind == "dataset":
        found = _from_dataset(examples, parts, augment, generator, device, workers)
    else:
        found = _from_memory(examples, parts, augment, generator, device)
    return _finished(found, parts, examples, device, channels_last)


def _from_memory(
    examples: Examples, parts: list[NDArray[np.int64]], augment: bool, generator: Any, device: Any
) -> Iterator[Any]:
    mapped = examples.inputs if isinstance(examples.inputs, MappedArray) else None
    for x in (_read(examples, rows) for rows in parts) if mapped is None else mapped.ahead(parts):
        x = x.to(device)
        if augment and examples.kind == "images":
            # four pixels for images of 32, as He et al.; as much in proportion for others
            x = crop_flip(x, generator, padding=max(1, round(x.shape[-1] / 8)), mirror=examples.mirror)
        yield x


def _read(examples: Examples, rows: NDArray[np.int64]) -> Any:
    return examples.inputs.padded(rows) if examples.kind == "tokens" else gather(examples.inputs, rows)


def _from_dataset(
    examples: Examples, parts: list[NDArray[np.int64]], augment: bool, generator: Any, device: Any, workers: int
) -> Iterator[Any]:
    import torch
    from torch.utils.data import DataLoader

    if generator is None:
        seeds = list(range(len(parts)))
    else:
        seeds = torch.randint(0, 2**62, (len(parts),), generator=generator).tolist()
    loader: Any = DataLoader(
        _Batches(augmenting(examples.inputs) if augment else examples.inputs, examples.collate_fn),  # type: ignore[arg-type]
        batch_sampler=[[seed, *rows.tolist()] for seed, rows in zip(seeds, parts, strict=True)],
        collate_fn=_as_it_is,
        num_workers=min(workers, len(parts)),
        pin_memory=torch.device(device).type == "cuda",
        generator=torch.Generator(),  # else the DataLoader draws from the global one
    )
    for x in loader:
        if isinstance(x, InputError):
            raise x
        yield x


class _Batches:
    """A dataset seen by the DataLoader: asked for a seed and positions, it answers with a whole batch."""

    def __init__(self, dataset: Any, collate_fn: Any = None) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, request: Sequence[int]) -> Any:
        from crust._util.torch_modules import inputs_in

        seed, *rows = request
        try:
            with fixed_random_state(seed):
                if self.collate_fn is not None:
                    found = items(self.dataset, rows)
                    try:
                        return inputs_in(self.collate_fn(found))
                    except InputError:
                        raise
                    except Exception as error:  # of the user's own
                        raise cannot_read("a batch that the collate_fn shall make", error) from error
                return _collate([input_of(item) for item in items(self.dataset, rows)], rows)
        except InputError as error:  # as a value, so that its sentence comes through from a worker alone
            return error


def _as_it_is(batch: Any) -> Any:
    return batch


def _collate(inputs: list[Any], rows: list[int]) -> Any:
    from torch.utils.data import default_collate

    try:
        return default_collate(inputs)
    except TypeError:
        raise InputError(
            f"item {rows[0]} of the dataset is a {type(inputs[0]).__name__}: "
            "give the dataset a transform that makes tensors",
            code="dataset-item",
        ) from None
    except (RuntimeError, ValueError):
        shapes = [getattr(x, "shape", None) for x in inputs]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if other is None:
            raise
        raise InputError(
            f"items {rows[0]} and {rows[other]} of the dataset have different shapes, {tuple(shapes[0] or ())} and "
            f"{tuple(shapes[other] or ())}: bring all to one",
            code="dataset-item",
        ) from None


def _finished(
    found: Iterator[Any], parts: list[NDArray[np.int64]], examples: Examples, device: Any, channels_last: bool
) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    import torch

    scale: Any = None
    for x, rows in zip(found, parts, strict=True):
        if not isinstance(x, torch.Tensor) or examples.collate_fn is not None:
            yield _nested_to_device(x, device), rows
            continue
        x = x.to(device, non_blocking=True)
        if x.dtype.is_floating_point or x.dtype == torch.uint8:
            pixels = x.dtype == torch.uint8
            layout = torch.channels_last if channels_last and x.ndim == 4 else torch.contiguous_format
            x = x.to(torch.float32, memory_format=layout)
            if scale is None or (scale and scale[0].shape[1:] != x.shape[1:]):
                scale = _scale(examples, x, layout)
            x = _normalised(x, pixels, *scale)
        yield x, rows


def _scale(examples: Examples, x: torch.Tensor, layout: Any) -> tuple[torch.Tensor, torch.Tensor] | tuple[()]:
    """Mean and deviation as whole inputs, laid out like them: one value a channel would be applied three by three."""
    import torch

    if examples.mean is None or examples.std is None:
        return ()
    shape = (1, -1) if x.ndim == 2 else (1, -1, 1, 1)
    both = [torch.tensor(values, dtype=torch.float32).view(shape) for values in (examples.mean, examples.std)]
    mean, std = (v.expand(1, *x.shape[1:]).to(x.device).contiguous(memory_format=layout) for v in both)
    return mean, std


def _normalised(x: torch.Tensor, pixels: bool, mean: Any = None, std: Any = None) -> torch.Tensor:
    """As ToTensor and Normalize compute it, bit for bit. In place: every batch was copied from the data."""
    if pixels:
        x.div_(255)
    return x if mean is None else x.sub_(mean).div_(std)


def _nested_to_device(x: Any, device: Any) -> Any:
    """Inputs that are a dict or a list of tensors, as language models have them."""
    if isinstance(x, dict):
        return {key: _nested_to_device(value, device) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_nested_to_device(value, device) for value in x]
    return x.to(device, non_blocking=True) if hasattr(x, "to") else x


def split_batches(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Batches of a size, the last with what is left; a single one left over joins the batch before it.

    BatchNorm cannot be trained on a batch of one.

    Example:
        >>> [part.tolist() for part in split_batches(np.arange(7), 3)]
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


def crop_flip(
    images: torch.Tensor, generator: torch.Generator, *, padding: int = 4, mirror: bool = True
) -> torch.Tensor:
    """Pad with black, crop at random to the old size, mirror half of the images: each image by itself.

    Black is 0 *before* normalisation, as in the usual pipeline of RandomCrop(32, padding=4), RandomHorizontalFlip,
    ToTensor, Normalize: so give raw pixels, (n, channels, height, width) of any type. All random numbers come from the
    generator, on the CPU, so that every device makes the same crops. The images are new, in channels-last memory.

    References:
        He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016, section 4.2.

    Example:
        >>> import torch
        >>> images = torch.arange(2 * 3 * 8 * 8, dtype=torch.uint8).reshape(2, 3, 8, 8)
        >>> crop_flip(images, torch.Generator().manual_seed(0), padding=1).shape
        torch.Size([2, 3, 8, 8])
    """
    import torch
    import torch.nn.functional

    n, channels, height, width = images.shape
    device = images.device
    offsets = torch.randint(0, 2 * padding + 1, (n, 2), generator=generator).to(device)
    columns = torch.arange(width, device=device).expand(n, width)
    if mirror:
        mirrored = (torch.rand(n, generator=generator) < 0.5).to(device)
        columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    rows = offsets[:, 0, None] + torch.arange(height, device=device)
    columns = offsets[:, 1, None] + columns
    # Channels last, so that a pixel is one row of a table and all of them are fetched by one list of positions.
    padded = torch.nn.functional.pad(images.permute(0, 2, 3, 1), (0, 0, padding, padding, padding, padding))
    which = torch.arange(n, device=device)[:, None, None]
    positions = (which * padded.shape[1] + rows[:, :, None]) * padded.shape[2] + columns[:, None, :]
    pixels = padded.reshape(-1, channels).index_select(0, positions.flatten())
    return pixels.view(n, height, width, channels).permute(0, 3, 1, 2)
