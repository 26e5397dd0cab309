"""Labels drawn from noise: from a transition matrix, from the instance itself, and as the released code draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crust._util.foreign import as_array, whole_number
from crust.errors import InputError, choices
from crust.noise.transition_matrices import Rng, check_matrix, check_rate, draw_derangement

MOST_CLASSES = 100_000  # a matrix of them has to fit into memory
FLIP_RATE_SPREAD = 0.1  # of the flip rates of single examples, around the noise rate (Xia et al. 2020)


def noisify(labels: ArrayLike, T: ArrayLike, rng: Rng) -> NDArray[np.int64]:
    """Draw a label for each example from the row of its class. One random number an example, so that the examples
    that change at a lower rate are among those that change at a higher one with the same seed.

    Args:
        labels: whole numbers from 0 to C − 1.
        T: the transition matrix, (C, C).
        rng: a `numpy.random.Generator`.

    Returns:
        The noisy labels, int64, as many as there are labels.

    Example:
        >>> T = np.array([[0.0, 1.0], [0.0, 1.0]])
        >>> noisify([0, 1, 0], T, np.random.default_rng(0))
        array([1, 1, 1])
    """
    T = check_matrix(T)
    clean = check_range(labels, len(T))
    draws = rng.random(len(clean))
    noisy = np.empty_like(clean)
    for c in np.unique(clean):
        of_class = np.flatnonzero(clean == c)
        # The class itself stands last: the smallest numbers change the label, whatever the rate.
        targets = np.append(np.delete(np.arange(len(T)), c), c)
        noisy[of_class] = targets[_inverse(T[c, targets], draws[of_class])]
    return noisy


def _inverse(chances: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions drawn with the given chances. Rounding must not let the last one in where its chance is 0."""
    cumulative = np.cumsum(chances)
    cumulative[cumulative >= cumulative[-1]] = 1.0
    return np.searchsorted(cumulative, draws, side="right")


def instance_noise(
    features: ArrayLike, labels: ArrayLike, rate: float, classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Noise that depends on the instance (Xia et al. 2020, "Part-dependent Label Noise").

    Each example has a flip rate q of its own, normal around `rate` with deviation 0.1, cut off at 0 and 1. Where its
    label flips to follows from its features x: by softmax(x·W_y), with one random Gaussian matrix W_c a class.
    The scale of the features matters: with large ones the softmax is nearly certain. Give pixels from 0 to 1.

    Args:
        features: (n, …) numbers; all but the first dimension are flattened.
        labels: whole numbers from 0 to C − 1.
        rate: the mean flip rate, from 0 to 1.
        classes: the number of classes C.
        rng: a `numpy.random.Generator`.

    Returns:
        The noisy labels, int64.

    Example:
        >>> x = np.random.default_rng(0).random((1000, 4))
        >>> noisy = instance_noise(x, np.zeros(1000, int), 0.3, 3, np.random.default_rng(0))
        >>> round(float((noisy != 0).mean()), 2)
        0.33
    """
    rate = check_rate(rate)
    clean = check_range(labels, classes)
    x = np.asarray(features)
    if x.dtype.kind not in "biuf":
        raise InputError(f"the features hold {x.dtype}, not numbers: instance noise needs numbers", code="not-numbers")
    if len(x) != len(clean):
        raise InputError(
            f"there are {len(x)} rows of features and {len(clean)} labels: give one label a row", code="labels-length"
        )
    x = x.reshape(len(x), -1)
    if not np.isfinite(x).all():
        raise InputError("the features hold values that are no finite numbers: fill them in first", code="not-finite")
    if rate == 0:
        return clean.copy()  # what is cut off at 0 would otherwise leave a mean rate of 0.08
    flip = _flip_rates(rate, len(clean), rng)
    draws = rng.random(len(clean))
    noisy = clean.copy()
    for c in range(classes):  # one matrix at a time: all of them are large
        W = rng.standard_normal((x.shape[1], classes))
        flipped = np.flatnonzero((clean == c) & (draws < flip))
        scores = x[flipped].astype(np.float64) @ W
        scores[:, c] = -np.inf
        cumulative = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
        cumulative /= cumulative[:, -1:]
        # Given that it is below the flip rate, a draw divided by it is uniform again.
        noisy[flipped] = ((draws[flipped] / flip[flipped])[:, None] >= cumulative).sum(axis=1)
    return noisy


def _flip_rates(rate: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Normal around `rate`, drawn again where outside of 0 to 1."""
    flip = rng.normal(rate, FLIP_RATE_SPREAD, n)
    while (outside := (flip < 0) | (flip > 1)).any():
        flip[outside] = rng.normal(rate, FLIP_RATE_SPREAD, int(outside.sum()))
    return flip


def released_labels(labels: ArrayLike, kind: str, rate: float, classes: int, seed: int = 0) -> NDArray[np.int64]:
    """The very labels that the released code of CRUST draws, number for number.

    It seeds numpy's global generator and draws example after example. The same numbers come here from a
    `RandomState` of our own, and the global generator stays as it was.

    Args:
        labels: the true labels, from 0 to C − 1, in the order of the dataset.
        kind: `agnostic` (symmetric noise) or `asym` (a derangement of the classes), as the released code says.
        rate: its `mislabel_ratio`.
        classes: the number of classes C.
        seed: its `rand_number`; the published experiments use 0.

    Returns:
        The noisy labels, int64.

    Example:
        >>> released_labels(np.arange(10), "asym", 1.0, 10)
        array([2, 8, 4, 9, 1, 6, 7, 3, 0, 5])
    """
    choices(kind, ["agnostic", "asym"], "noise of the released code")
    rate = check_rate(rate)
    clean = check_range(labels, classes)
    state = np.random.RandomState(seed)
    if kind == "asym":
        image = draw_derangement(classes, state)
        return np.where(state.random_sample(len(clean)) < rate, image[clean], clean)
    noisy = clean.copy()
    for i, label in enumerate(clean):
        if state.random_sample() < rate:
            while noisy[i] == label:
                noisy[i] = state.randint(classes)
    return noisy


def check_range(labels: Any, classes: int) -> NDArray[np.int64]:
    """Labels as int64 from 0 to C − 1, or one sentence."""
    if whole_number(classes, "classes", 1) > MOST_CLASSES:
        raise InputError(f"classes is {classes}: give at most {MOST_CLASSES:,}", code="classes-range")
    found = as_array(labels, "the labels")
    if found.ndim != 1:
        raise InputError(f"the labels have shape {found.shape}: give one a row, shape (n,)", code="labels-shape")
    if found.dtype.kind not in "biu" and found.size:
        raise InputError(
            f"the labels hold {found.dtype}: noise needs whole numbers from 0 to {classes - 1}", code="labels-type"
        )
    found = found.astype(np.int64)
    bad = np.flatnonzero((found < 0) | (found >= classes))
    if bad.size:
        raise InputError(
            f"label {found[bad[0]]} of row {bad[0]} is out of range: labels go from 0 to {classes - 1}",
            code="label-range",
        )
    return found
