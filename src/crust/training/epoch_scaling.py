"""Published constants are epochs of published runs: here they become epochs of this one."""

from __future__ import annotations

import math

FEWEST_AVERAGED = 10  # steps; where an epoch has more, the average is over about an epoch


def scaled(published: float, of: float, epochs: int, *, least: int = 1) -> int:
    """A number of epochs as the same share of a run of another length.

    Args:
        published: the constant, in epochs.
        of: the epochs of the run that it was published for.
        epochs: the epochs of this run.
        least: never fewer than these.
    """
    return max(least, round(published * epochs / of))


def warmup_of(given: int | None, epochs: int) -> int:
    """Epochs on everything before the first selection: those given, else an eighth of all, from 1 to 5.

    Example:
        >>> warmup_of(None, 120), warmup_of(None, 40), warmup_of(None, 3), warmup_of(9, 40)
        (5, 5, 1, 9)
    """
    return max(1, min(5, epochs // 8)) if given is None else given


def stretched(
    published: float, of: float, epochs: int, examples: int, *, of_examples: int = 50_000, most: float = 0.25
) -> int:
    """The same for what a network must have learnt by then, which takes updates: more epochs where they are shorter.

    Args:
        published: the constant, in epochs.
        of: the epochs of the run that it was published for.
        epochs: the epochs of this run.
        examples: that an epoch of this run goes through.
        of_examples: that an epoch of the published run went through.
        most: never more than this share of the run, but at least one epoch.
    """
    return max(1, min(round(published * epochs / of * of_examples / examples), int(most * epochs)))


def decay_of_average(examples: int, batch_size: int) -> float:
    """How much of averaged weights stays at a step, such that they are averaged over about an epoch.

    Example:
        >>> round(decay_of_average(1000, 10), 6), round(decay_of_average(50, 25), 6)
        (0.99, 0.9)
    """
    return 1 - 1 / max(FEWEST_AVERAGED, math.ceil(examples / batch_size))
