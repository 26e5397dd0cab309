"""What every method costs beside `erm`: seconds of a whole run, and passes on examples.

python -m benchmarks.methods                       all methods, half an hour a round
python -m benchmarks.methods --images 500 --epochs 4 --only erm,crust

CIFAR-10 comes from --data, else $CRUST_DATA, else ./data: its first --images images with half of the labels wrong.
Everything else is as at the `cpu` scale of the experiments, the number of epochs too: with fewer, the stages before the
training and the looks at all examples would weigh more. All stages of a method count, and so do its looks at all
examples; measuring accuracy does not. Every method has a turn in every round, and a ratio is taken to the `erm` of that
round; found is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from datetime import date
from pathlib import Path
from typing import Any

import torch

import crust
from crust import data, noise
from crust._util.atomic_write import write_atomic
from crust.experiments import make
from crust.experiments.paper.tables_and_figures import own_settings

RESULTS = Path(__file__).parent / "results" / "methods.json"
LABELS = "symmetric:0.5"
COUNTED = ("stage", "epoch", "gradients")  # selection is a part of epoch


def cost(method: str, options: argparse.Namespace) -> dict[str, float]:
    """One run from its beginning to its end."""
    bundle = data.load("cifar10", data_dir=options.data, limit=options.images)
    truth = bundle.train.labels
    given = noise.make_noisy_labels(truth, LABELS, classes=10, seed=0).labels
    spec = make(method, LABELS, **own_settings(method, "cpu"))
    result = crust.fit(
        spec["model"], bundle.train.with_labels(given), method=method, true_labels=truth, augment=spec["augment"],
        validation=spec["validation"], **{**spec["experiment"], "epochs": options.epochs}, **spec["settings"],
    )  # fmt: skip
    spent = result.cost
    seconds = sum(spent["seconds"].get(part, 0.0) for part in COUNTED)
    return {"seconds": seconds, "forward": spent["forward"], "backward": spent["backward"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("CRUST_DATA", "data"))
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="names of methods, with commas")
    parser.add_argument("--output", type=Path, default=None, help="default: with all methods, benchmarks/results")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(crust.METHODS)
    names = ["erm", *(name for name in names if name != "erm")]
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(options.repeats):
        rounds.append({name: cost(name, options) for name in (names if number % 2 == 0 else names[::-1])})
        print(f"round {number + 1} of {options.repeats}", file=sys.stderr, flush=True)
    rows: list[dict[str, Any]] = []
    for name in names:
        ratios = [one[name]["seconds"] / one["erm"]["seconds"] for one in rounds]
        passes = [(one[name]["forward"] + one[name]["backward"]) for one in rounds]
        base = [(one["erm"]["forward"] + one["erm"]["backward"]) for one in rounds]
        rows.append(
            {
                "method": name,
                "seconds": round(statistics.median(ratios), 3),
                "spread": [round(min(ratios), 3), round(max(ratios), 3)],
                "passes": round(passes[0] / base[0], 3),
            }
        )
    print("\n| method | seconds, of erm's | from | to | passes, of erm's |\n|---|---|---|---|---|")
    for row in rows:
        low, high = row["spread"]
        print(f"| {row['method']} | {row['seconds']:.2f} | {low:.2f} | {high:.2f} | {row['passes']:.2f} |")
    output = options.output or (None if options.only else RESULTS)
    if output is not None:
        setting = {"images": options.images, "epochs": options.epochs, "rounds": options.repeats, "model": "resnet8"}
        machine = {"processor": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        found = {"date": date.today().isoformat(), **setting, **machine, **versions, "methods": rows}
        write_atomic(output, (json.dumps(found, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
