"""What is decided of examples: now, to be, and where two were at it; and what in the database no review has written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from crust.errors import CrustError

KINDS = ("keep", "relabel", "exclude", "skip")
REASON, NOTE = 100, 2000  # letters at most


class StoreError(CrustError):
    """The database of a review does not do its work: it is locked, broken, or holds what no review writes.

    Example:
        >>> issubclass(StoreError, CrustError)
        True
    """


@dataclass(frozen=True)
class Decision:
    """What is decided of one example now.

    Args:
        example: its index.
        version: how often it was changed.
        kind: `keep`, `relabel`, `exclude`, `skip`, or None where nothing is decided: it was undone, or only noted.
        label: the number of the new class, where it is relabelled.
        who: decided it.
        at: when, in UTC.
        reason: why it is excluded, such as "no class fits".
        note: what somebody has written beside it.

    Example:
        >>> Decision(7, 1, "keep", None, "first", "2026-01-01T12:00:00Z").plain()["kind"]
        'keep'
    """

    example: int
    version: int
    kind: str | None
    label: int | None
    who: str
    at: str
    reason: str | None = None
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Conflict:
    """A change that was not made, since the example had been changed meanwhile.

    Args:
        example: its index.
        version: that the change was meant for.
        now: what is decided; None where nothing is.

    Example:
        >>> Conflict(7, 0, Decision(7, 1, "keep", None, "first", "")).now.who
        'first'
    """

    example: int
    version: int
    now: Decision | None


@dataclass(frozen=True)
class Change:
    """A decision to be made.

    Args:
        example: its index.
        version: the one that it is made on; 0 where nothing was decided. Another one is not written over.
        kind: `keep`, `relabel`, `exclude`, `skip`, or None for a note alone.
        label: the number of the new class, where it is relabelled.
        reason: why it is excluded.
        note: to stand beside it; None leaves the one that is there.

    Example:
        >>> Change(7, 0, "relabel", 3).label
        3
    """

    example: int
    version: int
    kind: str | None
    label: int | None = None
    reason: str | None = None
    note: str | None = None


def wrong(one: Any, examples: Collection[int] | None, classes: int | None) -> str | None:
    """What is wrong with a decision from the database, whose columns may hold values of any type, or None.

    Example:
        >>> wrong(Decision(7, 1, "relabel", 9, "first", ""), {7}, 3)
        'about example 7 with the class number 9, which this audit does not have'
    """
    if not isinstance(one.example, int) or (examples is not None and one.example not in examples):
        return f"about example {one.example!r}, which this audit does not have"
    about = f"about example {one.example}"
    if one.kind is not None and one.kind not in KINDS:
        return f"{about} of the unknown kind {one.kind!r}"
    if one.kind != "relabel" and one.label is not None:
        return f"{about} with a label, {one.label!r}, that does not belong there"
    if one.kind == "relabel" and not _is_class(one.label, classes):
        return f"{about} with the class number {one.label!r}, which this audit does not have"
    if not isinstance(one.note, str) or not (
        one.reason is None or (isinstance(one.reason, str) and one.kind == "exclude")
    ):
        return f"{about} with a reason or a note that does not belong there"
    if not (isinstance(one.version, int) and isinstance(one.who, str) and isinstance(one.at, str)):
        return f"{about} without a version, a name or a time"
    return None


def _is_class(label: Any, classes: int | None) -> bool:
    return isinstance(label, int) and label >= 0 and (classes is None or label < classes)
