"""What a run gets where nothing is named, beside the paper's protocol and two of scikit-learn's classifiers.

python -m benchmarks.defaults --tables TABLES --trials TRIALS
python -m benchmarks.defaults --show

TABLES holds .csv files whose last column is the label: three quarters of the rows are trained on, at most --rows of
them, the others measured on; two seeds, clean and with symmetric noise of 0.2. TRIALS holds a table `loans.csv`
(`decision`, 16% wrong; `loans_test.csv`, `loans_true.csv`) and a folder of 500 images `shapes` (9% wrong;
`shapes_test`, `shapes_truth.csv`). Accuracy is that of the delivered model on clean labels; AUROC says how well the
audit ranks the wrong labels. The old protocol is SGD at 0.1 for 120 epochs in batches of 128 with two drops, and
ResNet-32 for images. Of scikit-learn the AUROC is that of one minus the probability of the given label, out of five
folds. A run that is in the results already is not made again.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import crust
from crust import data, noise

FILE = Path(__file__).parent / "results" / "defaults.json"
OLD = {
    "optimizer": "sgd", "learning_rate": 0.1, "schedule": "milestones", "weight_decay": 5e-4, "batch_size": 128,
    "epochs": 120,
}  # fmt: skip
TREES = "HistGradientBoosting"
OTHERS: dict[str, Callable[[int], Any]] = {
    TREES: lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "LogisticRegression": lambda seed: LogisticRegression(max_iter=2000),
}


def table_conditions(folder: Path, rows: int, seeds: Iterable[int]) -> Iterable[tuple[dict[str, Any], Any, Any]]:
    """Each table, split, with each noise: what it is, the data, and the labels to train on."""
    for seed in seeds:
        for path in sorted(folder.glob("*.csv")):
            table = pd.read_csv(path)
            order = np.random.default_rng(seed).permutation(len(table))
            cut = 3 * len(table) // 4
            with tempfile.TemporaryDirectory() as place:
                train, test = Path(place) / "train.csv", Path(place) / "test.csv"
                table.iloc[order[:cut][:rows]].to_csv(train, index=False)
                table.iloc[order[cut:]].to_csv(test, index=False)
                bundle = data.load(train, test=test, label_column=str(table.columns[-1]))
            for rate in (0.0, 0.2):
                true = bundle.train.labels
                spec = f"symmetric:{rate}" if rate else None
                given = (
                    true
                    if spec is None
                    else noise.make_noisy_labels(true, spec, len(bundle.train.classes), seed).labels
                )
                yield {"data": path.stem, "noise": rate, "seed": seed}, bundle, given


def trial_conditions(folder: Path, seeds: Iterable[int]) -> Iterable[tuple[dict[str, Any], Any, Any, Any]]:
    """The table of loans and the drawn shapes: what it is, the data, the labels to train on, and the true ones."""
    loans = data.load(folder / "loans.csv", label_column="decision", test=folder / "loans_test.csv")
    shapes = data.load(folder / "shapes", test=folder / "shapes_test")
    right = pd.read_csv(folder / "loans_true.csv")["decision"]
    drawn = dict(pd.read_csv(folder / "shapes_truth.csv")[["path", "true"]].itertuples(index=False, name=None))
    named = {"loans": right.tolist(), "shapes": [drawn[name] for name in shapes.train.ids]}
    for seed in seeds:
        for name, bundle in (("loans", loans), ("shapes", shapes)):
            true = np.array([bundle.train.classes.index(one) for one in named[name]])
            rate = round(float((true != bundle.train.labels).mean()), 3)
            yield {"data": name, "noise": rate, "seed": seed}, bundle, bundle.train.labels, true


def measure(who: str, method: str, bundle: Any, given: Any, true: Any, seed: int) -> dict[str, Any]:
    """Accuracy on the test set, and how well the wrong labels are found."""
    wrong = given != true
    if who in OTHERS:
        model, (x, test) = OTHERS[who](seed), (features(each) for each in (bundle.train, bundle.test))
        accuracy = float((model.fit(x, given).predict(test) == bundle.test.labels).mean())
        error_score = 1 - cross_val_predict(model, x, given, cv=5, method="predict_proba")[np.arange(len(x)), given]
        return {"accuracy": accuracy, "auroc": auroc(wrong, error_score)}
    images = len(bundle.train.shape) == 3
    model, settings = ("auto", {}) if who == "default" else ("resnet32" if images else "mlp", OLD)
    result = crust.fit(model, bundle.train.with_labels(given), method=method, seed=seed, **settings)
    right = result.predict(bundle.test) == np.array(bundle.test.decode(bundle.test.labels))
    table = result.audit().sort_values("index")
    names = ("epochs", "batch_size", "optimizer", "learning_rate", "weight_decay", "schedule")
    chosen = {name: result.config["experiment"][name] for name in names}
    return {
        "accuracy": float(right.mean()),
        "auroc": auroc(wrong, 1 - table["label_quality"].to_numpy()),
        "model": result.config["model"],
        **chosen,
    }


def features(examples: Any) -> Any:
    x = examples.inputs.numpy()
    return x if examples.mean is None else (x - np.array(examples.mean)) / np.array(examples.std)


def auroc(wrong: Any, error_score: Any) -> float | None:
    return float(roc_auc_score(wrong, error_score)) if wrong.any() else None


def show(lines: list[dict[str, Any]]) -> None:
    """One table for each method: a row a condition, a column a competitor; means over seeds."""
    frame = pd.DataFrame(lines)
    frame["accuracy"] *= 100
    alone = frame[frame["method"] == "none"]
    for method in sorted(set(frame["method"]) - {"none"}):
        part = pd.concat([frame[frame["method"] == method], alone])
        print(f"\n{method}: accuracy of the delivered model, in percent")
        found = part.pivot_table(index=["noise", "data"], columns="who", values="accuracy", aggfunc="mean")
        print(found.round(1).to_string())
        if {"default", "old"} <= set(found):
            gain = (found["default"] - found["old"]).dropna()
            for name, some in gain.groupby(level="noise"):
                print(f"noise {name}: default minus old {mean(some):+.2f} on average, worst {min(some):+.2f}")
        if part["auroc"].notna().any():
            print(f"{method}: AUROC of the audit")
            print(
                part.pivot_table(index=["noise", "data"], columns="who", values="auroc", aggfunc="mean")
                .round(3)
                .to_string()
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--trials", type=Path)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--methods", default="erm,gce")
    parser.add_argument("--who", default=f"default,old,{','.join(OTHERS)}")
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    found = json.loads(FILE.read_text()) if FILE.exists() else {"lines": []}
    lines = found["lines"]
    if options.show:
        return show(lines)
    torch.set_num_threads(1)
    names = ("data", "noise", "seed", "who", "method")
    done = {tuple(line[name] for name in names) for line in lines}
    conditions: list[tuple[dict[str, Any], Any, Any, Any]] = []
    if options.trials is not None:
        conditions += trial_conditions(options.trials, range(options.seeds))
    if options.tables is not None:
        some = table_conditions(options.tables, options.rows, range(options.seeds))
        conditions += [(what, bundle, given, bundle.train.labels) for what, bundle, given in some]
    for what, bundle, given, true in conditions:
        for who in options.who.split(","):
            if who in OTHERS and len(bundle.train.shape) == 3:
                continue
            for method in ["none"] if who in OTHERS else options.methods.split(","):
                line = {**what, "who": who, "method": method}
                if tuple(line[name] for name in names) in done:
                    continue
                lines.append({**line, **measure(who, method, bundle, given, true, what["seed"])})
                about = {"date": date.today().isoformat(), "machine": platform.machine(), "torch": torch.__version__}
                FILE.write_text(json.dumps({"about": about, "lines": lines}, indent=1) + "\n")
    return show(lines)


if __name__ == "__main__":
    main()
