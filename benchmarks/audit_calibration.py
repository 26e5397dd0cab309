"""How often the truth lies in the 90% intervals of a calibration: many small runs on data with known noise.

python -m benchmarks.audit_calibration                      100 runs, some minutes; results/audit-calibration.json
python -m benchmarks.audit_calibration --runs 10 --separation 3.5

Each run has data of its own: four classes of 250 points in ten dimensions, one normal cloud each, and noise of its own
that depends on the class alone: each class keeps 65 to 90 % of its labels, and the rest goes to the other classes in
proportions drawn at random. A small `mlp` is trained by `crust-half` for ten epochs (--method crust: by `crust`) and
calibrated. Counted is how often the true share of wrong labels, and the true precision and recall at the recommended
cut, lie in their intervals; and of all entries of the transition matrices, how many in a hundred do. A set of runs
takes the place of the same one in the file, beside the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from crust._util.atomic_write import write_atomic
from crust.fitting import fit
from crust.runs.result import load
from crust.verification import audit_arrays, verify_audit

RESULTS = Path(__file__).parents[1] / "results" / "audit-calibration.json"
SETTINGS: dict[str, Any] = {"epochs": 10, "batch_size": 64, "learning_rate": 0.05}
NAMES = ("noise_rate", "precision", "recall")


def clouds(seed: int, separation: float, n: int = 1000, classes: int = 4, width: int = 10) -> tuple[Any, Any, Any]:
    """Points, given labels, true labels."""
    rng = np.random.default_rng(seed)
    centres = rng.permutation(np.eye(width)[:classes] * separation)
    true = rng.integers(0, classes, n)
    points = (centres[true] + rng.normal(size=(n, width))).astype(np.float32)
    given = true.copy()
    for name in range(classes):
        rate, spread = rng.uniform(0.1, 0.35), rng.dirichlet(np.ones(classes - 1))
        shares = np.insert(rate * spread, name, 1 - rate)
        mine = true == name
        given[mine] = rng.choice(classes, int(mine.sum()), p=shares)
    return points, given, true


def one(seed: int, separation: float, method: str = "crust-half") -> dict[str, Any]:
    """One run: what was estimated, and what is true."""
    points, given, true = clouds(seed, separation)
    with tempfile.TemporaryDirectory() as folder:
        fit("mlp", (points, given), method=method, run_dir=folder, seed=seed, **SETTINGS)
        found = verify_audit(folder, (points, given))
        audit = audit_arrays(load(folder).audit(), found["classes"])
    wrong = given != true
    flagged = audit.doubt >= found["cut"]["threshold"]
    truth = {"noise_rate": wrong.mean(), "precision": wrong[flagged].mean(), "recall": flagged[wrong].mean()}
    said = {"noise_rate": found["noise_rate"], "precision": found["cut"]["precision"], "recall": found["cut"]["recall"]}
    beside = {name: {**said[name], "true": round(float(truth[name]), 5)} for name in NAMES}
    return {**beside, "transitions": _entries(found["transitions"], given, true)}


def _entries(said: dict[str, Any], given: Any, true: Any) -> list[dict[str, float]]:
    """Every entry of the transition matrix beside the true one."""
    shares = [np.bincount(given[true == name], minlength=4) / (true == name).sum() for name in range(4)]
    columns = [np.ravel(said[name]) for name in ("value", "low", "high")]
    rows = zip(*columns, np.ravel(shares), strict=True)
    return [dict(zip(("value", "low", "high", "true"), map(float, row), strict=True)) for row in rows]


def covered(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each estimate: how many intervals hold the truth, how wide they are, how far the value is off on average."""
    found = {}
    for name in (*NAMES, "transitions"):
        some = [run[name] for run in runs] if name in NAMES else [each for run in runs for each in run[name]]
        found[name] = {
            "runs": len(runs),
            "inside": round(sum(e["low"] <= e["true"] <= e["high"] for e in some) * len(runs) / len(some), 1),
            "width": round(float(np.mean([each["high"] - each["low"] for each in some])), 4),
            "bias": round(float(np.mean([each["value"] - each["true"] for each in some])), 4),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first run")
    parser.add_argument("--separation", type=float, default=3.3, help="of the clouds, in standard deviations")
    parser.add_argument("--method", default="crust-half")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    runs = []
    for number in range(options.runs):
        runs.append(one(options.first + number, options.separation, options.method))
        if (number + 1) % 10 == 0:
            print(number + 1, covered(runs), flush=True)
    path = options.output or RESULTS
    about = {"method": options.method, "first": options.first, "separation": options.separation}
    sets = json.loads(path.read_text())["sets"] if path.is_file() else []
    others = [one for one in sets if any(one.get(name) != value for name, value in about.items())]
    found = {"sets": [*others, {**about, "covered": covered(runs)}]}
    write_atomic(path, json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
