"""The audit of one `crust` or `crust-half` run beside cross-validation with cleanlab and the loss of plain training.

python -m benchmarks.audit work --folder runs --human-labels FILE.npz     train what is missing
python -m benchmarks.audit score --folder runs --human-labels FILE.npz    compare what is there
python -m results.generate_pages                                          docs/results/audit.md

CIFAR-10 comes from --data, else $CRUST_DATA, else ./data. `work` may run in several processes at once: each takes the
next training that has no result line and that no other process has locked. A training is a specification like those of
`crust.experiments`; that of a fold has the field `fold` = [number, of] and trains on all others, with nothing held out.
Probabilities of the fold's own examples are left in its folder. `score` adds an entry for each judge of each set of
labels to results/audit.json as soon as its trainings are there; the page is built from these entries alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from results.audit_page import JUDGED, LABELS, compared
from sklearn.metrics import average_precision_score, roc_auc_score

from crust._util import seeding
from crust._util.atomic_write import write_atomic
from crust.data import load
from crust.errors import CrustError
from crust.experiments import append, find, key, make, read_results, train_spec
from crust.experiments.task import claim
from crust.fitting import fit
from crust.runs.data import labels_of_spec

FOLDS = 5
OURS = ("crust-half", "crust")
SPENT = ("epoch", "gradients")  # selection is part of an epoch; measuring on test data is no part of an audit
# ------------------------------------------------------------ what is to be trained


def specs(labels: str, scale: str = "cpu") -> dict[str, dict[str, Any]]:
    """The trainings that the comparison on one set of labels needs, by name."""
    found = {name: make(name, labels, scale=scale) for name in (*OURS, "erm")}
    whole = found["erm"]["experiment"]["epochs"]
    for name, epochs in (("fold", whole), ("short fold", max(1, whole // 4))):
        spec = make("erm", labels, scale=scale, epochs=epochs, audit_every=epochs, test_every=epochs)  # looked at once
        for number in range(FOLDS):
            found[f"{name} {number}"] = {**spec, "validation": 0, "fold": [number, FOLDS]}
    return found


def jobs(scale: str = "cpu") -> list[dict[str, Any]]:
    """All trainings, the most important first."""
    return [spec for labels in LABELS for spec in specs(labels, scale).values()]


# ------------------------------------------------------------ training


def run_one(
    results: Path,
    folder: Path,
    *,
    data_dir: str | None = None,
    human_labels: str | None = None,
    todo: Sequence[dict[str, Any]] | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Run the first training that has no result and that nobody else runs; False where there is none."""
    for spec in jobs() if todo is None else todo:
        place = folder / key(spec)
        if find(read_results(results), spec) is not None or (place / "error.txt").exists():
            continue
        with claim(place) as mine:
            if not mine or find(read_results(results), spec) is not None:  # another has just ended it
                continue
            name = f"{spec['labels']} {spec['method']} {spec.get('fold', '')} ({key(spec)})"
            say(f"begin {name}")
            place.mkdir(parents=True, exist_ok=True)
            try:
                line = train(spec, place, data_dir, human_labels)
            except CrustError as error:
                (place / "error.txt").write_text(traceback.format_exc())
                say(f"failed {name}: {error}")
                return True
            append(results, line)
            say(f"end {name}")
            return True
    return False


def train(spec: dict[str, Any], place: Path, data_dir: str | None, human_labels: str | None) -> dict[str, Any]:
    """One training, or the rest of it; its result line."""
    if "fold" not in spec:
        return train_spec(spec, place, data_dir=data_dir, human_labels=human_labels)
    write_atomic(place / "spec.json", json.dumps(spec, indent=1).encode())
    bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"])
    given, _ = labels_of_spec(bundle, spec["labels"], spec["experiment"]["seed"], human_labels)
    examples = bundle.train.with_labels(given)
    number, of = spec["fold"]
    mine = fold_of(given, of, spec["experiment"]["seed"]) == number
    result = fit(
        spec["model"],
        examples.subset(np.flatnonzero(~mine)),
        method=spec["method"],
        validation=spec["validation"],
        augment=spec["augment"],
        run_dir=place,
        resume=True,
        **spec["experiment"],
        **spec["settings"],
    )
    judged = np.flatnonzero(mine)
    probabilities = result.predict_proba(examples.subset(judged))
    write_atomic(place / "out_of_sample.npz", lambda file: np.savez(file, rows=judged, probabilities=probabilities))
    cost = result.cost
    return {
        "key": key(spec),
        "spec": spec,
        "accuracy": {},
        "agreement": float((probabilities.argmax(axis=1) == given[judged]).mean()),
        "cost": {
            "forward": cost["forward"],
            "backward": cost["backward"],
            "seconds": {name: round(value, 1) for name, value in cost["seconds"].items()},
        },
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": {"processor": platform.machine(), "threads": torch.get_num_threads(), "torch": torch.__version__},
    }


def fold_of(labels: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold that each example belongs to: the same share of every label in each."""
    rng = seeding.numpy_rng(seed, "folds")
    order = np.lexsort((rng.random(len(labels)), labels))  # label by label, within a label at random
    found = np.empty(len(labels), np.int64)
    found[order] = np.arange(len(labels)) % folds
    return found


# ------------------------------------------------------------ comparing


def score(
    results: Path,
    folder: Path,
    *,
    data_dir: str | None = None,
    human_labels: str | None = None,
    scale: str = "cpu",
    judged: Path = JUDGED,
    say: Callable[[str], None] = print,
) -> None:
    """An entry for each judge of each set of labels whose trainings are there; those of before are replaced."""
    lines = read_results(results)
    for labels in LABELS:
        made = {name: find(lines, spec) for name, spec in specs(labels, scale).items()}
        here = {name: line for name, line in made.items() if line is not None}
        if not here:
            continue
        spec = next(iter(here.values()))["spec"]
        bundle = load(spec["data"], data_dir=data_dir, limit=spec["limit"])
        given, truth = labels_of_spec(bundle, labels, spec["experiment"]["seed"], human_labels)
        for judge, (error_score, suggested, used) in judgements(here, folder, given, bundle.train.classes).items():
            line = {
                "judge": judge,
                "labels": labels,
                "scale": scale,
                **quality(error_score, suggested, given, truth),
                "seconds": round(sum(one["cost"]["seconds"][part] for one in used for part in SPENT)),
                "passes": sum(one["cost"]["forward"] + one["cost"]["backward"] for one in used),
                "date": used[0]["date"],
            }
            entries = [old for old in compared(judged) if (old["judge"], old["labels"]) != (judge, labels)]
            write_atomic(judged, json.dumps([*entries, line], indent=1).encode())
            say(f"{labels} {judge}: AUROC {line['auroc']:.4f}, average precision {line['average_precision']:.4f}")


Judgement = tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]


def judgements(
    made: dict[str, dict[str, Any]], folder: Path, given: np.ndarray, classes: Sequence[Any]
) -> dict[str, Judgement]:
    """For each judge whose trainings are there: error score and suggestion of every example, and what was trained."""
    found: dict[str, Judgement] = {}
    for judge, name, column in (*((ours, ours, "label_quality") for ours in OURS), ("loss", "erm", "mean_loss")):
        if name in made and (folder / made[name]["key"] / "audit.parquet").exists():
            found[judge] = (*from_audit(folder / made[name]["key"], column, classes), [made[name]])
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    for name, judge in (("fold", "self-confidence"), ("short fold", "short")):
        folds = [made.get(f"{name} {number}") for number in range(FOLDS)]
        used = [line for line in folds if line is not None]
        if len(used) < FOLDS:
            continue
        probabilities = np.empty((len(given), len(classes)))
        for line in used:
            kept = np.load(folder / line["key"] / "out_of_sample.npz")
            probabilities[kept["rows"]] = kept["probabilities"]
        error_score, best = 1 - get_label_quality_scores(given, probabilities), probabilities.argmax(axis=1)
        found[judge] = (error_score, best, used)
        if name == "fold":
            found["confident"] = (error_score + find_label_issues(given, probabilities, n_jobs=1), best, used)
    return found


def from_audit(folder: Path, column: str, classes: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """A column of a run's audit and its suggestions, in the order of the training set."""
    import pandas as pd

    table = pd.read_parquet(folder / "audit.parquet").sort_values("index")
    position = {name: i for i, name in enumerate(classes)}
    error_score = 1 - table[column].to_numpy() if column == "label_quality" else table[column].to_numpy()
    return error_score, table["predicted_label"].map(position).to_numpy()


def quality(error_score: np.ndarray, suggested: np.ndarray, given: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """How well a ranking finds the wrong labels, and how often its suggestion for the first ones is right."""
    wrong = given != truth
    top = np.argsort(-error_score, kind="stable")[: int(wrong.sum())]
    found = {
        "auroc": roc_auc_score(wrong, error_score),
        "average_precision": average_precision_score(wrong, error_score),
        "precision_at_count": wrong[top].mean(),
        "suggested_right": (suggested[top] == truth[top]).mean(),
        "wrong": wrong.mean(),
    }
    return {name: round(float(value), 4) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["jobs", "work", "score"])
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--results", type=Path, default=None, help="lines of the trainings (FOLDER/audit.jsonl)")
    parser.add_argument("--data", default=None)
    parser.add_argument("--human-labels", default=None)
    parser.add_argument("--once", action="store_true", help="one training only")
    options = parser.parse_args()
    results = options.results or options.folder / "audit.jsonl"
    where = {"data_dir": options.data, "human_labels": options.human_labels}
    if options.what == "jobs":
        for spec in jobs():
            there = find(read_results(results), spec) is not None
            print("done   " if there else "missing", spec["labels"], spec["method"], spec.get("fold", ""), key(spec))
    elif options.what == "work":
        torch.set_num_threads(1)
        while run_one(results, options.folder, **where) and not options.once:
            pass
    else:
        score(results, options.folder, **where)


if __name__ == "__main__":
    main()
