"""Compare methods on your data with a grid: several methods, noise rates and seeds; stopped, it goes on.

    python examples/compare_methods.py

Leaves compare_methods.png, and in compare-methods/ the tables and the page that crust reproduce makes.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

GRID = """
scale: smoke
data: digits             # or what else crust train takes by name
labels: [symmetric:0.2, symmetric:0.4]
seeds: 2
epochs: 8
runs:
  - method: [erm, gce, crust]
"""

Path("grid.yaml").write_text(GRID)
command = [sys.executable, "-m", "crust", "reproduce", "--grid", "grid.yaml", "-o", "compare-methods"]
subprocess.run(command, check=True)

found = defaultdict(list)
for line in Path("compare-methods/results.jsonl").read_text().splitlines():
    run = json.loads(line)
    found[run["spec"]["method"], run["spec"]["labels"]].append(run["accuracy"]["last"])
for method in ("erm", "gce", "crust"):
    means = [np.mean(found[method, f"symmetric:{rate}"]) for rate in (0.2, 0.4)]
    plt.plot([0.2, 0.4], means, marker="o", label=method)
    print(method, np.round(means, 3))
plt.xlabel("share of wrong labels")
plt.ylabel("accuracy on right labels")
plt.legend()
plt.savefig("compare_methods.png", dpi=120)
