"""Work in tiles on several threads, with a place to stop and to report progress."""

import threading
from collections.abc import Callable, Iterable
from typing import Any


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
