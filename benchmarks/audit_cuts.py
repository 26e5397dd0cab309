"""What the calibration says of the `crust-half` runs of benchmarks.audit, beside the truth.

python -m benchmarks.audit_cuts --folder runs --human-labels FILE.npz

Calibrates every `crust-half` run that is there, which trains each once more, and leaves the estimated noise rate and
the precision and recall at the recommended cut, with their 90% intervals, in results/audit-cuts.json; `python -m
results.generate_pages` shows them. May run in several processes at once, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from results.audit_page import CUTS, ESTIMATES, LABELS, calibrated

from crust._util.atomic_write import write_atomic
from crust.data import load
from crust.experiments import key, make
from crust.experiments.task import claim
from crust.runs.data import labels_of_spec
from crust.runs.folder import RunFolder
from crust.verification import audit_arrays, verify_audit


def cuts(
    labels: Sequence[str],
    folder: Path,
    *,
    data_dir: str | None = None,
    human_labels: str | None = None,
    scale: str = "cpu",
    file: Path = CUTS,
    say: Callable[[str], None] = print,
) -> bool:
    """Calibrate the first run that has no entry and that nobody else calibrates; False where there is none."""
    for name in labels:
        spec = make("crust-half", name, scale=scale)
        place = folder / key(spec)
        if name in calibrated(file) or not (place / "audit.parquet").is_file():
            continue
        with claim(folder / f"calibration-{place.name}") as mine:
            if not mine or name in calibrated(file):
                continue
            say(f"begin the calibration of {name}")
            bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"])
            given, truth = labels_of_spec(bundle, name, spec["experiment"]["seed"], human_labels)
            found = verify_audit(place, bundle.train.with_labels(given))
            line = beside_truth(found, audit_arrays(*RunFolder(place).audit()).error_score, given != truth)
            write_atomic(file, json.dumps({**calibrated(file), name: line}, indent=1).encode())
            say(f"end the calibration of {name}: {line}")
            return True
    return False


def beside_truth(found: dict[str, Any], error_score: np.ndarray, wrong: np.ndarray) -> dict[str, dict[str, float]]:
    """The estimates at the recommended cut, each with what is true."""
    flagged = error_score >= found["cut"]["threshold"]
    said = {"noise_rate": found["noise_rate"], "precision": found["cut"]["precision"], "recall": found["cut"]["recall"]}
    true = {"noise_rate": wrong.mean(), "precision": wrong[flagged].mean(), "recall": flagged[wrong].mean()}
    return {name: {**said[name], "true": round(float(true[name]), 5)} for name in ESTIMATES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--data", default=None)
    parser.add_argument("--human-labels", default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    while cuts(list(LABELS), options.folder, data_dir=options.data, human_labels=options.human_labels):
        pass


if __name__ == "__main__":
    main()
