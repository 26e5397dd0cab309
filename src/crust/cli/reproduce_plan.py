"""`crust reproduce --dry-run`: what would run, how long it takes, and what is there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crust.cli.formatting import duration

if TYPE_CHECKING:
    from crust.experiments.preflight import Checked
    from crust.experiments.task import GridEngine, Spec, Work


def show_plan(
    title: str,
    specs: Sequence[Spec],
    todo: Sequence[Spec],
    lines: Sequence[dict[str, Any]],
    failed: dict[str, str],
    checked: Checked,
    work: Work,
    engine: GridEngine,
    *,
    keep_runs: bool,
) -> None:
    """Print a row for all seeds of a run, and what it comes to."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from crust.experiments import LocalGrid, key
    from crust.experiments.grid import by_seeds
    from crust.experiments.preflight import Estimates, gigabytes, need
    from crust.experiments.task import limited

    estimates = Estimates(lines, checked.sizes)
    open_keys = {key(spec) for spec in todo}
    with limited(engine.threads if isinstance(engine, LocalGrid) else 1):
        seconds = {key(spec): estimates.seconds(spec) for spec in todo}
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("data", "labels", "run", "seeds to run", "there", "time of a run"):
        table.add_column(head, justify="left" if head in ("data", "labels", "run") else "right")
    for name, some in by_seeds(specs):
        mine = [spec for spec in some if key(spec) in open_keys]
        bad = sum(key(spec) in failed for spec in some)
        there = len(some) - len(mine) - sum(key(spec) in failed and key(spec) not in open_keys for spec in some)
        known = [value for value in (seconds[key(spec)] for spec in mine) if value is not None]
        table.add_row(
            escape(str(some[0]["data"])),
            escape(some[0]["labels"]),
            escape(name),
            ",".join(str(spec["experiment"]["seed"]) for spec in mine) or "–",
            f"{there}{f', {bad} failed' if bad else ''}",
            duration(sum(known) / len(known)) if known else "–",
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    console.print(table)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    waiting = sum(name not in open_keys for name in failed)
    there = len({key(spec) for spec in specs}) - len(todo) - waiting
    again = f", {waiting} failed (--retry-failed tries them again)" if waiting else ""
    say(f"{title}: {len(specs)} run{'s' * (len(specs) != 1)}, {there} there already{again}, {len(todo)} to run")
    sure = [value for value in seconds.values() if value is not None]
    if sure:
        at_once = engine.at_once if isinstance(engine, LocalGrid) else 1
        several = f", {duration(sum(sure) / min(at_once, len(sure)))} with {at_once} at a time" if at_once > 1 else ""
        part = "" if len(sure) == len(todo) else f" of {len(sure)} of the {len(todo)} runs"
        say(f"time{part}: about {duration(sum(sure))} one after another{several}")
        say(f"estimated from {estimates.source(todo)}")
    if checked.sizes:
        room = [need(checked.sizes[key(spec)], spec["method"]) for spec in todo if key(spec) in checked.sizes]
        every = "all runs" if len(room) == len(todo) else f"{len(room)} of the {len(todo)} runs"
        much = f"{gigabytes(sum(room))} for {every}" if keep_runs else f"{gigabytes(max(room))} for each run under way"
        say(f"room: about {much}")
    for problem in dict.fromkeys(checked.problems.values()):
        count = sum(each == problem for each in checked.problems.values())
        say(f"not ready, {count} run{'s' * (count > 1)}: {problem}")
    say(f"nothing was run; results would go to {work.results}")
