"""Shards on the machines of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust.cluster import connect
from crust.errors import CrustError, require

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
        require("ray", extra="ray")
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
        found = [(node, task.options(scheduling_strategy=self._on(node)).remote(function, item)) for node in alive]
        return [(node, self._result(one)) for node, one in found]

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
            raise CrustError(f"a worker of Ray failed: {_last_line(error)}") from error
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError) as error:
            raise CrustError(
                f"a worker of Ray died {RETRIES + 1} times on one shard (out of memory?): use smaller files, a "
                "smaller k, or machines with more memory"
            ) from error
        except errors.RayError as error:
            raise CrustError(f"Ray could not finish a shard: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def _work(function: Callable[[Any], Any], item: Any) -> Any:
    """In a worker: one core, as Ray counts."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return function(item)
