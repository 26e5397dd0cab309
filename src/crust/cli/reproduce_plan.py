"""What `crust reproduce` is asked for, refused where it makes no sense; and what `--dry-run` shows of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.cli.formatting import duration, text_table
from crust.errors import InputError, choices

if TYPE_CHECKING:
    from crust.experiments.preflight import Checked
    from crust.experiments.task import GridEngine, Spec, Work


@dataclass(frozen=True)
class Asked:
    """What the command line asks for: experiments of the paper, or a grid; at a scale, with seeds; and its runs."""

    names: list[str]
    grid: Path | None
    scale: str
    seeds: int | list[int] | None
    specs: list[Spec]

    @property
    def title(self) -> str:
        """In a few words."""
        return str(self.grid) if self.grid is not None else f"{', '.join(self.names)} at scale {self.scale}"


def read_asked(what: list[str], grid: Path | None, scale: str | None, seeds: str | None, methods: str | None) -> Asked:
    """The runs that the words of the command line mean."""
    chosen = _seeds(seeds)
    if grid is not None:
        from crust.experiments.grid_file import read_grid

        if what:
            raise InputError(f"{what[0]} and --grid exclude each other: leave one of them out", code="options-exclude")
        wanted = list(range(chosen)) if isinstance(chosen, int) else chosen
        return Asked([], grid, scale or "", chosen, _only(read_grid(grid, scale, wanted), methods))
    from crust.experiments.paper import EXPERIMENTS

    scale = scale or "cpu"
    if not what:
        raise InputError(f"nothing to run: name {', '.join(EXPERIMENTS)} or all, or give --grid", code="nothing-to-do")
    for name in what:
        choices(name, [*EXPERIMENTS, "all"], "experiment")
    names = list(dict.fromkeys(what))
    if "all" in names:
        from crust.experiments import SCALES

        choices(scale, SCALES, "scale")
        names = [name for name, one in EXPERIMENTS.items() if scale in one.scales]
    from crust.experiments import key

    found = {key(spec): spec for name in names for spec in EXPERIMENTS[name].specs(scale, chosen)}
    return Asked(names, None, scale, chosen, _only(list(found.values()), methods))


def _seeds(text: str | None) -> int | list[int] | None:
    """`--seeds 5` is how many, `--seeds 0,3` which; `--seeds 3,` is the one with number 3."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 20 for word in words if word) or not any(words):
        raise InputError(f"--seeds {text}: give how many, as in 5, or which, as in 0,3", code="bad-seeds")
    numbers = [int(word) for word in words if word]
    if len(words) == 1:
        if numbers[0] == 0:
            raise InputError("--seeds 0 asks for none: give how many, as in 5, or which, as in 0,3", code="bad-seeds")
        from crust.experiments.specs import MOST_SEEDS

        if numbers[0] > MOST_SEEDS:
            raise InputError(f"--seeds {text} is more than {MOST_SEEDS}: for that seed write {text},", code="bad-seeds")
        return numbers[0]
    return numbers


def _only(specs: list[Spec], methods: str | None) -> list[Spec]:
    """Those of some methods."""
    if methods is None:
        return specs
    there = list(dict.fromkeys(spec["method"] for spec in specs))
    names = [choices(name.strip(), there, "method of these runs") for name in methods.split(",") if name.strip()]
    if not names:
        raise InputError(f"--methods is empty: give some of {', '.join(there)}, or leave it out", code="nothing-to-do")
    return [spec for spec in specs if spec["method"] in names]


def check_folder(folder: Path) -> None:
    try:
        there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not there.is_dir():
            raise InputError(f"-o {folder}: {there} is a file; name a folder", code="output-is-file")
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"-o {folder} cannot be written to: choose another folder", code="not-writable")
        _check_inside(folder)
    except OSError as error:  # a name that is too long, a folder above it that nobody may look into
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"-o {folder} cannot be used ({reason}): choose another folder", code="not-writable") from None


def _check_inside(folder: Path) -> None:
    """What is there from before must be of use: it would be found out when the first run has ended."""
    results, runs = folder / "results.jsonl", folder / "runs"
    if runs.exists() and not runs.is_dir():
        raise InputError(f"-o {folder}: {runs} is a file, not a folder: take it away", code="output-is-file")
    if results.is_dir():
        raise InputError(f"-o {folder}: {results} is a folder, not a file: take it away", code="output-is-folder")
    for there in (path for path in (results, runs) if path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"-o {folder}: {there} cannot be written to; choose another folder", code="not-writable")


def read_engine(name: str, jobs: int | None, address: str | None, cpus: float | None, gpus: float | None) -> GridEngine:
    from crust.experiments import LocalGrid, RayGrid

    choices(name, ("local", "ray"), "engine")
    if name == "ray":
        if jobs is not None:
            raise InputError("--jobs is for --engine local: for Ray see --cpus", code="options-exclude")
        return RayGrid(address, 1 if cpus is None else cpus, gpus or 0)
    if address is not None:
        raise InputError("--address is for --engine ray: add that, or leave it out", code="options-exclude")
    if gpus is not None:
        raise InputError("--gpus is for --engine ray: here each of --jobs takes a GPU in turn", code="options-exclude")
    if cpus is not None and (cpus < 1 or not cpus.is_integer()):
        raise InputError(f"--cpus is {cpus:g}: give whole cores, at least 1, or use --engine ray", code="bad-cpus")
    return LocalGrid(1 if jobs is None else jobs, None if cpus is None else int(cpus))


def read_known(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Results from elsewhere."""
    from crust.experiments import read_results

    for path in paths:
        if not os.access(path, os.F_OK):  # also where nobody may look
            raise InputError(f"no results at {path}: name a .jsonl file, or a folder of them", code="missing-file")
    return [line for path in paths for line in read_results(path, named=True)]


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
    from rich.console import Console

    from crust.experiments import LocalGrid, key
    from crust.experiments.grid import by_seeds
    from crust.experiments.preflight import Estimates, gigabytes, need
    from crust.experiments.task import limited

    estimates = Estimates(lines, checked.sizes)
    open_keys = {key(spec) for spec in todo}
    with limited(engine.threads if isinstance(engine, LocalGrid) else 1):
        seconds = {key(spec): estimates.seconds(spec) for spec in todo}
    rows = []
    for name, some in by_seeds(specs):
        mine = [spec for spec in some if key(spec) in open_keys]
        bad = sum(key(spec) in failed for spec in some)
        there = len(some) - len(mine) - sum(key(spec) in failed and key(spec) not in open_keys for spec in some)
        known = [value for value in (seconds[key(spec)] for spec in mine) if value is not None]
        seeds = ",".join(str(spec["experiment"]["seed"]) for spec in mine) or "–"
        done = f"{there}{f', {bad} failed' if bad else ''}"
        time = duration(sum(known) / len(known)) if known else "–"
        rows.append((some[0]["data"], some[0]["labels"], name, seeds, done, time))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    heads = ("data", "labels", "run", "seeds to run", "there", "time of a run")
    console.print(text_table(heads, rows, left=heads[:3]))

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
