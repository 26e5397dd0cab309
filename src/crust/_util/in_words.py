"""Numbers as people read them."""

from __future__ import annotations


def percent(share: float | None) -> str:
    """A share as people read it.

    Example:
        >>> percent(0.5678), percent(None)
        ('56.8 %', '–')
    """
    return "–" if share is None else f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """Seconds as people read them.

    Example:
        >>> duration(3.21), duration(75), duration(7300), duration(900_000)
        ('3.2 s', '1 min 15 s', '2 h 1 min', '10 days 10 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 100 else f"{hours // 24} days {hours % 24} h"
