"""Where a spectrum is cut into information space and nuisance space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.errors import InputError

Cut = int | float | str


def rank_of(values: NDArray[np.float64], cut: Cut, energy: float, rows: int) -> int:
    """The dimension of the information space.

    Args:
        values: singular values, largest first; all of them or the leading ones.
        cut: a whole number is the rank itself; a share between 0 and 1 is that of the energy, the sum of the squared
            singular values, that the information space must hold; "gap" cuts where the ratio of one value to the next
            is largest, in the first half of the spectrum (the last values of any matrix are far apart).
        energy: the sum of all squared singular values.
        rows: how many singular values there are in all, known or not.

    Example:
        >>> values = np.array([10.0, 9.0, 1.0, 0.9])
        >>> rank_of(values, 3, 182.81, 4), rank_of(values, 0.9, 182.81, 4), rank_of(values, "gap", 182.81, 4)
        (3, 2, 2)
    """
    if isinstance(cut, bool) or not isinstance(cut, (int, float, str, np.integer, np.floating)):
        raise _unknown(cut)
    if isinstance(cut, str):
        if cut != "gap":
            raise _unknown(cut)
        if len(values) < 2 or values[0] <= 0:
            return 1
        last = max(1, min(len(values) - 1, rows // 2))
        floor = values[0] * 1e-12
        clipped = np.maximum(values, floor)
        return int(np.argmax(clipped[:last] / clipped[1 : last + 1])) + 1
    if isinstance(cut, (int, np.integer)):
        if cut < 1:
            raise InputError(f"the cut is a rank of {cut}: give at least 1")
        if cut > len(values):
            if len(values) < rows:
                raise InputError(f"the cut is at rank {cut}, but {len(values)} singular values are known: ask for more")
            return len(values)
        return int(cut)
    if not 0 < cut < 1:
        raise InputError(f"the cut is {cut}: give a share of the energy between 0 and 1, a rank, or 'gap'")
    held = np.cumsum(np.square(values))
    enough = held >= cut * energy * (1 - 1e-12)
    if not enough.any():
        if len(values) < rows:
            raise InputError(
                f"the {len(values)} leading singular values hold {held[-1] / energy:.0%} of the energy, not {cut:.0%}: "
                "ask for more of them, or cut at a rank"
            )
        return len(values)
    return int(np.argmax(enough)) + 1


def _unknown(cut: Any) -> InputError:
    return InputError(f"unknown cut {cut!r}: give a rank such as 10, a share of the energy such as 0.9, or 'gap'")
