"""On this machine: one run after another in this process, or several processes with a share of the cores each."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from crust.errors import InputError
from crust.experiments.engines.task import Event, Spec, Tell, Work, carry_out, give_up, limited

RETRIES = 3  # how often a run is tried again whose process has died


class Local:
    """Runs on this machine.

    Args:
        jobs: how many at a time; 1 is this very process, more are processes of their own.
        threads: cores of each; default: with one job all, else an equal share.

    Example:
        >>> with Local(jobs=2, threads=1) as engine:
        ...     engine.at_once
        2
    """

    def __init__(self, jobs: int = 1, threads: int | None = None):
        if jobs < 1:
            raise InputError(f"jobs is {jobs}: give a number of processes, at least 1")
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}: give a number of cores, at least 1")
        self.jobs = jobs
        self.threads = threads if threads is not None or jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def at_once(self) -> int:
        """How many runs are under way at the same time."""
        return self.jobs

    def run(self, specs: Sequence[Spec], work: Work, tell: Tell, /) -> None:
        """Carry out all runs; a process that dies is replaced, and its run goes on from its last checkpoint."""
        if self.jobs > 1:
            _Crew(self, work, tell).run(specs)
            return
        with limited(self.threads):
            for spec in specs:
                tell(carry_out(spec, work, tell))


@dataclass
class _Worker:
    process: Any
    spec: Spec
    left: int  # how often its run may be tried again


class _Crew:
    """Processes that each do one run after another."""

    def __init__(self, engine: Local, work: Work, tell: Tell):
        self.engine, self.work, self.tell = engine, work, tell
        self.busy: dict[Connection, _Worker] = {}
        self.devices = _devices()

    def run(self, specs: Sequence[Spec]) -> None:
        waiting = deque((spec, RETRIES) for spec in specs)
        slots = deque(range(min(self.engine.jobs, len(specs))))
        place: dict[Connection, int] = {}
        try:
            while waiting or self.busy:
                while waiting and slots:
                    slot = slots.popleft()
                    place[self._start(slot, *waiting.popleft())] = slot
                for pipe in wait(list(self.busy)):
                    assert isinstance(pipe, Connection)
                    worker = self.busy[pipe]
                    try:
                        event: Event = pipe.recv()
                    except (EOFError, OSError):
                        self._end(pipe)
                        slots.append(place.pop(pipe))
                        if worker.left:
                            waiting.appendleft((worker.spec, worker.left - 1))
                        else:
                            self.tell(give_up(worker.spec, self.work, died(RETRIES + 1)))
                        continue
                    if event.kind not in ("begun", "epoch"):
                        if waiting:
                            worker.spec, worker.left = waiting.popleft()
                            _send(pipe, worker.spec)
                        else:
                            self._end(pipe)
                            place.pop(pipe)
                    self.tell(event)
        finally:
            for pipe in list(self.busy):
                self._end(pipe)

    def _start(self, slot: int, spec: Spec, left: int) -> Connection:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        device = self.devices[slot % len(self.devices)] if self.devices else None
        words = (theirs, self.work, self.engine.threads, device)
        process = context.Process(target=_serve, args=words, daemon=True)
        with _unheard():
            process.start()
        theirs.close()  # so that its end is seen here
        _send(ours, spec)
        self.busy[ours] = _Worker(process, spec, left)
        return ours

    def _end(self, pipe: Connection) -> None:
        """Nothing is lost: a run is saved after every epoch, and its files are whole at any moment."""
        worker = self.busy.pop(pipe)
        pipe.close()
        worker.process.terminate()
        worker.process.join()


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Let a process begin its life deaf to Ctrl-C, which it inherits: it would hear it before it can say so itself."""
    if threading.current_thread() is not threading.main_thread():  # where Python allows no change
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _send(pipe: Connection, spec: Spec) -> None:
    with contextlib.suppress(OSError):  # a process that is dead already is noticed when it is listened to
        pipe.send(spec)


def died(times: int) -> str:
    """What is said of a run that has cost its process each time."""
    return f"its process died {times} times (out of memory?): give it more room, then try again"


def _serve(pipe: Connection, work: Work, threads: int, device: str | None) -> None:
    """In a process of its own: one run after another, for as long as somebody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the one who started us, who will end us
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    threading.Thread(target=_fate, daemon=True).start()
    logging.getLogger("crust").setLevel(logging.ERROR)  # several at a time would talk across each other
    with limited(threads), contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(carry_out(pipe.recv(), work, pipe.send))


def _fate() -> None:
    """End this process with the one that started it: it would hold a run that nobody waits for."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _devices() -> list[str]:
    """The GPUs of this machine as CUDA names them, to be dealt out to the processes."""
    import torch

    if torch.cuda.device_count() < 2:
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(number) for number in range(torch.cuda.device_count())]
