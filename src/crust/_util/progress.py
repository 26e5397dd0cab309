"""On stderr: a bar for anything that takes longer than two seconds, and a training run as it goes on."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from crust._util.in_words import duration, percent

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


class EpochProgress:
    """Called with the history's line after every epoch: a live line on a terminal, elsewhere lines.

    Args:
        epochs: how many there will be.
        quiet: show nothing.
        every: seconds between lines where there is no terminal; 0: a line an epoch, else the first after two seconds.
    """

    def __init__(self, epochs: int, quiet: bool = False, every: float = 0.0):
        self.epochs, self.quiet, self.every = epochs, quiet, every
        self.finished: int | None = None  # epochs in the run that are done, those before a resume too
        self._seconds: deque[float] = deque(maxlen=10)  # of the last epochs: the first one compiles kernels
        self._last = time.perf_counter()
        self._due = self._last + (SHOW_AFTER if every else 0.0)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> EpochProgress:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if not self.quiet and console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(BarColumn(bar_width=20), TextColumn("{task.description}"), console=console)
            self._task = self._bar.add_task("the first epoch is running", total=self.epochs)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, line: dict[str, Any]) -> None:
        now = time.perf_counter()
        self._seconds.append(now - self._last)
        self.finished = line["epoch"] + 1
        self.epochs = max(self.epochs, self.finished)  # a method may add stages as it learns more
        left = sum(self._seconds) / len(self._seconds) * (self.epochs - self.finished)
        text = epoch_text(line, self.epochs, now - self._last, left)
        self._last = now
        if self._bar is not None:
            self._bar.update(self._task, total=self.epochs, completed=self.finished, description=text)
        elif not self.quiet and now >= self._due:
            self._due = now + self.every
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def epoch_text(line: dict[str, Any], epochs: int, seconds: float, left: float) -> str:
    """One epoch in one line.

    Example:
        >>> epoch_text({"epoch": 2, "test_accuracy": 0.5, "clean_fraction": 0.9}, 10, 1.5, 90)
        'epoch 3/10 · test 50.0 % · clean 90.0 % · 1.5 s · 1 min 30 s left'
    """
    parts = [f"epoch {line['epoch'] + 1}/{epochs}"]
    for name, key in (("test", "test_accuracy"), ("val", "val_accuracy"), ("clean", "clean_fraction")):
        if line.get(key) is not None:
            parts.append(f"{name} {percent(line[key])}")
    return " · ".join([*parts, duration(seconds), f"{duration(left)} left"])
