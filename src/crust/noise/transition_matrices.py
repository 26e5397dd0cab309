"""Transition matrices by name. Papers use one name for different noise; these names each mean one thing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError, choices

log = logging.getLogger("crust.noise")

Rng: TypeAlias = np.random.Generator | np.random.RandomState
Matrix: TypeAlias = NDArray[np.float64]

# truck → automobile, bird → airplane, deer → horse, cat ↔ dog; the other five classes stay clean (Patrini et al. 2017)
CIFAR10_FLIPS = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}

# The superclass of each fine label of CIFAR-100, as `coarse_labels` of the published files has them.
CIFAR100_SUPERCLASSES = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0, 11, 1, 10,
    12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16,
    12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14,
    13,
)  # fmt: skip


def transition_matrix(
    name: str | NDArray[Any],
    rate: float | None = None,
    classes: int | None = None,
    *,
    rng: Rng | None = None,
    superclasses: Sequence[int] | NDArray[Any] | None = None,
) -> Matrix:
    """The matrix T of a kind of label noise: T[i, j] is the chance that class i is labelled j.

    | name | what happens to an example of class i |
    |---|---|
    | `symmetric` | with chance `rate` it goes to one of the *other* classes, all alike |
    | `symmetric-inclusive` | with chance `rate` it goes to *any* class, its own too: `rate`·(C − 1)/C really change |
    | `pair-flip` | with chance `rate` it goes to class i + 1, the last to class 0; some papers call this asymmetric |
    | `asymmetric-cifar10` | five classes go to a similar one (cat ↔ dog, …), so that half of `rate` really change |
    | `asymmetric-cifar100-superclass` | with chance `rate` it goes to the next class of its superclass |
    | `asymmetric-cifar100-block` | the same in blocks of five consecutive labels, which are not the superclasses |
    | `derangement` | with chance `rate` it goes to π(i); π is drawn until no class stays (the CRUST experiments) |

    Args:
        name: one of the names above, or a matrix of one's own, which is checked and returned as float64.
        rate: the noise rate, from 0 to 1.
        classes: the number of classes C.
        rng: draws the permutation of `derangement`. A `Generator`, or `numpy.random.RandomState(0)` for the
            permutation that the released code of CRUST draws, [2, 8, 4, 9, 1, 6, 7, 3, 0, 5] for ten classes.
        superclasses: the superclass of each class, for `asymmetric-cifar100-superclass`; by default CIFAR-100's.

    Returns:
        A (C, C) array of float64 whose rows sum to 1.

    Example:
        >>> transition_matrix("pair-flip", 0.25, 3)
        array([[0.75, 0.25, 0.  ],
               [0.  , 0.75, 0.25],
               [0.25, 0.  , 0.75]])
        >>> transition_matrix("derangement", 1.0, 10, rng=np.random.RandomState(0)).argmax(axis=1)
        array([2, 8, 4, 9, 1, 6, 7, 3, 0, 5])
    """
    if not isinstance(name, str):
        return check_matrix(name, classes)
    build = MATRICES[choices(name, MATRICES, "noise")]
    rate = check_rate(rate)
    if not isinstance(classes, (int, np.integer)) or isinstance(classes, bool) or classes < 2:
        raise InputError(
            f"the number of classes is {classes!r}: noise needs a whole number of at least 2", code="classes-count"
        )
    if name == "derangement" and rng is None:
        raise InputError(
            "derangement noise draws a permutation: give rng=numpy.random.default_rng(seed)", code="missing-rng"
        )
    T = build(rate, int(classes), rng, superclasses)
    off = T - np.diag(np.diag(T))
    if rate > 0 and (off.max(axis=1) >= np.diag(T)).any():
        log.warning(
            "with %s:%g a wrong label is as frequent as the right one: no method can tell them apart", name, rate
        )
    return T


def check_rate(rate: float | None) -> float:
    """The noise rate as a float from 0 to 1, or one sentence."""
    if rate is None or isinstance(rate, bool):
        raise InputError("the noise has no rate: give one from 0 to 1, as in symmetric:0.5", code="missing-rate")
    try:
        value = float(rate)
    except (TypeError, ValueError):
        raise InputError(
            f"the noise rate {rate!r} is not a number: give one from 0 to 1, as in symmetric:0.5", code="rate-range"
        ) from None
    if not 0 <= value <= 1:
        raise InputError(
            f"the noise rate is {value:g}: give one from 0 to 1, such as 0.5 for half of the labels", code="rate-range"
        )
    return value


def check_matrix(T: Any, classes: int | None = None) -> Matrix:
    """A transition matrix as float64: square, chances from 0 to 1, rows that sum to 1."""
    try:
        T = np.array(T, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the transition matrix does not hold numbers: give a square array of chances", code="not-numbers"
        ) from None
    if T.ndim != 2 or T.shape[0] != T.shape[1] or len(T) < 2:
        raise InputError(
            f"the transition matrix has shape {T.shape}: give a square one, a row and a column a class",
            code="not-square",
        )
    if classes is not None and len(T) != classes:
        raise InputError(
            f"the transition matrix is for {len(T)} classes, but there are {classes}: give one that fits",
            code="classes-count",
        )
    if not (np.isfinite(T).all() and (T >= 0).all()):
        raise InputError(
            "the transition matrix has entries that are negative or no numbers: give chances from 0 to 1",
            code="not-probabilities",
        )
    sums = T.sum(axis=1)
    bad = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[bad] - 1) > 1e-6:
        raise InputError(
            f"row {bad} of the transition matrix sums to {sums[bad]:.6g}: rows must sum to 1", code="not-probabilities"
        )
    return T


# ------------------------------------------------------------------------------------------- the builders


def _symmetric(rate: float, classes: int, rng: Rng | None, superclasses: Any) -> Matrix:
    T = np.full((classes, classes), rate / (classes - 1))
    np.fill_diagonal(T, 1 - rate)
    return T


def _asymmetric_cifar10(rate: float, classes: int, rng: Rng | None, superclasses: Any) -> Matrix:
    _exactly(10, classes, "asymmetric-cifar10")
    return _flips(rate, [CIFAR10_FLIPS.get(i, i) for i in range(10)])


def _asymmetric_cifar100_superclass(rate: float, classes: int, rng: Rng | None, superclasses: Any) -> Matrix:
    if superclasses is None:
        _exactly(100, classes, "asymmetric-cifar100-superclass")
        superclasses = CIFAR100_SUPERCLASSES
    groups = np.asarray(superclasses)
    if groups.shape != (classes,):
        raise InputError(
            f"{groups.size} superclasses are given for {classes} classes: give one a class", code="superclasses-length"
        )
    return _flips(rate, _next_of_group(groups))


def _asymmetric_cifar100_block(rate: float, classes: int, rng: Rng | None, superclasses: Any) -> Matrix:
    _exactly(100, classes, "asymmetric-cifar100-block")
    return _flips(rate, _next_of_group(np.arange(100) // 5))


def draw_derangement(classes: int, rng: Any) -> NDArray[np.int64]:
    """Permutations are drawn until one leaves no class where it is."""
    while True:
        image = rng.permutation(classes)
        if not (image == np.arange(classes)).any():
            return image.astype(np.int64)


def _flips(rate: float, target: Any) -> Matrix:
    """Each class goes to one other with chance `rate`; a class that goes to itself stays clean."""
    n = len(target)
    T = (1 - rate) * np.eye(n)
    T[np.arange(n), target] += rate
    return T


def _next_of_group(groups: NDArray[Any]) -> NDArray[np.int64]:
    """For each class the next one with the same group, the last going to the first."""
    target = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        target[members] = np.roll(members, -1)
    return target


def _exactly(expected: int, classes: int, name: str) -> None:
    if classes != expected:
        hint = "; or give superclasses" if name.endswith("superclass") else ""
        raise InputError(
            f"{name} noise is for {expected} classes, but there are {classes}: use pair-flip{hint}",
            code="classes-count",
        )


MATRICES: dict[str, Callable[[float, int, Rng | None, Any], Matrix]] = {
    "symmetric": _symmetric,
    "symmetric-inclusive": lambda rate, classes, *_: (1 - rate) * np.eye(classes) + rate / classes,
    "pair-flip": lambda rate, classes, *_: _flips(rate, (np.arange(classes) + 1) % classes),
    "asymmetric-cifar10": _asymmetric_cifar10,
    "asymmetric-cifar100-superclass": _asymmetric_cifar100_superclass,
    "asymmetric-cifar100-block": _asymmetric_cifar100_block,
    "derangement": lambda rate, classes, rng, _: _flips(rate, draw_derangement(classes, rng)),
}
