"""Bytes that one process of several sends for a look and a choice of `crust`, beside a gather of everything to all.

python -m benchmarks.ranks                  50,000 examples in 10 and 100 classes, 1, 2 and 4 processes by gloo

Counted are the arrays that the process gives to others, and what the network interface of this machine says of all.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.scale import examples, network
from crust.data import from_arrays
from crust.methods import METHODS
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.settings import TrainSettings

RESULTS = Path(__file__).parent / "results"
INTERFACE = Path("/sys/class/net/lo/statistics/tx_bytes")


def process(n: int, classes: int) -> dict[str, Any]:
    """Look at everything and choose, as the loop and `crust` do it."""
    torch.set_num_threads(1)
    processes = Processes(cpu=True)
    x, y = examples(n, classes)
    data = from_arrays(x, y)
    settings = TrainSettings(epochs=2, batch_size=512)
    context = Context(data, classes, [network(classes)], settings, processes, augment=False, validation=None)
    method = METHODS["crust"](METHODS["crust"].Settings(select_after=1))
    method.begin_run(context)
    context.epoch = 1
    processes.wait()
    before, wire = processes.sent, int(INTERFACE.read_text()) if INTERFACE.exists() else 0
    chosen = method.begin_epoch(context)
    processes.wait()
    assert chosen is not None
    members = method.members
    digest = int(np.flatnonzero(members).sum())
    wire = (int(INTERFACE.read_text()) - wire if INTERFACE.exists() else 0) / processes.count
    return {"sent": processes.sent - before, "interface": wire, "members": int(members.sum()), "digest": digest}


def ranked(rank: int, count: int, port: str, n: int, classes: int, answers: Any) -> None:
    own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)} if count > 1 else {}
    os.environ |= own | place
    answers.put(process(n, classes))


def measure(count: int, n: int, classes: int) -> dict[str, Any]:
    """Real processes, forked from this one, which has imported everything and begun nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    context = get_context("fork")
    answers = context.Queue()
    crew = [context.Process(target=ranked, args=(rank, count, port, n, classes, answers)) for rank in range(count)]
    for one in crew:
        one.start()
    found: list[dict[str, Any]] = [answers.get(timeout=600) for _ in crew]
    for one in crew:
        one.join()
    return {**found[0], "sent": max(one["sent"] for one in found), "same": len({one["digest"] for one in found}) == 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50_000], help="examples")
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100])
    options = parser.parse_args()
    rows, fine = [], True
    print("| examples x classes | processes | bytes an example sent by one | by the interface | a gather | same |")
    print("|---|---|---|---|---|---|")
    for n in options.sizes:
        for classes in options.classes:
            alone = None
            for count in (1, 2, 4):
                found = measure(count, n, classes)
                alone = found if alone is None else alone
                same = found["same"] and found["digest"] == alone["digest"]
                gather = (4 * classes + 37) * (count - 1) / count
                row = {"n": n, "classes": classes, "processes": count, **found, "gather": gather, "same": same}
                fine &= same and (count == 1 or found["sent"] / n < gather)
                rows.append(row)
                sent = f"{found['sent'] / n:.1f} | {found['interface'] / n:.1f} | {gather:.1f}"
                print(f"| {n:,} x {classes} | {count} | {sent} | {same} |", flush=True)
    about = {"date": date.today().isoformat(), "rows": rows}
    (RESULTS / "ranks.json").write_text(json.dumps(about, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
