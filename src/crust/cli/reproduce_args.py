"""What `crust reproduce` is asked for: runs, folder, engine, results from elsewhere; what makes no sense is refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust.errors import InputError, choices

if TYPE_CHECKING:
    from crust.experiments.task import GridEngine, Spec


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
            raise InputError(f"{what[0]} and --grid exclude each other: leave one of them out")
        wanted = list(range(chosen)) if isinstance(chosen, int) else chosen
        return Asked([], grid, scale or "", chosen, _only(read_grid(grid, scale, wanted), methods))
    from crust.experiments.paper import EXPERIMENTS

    scale = scale or "cpu"
    if not what:
        raise InputError(f"there is nothing to run: name {', '.join(EXPERIMENTS)} or all, or give a --grid")
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
        raise InputError(f"--seeds {text}: give how many, as in 5, or which, as in 0,3")
    numbers = [int(word) for word in words if word]
    if len(words) == 1:
        if numbers[0] == 0:
            raise InputError("--seeds 0 asks for none: give how many, as in 5, or which, as in 0,3")
        from crust.experiments.specs import MOST_SEEDS

        if numbers[0] > MOST_SEEDS:
            raise InputError(f"--seeds {text} asks for more than {MOST_SEEDS}: the one of this number is {text},")
        return numbers[0]
    return numbers


def _only(specs: list[Spec], methods: str | None) -> list[Spec]:
    """Those of some methods."""
    if methods is None:
        return specs
    there = list(dict.fromkeys(spec["method"] for spec in specs))
    names = [choices(name.strip(), there, "method of these runs") for name in methods.split(",") if name.strip()]
    if not names:
        raise InputError(f"--methods names none: give some of {', '.join(there)}, or leave it out")
    return [spec for spec in specs if spec["method"] in names]


def check_folder(folder: Path) -> None:
    try:
        there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not there.is_dir():
            raise InputError(f"-o {folder}: {there} is a file; name a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise InputError(f"-o {folder} cannot be written to: choose another folder")
        _check_inside(folder)
    except OSError as error:  # a name that is too long, a folder above it that nobody may look into
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"-o {folder} cannot be used ({reason}): choose another folder") from None


def _check_inside(folder: Path) -> None:
    """What is there from before must be of use: it would be found out when the first run has ended."""
    results, runs = folder / "results.jsonl", folder / "runs"
    if runs.exists() and not runs.is_dir():
        raise InputError(f"-o {folder}: {runs} is a file, where runs go to a folder; take it away")
    if results.is_dir():
        raise InputError(f"-o {folder}: {results} is a folder, where results go to a file; take it away")
    for there in (path for path in (results, runs) if path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"-o {folder}: {there} cannot be written to; choose another folder")


def read_engine(name: str, jobs: int | None, address: str | None, cpus: float | None, gpus: float | None) -> GridEngine:
    from crust.experiments import LocalGrid, RayGrid

    choices(name, ("local", "ray"), "engine")
    if name == "ray":
        if jobs is not None:
            raise InputError("--jobs is for --engine local: Ray runs as many as there is room for, see --cpus")
        return RayGrid(address, 1 if cpus is None else cpus, gpus or 0)
    if address is not None:
        raise InputError("--address is for --engine ray: add that, or leave it out")
    if gpus is not None:
        raise InputError("--gpus is for --engine ray: here each of --jobs takes a GPU in turn")
    if cpus is not None and (cpus < 1 or not cpus.is_integer()):
        raise InputError(f"--cpus is {cpus:g}: give whole cores, at least 1, or use --engine ray")
    return LocalGrid(1 if jobs is None else jobs, None if cpus is None else int(cpus))


def read_known(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Results from elsewhere."""
    from crust.experiments import read_results

    for path in paths:
        if not os.access(path, os.F_OK):  # also where nobody may look
            raise InputError(f"there are no results at {path}: name a .jsonl file, or a folder of them")
    return [line for path in paths for line in read_results(path, named=True)]
