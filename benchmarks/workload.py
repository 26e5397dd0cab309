"""What the benchmarks of selection run: points like real gradient proxies, ourselves, the peers, and a yardstick.

Run as a module with the name of a job it runs that job alone in a fresh process, and prints one line of JSON: seconds
(the best of a few runs, after one small run that compiles), the objective, and peak memory above the imports.
"""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np


def proxies(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Softmax of Gaussian logits minus a one-hot label: what a network's last layer gives."""
    rng = np.random.default_rng(seed)
    out = np.empty((n, d), np.float32)
    for first in range(0, n, 100_000):
        logits = 2 * rng.normal(size=(min(100_000, n - first), d))
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(p)), rng.integers(0, d, len(p))] -= 1
        out[first : first + len(p)] = p
    return out


def groups_of(n: int, groups: int) -> np.ndarray:
    return np.repeat(np.arange(groups), n // groups)


def objective(points: np.ndarray, labels: np.ndarray, medoids: np.ndarray) -> float:
    """Sum of distances to the nearest medoid of the same group, by an independent library."""
    from sklearn.metrics import pairwise_distances_argmin_min

    total = 0.0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen = medoids[labels[medoids] == label]
        near = pairwise_distances_argmin_min(points[members].astype(np.float64), points[chosen].astype(np.float64))[1]
        total += float(near.sum())
    return total


# ---------------------------------------------------------------- who runs


def run_crust(points: np.ndarray, labels: np.ndarray, k: float, **options: object) -> np.ndarray:
    import crust

    return crust.select(points, k, groups=labels, **options).indices  # type: ignore[arg-type]


def run_apricot(points: np.ndarray, labels: np.ndarray, k: float, **_: object) -> np.ndarray:
    from apricot import FacilityLocationSelection

    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        model = FacilityLocationSelection(round(k * len(members)), metric="euclidean", optimizer="lazy")
        chosen.append(members[model.fit(points[members]).ranking])
    return np.concatenate(chosen)


def run_submodlib(points: np.ndarray, labels: np.ndarray, k: float, **_: object) -> np.ndarray:
    """With distances from scikit-learn: several times faster than with its own."""
    from sklearn.metrics import pairwise_distances
    from submodlib import FacilityLocationFunction

    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        distances = pairwise_distances(points[members])
        near = (distances.max() - distances).astype(np.float32)
        function = FacilityLocationFunction(n=len(members), mode="dense", sijs=near, separate_rep=False)
        picks = function.maximize(
            budget=round(k * len(members)), optimizer="LazyGreedy", stopIfZeroGain=False, stopIfNegativeGain=False
        )
        chosen.append(members[[i for i, _ in picks]])
    return np.concatenate(chosen)


def run_kmedoids(points: np.ndarray, labels: np.ndarray, k: float, **_: object) -> np.ndarray:
    """FasterPAM from random medoids, one round: k-medoids by swapping, not by greedy."""
    import kmedoids
    from sklearn.metrics import pairwise_distances

    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        distances = pairwise_distances(points[members])
        found = kmedoids.fasterpam(distances, round(k * len(members)), max_iter=1, init="random", random_state=0)
        chosen.append(members[found.medoids])
    return np.concatenate(chosen)


def run_cdist(points: np.ndarray, labels: np.ndarray, k: float, threads: int = 2, **_: object) -> np.ndarray:
    """The yardstick: all distances once, in tiles, and nothing else."""
    import torch

    torch.set_num_threads(threads)
    for label in np.unique(labels):
        group = torch.from_numpy(points[labels == label])
        for rows in group.split(5000):
            for columns in group.split(5000):
                torch.cdist(rows, columns)
    return np.empty(0, np.int64)


WHO = {
    "crust": run_crust,
    "apricot": run_apricot,
    "submodlib": run_submodlib,
    "kmedoids": run_kmedoids,
    "cdist": run_cdist,
}


# ---------------------------------------------------------------- one job, one process


def measure(who: str, n: int, d: int, groups: int, k: float, runs: int = 1, **options: object) -> dict:
    """Run a job in a process of its own; see the module's docstring."""
    job = json.dumps({"who": who, "n": n, "d": d, "groups": groups, "k": k, "runs": runs, "options": options})
    done = subprocess.run([sys.executable, "-m", "benchmarks.workload", job], capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "failed"}
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def silent():
    """submodlib prints from C++, so the file descriptor itself has to look away."""
    keep, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(keep, 1)


def main() -> None:
    job = json.loads(sys.argv[1])
    run, options = WHO[job["who"]], job["options"]
    points, labels = proxies(job["n"], job["d"]), groups_of(job["n"], job["groups"])
    with silent():
        small = min(len(points), 1000)
        run(points[:small], labels[:small] * 0, 0.1, **{**options, "memory_limit": None} if options else {})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = []
        for _ in range(job["runs"]):
            start = time.perf_counter()
            medoids = run(points, labels, job["k"], **options)
            seconds.append(time.perf_counter() - start)
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found = {"seconds": min(seconds), "memory": memory, "medoids": len(medoids)}
    if len(medoids):
        found["objective"] = objective(points, labels, medoids)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
