"""A progress bar on stderr for anything that takes longer than two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER = 2.0  # seconds


@contextmanager
def progress_bar(label: str, show: bool) -> Iterator[Callable[[float, float], None] | None]:
    """Give a function `report(done, total)`; the bar appears once the work has taken two seconds.

    Example:
        >>> with progress_bar("selecting", show=False) as report:
        ...     report is None
        True
    """
    if not show:
        yield None
        return
    bar, lock, start = None, threading.Lock(), time.monotonic()
    last = 0.0

    def report(done: float, total: float) -> None:
        nonlocal bar, last
        now = time.monotonic()
        if now - start < AFTER or now - last < 0.1 or not lock.acquire(blocking=False):
            return
        try:
            last = now
            if bar is None:
                bar = _make_bar(label)
            bar.update(bar.task_ids[0], completed=min(done / total, 1.0) if total else 0.0)
        finally:
            lock.release()

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def _make_bar(label: str):  # type: ignore[no-untyped-def]
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(label, total=1.0)
    bar.start()
    return bar
