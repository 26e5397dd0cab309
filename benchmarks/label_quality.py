"""How well the label quality of one run finds wrong labels, beside cleanlab on cross-validation of the same network.

python -m benchmarks.label_quality --data DIR
python -m benchmarks.label_quality --show                 what the lines say

The runs are those of `benchmarks.verify_coverage`, everything by default; cleanlab gets the probabilities of five folds
of plain training (`erm`, the same network and settings), of full length and of a quarter of the epochs, and ranks by
each of its three scores. Beside the rankings the lists: `is_label_issue` of the run and cleanlab's `find_label_issues`
on the probabilities of the run, and both on those of the folds. A line a run is added to results/label-quality.json.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import crust
from benchmarks.audit import fold_of
from benchmarks.small_runs import SmallRun, small_runs, train_set
from crust._util.atomic_write import write_atomic

RESULTS = Path("results/label-quality.json")
NOISES = ("symmetric:0.2", "symmetric:0.4", "pair-flip:0.3", "class-dependent:0.2", "instance:0.3", "hard:0.1")
SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
COMPARED = (  # AUROC and F1: ours, and the best of these
    (
        "auroc",
        "crust",
        "cleanlab, five folds",
        [f"{length} {score}" for length in ("full", "short") for score in SCORES],
    ),
    ("auroc", "full crust", "cleanlab, the same folds", [f"full {score}" for score in SCORES]),
    ("auroc", "short crust", "cleanlab, the same folds", [f"short {score}" for score in SCORES]),
    ("f1", "crust", "cleanlab, the same probabilities", ["run cleanlab"]),
    ("f1", "full crust", "cleanlab, the same probabilities", ["full cleanlab"]),
    ("f1", "short crust", "cleanlab, the same probabilities", ["short cleanlab"]),
)
FOLDS, SHORT = 5, 4  # and by what the epochs of short folds are divided


def measure(run: SmallRun, data_dir: Path, runs: Path) -> dict[str, Any]:
    """One run, its ten folds, and what each finds."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    inputs, true, given, classes = run.examples(data_dir)
    wrong, folder = given != true, runs / run.name.replace("/", "-")
    result = crust.fit("auto", train_set(inputs, given), run_dir=folder, resume=True, progress=False, **run.settings)
    table = result.audit().sort_values("index")
    line: dict[str, Any] = {
        "name": run.name, "part": run.part, "data": run.data, "noise": run.noise, "rows": len(given),
        "wrong": round(float(wrong.mean()), 5), "auroc": {"crust": auroc(wrong, 1 - table["label_quality"].to_numpy())},
        "f1": {"crust": f1(wrong, table["is_label_issue"].to_numpy())}, "passes": {"crust": passes(result)},
    }  # fmt: skip
    line["f1"]["run cleanlab"] = f1(wrong, find_label_issues(codes_of(given), result.probabilities(), n_jobs=1))
    epochs = int(result.config["experiment"]["epochs"])
    for name, length in (("full", epochs), ("short", max(1, epochs // SHORT))):
        p, cost = out_of_sample(inputs, given, classes, run, length, runs / f"{folder.name}-{name}.npz")
        line["passes"][name] = cost
        for score in SCORES:
            line["auroc"][f"{name} {score}"] = auroc(wrong, 1 - get_label_quality_scores(given, p, method=score))
        ours = crust.find_label_issues(given, p)
        line["auroc"][f"{name} crust"] = auroc(wrong, 1 - ours["label_quality"].to_numpy())
        line["f1"][f"{name} crust"] = f1(wrong, ours["is_label_issue"].to_numpy())
        line["f1"][f"{name} cleanlab"] = f1(wrong, find_label_issues(given, p, n_jobs=1))
    return {**line, "date": date.today().isoformat()}


def codes_of(given: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels as columns of the probabilities of a run, which has those classes alone that are given."""
    return np.unique(given, return_inverse=True)[1]


def out_of_sample(
    inputs: Any, given: NDArray[np.int64], classes: int, run: SmallRun, epochs: int, kept: Path
) -> tuple[NDArray[np.float64], int]:
    """Probabilities for each example by a network that was trained on the other folds, and the passes spent."""
    if kept.is_file():
        with np.load(kept) as file:
            return file["probabilities"], int(file["passes"])
    p, cost = np.zeros((len(given), classes)), 0
    fold = fold_of(given, FOLDS, run.seed)
    for number in range(FOLDS):
        rows, judged = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        part = ([inputs[i] for i in rows], given[rows]) if isinstance(inputs, list) else (
            inputs.with_labels(given).subset(rows)
        )  # fmt: skip
        result = crust.fit("auto", part, method="erm", validation=0, epochs=epochs, seed=run.seed, progress=False)
        asked = [inputs[i] for i in judged] if isinstance(inputs, list) else inputs.subset(judged)
        p[np.ix_(judged, np.array(result.classes))] = result.predict_proba(asked)
        cost += passes(result)
    write_atomic(kept, lambda file: np.savez(file, probabilities=p, passes=cost))
    return p, cost


def passes(result: Any) -> int:
    return int(result.cost["forward"] + result.cost["backward"])


def auroc(wrong: NDArray[np.bool_], error_score: NDArray[np.floating]) -> float:
    return round(float(roc_auc_score(wrong, error_score)), 5)


def f1(wrong: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> float:
    return round(2 * float((wrong & flagged).sum()) / max(1, int(wrong.sum() + flagged.sum())), 5)


def show(lines: list[dict[str, Any]]) -> None:
    """Means over the runs of a part that have both of what is compared, and the least favourable one."""
    print("| part | measured | of crust | against | runs | crust | other | least favourable |")
    print("|---|---|---|---|---|---|---|---|")
    for part in ("choose", "confirm"):
        for what, ours, name, others in COMPARED:
            pairs = []
            for line in (line for line in lines if line["part"] == part):
                found = [line[what][other] for other in others if other in line[what]]
                if ours in line[what] and found:
                    pairs.append((line[what][ours], max(found)))
            if pairs:
                mine, best = np.array(pairs).T
                cells = [part, what, ours, name, len(pairs), f"{mine.mean():.3f}", f"{best.mean():.3f}"]
                print(f"| {' | '.join(map(str, cells))} | {(mine - best).min():+.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CRUST_DATA", "data")))
    parser.add_argument("--part", choices=["choose", "confirm"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("runs/verify"), help="where runs are kept")
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = json.loads(options.results.read_text()) if options.results.exists() else []
    if options.show:
        return show(lines)
    done = {line["name"] for line in lines}
    for part in ("choose", "confirm") if options.part is None else (options.part,):
        for run in small_runs(part):
            if run.name in done or run.network != "default" or run.noise not in NOISES:
                continue
            lines.append(measure(run, options.data, options.runs))
            write_atomic(options.results, ("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n").encode())
            print(run.name, flush=True)
    return None


if __name__ == "__main__":
    main()
