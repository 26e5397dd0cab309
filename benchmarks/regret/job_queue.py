"""The queue: runs that have no line yet, on some processes, each with one thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from benchmarks.regret.conditions import Job
from benchmarks.regret.lines import Durations, Lines, seconds
from benchmarks.regret.run_job import run
from crust.errors import InputError
from crust.experiments import append, read_results

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def there(results: Path, recorded: Sequence[Path] = ()) -> Lines:
    """The lines that are there already, those of other files that were made with the same settings included."""
    return Lines(line for file in (*recorded, results) for line in read_results(file))


def work_off(
    todo: Sequence[Job], results: Path, data_dir: Path, runs: Path, processes: int, say: Callable[[str], None]
) -> int:
    """Make the runs and add their lines, each as soon as it is there; one that fails is told and passed over.

    This process may be killed at any moment: its workers end with it, and what was finished is in the file.

    Args:
        todo: the runs, in their order.
        results: the file of lines.
        data_dir: where the sets are.
        runs: a folder for long runs, which are resumed.
        processes: how many runs at once.
        say: told what is finished.

    Returns:
        How many runs failed.
    """
    with alone(results), workers(processes) as pool:
        failed, left, under_way = 0, iter(todo), dict[Future[dict[str, Any]], Job]()
        begun, number = time.monotonic(), 0
        while True:
            for job in left:
                under_way[pool.submit(run, job, data_dir, runs)] = job
                if len(under_way) >= processes:
                    break
            if not under_way:
                return failed
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                job, number = under_way.pop(done), number + 1
                try:
                    line = done.result()
                except Exception as error:
                    _pass_on(error)
                    failed += 1
                    say(f"{number} of {len(todo)}  {job.name}: {type(error).__name__}: {error}")
                    continue
                append(results, line)
                rest = (time.monotonic() - begun) / number * (len(todo) - number)
                say(
                    f"{number} of {len(todo)}  {job.name}: {100 * line['accuracy']['delivered']:.1f}, "
                    f"{seconds(line):.0f} s; {duration(rest)} left"
                )


def _pass_on(error: Exception) -> None:
    """A worker that died took the others with it: nothing more can be run."""
    from concurrent.futures.process import BrokenProcessPool

    if isinstance(error, BrokenProcessPool):
        raise InputError(
            "a worker died (out of memory?): start again, what is finished is kept", code="worker-died"
        ) from None


@contextlib.contextmanager
def alone(results: Path) -> Iterator[None]:
    """One queue a file: a second one would make the same runs."""
    results.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(results.with_name(f".{results.name}.queue.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"another queue adds to {results}: wait for it, or stop it", code="queue-running") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread; they end when we do, however that is."""
    os.environ |= dict.fromkeys(THREADS, "1")  # read when numerical libraries are imported
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin)
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _begin() -> None:
    """In a worker."""
    import torch

    from crust._util.malloc import keep_freed

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the one who started us, who will end us
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=partial(_end_with, parent.sentinel), daemon=True).start()
    torch.set_num_threads(1)
    keep_freed()


def _end_with(sentinel: Any) -> None:
    wait_for([sentinel])
    os._exit(1)


def forecast(todo: Sequence[Job], lines: Lines, processes: int) -> str:
    """What is to be run, set by set, with the time that lines say it will take.

    Args:
        todo: the runs.
        lines: that are there.
        processes: how many runs at once.
    """
    durations, rows = Durations(lines), []
    total, unknown = 0.0, 0
    for data in dict.fromkeys(job.condition.data for job in todo):
        some = [durations.seconds(job) for job in todo if job.condition.data == data]
        known = [value for value in some if value is not None]
        total, unknown = total + sum(known), unknown + len(some) - len(known)
        rows.append(f"{data:<16} {len(some):>6} runs   {duration(sum(known) / processes) if known else 'unknown'}")
    rest = f", and {unknown} runs of sets that have no line yet" if unknown else ""
    return "\n".join([*rows, f"{'together':<16} {len(todo):>6} runs   {duration(total / processes)}{rest}"])


def duration(of: float) -> str:
    """Seconds in words.

    Example:
        >>> duration(40), duration(400), duration(40_000)
        ('40 s', '7 min', '11.1 h')
    """
    return f"{of:.0f} s" if of < 100 else f"{of / 60:.0f} min" if of < 6000 else f"{of / 3600:.1f} h"


def say(text: str) -> None:
    """A line on stderr."""
    print(text, file=sys.stderr, flush=True)
