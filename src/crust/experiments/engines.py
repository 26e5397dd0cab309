"""Where runs are carried out: in this process, in several on this machine, or on a Ray cluster.

All machines of a cluster see the same folders: runs, results and data lie on a shared file system.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from crust._util.malloc import keep_freed
from crust._util.ray_cluster import check_ray, connect
from crust.errors import InputError, require
from crust.experiments.specs import key
from crust.experiments.task import Event, Spec, Tell, Work, carry_out, give_up, limited

WAIT = 0.25  # seconds between two readings of the mailbox
RETRIES = 3  # how often a run is tried again whose process has died
log = logging.getLogger("crust")


class LocalGrid:
    """Runs on this machine.

    Args:
        jobs: how many at a time; 1 is this very process, more are processes of their own.
        threads: cores of each; default: with one job all, else an equal share.

    Example:
        >>> with LocalGrid(jobs=2, threads=1) as engine:
        ...     engine.at_once
        2
    """

    def __init__(self, jobs: int = 1, threads: int | None = None):
        if jobs < 1:
            raise InputError(f"jobs is {jobs}: give a number of processes, at least 1", code="jobs-range")
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}: give a number of cores, at least 1", code="threads-range")
        self.jobs = jobs
        self.threads = threads if threads is not None or jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)

    def __enter__(self) -> LocalGrid:
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

    def __init__(self, engine: LocalGrid, work: Work, tell: Tell):
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


class RayGrid:
    """Runs on a Ray cluster, each a task. One whose worker dies is tried again, from its last checkpoint.

    Args:
        address: of the cluster, such as `auto` or `10.0.0.1:6379`; None starts one on this machine.
        cpus: of each run.
        gpus: of each run, 1 at most; 0.25 puts four on a GPU.

    Example:
        >>> RayGrid(gpus=-1)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: gpus is -1: give what each run may use, such as 1 or 0.25
    """

    def __init__(self, address: str | None = None, cpus: float = 1, gpus: float = 0):
        if not 0 < cpus < math.inf:
            raise InputError(f"cpus is {cpus:g}: give what each run may use, such as 1", code="cpus-range")
        if not gpus >= 0:
            raise InputError(f"gpus is {gpus:g}: give what each run may use, such as 1 or 0.25", code="gpus-range")
        if gpus > 1:
            raise InputError(
                f"gpus is {gpus:g}, and a run uses one at most: give 1, or a share such as 0.25; one training on "
                "several GPUs is torchrun … -m crust train",
                code="gpus-range",
            )
        self.address, self.cpus, self.gpus = address, cpus, gpus
        self._ours = False
        check_ray()

    def __enter__(self) -> RayGrid:
        self._ours = connect(self.address)[1]
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            self._ray.shutdown()
            self._ours = False

    @property
    def _ray(self) -> Any:
        return require("ray", extra="ray")

    @property
    def at_once(self) -> int:
        """How many runs the cluster of this moment has room for."""
        there = self._ray.cluster_resources()
        room = there.get("CPU", 0) / self.cpus
        if self.gpus:
            room = min(room, there.get("GPU", 0) / self.gpus)
        return max(1, int(room))

    def run(self, specs: Sequence[Spec], work: Work, tell: Tell, /) -> None:
        """Carry out all runs."""
        ray = self._ray
        node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=True
        )
        box = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=node)(_Mailbox).remote()
        task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=RETRIES)(_task)
        threads = max(1, int(self.cpus))
        under_way = {task.remote(spec, work, box, threads): spec for spec in specs}
        open_keys = {key(spec) for spec in specs}
        try:
            while under_way:
                ended, _ = ray.wait(list(under_way), timeout=WAIT)
                for event in ray.get(box.take.remote()):
                    if key(event.spec) in open_keys:  # word of an epoch may come after the end
                        tell(event)
                for one in ended:
                    spec = under_way.pop(one)
                    open_keys.discard(key(spec))
                    tell(self._outcome(one, spec, work))
        finally:
            for one in under_way:
                ray.cancel(one, force=True)
            ray.kill(box)

    def _outcome(self, one: Any, spec: Spec, work: Work) -> Event:
        """How a task has ended; a worker that died again and again is a failure of its run."""
        errors = self._ray.exceptions
        try:
            event: Event = self._ray.get(one)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            return give_up(spec, work, died(RETRIES + 1))
        except errors.RayError as error:
            return give_up(spec, work, f"Ray: {' '.join(str(error).split())[:500]}", str(error))
        return event

    def _check(self) -> None:
        """A run that no machine has room for would wait for ever."""
        for name, wanted in (("CPU", self.cpus), ("GPU", self.gpus)):
            most = max((node["Resources"].get(name, 0) for node in self._ray.nodes() if node["Alive"]), default=0)
            if wanted > most:
                words = f"a run asks for {wanted:g} {name}s, and the largest machine of the cluster has {most:g}"
                if self.address is None:
                    raise InputError(f"{words}: ask for less with {name.lower()}s", code="cluster-size")
                log.warning("%s: waiting for a larger one", words)  # a cluster may grow


class _Mailbox:
    """What workers tell, until it is asked for."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put(self, event: Event) -> None:
        self.events.append(event)

    def take(self) -> list[Event]:
        found, self.events = self.events, []
        return found


def _task(spec: Spec, work: Work, box: Any, threads: int) -> Event:
    """In a worker of the cluster."""
    logging.getLogger("crust").setLevel(logging.ERROR)
    keep_freed()  # the process is ours
    if work.here is not None and work.here.is_dir():
        os.chdir(work.here)

    def tell(event: Event) -> None:
        with contextlib.suppress(Exception):  # a run does not end because nobody hears of it
            box.put.remote(event)

    with limited(threads):
        return carry_out(spec, work, tell)
