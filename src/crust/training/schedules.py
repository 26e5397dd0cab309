"""Published constants are epochs of published runs: here they become epochs of this one."""

from __future__ import annotations


def scaled(published: float, of: float, epochs: int, *, least: int = 1) -> int:
    """A number of epochs as the same share of a run of another length.

    Args:
        published: the constant, in epochs.
        of: the epochs of the run that it was published for.
        epochs: the epochs of this run.
        least: never fewer than these.

    Example:
        >>> scaled(10, 200, 200), scaled(10, 200, 40), scaled(10, 200, 3)
        (10, 2, 1)
    """
    return max(least, round(published * epochs / of))
