"""Whether the intervals of `crust verify` hold: small runs with default settings, audited and verified.

python -m benchmarks.verify_coverage --data DIR                   what is missing
python -m benchmarks.verify_coverage --data DIR --part choose --minutes 8
python -m benchmarks.verify_coverage --show                       what the lines say

DIR has tables/NAME.csv and mails/NAME.csv. A line a run is added to results/verify.json: noise rate, precision and
recall at the recommended cut, each with what is true, or why nothing was said. It may be stopped at any moment; a
second start makes what is missing. Lines marked `before` are of an earlier training rule or label quality: they are
shown apart, and made anew. Runs are kept in --runs: where a line is removed, only its numbers are made anew.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

import crust
from benchmarks.small_runs import BY_EXAMPLE, SmallRun, is_knowable, small_runs, train_set
from crust._util.atomic_write import write_atomic
from crust.errors import CrustError
from crust.verification import verify_audit

RESULTS = Path("results/verify.json")


def said_and_true(found: dict[str, Any], error_score: np.ndarray, wrong: np.ndarray) -> dict[str, dict[str, float]]:
    """The estimates, those of the recommended cut where there is one, each with what is true."""
    said = {"noise_rate": {**found["noise_rate"], "true": float(wrong.mean())}}
    if found["cut"] is not None:
        flagged = error_score >= found["cut"]["threshold"]
        said["precision"] = {**found["cut"]["precision"], "true": float(wrong[flagged].mean())}
        if wrong.any():
            said["recall"] = {**found["cut"]["recall"], "true": float(flagged[wrong].mean())}
    return {name: {key: round(value, 5) for key, value in one.items()} for name, one in said.items()}


def measure(run: SmallRun, data_dir: Path, folder: Path) -> dict[str, Any]:
    """Train, verify, and compare with the truth."""
    inputs, true, given, classes = run.examples(data_dir)
    examples, wrong = train_set(inputs, given), given != true
    result = crust.fit("auto", examples, run_dir=folder, resume=True, progress=False, **run.settings)
    table = result.audit().sort_values("index")
    once, issue = result.noise_rate(), table["is_label_issue"].to_numpy()
    found = verify_audit(folder, examples, on_epoch_end=lambda line: None)
    line = {
        "name": run.name,
        "part": run.part,
        "data": run.data,
        "noise": run.noise,
        "network": run.network,
        "seed": run.seed,
        "rows": len(given),
        "classes": classes,
        "wrong": round(float(wrong.mean()), 5),
        "auroc": round(float(roc_auc_score(wrong, 1 - table["label_quality"])), 5) if wrong.any() else None,
        "issues": [int(issue.sum()), int((issue & wrong).sum()), int(wrong.sum())],
        "once": {"value": once.value, "low": once.low, "high": once.high, "reason": once.reason},
        "cannot_say": found["cannot_say"],
        "verified": None,
        "date": date.today().isoformat(),
    }
    if found["noise_rate"] is not None:
        line["verified"] = said_and_true(found, 1 - table["label_quality"].to_numpy(), wrong)
    return line


def show(lines: list[dict[str, Any]]) -> None:
    """How many intervals hold, by part; noise that nobody can tell from right labels is left out."""
    kinds = {
        "default, by class": lambda line: line["network"] == "default" and line["noise"] not in BY_EXAMPLE,
        "default, by example": lambda line: line["network"] == "default" and line["noise"] in BY_EXAMPLE,
        "other networks": lambda line: line["network"] != "default",
    }
    print("| part | noise, networks | runs | cannot say | of | inside | off by more than 0.15, outside | mean width |")
    print("|---|---|---|---|---|---|---|---|")
    for part in ("choose", "confirm"):
        for kind, fits in kinds.items():
            here = [e for e in lines if e["part"] == part and fits(e) and is_knowable(e["noise"], e["classes"])]
            answered = [line["verified"] for line in here if line["verified"] is not None]
            for name in ("noise_rate", "precision", "recall") if answered else ():
                said = [one[name] for one in answered if name in one]
                out = [not one["low"] <= one["true"] <= one["high"] for one in said]
                far = [missed and abs(one["value"] - one["true"]) > 0.15 for missed, one in zip(out, said, strict=True)]
                width = np.mean([one["high"] - one["low"] for one in said])
                cells = [part, kind, len(here), f"{100 * (1 - len(answered) / len(here)):.0f}%", name]
                cells += [f"{100 * (1 - np.mean(out)):.0f}%", f"{100 * np.mean(far):.0f}%", f"{width:.2f}"]
                print(f"| {' | '.join(map(str, cells))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CRUST_DATA", "data")))
    parser.add_argument("--part", choices=["choose", "confirm"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("runs/verify"), help="where runs are kept")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    lines = json.loads(options.results.read_text()) if options.results.exists() else []
    if options.show:
        for before in (False, True):
            print("\nBefore:\n" if before else "By the code of today:\n")
            show([line for line in lines if line.get("before", False) == before])
        return
    torch.set_num_threads(1)
    begun = time.monotonic()
    done = {line["name"] for line in lines if not line.get("before")}
    for part in ("choose", "confirm") if options.part is None else (options.part,):
        for run in small_runs(part):
            if run.name in done:
                continue
            if time.monotonic() - begun > 60 * options.minutes:
                return
            try:
                found = measure(run, options.data, options.runs / run.name.replace("/", "-"))
            except CrustError as error:
                print(f"failed: {run.name}: {error}", flush=True)
                continue
            lines = [*(line for line in lines if line["name"] != run.name), found]
            write_atomic(options.results, ("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n").encode())
            print(run.name, flush=True)


if __name__ == "__main__":
    main()
