"""A list of runs, one after another: what is there is not run again, what another process runs is left to it."""

from __future__ import annotations

import fcntl
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crust.errors import CrustError
from crust.experiments.results import append, find, read
from crust.experiments.running import run
from crust.experiments.specs import key


def run_all(
    specs: Iterable[dict[str, Any]],
    results: str | Path,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    human_labels: str | Path | None = None,
    keep_every: int | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Run what has no result yet.

    Args:
        specs: from `make`.
        results: a .jsonl file; lines are added as runs end.
        folder: where the runs' folders go. Several processes may work on one folder.
        data_dir: where the datasets are.
        human_labels: an .npz of people's labels.
        keep_every: epochs between checkpoints that stay; None: only the newest two of each run.
        say: told of every beginning and end.

    Returns:
        How many runs failed; their errors are in `error.txt` of their folders.

    Example:
        >>> import tempfile
        >>> from crust.experiments import make
        >>> here = Path(tempfile.mkdtemp())
        >>> specs = [make("erm", "symmetric:0.2", scale="smoke", epochs=1)]
        >>> run_all(specs, here / "r.jsonl", here / "runs", say=lambda text: None), len(read(here / "r.jsonl"))
        (0, 1)
    """
    failed = 0
    for spec in specs:
        if find(read(results), spec) is not None:
            continue
        name = f"{spec['labels']} {spec['method']} seed {spec['experiment']['seed']} ({key(spec)})"
        place = Path(folder) / key(spec)
        with _claim(place) as mine:
            if not mine:
                continue
            say(f"begin {name}")
            try:
                line = run(spec, place, data_dir=data_dir, human_labels=human_labels, keep_every=keep_every)
            except CrustError as error:
                failed += 1
                (place / "error.txt").write_text(traceback.format_exc())
                say(f"failed {name}: {error}")
                continue
            append(results, line)
            say(f"end {name}: {line['accuracy']}")
    return failed


@contextmanager
def _claim(place: Path) -> Iterator[bool]:
    """Whether the run is ours: a lock that ends with the process that holds it."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
