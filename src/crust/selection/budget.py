"""How many medoids: k as a count or a share, and its split over groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError


def resolve_k(k: Any, n: int) -> int:
    """Turn a budget into a count: an int is a count, a float a share of n. `1` is one point and `1.0` all of them."""
    # bool is an Integral, yet True as a budget is a mistake
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, Real):
        raise InputError(f"k is {k!r}, but it must be {_allowed(n)}", code="k-range")
    if isinstance(k, Integral):
        count = int(k)
        if count > n:
            points = "there is only 1 point" if n == 1 else f"there are only {n} points"
            raise InputError(f"k is {count}, but {points}: give {_allowed(n)}", code="k-range")
        if count < 1:
            raise InputError(f"k is {count}, but it must be {_allowed(n)}", code="k-range")
        return count
    share = float(k)
    if share > 1 and math.isfinite(share):
        raise InputError(
            f"k is {share}, a share over 1: give {_allowed(n)}; a count has no decimal point", code="k-range"
        )
    if not 0 < share <= 1:  # NaN fails both comparisons and lands here
        raise InputError(f"k is {share}, but it must be {_allowed(n)}", code="k-range")
    return max(1, round(share * n))


def split_budget(k: int, sizes: Sequence[int] | NDArray[np.integer[Any]], min_per_group: int = 1) -> NDArray[np.int64]:
    """Split a budget of k medoids over groups, in proportion to their sizes, exactly.

    Every group that is not empty starts with min(its size, min_per_group). Where k is too short for that, the units
    are handed out in rounds, one a group, largest groups first, so that no group has two before every other has one.
    Each further unit goes to the group with the largest k * size / n - budget that still has room. Ties go to the
    lower position.

    Args:
        k: the total, from 0 to the sum of the sizes.
        sizes: number of points of each group; zeros are allowed.
        min_per_group: what every group should get at least; 0 leaves it to the proportions.

    Returns:
        int64 budgets, one a group, that sum to k.
    """
    least: Any = min_per_group
    if isinstance(least, bool) or not isinstance(least, Integral) or int(least) < 0:
        raise InputError(
            f"min_per_group is {min_per_group!r}, but it must be a whole number of at least 0", code="whole-number"
        )
    size = np.asarray(sizes, dtype=np.int64)
    n = int(size.sum())
    k = int(k)
    if not 0 <= k <= n:
        raise InputError(
            f"k is {k}, but the groups have {n} points together: give a count from 0 to {n}", code="k-range"
        )

    start = np.minimum(size, min_per_group)
    if int(start.sum()) >= k:
        return _in_rounds(k, size, int(min_per_group))
    # The units of group g have priorities k * size_g - b * n for b = start_g, start_g + 1, ..., size_g - 1: falling by
    # n each time. Handing out one unit after the other takes the largest priorities of all, so the same budgets follow
    # from the last priority that is still served, found by bisection. Whole numbers: no rounding, so ties are real.
    # Below 2^31 points nothing here reaches 2^63; above, Python's own integers take over.
    kind: Any = np.int64 if n < 2**31 else object
    wanted, first, last = k * size.astype(kind), start.astype(kind), size.astype(kind)

    def served(threshold: int) -> NDArray[Any]:
        """Budgets when every unit with at least this priority is handed out."""
        budgets: NDArray[Any] = np.minimum(np.maximum((wanted - threshold) // n + 1, first), last)
        return budgets

    low, high = -n * n, n * n + 1  # served(low) is everything, served(high) only the start
    while high - low > 1:
        middle = (low + high) // 2
        if int(served(middle).sum()) >= k:
            low = middle
        else:
            high = middle
    budget, tied = served(high), served(low)
    # Every group gains at most one unit between two neighbouring thresholds: these are the ties
    open_groups = np.flatnonzero(tied > budget)[: k - int(budget.sum())]
    budget[open_groups] += 1
    return budget.astype(np.int64)


def _in_rounds(k: int, size: NDArray[np.int64], rounds: int) -> NDArray[np.int64]:
    """Hand out k units, one a group and round, largest groups first in the round that k does not fill."""
    low, high = 0, rounds  # the last round that k fills, by bisection: min_per_group may be large
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(size, middle).sum()) <= k:
            low = middle
        else:
            high = middle - 1
    budget = np.minimum(size, low)
    largest_first = np.argsort(-size, kind="stable")
    has_room = largest_first[size[largest_first] > low]
    budget[has_room[: k - int(budget.sum())]] += 1
    return budget


def _allowed(n: int) -> str:
    """What k may be, for messages."""
    counts = "the count 1" if n == 1 else f"a count from 1 to {n}"
    return f"{counts} or a share above 0 and up to 1.0"
