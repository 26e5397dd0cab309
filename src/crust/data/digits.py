"""The handwritten digits that come with scikit-learn: 1797 grey images of 8×8, always at hand."""

from __future__ import annotations

import numpy as np

from crust.data.examples import Bundle
from crust.data.holdout import hold_out
from crust.data.npz_dataset import encoding_of, from_arrays

TEST = 500


def load_digits(limit: int | None = None) -> Bundle:
    """1297 digits to train on and 500 to test with: always the same ones, each class in proportion."""
    from sklearn import datasets

    found = datasets.load_digits()
    images = np.round(found.images * (255 / 16)).astype(np.uint8)  # from 0…16 to 0…255
    train, test = hold_out(found.target, TEST / len(images), np.random.default_rng(0))
    rows = np.arange(min(limit or len(train), len(train)))
    examples = from_arrays(images[train[rows]], found.target[train[rows]], classes=list(range(10)))
    mean, std = examples.mean, examples.std
    examples.mirror = False  # a mirrored digit is none
    tests = from_arrays(images[test], found.target[test], classes=examples.classes, mean=mean, std=std)
    return Bundle(examples, tests, encoding_of(examples), len(train), rows)
