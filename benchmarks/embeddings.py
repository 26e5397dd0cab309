"""Selection where vectors are long or many: embeddings by direction, memory maps, files worked on by processes.

python -m benchmarks.embeddings exact       100,000 x 384 by cosine, k = 1% and 10%, exact; k-means where faiss is
python -m benchmarks.embeddings groups      1,000,000 x 384 mapped from its file, 100 groups, `stochastic` and `greedi`
python -m benchmarks.embeddings files       `greedi` over files of 64 dimensions, from 100,000 points to --points

Every job runs in a process of its own; memory is the most that it and its children had above the imports, mapped pages
of the data not counted (they are the system's, which takes them back). Data is made in --folder, and goes at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import verdicts

RESULTS = Path(__file__).parent / "results"
GIB = 2**30
PIECE = 50_000
CPU_TIME = "CRUST_BENCH_CPU_TIME"  # tells the jobs which clock


def write(path: Path, n: int, d: int, seed: int = 0) -> Path:
    """Points around 300 directions, as embeddings of texts lie; a .npy that is never in memory whole."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((300, d), dtype=np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
    for first in range(0, n, PIECE):
        rows = min(PIECE, n - first)
        out[first : first + rows] = centres[rng.integers(0, 300, rows)]
        out[first : first + rows] += rng.standard_normal((rows, d), dtype=np.float32)
    out.flush()
    return path


class Peak:
    """The most private memory that this process and its children had, above what it began with."""

    def __init__(self) -> None:
        import psutil

        self.process, self.going = psutil.Process(), True
        self.before = self.most = self._now()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _now(self) -> int:
        import psutil

        total = 0
        for one in (self.process, *self.process.children(recursive=True)):
            try:
                about = one.memory_info()
                total += about.rss - about.shared
            except psutil.Error:
                pass
        return total

    def _watch(self) -> None:
        while self.going:
            self.most = max(self.most, self._now())
            time.sleep(0.05)

    def above(self) -> int:
        self.going = False
        self.thread.join()
        return self.most - self.before


def select(path: str, k: float, groups: int, threads: int, rows: int | None = None, **options: Any) -> dict[str, Any]:
    """One selection by crust."""
    import crust

    warm = np.random.default_rng(0).normal(size=(400, 8))
    crust.select(warm, 20, **{key: value for key, value in options.items() if key in ("metric", "algorithm")})
    x: Any = path
    labels = None
    if not Path(path).is_dir():
        x = np.load(path, mmap_mode="r")
        x = x if rows is None else x[:rows]
        labels = None if groups == 1 else np.arange(len(x)) % groups
    peak, start = Peak(), time.perf_counter()
    found = crust.select(x, k, groups=labels, threads=threads, **options)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": peak.above(), "objective": found.objective, "medoids": len(found.indices)}


def distances_once(path: str, threads: int) -> dict[str, Any]:
    """The yardstick: all cosines once, in tiles, by matrix products of directions, and nothing else."""
    import torch

    torch.set_num_threads(threads)
    x = torch.nn.functional.normalize(torch.from_numpy(np.load(path)), dim=1)
    start = time.perf_counter()
    for rows in x.split(5000):
        for columns in x.split(5000):
            rows @ columns.T
    return {"seconds": time.perf_counter() - start}


def kmeans(path: str, k: int, threads: int) -> dict[str, Any]:
    """Medoids next to the centres of spherical k-means by faiss, and their objective by ours."""
    import faiss
    import torch

    faiss.omp_set_num_threads(threads)
    x = torch.nn.functional.normalize(torch.from_numpy(np.load(path)), dim=1).numpy()
    peak, start = Peak(), time.perf_counter()
    found = faiss.Kmeans(x.shape[1], k, niter=10, spherical=True, seed=0)
    found.train(x)
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    medoids = np.unique(index.search(found.centroids, 1)[1])
    seconds, memory = time.perf_counter() - start, peak.above()
    far = [1 - (x[first : first + 1000] @ x[medoids].T).max(axis=1) for first in range(0, len(x), 1000)]
    return {
        "seconds": seconds,
        "memory": memory,
        "objective": float(np.concatenate(far).sum()),
        "medoids": len(medoids),
    }


WHO = {"select": select, "distances": distances_once, "kmeans": kmeans}


def measure(who: str, **options: Any) -> dict[str, Any]:
    print(who, {key: value for key, value in options.items() if key != "path"}, file=sys.stderr, flush=True)
    words = json.dumps({"who": who, **options})
    done = subprocess.run([sys.executable, "-m", "benchmarks.embeddings", words], capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "failed"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def exact(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    n, d = int(options.points or 100_000), 384
    path = str(write(folder / "x.npy", n, d))
    how = {"path": path, "threads": options.threads}
    yard = measure("distances", **how)
    cases = []
    for share in (0.01, 0.1):
        ours = measure("select", **how, k=share, groups=1, metric="cosine", memory_limit=int(1.8 * GIB))
        runs = {"crust": ours, "all distances once": yard}
        if share == 0.01:
            runs["k-means (faiss)"] = measure("kmeans", **how, k=round(share * n))
        rows = [
            {"what": "GiB above the imports", "found": ours["memory"] / GIB, "most": 2},
            {"what": "times all distances once", "found": ours["seconds"] / yard["seconds"], "most": 1.5},
        ]
        cases.append({"case": f"{n:,} x {d} by cosine, one group, k = {share:.0%}, exact", "rows": rows, "runs": runs})
    return cases


def groups(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    n, d = int(options.points or 1_000_000), 384
    many = max(2, n // 10_000)
    path = str(write(folder / "x.npy", n, d))
    how = {"path": path, "threads": options.threads, "k": 0.01, "metric": "cosine", "memory_limit": int(1.2 * GIB)}
    few = {**how, "rows": 20_000, "groups": 2}  # groups as large as those of the whole
    reference = measure("select", **few)
    cases = []
    for name in ("stochastic", "greedi"):
        own = {"algorithm": name, "epsilon": 0.01}
        ours, near = measure("select", **how, groups=many, **own), measure("select", **few, **own)
        rows = [
            {"what": "GiB above the imports, the data mapped", "found": ours["memory"] / GIB, "most": 4 - 1.5},
            {
                "what": "objective over exact, 20,000 points in 2 groups, minus 1",
                "found": near["objective"] / reference["objective"] - 1,
                "most": 0.02,
            },
        ]
        runs = {"crust": ours, "20,000 points": near, "20,000 points, exact": reference}
        cases.append({"case": f"{n:,} x {d} by cosine, {many} groups, k = 1%, {name}", "rows": rows, "runs": runs})
    return cases


def files(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    most, d, k = int(options.points or 1_000_000), 64, int(options.k)
    sizes = [n for n in (100_000, 1_000_000, 10_000_000) if n <= most]
    how = {"threads": options.threads, "groups": 1, "k": k, "algorithm": "greedi", "engine": options.engine}
    runs = {}
    for n in sizes:
        place = folder / f"{n}"
        place.mkdir()
        for number in range(10):
            write(place / f"part-{number}.npy", n // 10, d, number)
        runs[f"{n:,} points"] = measure("select", path=str(place), **how)
        shutil.rmtree(place)
    path = str(write(folder / "x.npy", 20_000, d))
    small = {"path": path, "threads": options.threads, "groups": 1, "k": 200}
    one, two = measure("select", **small), measure("select", **small, algorithm="greedi")
    runs |= {"20,000 points, exact": one, "20,000 points, greedi": two}
    first, last = runs[f"{sizes[0]:,} points"], runs[f"{sizes[-1]:,} points"]
    rows = [
        {"what": "GiB of all processes", "found": last["memory"] / GIB, "most": 6},
        {"what": "objective over exact on 20,000 points, minus 1", "found": two["objective"] / one["objective"] - 1},
    ]
    if len(sizes) > 1:
        growth = math.log(last["seconds"] / first["seconds"]) / math.log(sizes[-1] / sizes[0])
        rows.append({"what": f"growth from {sizes[0]:,} points: n to the", "found": growth})
    case = f"{sizes[-1]:,} points of {d} in 10 files, k = {k:,}, greedi by {options.engine}"
    return [{"case": case, "rows": rows, "runs": runs}]


def show(case: dict[str, Any]) -> bool:
    print(f"\n### {case['case']}\n\n| who | seconds | GiB | medoids | objective |\n|---|---|---|---|---|")
    for who, found in case["runs"].items():
        if "error" in found:
            print(f"| {who} | {found['error'][:80]} | | | |")
            continue
        memory, objective = found.get("memory", math.nan) / GIB, found.get("objective", math.nan)
        print(f"| {who} | {found['seconds']:.3g} | {memory:.2f} | {found.get('medoids', '')} | {objective:.8g} |")
    return verdicts.show(case["rows"])


CASES = {"exact": exact, "groups": groups, "files": files}


def main() -> int:
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        words = json.loads(sys.argv[1])
        if CPU_TIME in os.environ:
            time.perf_counter = time.process_time
        print(json.dumps(WHO[words.pop("who")](**words)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--points", type=float, help="in place of those of the case")
    parser.add_argument("-k", type=float, default=1000, help="medoids from files")
    parser.add_argument("--engine", default="local", help="of the files: local or ray")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cpu-time", action="store_true", help="of all threads, where others work on the machine")
    parser.add_argument("--folder", help="where the data is made for as long as it is needed")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/embeddings-CASE.json")
    options = parser.parse_args()
    if options.cpu_time:
        os.environ[CPU_TIME] = "1"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        cases = CASES[options.case](Path(folder), options)
    fine = not [case for case in cases if not show(case)]
    about = {"clock": "CPU time of all threads" if options.cpu_time else "wall"}
    about |= {"date": date.today().isoformat(), "python": platform.python_version(), "cores": os.cpu_count()}
    path = options.output or RESULTS / f"embeddings-{options.case}.json"
    path.write_text(json.dumps({**about, "cases": cases}, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
