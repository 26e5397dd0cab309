"""What users give to `fit`, checked and as `Examples`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.data import Examples, encode_labels, from_arrays, from_dataset
from crust.data.labels import check_classes
from crust.errors import InputError


def as_examples(data: Any, labels: Any = None, like: Examples | None = None) -> Examples:
    """Whatever the user has as `Examples`; with the classes and the normalisation of others, where they are given.

    Args:
        data: a map-style dataset of (x, y), a pair of arrays, or `Examples`.
        labels: one an example, in place of the data's own.
        like: examples whose classes and normalisation hold for these too.

    Example:
        >>> as_examples((np.zeros((4, 2), np.float32), ["a", "b", "a", "b"])).classes
        ['a', 'b']
    """
    if isinstance(data, Examples):
        return data if labels is None else data.with_labels(codes(labels, data))
    classes = None if like is None else like.classes
    if isinstance(data, tuple) and len(data) == 2:
        given = data[1] if labels is None else labels
        if like is None:
            return from_arrays(data[0], given)
        return from_arrays(
            data[0], given, classes=classes, mean=like.mean, std=like.std, normalise=False, where="the labels"
        )
    return from_dataset(data, labels, classes)


def test_sets(given: Any, train: Examples) -> dict[str, Examples]:
    """The test sets by name; one alone is just `test`."""
    if given is None:
        return {}
    sets = given if isinstance(given, dict) else {"test": given}
    if not sets:
        raise InputError("test_set is an empty dict: give at least one set by name, or None")
    for name in sets:
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
            raise InputError(f"a test set has the name {name!r}: use letters, digits, - and _, such as 'imagenet'")
    return {name: as_examples(one, like=train) for name, one in sets.items()}


def fingerprints(tests: dict[str, Examples], named: bool) -> dict[str, str] | str | None:
    found = {name: one.fingerprint() for name, one in tests.items()}
    return found if named else next(iter(found.values()), None)


def check_labels(examples: Examples) -> None:
    if (examples.labels < 0).any():
        where = int(np.flatnonzero(examples.labels < 0)[0])
        raise InputError(f"example {where} has no label: training needs one for every example")
    check_classes(examples.labels, examples.classes)


def codes(labels: Any, examples: Examples) -> NDArray[np.int64]:
    values = np.asarray(labels)
    if len(values) != len(examples):
        raise InputError(f"there are {len(values)} labels for {len(examples)} examples: give one label an example")
    return encode_labels(values, examples.classes)[0]
