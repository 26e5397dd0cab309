"""Selection beside its peers, one after another on this machine: ratios are what counts.

python -m benchmarks.selection            the cases that take minutes
python -m benchmarks.selection --large    a million points
"""

import argparse
import json
import math
import os
import platform
import sys
from datetime import date
from pathlib import Path

from benchmarks import verdicts
from benchmarks.workload import measure

RESULTS = Path(__file__).parent / "results"
PEERS = ("apricot", "submodlib", "kmedoids")
GIB = 2**30


def compared(d: int, least: float) -> list[dict]:
    """Ten groups of 5,000, half of the points, against everyone."""
    case = {"n": 50_000, "d": d, "groups": 10, "k": 0.5}
    ours, one_core = measure("crust", **case, runs=5, threads=2), measure("crust", **case, runs=3, threads=1)
    yard = measure("cdist", **case, runs=5, threads=2)
    peers = {name: measure(name, **case) for name in PEERS}
    greedy = {name: peers[name] for name in ("apricot", "submodlib") if "seconds" in peers[name]}
    fastest = min(found["seconds"] for found in greedy.values())
    lowest = min(found["objective"] for found in greedy.values())
    rows = [
        {"what": "faster than the faster peer, 2 cores", "found": fastest / ours["seconds"], "least": least},
        {"what": "objective over the best peer's, minus 1", "found": ours["objective"] / lowest - 1, "most": 1e-6},
        {"what": "times ten torch.cdist calls", "found": ours["seconds"] / yard["seconds"]},
    ]
    if d == 10:
        rows.insert(1, {"what": "on one core", "found": fastest / one_core["seconds"], "least": 10})
        rows[-1]["most"] = 2
    seconds = {"crust": ours, "crust, one core": one_core, "torch.cdist": yard, **peers}
    return [{"case": f"10 groups of 5,000, d = {d}, k = 50%", "rows": rows, "runs": seconds}]


def one_group() -> list[dict]:
    """100,000 points in one group, distances recomputed."""
    limit = {"threads": 2, "memory_limit": 800 * 2**20}
    large = measure("crust", 100_000, 10, 1, 0.5, **limit)
    small = measure("crust", 10_000, 10, 1, 0.5, runs=3, **limit)
    yard = measure("cdist", 100_000, 10, 1, 0.5, threads=2)
    rows = [
        {"what": "GiB above the imports", "found": large["memory"] / GIB, "most": 1},
        {"what": "times all distances once by torch.cdist", "found": large["seconds"] / yard["seconds"], "most": 5},
        {
            "what": "growth from 10,000 points: n to the",
            "found": math.log10(large["seconds"] / small["seconds"]),
            "most": 2.1,
        },
    ]
    runs = {"crust": large, "crust, 10,000 points": small, "torch.cdist": yard}
    return [{"case": "one group of 100,000, d = 10, k = 50%", "rows": rows, "runs": runs}]


def million() -> list[dict]:
    limit = {"threads": 2, "memory_limit": int(1.2 * GIB)}
    exact = measure("crust", 1_000_000, 10, 10, 0.5, **limit)
    cases = [
        {
            "case": "1,000,000 points, d = 10, 10 groups, k = 50%",
            "rows": [{"what": "GiB above the imports", "found": exact["memory"] / GIB, "most": 2}],
            "runs": {"crust": exact},
        }
    ]
    reference = measure("crust", 10_000, 64, 1, 0.01, **limit)
    for name in ("stochastic", "greedi"):
        how = {**limit, "algorithm": name, "epsilon": 0.01}
        big, near = measure("crust", 1_000_000, 64, 10, 0.01, **how), measure("crust", 10_000, 64, 1, 0.01, **how)
        rows = [
            {"what": "GiB above the imports", "found": big.get("memory", math.nan) / GIB, "most": 2},
            {
                "what": "objective over exact on 10,000 points, minus 1",
                "found": near["objective"] / reference["objective"] - 1,
                "most": 0.02,
            },
        ]
        case = f"1,000,000 points, d = 64, 10 groups, k = 1%, {name}"
        cases.append({"case": case, "rows": rows, "runs": {"crust": big, "on 10,000 points": near}})
    return cases


def show(case: dict) -> bool:
    """Print one case as a table; False where it falls short."""
    print(f"\n### {case['case']}\n\n| who | seconds | GiB | objective |\n|---|---|---|---|")
    for who, found in case["runs"].items():
        if "error" in found:
            print(f"| {who} | {found['error'][:80]} | | |")
            continue
        print(
            f"| {who} | {found['seconds']:.3g} | {found['memory'] / GIB:.2f} | {found.get('objective', math.nan):.8g} |"
        )
    return verdicts.show(case["rows"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="a million points")
    large = parser.parse_args().large
    jobs = (
        [million]
        if large
        else [lambda: compared(10, 20), lambda: compared(64, 10), lambda: compared(512, 10), one_group]
    )
    about = {"date": date.today().isoformat(), "python": platform.python_version(), "cores": os.cpu_count()}
    cases, fine = [], True
    path = RESULTS / f"selection{'-large' if large else ''}.json"
    for job in jobs:
        for case in job():
            fine &= show(case)
            cases.append(case)
            path.write_text(json.dumps({**about, "cases": cases}, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
