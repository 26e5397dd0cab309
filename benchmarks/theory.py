"""Time and memory of the theory's functions, against the number of examples and that of parameters.

python -m benchmarks.theory            all cases, a ResNet-32 on 2,000 images among them: some tens of minutes
python -m benchmarks.theory --small    without it: some minutes

Every case runs in a process of its own, on random images of CIFAR's shape; the ResNet-32 on CIFAR-10 itself, from
--data, else $CRUST_DATA, else ./data. Memory is what the process grows by at its peak; `how` is what `spectrum` chose.
For each series the growth is given as the exponent between its first and last case: 1 is in proportion.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import verdicts

RESULTS = Path(__file__).parent / "results"
SHAPE = (3, 32, 32)
LIMIT = int(4e9)  # bytes that a case may use

# Series by name: what is called, and for each case the network, its settings and the examples.
SERIES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "50 leading values, examples grow": ("auto", [{"model": "resnet8", "n": n} for n in (125, 250, 500, 1000)]),
    "50 leading values, parameters grow": (
        "auto",
        [{"model": "mlp", "n": 250, "settings": {"hidden": [width]}} for width in (16, 64, 256)],
    ),
    "all values, examples grow": (
        "exact",
        [{"model": "mlp", "n": n, "settings": {"hidden": [2]}} for n in (50, 100, 200)],
    ),
    "quality of a coreset, examples grow": ("quality", [{"model": "resnet8", "n": n} for n in (50, 100, 200)]),
    "quality of a coreset, parameters grow": (
        "quality",
        [{"model": "mlp", "n": 100, "settings": {"hidden": [width]}} for width in (16, 64, 256)],
    ),
}
LARGE = {"model": "resnet32", "n": 2000}


def measure(what: str, case: dict[str, Any]) -> dict[str, Any]:
    """One case in a process of its own."""
    job = json.dumps({"what": what, **case})
    words = [sys.executable, "-m", "benchmarks.theory", "--job", job]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return {**case, "error": done.stderr.strip().splitlines()[-1] if done.stderr else "failed"}
    shown = {name: value for name, value in case.items() if name != "data"}  # a folder of this machine
    return {**shown, **json.loads(done.stdout.splitlines()[-1])}


def work(job: dict[str, Any]) -> dict[str, Any]:
    """What a case's process does."""
    import numpy as np
    import torch

    from crust import data
    from crust.models import build_model
    from crust.theory import coreset_quality, spectrum
    from crust.theory.inputs import inputs_of

    model = build_model(job["model"], in_shape=SHAPE, classes=10, **job.get("settings", {}))
    if "data" in job:
        x = inputs_of(data.load("cifar10", data_dir=job["data"], limit=job["n"]).train)
    else:
        x = torch.randn(job["n"], *SHAPE, generator=torch.Generator().manual_seed(0))
    labels = np.arange(job["n"]) % 10
    if job["what"] == "quality":
        coreset_quality(model, x[:4], labels[:4], [0, 1], repeats=0)  # loads what is loaded once
    else:
        spectrum(model, x[:4], 2, method=job["what"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found: dict[str, Any] = {}
    if job["what"] == "quality":
        chosen = np.arange(0, job["n"], 2)
        coreset_quality(model, x, labels, chosen, repeats=3, memory_limit=LIMIT)
    else:
        values = spectrum(model, x, 50, method=job["what"], memory_limit=LIMIT)
        error = float(values.errors[:50].max() / values.singular_values[0])
        found = {"method": values.method, "passes": values.passes, "error": error}
    seconds = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    parameters = sum(p.numel() for p in model.parameters())
    return {"parameters": parameters, "seconds": seconds, "memory": grown, **{f"of_{k}": v for k, v in found.items()}}


def growth(first: dict[str, Any], last: dict[str, Any], name: str, by: str) -> float:
    """The exponent with which a measure grows."""
    if last[by] == first[by] or min(first[name], last[name]) <= 0:
        return math.nan
    return math.log(last[name] / first[name]) / math.log(last[by] / first[by])


def show(title: str, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Print one series and what it grows with."""
    print(f"\n### {title}\n\n| network | examples | parameters | seconds | MB | how | passes | largest error |")
    print("|---|---|---|---|---|---|---|---|")
    for one in cases:
        if "error" in one:
            print(f"| {one['model']} | {one['n']} | | {one['error']} | | | | |")
            continue
        error = f"{one['of_error']:.1e}" if "of_error" in one else ""
        print(
            f"| {one['model']} | {one['n']:,} | {one['parameters']:,} | {one['seconds']:.3g} | "
            f"{one['memory'] / 1e6:.0f} | {one.get('of_method', '')} | {one.get('of_passes', '')} | {error} |"
        )
    good = [one for one in cases if "error" not in one]
    found = {}
    if len(good) > 1:
        by = "n" if good[0]["n"] != good[-1]["n"] else "parameters"
        found = {name: growth(good[0], good[-1], name, by) for name in ("seconds", "memory")}
        print(f"\ngrows with {by}: seconds to the power {found['seconds']:.2f}, memory {found['memory']:.2f}")
    sys.stdout.flush()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out ResNet-32 on 2,000 images")
    parser.add_argument("--only", default="", help="only the series whose name contains this")
    parser.add_argument("--output", type=Path, default=RESULTS / "theory.json", help="where the results go")
    parser.add_argument("--data", default=os.environ.get("CRUST_DATA", "data"), help="the folder of CIFAR-10")
    parser.add_argument("--job", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        print(json.dumps(work(json.loads(options.job))))
        return 0
    series, growths, rows = {}, {}, []
    for title, (what, cases) in SERIES.items():
        if options.only in title:
            series[title] = [measure(what, case) for case in cases]
            growths[title] = show(title, series[title])
    if not options.small and options.only in "ResNet-32":
        title = "50 leading values of ResNet-32 on 2,000 images of CIFAR-10"
        series[title] = [measure("auto", {**LARGE, "data": options.data})]
        growths[title] = show(title, series[title])
        one = series[title][0]
        rows = [
            {"what": "memory over what it may use", "found": one.get("memory", math.inf) / LIMIT, "most": 1.0},
            {"what": "largest error over σ₁", "found": one.get("of_error", math.inf), "most": 1e-3},
        ]
    fine = verdicts.show(rows) if rows else True
    fine &= not any("error" in one for cases in series.values() for one in cases)
    about = {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({**about, "series": series, "growth": growths}, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
