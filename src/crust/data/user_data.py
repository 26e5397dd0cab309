"""Whatever a user has as `Examples`: arrays, texts, tables, dicts, datasets of any library, a DataLoader."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.torch_modules import LABELS
from crust.data.examples import Examples
from crust.data.field_rows import Columns, fields_of, text_field
from crust.data.labels import encode_labels, one_each
from crust.data.npz_dataset import from_arrays
from crust.data.pretrained_tokens import by_tokenizer
from crust.data.table_dataset import TableEncoder
from crust.data.text import from_texts, is_text
from crust.data.text_columns import column_texts, text_to_learn
from crust.data.tokens import are_ids, from_tokens
from crust.data.torch_dataset import check_dataset, first_input, fixed_random_state, from_dataset, input_of, items
from crust.errors import InputError, choices

WHERE = "the DataFrame"


@dataclass(frozen=True)
class Reading:
    """How data is read, where it does not say so itself.

    Args:
        collate_fn: makes a batch of items, as a DataLoader takes it.
        label_column: the column, or the key of items, that has the labels.
        takes: what the network takes by name; None: that is not known, as with networks that are built by name.
        embeds: whether whole numbers are token ids, as they are for networks that embed them.
        padding: the token id that fills up what is shorter.
        normalise: whether arrays and columns of numbers are standardised.
    """

    collate_fn: Callable[[list[Any]], Any] | None = None
    label_column: str | None = None
    takes: frozenset[str] | None = None
    embeds: bool = False
    padding: int = 0
    normalise: bool = True


def as_examples(
    data: Any, labels: Any = None, like: Examples | None = None, reading: Reading | None = None
) -> Examples:
    """Whatever the user has as `Examples`; with the classes and the normalisation of others, where they are given.

    Args:
        data: a map-style dataset of (x, y) or of dicts, a `datasets.Dataset`, a DataFrame, a dict of arrays, a pair of
            arrays or of texts and labels, a DataLoader of any of them, or `Examples`.
        labels: one an example, in place of the data's own; or the name of their column.
        like: examples whose classes, normalisation and way from texts to tokens hold for these too.
        reading: how to read what does not say so itself.

    Example:
        >>> as_examples((np.zeros((4, 2), np.float32), ["a", "b", "a", "b"])).classes
        ['a', 'b']
        >>> as_examples({"size": np.arange(4.0).reshape(4, 1), "kind": ["a", "b", "a", "b"]}, "kind").shape
        (1,)
    """
    how = reading or Reading()
    if isinstance(data, Examples):
        return data if labels is None else data.with_labels(codes(labels, data))
    if isinstance(labels, str):
        how, labels = dataclasses.replace(how, label_column=labels), None
    data, how = _of_loader(data, how)
    if _is_frame(data):
        return _from_frame(data, labels, like, how)
    if isinstance(data, Mapping):
        return _from_columns(data, labels, like, how)
    if isinstance(data, tuple) and len(data) == 2:
        _refuse_column(how, "a pair of inputs and labels")
        return _from_pair(data[0], data[1] if labels is None else labels, like, how)
    if is_text(data) and labels is not None:
        return _from_pair(data, labels, like, how)
    tensors: Any = getattr(data, "tensors", ())
    if how.embeds and type(data).__name__ == "TensorDataset" and len(tensors) == 2 and are_ids(tensors[0]):
        return _from_pair(tensors[0], tensors[1] if labels is None else labels, like, how)
    return _from_map_style(data, labels, like, how)


def as_inputs(data: Any, like: Examples, reading: Reading | None = None) -> Examples:
    """The same without labels: what to predict, in any form in which examples can be trained on.

    Args:
        data: as `as_examples` takes it, with labels or without; then also a single array, or a list of texts.
        like: what was trained on, or as much as is known of it.
        reading: how to read what does not say so itself.
    """
    how = reading or Reading()
    tokenizer = (like.encoding or {}).get("tokenizer")
    if isinstance(data, Examples):
        return data if tokenizer is None else by_tokenizer(data, tokenizer)
    data, how = _of_loader(data, how)
    unknown = np.full(1, -1)
    if _is_frame(data):
        return _from_frame(data, None, like, how, labelled=False)
    if isinstance(data, Mapping):
        return _from_columns(data, None, like, how, labelled=False)
    if isinstance(data, tuple) and len(data) == 2 and _is_pair(data):
        data = data[0]
        if _is_frame(data):
            return _from_frame(data, None, like, how, labelled=False)
    if is_text(data) and tokenizer is not None:
        return by_tokenizer(from_texts(data, classes=like.classes), tokenizer)
    if is_text(data):
        if like.encoding is None or "tokens" not in like.encoding:
            raise InputError("the network was not trained on texts: give inputs like those", code="other-data")
        return from_texts(data, classes=like.classes, encoding=like.encoding["tokens"])
    if like.kind == "tokens" and (are_ids(data) or isinstance(data, list)):
        return from_tokens(data, classes=like.classes)
    if isinstance(data, np.ndarray) or hasattr(data, "to_numpy") or _are_rows(data) or _is_tensor(data):
        return from_arrays(data, mean=like.mean, std=like.std, normalise=like.mean is not None)
    check_dataset(data)
    with fixed_random_state(0):
        first = items(data, [0])[0]
    if isinstance(first, Mapping) and how.collate_fn is None:
        column = text_field(first, how.label_column, how.takes)
        if column is not None:
            return as_inputs(_column(data, column), like, how)
    inputs, collate = fields_of(data, how.label_column, how.takes, how.padding, how.collate_fn)
    return Examples(inputs, unknown.repeat(len(data)), like.classes, "dataset", collate_fn=collate)


def codes(labels: Any, examples: Examples) -> NDArray[np.int64]:
    """Labels as the numbers of the classes that examples have."""
    return encode_labels(one_each(labels, len(examples)), examples.classes)[0]


# ------------------------------------------------------------ forms


def _from_pair(x: Any, y: Any, like: Examples | None, how: Reading, classes: Sequence[Any] | None = None) -> Examples:
    """Arrays, tables, texts or token ids, and labels."""
    classes = classes if like is None else like.classes
    encoding = None if like is None or like.kind != "tokens" else like.inputs.encoding
    if _is_frame(x):
        return _from_frame(x, y, like, how)
    if is_text(x):
        return from_texts(x, y, classes=classes, encoding=encoding)
    if (how.embeds if like is None else like.kind == "tokens") and (are_ids(x) or isinstance(x, list)):
        return from_tokens(x, y, classes=classes)
    if like is None:
        return from_arrays(x, y, normalise=how.normalise)
    return from_arrays(x, y, classes=classes, mean=like.mean, std=like.std, normalise=False, where="the labels")


def _from_map_style(data: Any, labels: Any, like: Examples | None, how: Reading) -> Examples:
    """A map-style dataset whose items are pairs, dicts, or inputs alone."""
    check_dataset(data)
    classes = None if like is None else like.classes
    with fixed_random_state(0):
        first = items(data, [0])[0]
    if not isinstance(first, Mapping):
        _refuse_column(how, "a dataset of pairs")
        found = from_dataset(data, labels, classes)
        if how.collate_fn is not None:
            return dataclasses.replace(found, inputs=data, kind="dataset", collate_fn=how.collate_fn)
        if found.kind == "dataset" and isinstance(first_input(data), str):
            encoding = None if like is None or like.kind != "tokens" else like.inputs.encoding
            texts = [input_of(item) for item in items(data, range(len(data)))]
            return dataclasses.replace(found, inputs=from_texts(texts, encoding=encoding).inputs, kind="tokens")
        return found
    values, names = labels_and_names(data, how.label_column if labels is None else labels)
    column = text_field(first, how.label_column, how.takes) if how.collate_fn is None else None
    if column is not None:
        return _from_pair(_column(data, column), values, like, how, names)
    numbers, names = encode_labels(one_each(values, len(data)), names if classes is None else classes)
    inputs, collate = fields_of(data, how.label_column, how.takes, how.padding, how.collate_fn)
    return Examples(inputs, numbers, list(names), "dataset", collate_fn=collate)


def _from_columns(
    data: Mapping[str, Any], labels: Any, like: Examples | None, how: Reading, labelled: bool = True
) -> Examples:
    """A dict of arrays, one of which may be the labels."""
    name = _label_name(list(data), how.label_column, labelled and labels is None)
    columns = {key: value for key, value in data.items() if key != name}
    if not columns:
        raise InputError("the dict holds no inputs besides the labels: give arrays by name", code="no-columns")
    values = labels if name is None or labels is not None else data[name]
    if len(columns) == 1:
        x = next(iter(columns.values()))
        if labelled:
            return _from_pair(x, values, like, how)
        assert like is not None
        return as_inputs(x, like, how)
    rows = Columns(columns)
    classes = None if like is None else like.classes
    inputs, collate = fields_of(rows, how.label_column, how.takes, how.padding, how.collate_fn)
    if not labelled:
        assert classes is not None
        return Examples(inputs, np.full(len(rows), -1), classes, "dataset", collate_fn=collate)
    numbers, names = encode_labels(one_each(values, len(rows)), classes)
    return Examples(inputs, numbers, names, "dataset", collate_fn=collate)


def _from_frame(data: Any, labels: Any, like: Examples | None, how: Reading, labelled: bool = True) -> Examples:
    """A DataFrame: numbers as they are, other columns as those of a file are read; or its texts."""
    import pyarrow as pa

    trained = None if like is None else like.encoding
    name = _label_name([str(one) for one in data.columns], how.label_column, labelled and labels is None)
    values = None if not labelled else data[name].to_numpy() if labels is None else labels
    features = data.drop(columns=[name]) if name is not None else data
    classes = None if like is None else like.classes
    if trained is not None and "text_column" in trained:
        texts = features[choices(trained["text_column"], list(features.columns), f"column of {WHERE}")]
        return from_texts(texts, values, classes=classes, encoding=trained["tokens"])
    if like is None:
        numeric = all(kind.kind in "biuf" for kind in map(np.dtype, _plain_types(features))) if len(features) else False
        if numeric and not features.isna().to_numpy().any():
            found = from_arrays(features, values, normalise=how.normalise)
            found.encoding = {"names": [str(one) for one in features.columns]}
            return found
    elif trained is not None and "names" in trained:
        for one in trained["names"]:
            choices(one, [str(name) for name in features.columns], f"column of {WHERE}")
        return from_arrays(
            features[trained["names"]], values, classes=classes, mean=like.mean, std=like.std, normalise=False
        )
    elif trained is None or "columns" not in trained:
        return from_arrays(features, values, classes=classes, mean=like.mean, std=like.std, normalise=False)
    table = pa.Table.from_pandas(features, preserve_index=False)
    if trained is None:
        text, used = text_to_learn(table, table.column_names, WHERE)
        if text is not None:
            found = from_texts(column_texts(table, text, WHERE), values)
            found.encoding = {"text_column": text, "tokens": found.inputs.encoding}
            return found
        trained = {"columns": TableEncoder.fit(table, used, WHERE).columns}
    import torch

    x = torch.from_numpy(TableEncoder(trained["columns"]).transform(table, WHERE))
    if values is None:
        numbers, names = np.full(len(x), -1), list(classes or [])
    else:
        numbers, names = encode_labels(one_each(values, len(x)), classes)
    return Examples(x, numbers, names, "features", encoding=trained)


def _plain_types(frame: Any) -> list[Any]:
    return [kind if isinstance(kind, np.dtype) else np.dtype(object) for kind in frame.dtypes]


def _label_name(names: Sequence[str], label_column: str | None, needed: bool) -> str | None:
    """The column of the labels, where there is one."""
    if label_column is not None:
        return choices(label_column, names, "column") if needed or label_column in names else None
    found = next((name for name in (*LABELS, "y") if name in names), None)
    if found is None and needed:
        raise InputError(
            f"there is no column of labels among {', '.join(map(str, names))}: name it with label_column, or give "
            "labels",
            code="label-column",
        )
    return found


def _refuse_column(how: Reading, what: str) -> None:
    """A column of labels cannot be named where there are none."""
    if how.label_column is not None:
        raise InputError(
            f"{what} has no columns, so that {how.label_column!r:.60} names no labels: give labels as a list, one an "
            "example",
            code="no-columns",
        )


def is_columns(data: Any, label_column: str | None = None) -> bool:
    """Whether a dict is one of arrays with their labels, where it could be one of several datasets by name.

    Example:
        >>> is_columns({"x": [1], "label": [0]}), is_columns({"clean": ([1], [0])})
        (True, False)
    """
    return isinstance(data, Mapping) and any(
        name in data for name in ([label_column] if label_column else [*LABELS, "y"])
    )


# ------------------------------------------------------------ what things are


def _of_loader(data: Any, how: Reading) -> tuple[Any, Reading]:
    """The dataset of a DataLoader, and its collate function where that is one of the user's own; columns as lists."""
    import torch
    from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, default_collate

    if not isinstance(data, DataLoader):
        if isinstance(data, tuple) and len(data) == 2:
            return tuple(_as_plain_table(one) for one in data), how
        return _as_plain_table(data), how
    if isinstance(data.dataset, torch.utils.data.IterableDataset):
        return data.dataset, how
    sampler: Any = data.sampler
    if data.batch_sampler is None or type(data.batch_sampler) is not torch.utils.data.BatchSampler:
        sampler = data.batch_sampler
    whole = isinstance(sampler, SequentialSampler) or (isinstance(sampler, RandomSampler) and not sampler.replacement)
    if not whole and data.batch_size is not None:
        raise InputError(
            f"the DataLoader has a {type(sampler).__name__}, which this run cannot go by: give its dataset, or a "
            "torch Subset of it",
            code="loader-sampler",
        )
    if how.collate_fn is None and data.collate_fn is not default_collate and data.batch_size is not None:
        how = dataclasses.replace(how, collate_fn=data.collate_fn)
    return data.dataset, how


def _as_plain_table(data: Any) -> Any:
    """A column of a `datasets.Dataset` as a list; tables of other libraries as those of pandas."""
    if type(data).__module__.partition(".")[0] in ("pyarrow", "polars") and hasattr(data, "to_pandas"):
        data = data.to_pandas()
    return list(data) if type(data).__name__ == "Column" and hasattr(data, "__len__") else data


def _is_frame(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns") and hasattr(data, "dtypes")


def _is_tensor(data: Any) -> bool:
    return hasattr(data, "detach") and hasattr(data, "numpy")


def _is_pair(data: tuple[Any, Any]) -> bool:
    """Whether a tuple of two is inputs and labels, and not two examples."""
    x, y = data
    sized = hasattr(x, "__len__") and hasattr(y, "__len__")
    many = getattr(x, "ndim", 0) >= 2 or is_text(x) or _is_frame(x) or isinstance(x, list)
    return sized and many and not isinstance(y, str) and len(x) == len(y) and getattr(y, "ndim", 1) == 1


def _are_rows(data: Any) -> bool:
    """Whether these are rows of plain numbers, where items of a dataset are tensors, or pairs of them."""
    first = next(iter(data), 0) if isinstance(data, list | tuple) else None
    return isinstance(first, int | float) or (
        isinstance(first, list | tuple) and all(isinstance(one, int | float | list) for one in first)
    )


def text_column(data: Any, name: str) -> list[Any]:
    """A column of texts, of whatever has columns."""
    data = _of_loader(data, Reading())[0]
    if isinstance(data, tuple) and len(data) == 2 and _is_frame(data[0]):
        data = data[0]
    if isinstance(data, Mapping) or _is_frame(data):
        if name not in data:
            raise InputError(
                f"there is no column {name!r} to show: name one of {', '.join(map(str, data))}", code="cannot-show"
            )
        return list(data[name])
    if isinstance(data, tuple | Examples):
        raise InputError(
            f"the data has no columns, so that there is no {name!r}: give a list of texts", code="cannot-show"
        )
    try:
        return _column(data, name)
    except (KeyError, TypeError, IndexError):
        raise InputError(
            f"the dataset has no column {name!r} to show: give a list of texts", code="cannot-show"
        ) from None


def _column(data: Any, name: str) -> list[Any]:
    """A column of a dataset, without reading the others where it can."""
    if getattr(data, "column_names", None) and name in data.column_names:
        plain = data.with_format(None) if hasattr(data, "with_format") else data
        return list(plain[name])
    return [item[name] for item in items(data, range(len(data)))]


def labels_and_names(dataset: Any, labels: Any = None) -> tuple[Any, list[Any] | None]:
    """The labels of a dataset and the names of its classes, where it has them; no image is decoded for that.

    Args:
        dataset: map-style.
        labels: one an example; or the column of a `datasets.Dataset`, or the key of items that are mappings; None:
            the column or key that has a usual name, else the y of items (x, y).

    Example:
        >>> labels_and_names([{"text": "so", "label": 1}, {"text": "so", "label": 0}])
        ([1, 0], None)
    """
    check_dataset(dataset)
    features = getattr(dataset, "features", None) or {}
    columns = list(getattr(dataset, "column_names", None) or [])
    if labels is None or isinstance(labels, str):
        if columns:
            keys: list[Any] = columns
        else:
            with fixed_random_state(0):
                first = items(dataset, [0])[0]
            keys = list(first) if isinstance(first, Mapping) else []
        named = [key for key, feature in features.items() if getattr(feature, "names", None)]
        usual = [one for one in LABELS if one in keys] + (named if len(named) == 1 else [])
        name = labels if labels is not None else next(iter(usual), None)
        if name is None and not keys:
            found = from_dataset(dataset)
            return found.decode(found.labels), getattr(dataset, "classes", None)
        if name not in keys:
            raise InputError(
                f"the dataset has no {name or 'label'!r}, but {', '.join(map(str, keys))}: name the labels' column",
                code="label-column",
            )
        return _column(dataset, str(name)), getattr(features.get(name), "names", None)
    names = next((f.names for key, f in features.items() if key in LABELS and hasattr(f, "names")), None)
    return labels, names or getattr(dataset, "classes", None)
