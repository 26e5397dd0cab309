"""The data of a run of `crust.fit`: as the user gave it, read for the network, checked and split."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from crust._util import seeding
from crust._util.foreign import cannot_read
from crust._util.torch_modules import forward_names, unwrapped
from crust.data import Examples, hold_out
from crust.data.labels import check_classes
from crust.data.pretrained_tokens import HF, by_tokenizer
from crust.data.text import is_text
from crust.data.user_data import Reading, as_examples, codes, is_columns, text_column
from crust.errors import InputError

TOKEN_MODEL = "text"
HF_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


@dataclass
class Split:
    """The user's data: what is trained on, what is held out of it, and what is measured on."""

    train: Examples  # all of it
    kept: NDArray[np.int64]  # positions that are trained on
    held: NDArray[np.int64]  # those held out
    part: Examples  # the examples of `kept`
    plain: Examples | None  # the same without augmentation, where the training set augments by itself
    validation: Examples | None
    truth: NDArray[np.int64] | None  # of all
    tests: dict[str, Examples]
    fingerprint: str  # of the training set, as it was given


def prepare_data(
    train_set: Any,
    labels: Any,
    true_labels: Any,
    test_set: Any,
    validation: float,
    val_set: Any,
    train_eval_set: Any,
    seed: int,
    reading: Reading,
    tokenizer: str | None = None,
) -> Split:
    """What the user gave, checked, and split as `validation` says; texts as tokens of a pretrained network, if any."""
    read = as_examples(train_set, labels, reading=reading)
    check_labels(read)
    train = read if tokenizer is None else by_tokenizer(read, tokenizer)
    truth = None if true_labels is None else codes(true_labels, train)
    plain = None
    if train_eval_set is not None:
        plain = as_examples(train_eval_set, read.decode(read.labels), read, reading)
    tests = test_sets(test_set, read, reading)
    kept, held = np.arange(len(train)), np.empty(0, np.int64)
    if val_set is None and validation:
        kept, held = hold_out(train.labels, validation, seeding.numpy_rng(seed, "validation"))
    validate = None if val_set is None else as_examples(val_set, None, read, reading)
    if tokenizer is not None:
        tests = {name: by_tokenizer(one, tokenizer) for name, one in tests.items()}
        plain, validate = (one if one is None else by_tokenizer(one, tokenizer) for one in (plain, validate))
    if len(held):
        validate = (train if plain is None else plain).subset(held)
    seen = None if plain is None else plain.subset(kept)
    return Split(train, kept, held, train.subset(kept), seen, validate, truth, tests, read.fingerprint())


def test_sets(given: Any, train: Examples, reading: Reading) -> dict[str, Examples]:
    """The test sets by name; one alone is just `test`."""
    if given is None:
        return {}
    several = isinstance(given, dict) and not is_columns(given, reading.label_column)
    sets = given if several else {"test": given}
    if not sets:
        raise InputError("test_set is an empty dict: give at least one set by name, or None", code="empty")
    for name in sets:
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
            raise InputError(
                f"a test set has the name {name!r}: use letters, digits, - and _, such as 'imagenet'",
                code="test-set-name",
            )
    return {name: as_examples(one, None, train, reading) for name, one in sets.items()}


def fingerprints(tests: dict[str, Examples], named: bool) -> dict[str, str] | str | None:
    found = {name: one.fingerprint() for name, one in tests.items()}
    return found if named else next(iter(found.values()), None)


def check_labels(examples: Examples) -> None:
    if (examples.labels < 0).any():
        where = int(np.flatnonzero(examples.labels < 0)[0])
        raise InputError(f"example {where} has no label: training needs one for every example", code="missing-label")
    check_classes(examples.labels, examples.classes)


def reading_of(
    model: nn.Module | str | Callable[[], nn.Module],
    collate_fn: Callable[[list[Any]], Any] | None = None,
    label_column: str | None = None,
    normalise: bool = True,
) -> Reading:
    """How data is read for a network: what it takes by name, and whether whole numbers are token ids to it.

    Example:
        >>> reading_of("text").embeds, reading_of("mlp").embeds, reading_of(nn.Bilinear(2, 2, 3)).takes
        (True, False, frozenset({...}))
    """
    if not (collate_fn is None or callable(collate_fn)):
        raise InputError(f"collate_fn is a {type(collate_fn).__name__}: give a function", code="not-a-function")
    if not (label_column is None or isinstance(label_column, str)):
        raise InputError(f"label_column is {label_column!r:.100}: give the name of a column", code="label-column")
    if isinstance(model, str):
        takes = frozenset(HF_INPUTS) if model.startswith(HF) else None
        return Reading(collate_fn, label_column, takes, embeds=model == TOKEN_MODEL, normalise=normalise)
    if not isinstance(model, nn.Module):
        with seeding.seeded(0, "weights"):  # no random number outside is used up
            model = made_by(model)
    embeds = any(isinstance(part, EMBEDDINGS) for part in model.modules())  # they take whole numbers as token ids
    padding = getattr(getattr(unwrapped(model), "config", None), "pad_token_id", None)
    padding = padding if isinstance(padding, int) else 0
    return Reading(collate_fn, label_column, forward_names(model), embeds, padding, normalise)


def texts_to_show(show: Any, train_set: Any, train: Examples) -> list[str] | None:
    """What the audit keeps of each example to be read by people: its text, or that of a column."""
    if show is None:
        return getattr(train.inputs, "texts", None)
    values = text_column(train_set, show) if isinstance(show, str) else show
    if not is_text(values) or len(values) != len(train):
        raise InputError(
            "show is no text an example: give a list of strings or the name of a column, and other things to "
            "result.report(show=...)",
            code="cannot-show",
        )
    return [str(one) for one in values]


def made_by(factory: Callable[[], nn.Module]) -> nn.Module:
    """What the user's own function makes."""
    try:
        network = factory()
    except Exception as error:
        raise cannot_read("the network that the function given as model makes", error) from error
    if not isinstance(network, nn.Module):
        raise InputError(
            f"the function given as model makes a {type(network).__name__}: let it make a network", code="model-type"
        )
    return network
