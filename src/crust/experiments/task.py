"""One run as every engine carries it out: claimed, resumed, its result or its error left in its folder."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import shutil
import socket
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from filelock import FileLock, Timeout

from crust._util.atomic_write import write_atomic
from crust.errors import CrustError, InputError
from crust.experiments.results_file import find, read_results, schema_error
from crust.experiments.run_spec import train_spec
from crust.experiments.specs import key

Spec = dict[str, Any]
SEVERAL = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")  # what Accelerate looks at
FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class Work:
    """What every run needs beside its specification. It travels to other processes and machines.

    Args:
        results: the .jsonl file of the results; engines only read it.
        folder: where the runs' folders go.
        data_dir: where the datasets are.
        human_labels: an .npz of people's labels.
        keep_every: epochs between checkpoints that stay; None: only the newest two of each run.
        workers: processes of each run that read images which do not fit into memory.
        here: the folder that relative paths are seen from, also those in a specification.
        skip_broken: leave out images that cannot be read; no part of what a run is.
        retry_failed: also run what has left an error; else its error is told again.

    Example:
        >>> Work(Path("/tmp/r.jsonl"), Path("/tmp/runs")).keep_every is None
        True
    """

    results: Path
    folder: Path
    data_dir: Path | None = None
    human_labels: Path | None = None
    keep_every: int | None = None
    workers: int = 0
    here: Path | None = None
    retry_failed: bool = False
    skip_broken: bool = False

    def place(self, spec: Spec) -> Path:
        """The folder of a run."""
        return self.folder / key(spec)


@dataclass(frozen=True)
class Event:
    """What an engine tells its caller.

    Args:
        kind: `begun`, `epoch`, `ended`, `failed`; `held`: another process has the run; `full`: the disk has no room.
        spec: of the run.
        line: the history's line after an epoch, the result line at the end.
        error: what went wrong, in one sentence.
        host: the machine that has begun the run.
        process: the number of its process.

    Example:
        >>> Event("failed", {"method": "erm"}, error="the loss is nan").kind
        'failed'
    """

    kind: Literal["begun", "epoch", "ended", "failed", "held", "full"]
    spec: Spec
    line: dict[str, Any] | None = None
    error: str = ""
    host: str = ""
    process: int = 0


Tell = Callable[[Event], None]


class GridEngine(Protocol):
    """Carries out runs. It is used as a context: what it starts, it ends."""

    def __enter__(self) -> GridEngine: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def at_once(self) -> int:
        """How many runs it has under way at the same_spec time."""

    def run(self, specs: Sequence[Spec], work: Work, tell: Tell, /) -> None:
        """Carry out all runs; each ends in one event `ended`, `failed`, `held` or `full`."""


def check_alone() -> None:
    """Refuse to be one of several processes that train together: each would take other runs, and mix their steps."""
    there = max((int(text) for text in (os.environ.get(name, "") for name in SEVERAL) if text.isdigit()), default=1)
    if there > 1:
        raise InputError(
            f"this is one of {there} processes that train together, and a grid runs in one: start it without torchrun, "
            "with --jobs or --engine ray for several runs at a time; one training on several GPUs is "
            "torchrun … -m crust train",
            code="several-processes",
        )


def carry_out(spec: Spec, work: Work, tell: Tell) -> Event:
    """One run, from where its folder stands; the last event is returned, the ones before it are told."""
    place = work.place(spec)
    with claim(place) as mine:
        if not mine:
            return Event("held", spec)
        line = find(read_results(work.results), spec) or _left(place)
        if line is not None:
            return Event("ended", spec, line)
        before = failure(spec, work.folder)
        if before is not None and not work.retry_failed:  # another process has tried it since ours began
            return Event("failed", spec, error=before)
        place.mkdir(parents=True, exist_ok=True)
        tell(Event("begun", spec, host=socket.gethostname(), process=os.getpid()))
        try:
            line = train_spec(
                spec,
                place,
                data_dir=work.data_dir,
                human_labels=work.human_labels,
                keep_every=work.keep_every,
                workers=work.workers,
                skip_broken=work.skip_broken,
                report=lambda line: tell(Event("epoch", spec, line)),
            )
            if work.skip_broken:
                line["skip_broken"] = True
            (place / "error.json").unlink(missing_ok=True)  # of a time before; until now it still held
            # Before anybody is told: whoever started us may be gone by now.
            write_atomic(place / "result.json", json.dumps(line).encode())
        except Exception as error:  # whatever it is, the other runs go on
            if isinstance(error, BrokenPipeError):  # nobody listens any more
                raise
            if disk_is_full(error):
                return Event("full", spec, error=f"the disk of {work.folder} is full ({_error_sentence(error)})")
            return give_up(spec, work, _error_sentence(error), traceback.format_exc())
        return Event("ended", spec, line)


def disk_is_full(error: BaseException) -> bool:
    """Whether an error, or what led to it, is a disk without room. Libraries in C++ and Rust say so in words alone."""
    words = [os.strerror(number) for number in FULL]
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        if (isinstance(one, OSError) and one.errno in FULL) or any(each in str(one) for each in words):
            return True
        seen.append(one)
        one = one.__cause__ or one.__context__
    return False


def give_up(spec: Spec, work: Work, error: str, trace: str = "") -> Event:
    """Leave the error of a run in its folder."""
    place = work.place(spec)
    place.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    line = {"key": key(spec), "error": error, "trace": trace, "date": date, "spec": spec}
    write_atomic(place / "error.json", json.dumps(line, indent=1).encode())
    return Event("failed", spec, error=error)


def failure(spec: Spec, folder: Path) -> str | None:
    """The error that a run has left, or None."""
    try:
        return str(json.loads((folder / key(spec) / "error.json").read_text())["error"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return "the error cannot be read"


def free_space(folder: Path) -> int:
    """Bytes that are free where a folder is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def remove(place: Path) -> None:
    """Take a run's folder away, unless somebody works in it."""
    with claim(place) as mine:
        if mine:
            shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def claim(place: Path) -> Iterator[bool]:
    """Whether the run is ours: a lock that ends with the process that holds it, outside of the run's folder."""
    locks = place.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / place.name, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Use so many cores of the machine; None: as many as before."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(threads):
        torch.set_num_threads(threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _left(place: Path) -> dict[str, Any] | None:
    """The result of a run whose starter did not live to write it down."""
    try:
        found = json.loads((place / "result.json").read_text())
    except (OSError, ValueError):
        return None
    return None if schema_error(found) else dict(found)


def _error_sentence(error: Exception) -> str:
    """An error in one line; those that are not ours with their kind."""
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, CrustError) else f"{type(error).__name__}: {text}"
