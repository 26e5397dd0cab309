"""What a newcomer finds: a made table of 3,000 rows and a folder of 500 drawn images, everything by default.

python -m benchmarks.newcomer --folder DIR                what is missing of seeds 7 to 16
python -m benchmarks.newcomer --show                      what the lines say

The table (loans: numbers, categories, empty cells, three classes by a noisy score) has about 15% of its labels drawn
anew among the other classes, the images (four shapes on plain grounds with pixel noise) lie in the wrong class folder
in about 10%. Each is trained by `crust train` as a newcomer would, and the label quality of the audit is compared with
the truth. A line a run is added to results/newcomer.json; a second start makes what is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw
from sklearn.metrics import roc_auc_score

from crust._util.atomic_write import write_atomic
from crust.runs.folder import RunFolder

RESULTS = Path("results/newcomer.json")
SEEDS = range(7, 17)
ROWS, TEST_ROWS, IMAGES = 3_000, 600, 500
DECISIONS = np.array(["reject", "check", "accept"])
SHAPES = ("circle", "cross", "square", "triangle")
MISSING = {"age": 0.05, "income": 0.03, "city": 0.06, "years_employed": 0.1}
DRAWN = {"table": "loans.csv", "images": "shapes"}  # what is trained on


def make_table(folder: Path, rng: np.random.Generator) -> np.ndarray:
    """Write loans.csv and loans_test.csv, and return which of the labels of the first are wrong."""
    n = ROWS + TEST_ROWS
    age, income = rng.integers(18, 80, n), np.exp(rng.normal(10.3, 0.6, n))
    debt = income * rng.beta(2, 5, n)
    city = rng.choice(["Berlin", "Paris", "Rome", "Oslo"], n, p=[0.4, 0.3, 0.2, 0.1])
    job = rng.choice(["clerk", "nurse", "engineer", "teacher", "none"], n)
    owns, years = rng.choice([True, False], n), rng.gamma(2, 3, n)
    score = 1.2 * np.log(income / 30_000) - 3 * (debt / income - 0.28) + 0.06 * (years - 6) + 0.5 * owns
    score = score - 0.9 * (job == "none") + 0.5 * (job == "engineer") + 0.4 * (city == "Oslo")
    score = score + rng.normal(0, 0.25, n)
    decision = DECISIONS[np.digitize(score, np.quantile(score, [0.35, 0.75]))]
    table = pd.DataFrame(
        {
            "customer_id": [f"C{100_000 + i}" for i in range(n)], "age": age, "income": income.round(2),
            "debt": debt.round(2), "city": city, "job": job, "owns_home": owns, "years_employed": years.round(1),
        }
    )  # fmt: skip
    for name, share in MISSING.items():
        table.loc[rng.random(n) < share, name] = np.nan
    given = decision[:ROWS].copy()
    for i in np.flatnonzero(rng.random(ROWS) < 0.15):
        given[i] = rng.choice(DECISIONS[given[i] != DECISIONS])
    table.iloc[:ROWS].assign(decision=given).to_csv(folder / "loans.csv", index=False)
    table.iloc[ROWS:].assign(decision=decision[ROWS:]).to_csv(folder / "loans_test.csv", index=False)
    return given != decision[:ROWS]


def make_images(folder: Path, rng: np.random.Generator) -> dict[str, bool]:
    """Write shapes/CLASS/NAME.png, and return of each file whether it lies in the wrong folder."""
    wrong = {}
    for i in range(IMAGES):
        true = given = SHAPES[i % len(SHAPES)]
        if rng.random() <= 0.1:
            given = str(rng.choice([name for name in SHAPES if name != true]))
        path = folder / "shapes" / given / f"img_{i:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn(true, rng).save(path)
        wrong[path.name] = given != true
    return wrong


def drawn(kind: str, rng: np.random.Generator) -> Image.Image:
    """A shape of any size, place and colour on a plain ground, with noise on every pixel."""
    ground, ink = (tuple(int(v) for v in rng.integers(low, high, 3)) for low, high in ((150, 256), (0, 130)))
    image = Image.new("RGB", (48, 48), ground)
    pen, r = ImageDraw.Draw(image), int(rng.integers(9, 18))
    x, y = (int(rng.integers(r + 2, 46 - r)) for _ in range(2))
    if kind == "circle":
        pen.ellipse([x - r, y - r, x + r, y + r], fill=ink)
    elif kind == "square":
        pen.rectangle([x - r, y - r, x + r, y + r], fill=ink)
    elif kind == "triangle":
        pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=ink)
    else:
        w = max(3, r // 3)
        pen.rectangle([x - w, y - r, x + w, y + r], fill=ink)
        pen.rectangle([x - r, y - w, x + r, y + w], fill=ink)
    noisy = np.asarray(image).astype(float) + rng.normal(0, 14, (48, 48, 3))
    return Image.fromarray(noisy.clip(0, 255).astype("uint8"))


def measure(kind: str, seed: int, folder: Path) -> dict[str, Any]:
    """Make the data, train, and compare the audit with the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    wrong: Any = make_table(folder, rng)
    words = ["--label-column", "decision", "--test", "loans_test.csv"]
    if kind == "images":
        wrong, words = make_images(folder, rng), []
    begun = time.monotonic()
    command = [sys.executable, "-m", "crust", "train", DRAWN[kind], *words, "-o", kind, "--resume"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, run = time.monotonic() - begun, RunFolder(folder / kind)
    table = run.audit()[0].sort_values("index")
    bad = wrong if kind == "table" else np.array([wrong[Path(name).name] for name in table["id"]])
    flagged = table["is_label_issue"].to_numpy()
    last = run.history().lines[-1]
    return {
        "data": kind, "seed": seed, "rows": len(table), "wrong": int(bad.sum()),
        "auroc": round(float(roc_auc_score(bad, 1 - table["label_quality"])), 5),
        "issues": int(flagged.sum()), "found": int((flagged & bad).sum()), "test_accuracy": last.get("test_accuracy"),
        "method": run.config()["method"], "seconds": round(seconds, 1), "date": date.today().isoformat(),
    }  # fmt: skip


def show(lines: list[dict[str, Any]]) -> None:
    """Mean and worst over the seeds."""
    print("| data | seeds | AUROC, mean | worst | label issues | of these wrong | of all wrong ones |")
    print("|---|---|---|---|---|---|---|")
    for kind in DRAWN:
        here = [line for line in lines if line["data"] == kind]
        if not here:
            continue
        auroc = [line["auroc"] for line in here]
        issues, found, wrong = (sum(line[name] for line in here) for name in ("issues", "found", "wrong"))
        shares = f"{issues / len(here):.0f} | {100 * found / max(1, issues):.0f}% | {100 * found / wrong:.0f}%"
        print(f"| {kind} | {len(here)} | {np.mean(auroc):.3f} | {min(auroc):.3f} | {shares} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/newcomer"))
    parser.add_argument("--data", choices=[*DRAWN], help="only these")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    lines = json.loads(options.results.read_text()) if options.results.exists() else []
    if options.show:
        return show(lines)
    done = {(line["data"], line["seed"]) for line in lines}
    for seed in SEEDS:
        for kind in DRAWN if options.data is None else (options.data,):
            if (kind, seed) not in done:
                lines.append(measure(kind, seed, options.folder / str(seed)))
                write_atomic(options.results, ("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n").encode())
                print(lines[-1], flush=True)
    return None


if __name__ == "__main__":
    main()
