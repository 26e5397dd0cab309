"""A grid of runs as it goes on: what runs, what is done, time left; live on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from crust.cli.formatting import duration, percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from crust.experiments import Event

SHOWN = 12  # runs under way that fit a terminal
EVERY = 60.0  # seconds between two lines on the epochs of a run, where there is no terminal


@dataclass
class _Run:
    """One run under way."""

    name: str
    epochs: int
    work: float
    begun: float
    first: int | None = None  # epochs that were there when it was taken up
    done: int = 0
    accuracy: float | None = None
    said: float = 0.0

    @property
    def share(self) -> float:
        """How much of it is done."""
        return self.done / max(self.done, self.epochs)


class GridProgress:
    """Called with every event of a grid."""

    def __init__(
        self, names: dict[str, str], epochs: dict[str, int], work: dict[str, float], before: int, quiet: bool = False
    ):
        self.names, self.epochs, self.work, self.before, self.quiet = names, epochs, work, before, quiet
        self.ended, self.failed, self.held = 0, 0, 0
        self.errors: list[str] = []
        self._running: dict[str, _Run] = {}
        self._finished = 0.0  # work of the runs that have come to an end
        self._saved = 0.0  # of it, what was there before
        self._begun = time.perf_counter()
        self._last = ""
        self._live: Any = None

    def __enter__(self) -> GridProgress:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if not self.quiet and console.is_terminal:
            from rich.live import Live

            self._live = Live(console=console, get_renderable=self.render, refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        from crust.experiments import key

        name = key(event.spec)
        if event.kind == "begun":
            self._begin(name)
        elif event.kind == "epoch" and event.line is not None and name in self._running:
            self._epoch(self._running[name], event.line)
        elif event.kind == "ended" and event.line is not None:
            self.ended += 1
            self._end(name, f"{self.names[name]}: {percent(event.line['accuracy']['last'])}")
        elif event.kind == "failed":
            self.failed += 1
            self.errors.append(f"{self.names[name]}: {event.error}")
            self._end(name, f"failed, {self.errors[-1]}")
            if self.quiet:
                sys.stderr.write(f"failed, {self.errors[-1]}\n")
        elif event.kind == "held":
            self.held += 1
            self._end(name, f"{self.names[name]}: left to another process, which has it")

    def _begin(self, name: str) -> None:
        self._running.pop(name, None)  # one whose worker has died is begun again
        self._running[name] = _Run(self.names[name], self.epochs[name], self.work[name], time.perf_counter())
        self._say(f"begin {self.names[name]}")

    def _epoch(self, run: _Run, line: dict[str, Any]) -> None:
        run.done = line["epoch"] + 1
        if run.first is None:
            run.first = line["epoch"]
            self._saved += run.work * run.first / max(run.epochs, run.done)
        if line.get("test_accuracy") is not None:
            run.accuracy = line["test_accuracy"]
        now = time.perf_counter()
        if now - max(run.said, run.begun) > EVERY:
            run.said = now
            self._say(f"{run.name}: {self._stand(run)}")

    def _end(self, name: str, text: str) -> None:
        self._running.pop(name, None)
        self._finished += self.work[name]
        self._last = text
        self._say(f"{text} · {self.summary()}")

    def _say(self, text: str) -> None:
        if self._live is None and not self.quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def left(self) -> float | None:
        """Seconds to the end, by the work that was done since the beginning."""
        done = self._finished + sum(run.work * run.share for run in self._running.values()) - self._saved
        whole = sum(self.work.values()) - self._saved
        if done <= 0.0:
            return None
        return (time.perf_counter() - self._begun) * (whole - done) / done

    def summary(self) -> str:
        """Where the grid stands, in one line."""
        whole = self.before + len(self.names)
        parts = [f"{self.before + self.ended} of {whole} done"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        left = self.left()
        if left is not None and self.ended + self.failed + self.held < len(self.names):
            parts.append(f"{duration(left)} left")
        return " · ".join(parts)

    def render(self) -> RenderableType:
        """What a terminal shows."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        done = self._finished + sum(run.work * run.share for run in self._running.values())
        head = Table.grid(padding=(0, 2))
        head.add_row(ProgressBar(total=sum(self.work.values()), completed=done, width=30), Text(self.summary()))
        rows = Table.grid(padding=(0, 2))
        for run in list(self._running.values())[:SHOWN]:
            rows.add_row(Text("  runs"), Text(run.name), Text(self._stand(run)))
        if len(self._running) > SHOWN:
            rows.add_row("", Text(f"… and {len(self._running) - SHOWN} more"), "")
        return Group(
            head, rows, *([Text(f"  last  {self._last}", overflow="ellipsis", no_wrap=True)] if self._last else [])
        )

    def _stand(self, run: _Run) -> str:
        since = duration(time.perf_counter() - run.begun)
        if not run.done:
            return f"the first epoch is running, {since}"
        measured = "" if run.accuracy is None else f" · test {percent(run.accuracy)}"
        return f"epoch {run.done}/{max(run.done, run.epochs)}{measured} · {since}"
