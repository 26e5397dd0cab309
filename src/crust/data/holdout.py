"""A share of the training examples held out, class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError


def hold_out(labels: Any, share: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out a share of the examples, the same share of every class, for choices that must be made without a test.

    A class too small to give a whole example gives none, and every class keeps at least one for training.

    Args:
        labels: the (noisy) labels.
        share: how much to hold out, from 0 up to, but not including, 1.
        rng: a `numpy.random.Generator`.

    Returns:
        The positions to train on and the positions held out, both rising.

    Example:
        >>> train, held = hold_out([0] * 50 + [1] * 30 + [2] * 3, 0.1, np.random.default_rng(0))
        >>> len(train), len(held)
        (75, 8)
    """
    try:
        share = float(share)
    except (TypeError, ValueError):
        raise InputError(
            f"the validation share {share!r} is no number: give one from 0 to below 1", code="validation-range"
        ) from None
    if not 0 <= share < 1:
        raise InputError(
            f"the validation share is {share:g}: give one from 0 to below 1, such as 0.1", code="validation-range"
        )
    labels = np.asarray(labels)
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    quota = _quotas(counts, share)
    held = [rng.permutation(np.flatnonzero(codes == c))[: quota[c]] for c in range(len(classes))]
    mask = np.zeros(len(labels), dtype=bool)
    if held:
        mask[np.concatenate(held)] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


def _quotas(counts: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """How many of each class: the share rounded down, and what that leaves to the largest remainders."""
    exact = share * counts
    exact[exact < 1 - 1e-9] = 0  # too small to give one
    quota = np.floor(exact + 1e-9).astype(np.int64)
    left = round(float(exact.sum())) - int(quota.sum())
    order = np.argsort(-(exact - quota), kind="stable")
    quota[order[: max(left, 0)]] += 1
    quota[exact == 0] = 0
    return np.minimum(quota, np.maximum(counts - 1, 0))
