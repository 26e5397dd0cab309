"""On a Ray cluster. All machines see the same folders: runs, results and data lie on a shared file system."""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Sequence
from typing import Any

from crust._util.ray_cluster import connect
from crust.errors import InputError, require
from crust.experiments.engines.local import RETRIES, died
from crust.experiments.engines.task import Event, Spec, Tell, Work, carry_out, give_up, limited
from crust.experiments.specs import key

WAIT = 0.25  # seconds between looks at what has been told
log = logging.getLogger("crust")


class Ray:
    """Runs on a Ray cluster, each a task. One whose worker dies is tried again, from its last checkpoint.

    Args:
        address: of the cluster, such as `auto` or `10.0.0.1:6379`; None starts one on this machine.
        cpus: of each run.
        gpus: of each run, 1 at most; 0.25 puts four on a GPU.

    Example:
        >>> Ray(gpus=-1)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: gpus is -1: give what each run may use, such as 1 or 0.25
    """

    def __init__(self, address: str | None = None, cpus: float = 1, gpus: float = 0):
        if not 0 < cpus < math.inf:
            raise InputError(f"cpus is {cpus:g}: give what each run may use, such as 1")
        if not gpus >= 0:
            raise InputError(f"gpus is {gpus:g}: give what each run may use, such as 1 or 0.25")
        if gpus > 1:
            raise InputError(
                f"gpus is {gpus:g}, and a run uses one at most: give 1, or a share such as 0.25; one training on "
                "several GPUs is torchrun … -m crust train"
            )
        self.address, self.cpus, self.gpus = address, cpus, gpus
        self._ray = require("ray", extra="ray")
        self._ours = False

    def __enter__(self) -> Ray:
        self._ours = connect(self.address)[1]
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            self._ray.shutdown()
            self._ours = False

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
                    raise InputError(f"{words}: ask for less with {name.lower()}s")
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
    if work.here is not None and work.here.is_dir():
        os.chdir(work.here)

    def tell(event: Event) -> None:
        with contextlib.suppress(Exception):  # a run does not end because nobody hears of it
            box.put.remote(event)

    with limited(threads):
        return carry_out(spec, work, tell)
