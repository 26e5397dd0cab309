"""A training run as it goes on: a live line on a terminal, else a line an epoch."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import TracebackType
from typing import Any

from crust.cli.formatting import duration, percent


class EpochProgress:
    """Called with the history's line after every epoch. Nothing is shown where `quiet` is set."""

    def __init__(self, epochs: int, quiet: bool = False):
        self.epochs, self.quiet = epochs, quiet
        self.finished: int | None = None  # epochs in the run that are done, those before a resume too
        self._seconds: deque[float] = deque(maxlen=10)  # of the last epochs: the first one compiles kernels
        self._last = time.perf_counter()
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
        elif not self.quiet:
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
