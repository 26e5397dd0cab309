"""A progress bar on stderr for anything that takes longer than two seconds."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHOW_AFTER = 2.0  # seconds
LINE_EVERY = 10.0


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
    show_share, finish = _bar(label) if sys.stderr.isatty() else _log_lines(label)
    lock, start, last, share = threading.Lock(), time.monotonic(), 0.0, 0.0

    def show_now() -> None:
        nonlocal last
        if lock.acquire(blocking=False):
            try:
                last = time.monotonic()
                show_share(share)
            finally:
                lock.release()

    def report(done: float, total: float) -> None:
        nonlocal share
        share = min(done / total, 1.0) if total else 0.0
        now = time.monotonic()
        if now - start >= SHOW_AFTER and now - last >= 0.1:
            show_now()

    # the first steps of all may take a while (kernels are compiled once on every machine): say that something happens
    timer = threading.Timer(SHOW_AFTER, show_now)
    timer.daemon = True
    timer.start()
    try:
        yield report
    finally:
        timer.cancel()
        with lock:
            finish()


def _bar(label: str) -> tuple[Callable[[float], None], Callable[[], None]]:
    """A bar for a terminal, which is gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"))
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=1.0)

    def show_share(share: float) -> None:
        bar.start()
        bar.update(task, completed=share)

    return show_share, bar.stop


def _log_lines(label: str) -> tuple[Callable[[float], None], Callable[[], None]]:
    """A line now and then, for a log."""
    last = -math.inf

    def show_share(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            sys.stderr.write(f"{label}: {share:.0%}\n")

    return show_share, lambda: None
