"""Where shards are worked on: any object with `map` will do; here are processes on this machine. See `ray_engine`."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crust.errors import choices

ENGINES = ("local", "ray")


class Engine(Protocol):
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


class Local:
    """Processes on this machine, started when first needed and kept until `close`.

    They are started afresh (spawned), so a script that uses them must guard its own start with
    `if __name__ == "__main__":`, as always with processes in Python.

    Example:
        >>> with Local(2) as engine:
        ...     list(engine.map(abs, [-1, 2]))
        [1, 2]
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

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def open_engine(engine: Any, workers: int) -> Iterator[Engine | None]:
    """What the user named as an engine, ready for work; it is closed at the end if it was opened here.

    Args:
        engine: None for no other place than here, `"local"` for processes, `"ray"` for a Ray cluster, or an engine.
        workers: how many processes, also of a Ray that is started here.

    Example:
        >>> with open_engine("cloud", 2):
        ...     pass
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown engine 'cloud': use one of local, ray
    """
    if engine is None or hasattr(engine, "map"):
        yield engine
        return
    if choices(engine, ENGINES, "engine") == "ray":
        from crust.selection.ray_engine import Ray

        with Ray(cpus=workers) as ray:
            yield ray
        return
    with Local(workers) as local:
        yield local


def _begin() -> None:
    """In a new process: die quietly on Ctrl-C, and leave the other cores to the other processes."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threadpool_limits(1)
