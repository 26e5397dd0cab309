"""Datasets whose items are dicts: which of their fields go to the network, and how batches are made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crust._util.torch_modules import LABELS, inputs_in
from crust.data.torch_dataset import fixed_random_state, items
from crust.errors import CrustError, InputError

USUAL_TEXTS = ("text", "sentence", "content", "review")


class Columns:
    """A dict of arrays as a dataset of dicts.

    Example:
        >>> rows = Columns({"a": [1, 2], "b": np.zeros((2, 3))})
        >>> len(rows), rows[1]["a"], rows[1]["b"].shape
        (2, 2, (3,))
    """

    def __init__(self, columns: Mapping[str, Any]):
        self.columns = dict(columns)
        sizes = {name: len(values) for name, values in self.columns.items()}
        self.size = next(iter(sizes.values()))
        other = next((name for name, size in sizes.items() if size != self.size), None)
        if other is not None:
            raise InputError(
                f"{next(iter(sizes))} has {self.size} rows, but {other} has {sizes[other]}: give one an example",
                code="columns-length",
            )

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, position: int) -> dict[str, Any]:
        return {name: values[position] for name, values in self.columns.items()}

    def fingerprint(self) -> str:
        """Of all that is in the columns."""
        digest = hashlib.sha256()
        for name, values in self.columns.items():
            array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values, dtype=None)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes() if array.dtype != object else repr(values).encode())
        return digest.hexdigest()[:16]


class Fields:
    """Some fields of the items of a dataset: those that go to the network.

    Args:
        dataset: map-style, of dicts.
        names: of the fields; None: all of them.
        single: the one field as it is, in place of a dict.
    """

    def __init__(self, dataset: Any, names: Sequence[str] | None, single: bool = False):
        self.dataset, self.names, self.single = dataset, None if names is None else list(names), single

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, position: int) -> Any:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[Any]:
        found = items(self.dataset, list(positions))
        if self.names is None:
            return found
        if self.single:
            return [_field_tensor(item[self.names[0]]) for item in found]
        return [{name: item[name] for name in self.names if name in item} for item in found]

    def fingerprint(self) -> str:
        """What the dataset says about itself, as those of the library datasets do, and which fields of it."""
        own = getattr(self.dataset, "fingerprint", None)
        about = own() if callable(own) else getattr(self.dataset, "_fingerprint", type(self.dataset).__qualname__)
        return f"{about} {self.names}"


class Padding:
    """Puts items together; rows of different lengths are filled up at their ends.

    Args:
        token: that fills up `input_ids`; all others get 0.
        mask: add an `attention_mask`, where rows were filled up.

    Example:
        >>> batch = Padding(token=9, mask=True)([{"input_ids": [5, 3]}, {"input_ids": [7]}])
        >>> batch["input_ids"].tolist(), batch["attention_mask"].tolist()
        ([[5, 3], [7, 9]], [[1, 1], [1, 0]])
    """

    def __init__(self, token: int = 0, mask: bool = False):
        self.token, self.mask = token, mask

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name in rows[0]:
            values = [self._tensor(row, name, i) for i, row in enumerate(rows)]
            if self.mask and name == "input_ids" and "attention_mask" not in rows[0]:
                ones = [torch.ones(len(value), dtype=torch.int64) for value in values]
                found["attention_mask"] = self._stacked(ones, "attention_mask")
            found[name] = self._stacked(values, name)
        return found

    @staticmethod
    def _tensor(row: dict[str, Any], name: str, i: int) -> Tensor:
        try:
            return _field_tensor(row[name])
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise InputError(
                f"the field {name!r} of item {i} of a batch is no array of numbers: give a collate_fn that makes "
                "tensors",
                code="dataset-item",
            ) from None

    def _stacked(self, values: list[Tensor], name: str) -> Tensor:
        shapes = {tuple(value.shape) for value in values}
        if len(shapes) == 1:
            found = torch.stack(values)
        elif all(value.ndim == 1 for value in values):
            filling = self.token if name == "input_ids" else 0
            found = torch.nn.utils.rnn.pad_sequence(values, batch_first=True, padding_value=filling)
        else:
            one, other = sorted(shapes)[:2]
            raise InputError(
                f"items of the dataset have different shapes in {name!r}, {one} and {other}: bring all to one, or give "
                "a collate_fn",
                code="dataset-item",
            )
        return found.float() if found.is_floating_point() else found


def fields_of(
    dataset: Any,
    label_column: str | None,
    takes: frozenset[str] | None,
    padding: int,
    collate_fn: Callable[[list[Any]], Any] | None,
) -> tuple[Any, Callable[[list[Any]], Any] | None]:
    """What of a dataset goes to the network, and what puts a batch of it together.

    Args:
        dataset: map-style; only where its items are dicts there is something to choose.
        label_column: the key of the labels.
        takes: what the network takes by name; None: not known.
        padding: the token id that fills up.
        collate_fn: of the user's own: it gets the fields that the network takes, or all of them where it wants that.
    """
    with fixed_random_state(0):
        first = items(dataset, [0])[0]
    if not isinstance(first, Mapping):
        return dataset, collate_fn
    keys = [name for name in first if name != label_column and name not in LABELS]
    numbers = [name for name in keys if _can_be_input(first[name])]
    by_name = [name for name in numbers if takes is not None and name in takes]
    if collate_fn is not None:
        labels = [name for name in first if name not in keys]
        return _for_collator(dataset, [*by_name, *labels], collate_fn), collate_fn
    if by_name:
        mask = takes is not None and "attention_mask" in takes and "attention_mask" not in by_name
        return Fields(dataset, by_name), Padding(padding, mask)
    if len(numbers) == 1:
        return Fields(dataset, numbers, single=True), None
    asked = "an input" if takes is None else ", ".join(sorted(takes)[:8]) or "nothing by name"
    raise InputError(
        f"the items of the dataset hold {', '.join(map(str, keys)) or 'nothing'} besides the label, but the model "
        f"takes {asked}: give them these names, or a collate_fn",
        code="dataset-fields",
    )


def _for_collator(dataset: Any, names: list[str], collate_fn: Callable[[list[Any]], Any]) -> Fields:
    """The fields that the network takes, where the user's collator can do with them; else all."""
    for view in (Fields(dataset, names), Fields(dataset, None)) if len(names) > 1 else (Fields(dataset, None),):
        try:
            with fixed_random_state(0):
                batch = inputs_in(collate_fn(items(view, list(range(min(2, len(view)))))))
            if isinstance(batch, Tensor) or batch:
                return view
        except CrustError:
            raise
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    raise InputError(f"the collate_fn cannot take the items of the dataset: {reason}", code="bad-collate")


def text_field(first: Mapping[str, Any], label_column: str | None, takes: frozenset[str] | None) -> str | None:
    """The field with the text that is learned from, where nothing else can be: no array, and nothing by name.

    Example:
        >>> text_field({"text": "so good", "label": 1, "row": 0}, None, None)
        'text'
    """
    keys = [name for name in first if name != label_column and name not in LABELS]
    if any(takes is not None and name in takes and _can_be_input(first[name]) for name in keys):
        return None
    if any(_can_be_input(first[name]) and not _are_ids(first[name]) for name in keys):
        return None
    texts = [name for name in keys if isinstance(first[name], str)]
    return texts[0] if len(texts) == 1 else next((name for name in USUAL_TEXTS if name in texts), None)


def _are_ids(value: Any) -> bool:
    """Numbers that stand beside a text: a row's own, or its tokens."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, int) for one in value)
    return isinstance(value, int | float) or (
        getattr(value, "ndim", 2) < 2 and "int" in str(getattr(value, "dtype", ""))
    )


def _can_be_input(value: Any) -> bool:
    """Numbers, or what may become some, as pictures do; no text."""
    if isinstance(value, list | tuple):
        return bool(value) and _can_be_input(value[0])
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return isinstance(value, Tensor | int | float | np.number) or hasattr(value, "convert")


def _field_tensor(value: Any) -> Any:
    if isinstance(value, Tensor) or hasattr(value, "convert"):
        return value
    found = torch.as_tensor(np.asarray(value))
    return found.float() if found.dtype == torch.float64 else found
