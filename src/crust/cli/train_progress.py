"""A training run as it goes on, a live line on a terminal, else a line an epoch; and what is said at its end."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from crust.cli.formatting import duration, percent

if TYPE_CHECKING:
    from crust.runs.result import Result


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


def _measured(history: Any) -> dict[str, str]:
    """The accuracies of a run by their names in its history, and what they are called: `imagenet top-5 accuracy`."""
    names = {key for line in history for key in line if re.match(r"test_(accuracy|top\d+)", key)}
    found = {}
    for key in sorted(names, key=lambda key: (key.split("_")[2:], key)):
        _, kind, *words = key.split("_", 2)
        top = "" if kind == "accuracy" else f" top-{kind.removeprefix('top')}"
        found[key] = f"{words[0] if words else 'test'}{top} accuracy"
    return {**found, "val_accuracy": "validation (noisy) accuracy"}


def print_summary(result: Result, options: dict[str, Any], seconds: float, resumed: bool) -> None:
    """What was reached, what was known, where it lies, and the next command to type."""
    history, lines, folder = result.history, result.history.lines, result.run_dir
    since = " since it was resumed" if resumed else ""
    typer.echo(
        f"{options['method']}, {options['model']} on {options['data']}: "
        f"{len(history)} epoch{'s' * (len(history) > 1)}, {duration(seconds)}{since}"
    )
    for key, name in _measured(history).items():
        found = history.accuracy(key)
        if found["last"] is not None:
            last, last10, best = (percent(found[each]) for each in ("last", "last10", "best"))
            typer.echo(f"{name}: last {last}, mean of the last ten {last10}, best {best}")
    for name, known in ((lines[-1].get("noise_info") or {}) if lines else {}).items():
        shown = percent(known["value"]) if isinstance(known["value"], float) else known["value"]
        typer.echo(f"trained as if the {name.replace('_', ' ')} were: {shown} ({known['source']})")
    if lines and "stopped" in lines[-1]:
        passes = sum(lines[-1]["passes"].values())
        typer.echo(f"stopped after {passes} passes on examples, as the budget says")
    if lines and lines[-1].get("clean_fraction") is not None:
        typer.echo(f"right labels among those trained on: {percent(lines[-1]['clean_fraction'])}")
    if result.best_epoch is not None and "val_accuracy" in history.lines[-1]:
        typer.echo(f"kept: the model of epoch {result.best_epoch}, the best on held-out noisy labels")
    if not lines or "stopped" not in lines[-1]:
        typer.echo(result.noise_rate().sentence())
    typer.echo(f"written to: {folder}")
    typer.echo(f"next: crust audit {shlex.quote(str(folder))}")
