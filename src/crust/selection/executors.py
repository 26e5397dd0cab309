"""Where work is done: in threads of this process; and for shards, in processes on this machine or on a Ray cluster."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crust._util.ray_cluster import check_ray, connect
from crust.errors import CrustError, choices

ENGINES = ("local", "ray")


class WorkStopped(Exception):
    """Raised in worker threads once the caller has given up."""


class Ticker:
    """Counts finished work towards a total; workers ask it whether to go on.

    `report(done, total)` is called now and then; it must be cheap and safe to call from any thread.
    """

    def __init__(self, total: float = 0.0, report: Callable[[float, float], None] | None = None):
        self.total = total
        self.done = 0.0
        self.stopped = False
        self._report = report
        self._lock = threading.Lock()

    def step(self, amount: float = 0.0) -> None:
        """Count `amount` of work; raises `WorkStopped` where the caller gave up."""
        if self.stopped:
            raise WorkStopped
        if amount:
            with self._lock:
                self.done += amount
                if self._report is not None:
                    self._report(self.done, self.total)


def run_in_threads(units: Iterable[Any], work: Callable[[Any, int], None], threads: int, ticker: Ticker) -> None:
    """Call `work(unit, slot)` for every unit on `threads` threads; `slot` tells the threads apart.

    The first exception ends the work and is raised here. Ctrl-C stops the threads before it is raised.
    """
    if threads == 1:
        for unit in units:
            ticker.step()
            work(unit, 0)
        return
    queue = iter(units)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def run(slot: int) -> None:
        try:
            while not errors:
                with lock:
                    unit = next(queue, None)
                if unit is None:
                    return
                ticker.step()
                work(unit, slot)
        except BaseException as error:  # handed to the calling thread, which raises it
            errors.append(error)

    crew = [threading.Thread(target=run, args=(slot,), daemon=True) for slot in range(1, threads)]
    for thread in crew:
        thread.start()
    try:
        run(0)
    finally:
        try:
            for thread in crew:
                thread.join()
        except KeyboardInterrupt:
            ticker.stopped = True
            for thread in crew:
                thread.join()
            raise
    if errors:
        ticker.stopped = True
        raise errors[0]


def one_blas_thread() -> Any:
    """Keep matrix products on the thread that asks for them: the threads are ours already."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


# ---------------------------------------------------------------- engines for shards


class Executor(Protocol):
    """Runs a function on many items, wherever that may be.

    An engine may also have `share(array)`: a context manager that gives something small to send along instead of the
    array, with a method `open()` that returns the array, read only, wherever it is called. One of several machines has
    `look(function, item)`: the result of function(item) on each of them, with the machine's id; items that have `nodes`
    are then worked on by one of these.
    """

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """The results of function(item), in the order of the items; all of them must survive pickling."""


@dataclass(frozen=True)
class SharedArray:
    """An array in a file that other processes map into their memory."""

    path: str

    def open(self) -> NDArray[Any]:
        array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return array


class LocalProcesses:
    """Processes on this machine, started when first needed and kept until `close`.

    They are started afresh (spawned), so a script that uses them must guard its own start with
    `if __name__ == "__main__":`, as always with processes in Python.
    """

    def __init__(self, workers: int):
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """The results of function(item), in the order of the items."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_begin)
        return self._pool.map(function, items)

    @contextmanager
    def share(self, array: NDArray[Any]) -> Iterator[SharedArray]:
        """Keep an array in a file for as long as the processes need it: each page is in memory once, for all."""
        with tempfile.TemporaryDirectory(prefix="crust-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "points.npy"
            np.save(path, array)
            yield SharedArray(str(path))

    def close(self) -> None:
        """End the processes; what they have not begun is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> LocalProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def open_engine(engine: Any, workers: int) -> Iterator[Executor | None]:
    """What the user named as an engine, ready for work; it is closed at the end if it was opened here.

    Args:
        engine: None for no other place than here, `"local"` for processes, `"ray"` for a Ray cluster, or an engine.
        workers: how many processes, also of a Ray that is started here.
    """
    if engine is None or hasattr(engine, "map"):
        yield engine
        return
    if choices(engine, ENGINES, "engine") == "ray":
        with Ray(cpus=workers) as ray:
            yield ray
        return
    with LocalProcesses(workers) as local:
        yield local


def _begin() -> None:
    """In a new process: die quietly on Ctrl-C, and leave the other cores to the other processes."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threadpool_limits(1)


RETRIES = 3  # how often Ray tries a shard again whose worker died


@dataclass(frozen=True)
class StoredArray:
    """An array in Ray's object store: workers of one machine read the same memory."""

    reference: Any

    def open(self) -> NDArray[Any]:
        import ray

        array: NDArray[Any] = ray.get(self.reference)
        return array


class Ray:
    """Work on a Ray cluster, one core a shard; `engine="ray"` is `Ray()`.

    Files are read where they lie: work on a file that only some machines have goes to one of them. crust must be
    installed on all of them. Work whose machine or process dies is done again elsewhere.

    Args:
        address: such as `auto` or `10.0.0.1:6379`; None: that of RAY_ADDRESS, else Ray is started on this machine.
        cpus: how many cores to use where Ray is started; default: all.

    Example:
        >>> engine = Ray("10.0.0.1:6379")  # connects when it is first used
        >>> engine.address
        '10.0.0.1:6379'
    """

    def __init__(self, address: str | None = None, cpus: int | None = None):
        check_ray()
        self.address, self.cpus = address, cpus
        self._ray: Any = None
        self._ours = False
        self._turn = 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """The results of function(item), in the order of the items; an item may have `nodes`, the ids of machines."""
        ray = self._open()
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        room = 2 * int(ray.cluster_resources().get("CPU", 1)) + 2  # more would only fill the object store
        waiting: deque[Any] = deque()
        try:
            for item in items:
                waiting.append(task.options(scheduling_strategy=self._place(item)).remote(function, item))
                if len(waiting) >= room:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for one in waiting:
                ray.cancel(one, force=True)

    def look(self, function: Callable[[Any], Any], item: Any) -> list[tuple[str, Any]]:
        """The result of function(item) on every machine, with its id."""
        ray = self._open()
        task = ray.remote(num_cpus=0, max_retries=RETRIES)(_work)
        alive = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        running = [(node, task.options(scheduling_strategy=self._on(node)).remote(function, item)) for node in alive]
        return [(node, self._result(task_ref)) for node, task_ref in running]

    @contextmanager
    def share(self, array: NDArray[Any]) -> Iterator[StoredArray]:
        """Keep an array in the object store for as long as the workers need it."""
        yield StoredArray(self._open().put(np.ascontiguousarray(array)))

    def close(self) -> None:
        """End what was started here; a cluster that ran before goes on."""
        if self._ours:
            self._ray.shutdown()
        self._ray, self._ours = None, False

    def __enter__(self) -> Ray:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        if self._ray is None:
            self._ray, self._ours = connect(self.address, self.cpus)
        return self._ray

    def _on(self, node: str) -> Any:
        strategies = self._ray.util.scheduling_strategies
        return strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)

    def _place(self, item: Any) -> Any:
        nodes = getattr(item, "nodes", ())
        self._turn += 1
        return self._on(nodes[self._turn % len(nodes)]) if nodes else "SPREAD"

    def _result(self, one: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(one)
        except errors.RayTaskError as error:
            if isinstance(error.cause, CrustError):
                raise error.cause from None
            raise CrustError(f"a worker of Ray failed: {_last_line(error)}", code="worker-failed") from error
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
            raise CrustError(
                f"a worker of Ray died {RETRIES + 1} times on one shard (out of memory?): use smaller files, a "
                "smaller k, or machines with more memory",
                code="worker-died",
            ) from error
        except errors.RayError as error:
            raise CrustError(f"Ray could not finish a shard: {_last_line(error)}", code="worker-failed") from error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def _work(function: Callable[[Any], Any], item: Any) -> Any:
    """In a worker: one core, as Ray counts."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(item)
