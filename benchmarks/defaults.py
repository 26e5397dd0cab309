"""What a run gets where nothing is named, beside the old protocol and what else somebody would try first.

python -m benchmarks.defaults --data DATA --part choosing
python -m benchmarks.defaults --data DATA --part confirming --methods erm,crust,gce
python -m benchmarks.defaults --data DATA --part choosing --who default,ema --set ema='{"ema": 0.99}'
python -m benchmarks.defaults --show

DATA holds tables/*.csv (last column: the label), mails/*.csv (text, label) and cifar/cifar10.npz; `--trials` names a
folder with shapes and shapes_test. A quarter of every set is measured on; labels are clean, or symmetric noise of 0.2
or 0.4; seeds are paired (new split, new noise). Everything is the model that is delivered, on clean labels. Defaults
were chosen on the choosing sets and are confirmed on the others. The old protocol is SGD at 0.1 for 40 epochs in
batches of 128 with two drops, and ResNet-32 for images. A run that is in results/defaults.json is not made again, so
that it may be stopped at any moment.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crust
from crust import data, noise
from crust._util.atomic_write import write_atomic
from crust.data import Examples

FILE = Path(__file__).parents[1] / "results" / "defaults.json"
PARTS = {
    "choosing": ("segment", "phoneme", "vowel", "splice", "lists", "lists-tfidf"),
    "confirming": (
        "letter", "optdigits", "texture", "ring", "digits", "wine", "cancer", "generated", "spam", "spam-tfidf",
        "shapes", "digit-files", "cifar-500", "cifar-2000",
    ),
}  # fmt: skip
NOISES = (0.0, 0.2, 0.4)
OLD: dict[str, Any] = {
    "optimizer": "sgd", "learning_rate": 0.1, "schedule": "milestones", "weight_decay": 5e-4, "batch_size": 128,
    "epochs": 40,
}  # fmt: skip
OLD_MODELS = {"images": "resnet32", "tokens": "text", "features": "mlp"}
CHOSEN = ("epochs", "batch_size", "optimizer", "learning_rate")
WORDS = 2000
TEST = 0.25
SIMPLE: dict[str, Callable[[int], Any]] = {
    "linear": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "trees": lambda seed: HistGradientBoostingClassifier(random_state=seed, early_stopping=True),
}
SIMPLE_TEXT = "linear"  # TF-IDF and logistic regression


@dataclass
class Split:
    """What is trained on and measured on; `x` are examples, or texts."""

    x: Any
    y: Any  # class numbers, right ones
    x_test: Any
    y_test: Any
    form: str  # features, tokens, images


def split_of(name: str, options: argparse.Namespace, seed: int) -> Split:
    """A set by its name, divided anew for each seed."""
    folder, rng = options.data, np.random.default_rng(seed)
    if name == "shapes":  # comes divided, with wrong labels of its own, which stay
        found = data.load(options.trials / "shapes", test=options.trials / "shapes_test")
        names = pd.read_csv(options.trials / "shapes_truth.csv").set_index("path")["true"]
        y = np.array([found.train.classes.index(names[each]) for each in found.train.ids])
        return Split(found.train, y, found.test, found.test.labels, "images")
    if name.startswith("cifar-"):
        both = np.load(folder / "cifar" / "cifar10.npz")
        some = rng.permutation(len(both["x_train"]))[: int(name.split("-")[1])]
        test = rng.permutation(len(both["x_test"]))[:2000]
        return _arrays(both["x_train"][some], both["y_train"][some], both["x_test"][test], both["y_test"][test])
    if name == "digit-files":
        return _files_of_digits(rng, 1000)
    if (path := folder / "tables" / f"{name}.csv").exists():
        return _table(path, rng, options.rows)
    stem, _, form = name.partition("-")
    if (path := folder / "mails" / f"{stem}.csv").exists():
        table = pd.read_csv(path)
        texts, y = table["text"].fillna("").astype(str).to_numpy(), table["label"].astype("category").cat.codes
        train, test = _divided(len(table), rng, options.rows)
        y = y.to_numpy().astype(np.int64)
        if not form:
            return Split(list(texts[train]), y[train], list(texts[test]), y[test], "tokens")
        words = TfidfVectorizer(sublinear_tf=True, max_features=WORDS, dtype=np.float32).fit(texts[train])
        x, x_test = (words.transform(texts[rows]).toarray() for rows in (train, test))
        return _arrays(x, y[train], x_test, y[test])
    sets = {"digits": load_digits, "wine": load_wine, "cancer": load_breast_cancer}
    if name == "generated":  # in kind like covtype: seven classes, some columns say nothing
        x, y = make_classification(
            4000, 30, n_informative=10, n_classes=7, n_clusters_per_class=2, class_sep=1.5, random_state=seed
        )
    else:
        x, y = sets[name](return_X_y=True)
    train, test = _divided(len(x), rng, options.rows)
    return _arrays(x[train].astype(np.float32), y[train], x[test].astype(np.float32), y[test])


def _divided(n: int, rng: np.random.Generator, most: int) -> tuple[Any, Any]:
    order, cut = rng.permutation(n), round((1 - TEST) * n)
    return order[:cut][:most], order[cut:]


def _arrays(x: Any, y: Any, x_test: Any, y_test: Any) -> Split:
    train = data.from_arrays(x, y)
    test = data.from_arrays(x_test, y_test, classes=train.classes, mean=train.mean, std=train.std, normalise=False)
    return Split(train, train.labels, test, test.labels, train.kind)


def _table(path: Path, rng: np.random.Generator, most: int) -> Split:
    """As the command line reads it."""
    table = pd.read_csv(path)
    train, test = _divided(len(table), rng, most)
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place, f"{part}.csv") for part in ("train", "test")]
        for file, rows in zip(files, (train, test), strict=True):
            table.iloc[rows].to_csv(file, index=False)
        found = data.load(files[0], test=files[1], label_column=str(table.columns[-1]))
    return Split(found.train, found.train.labels, found.test, found.test.labels, "features")


def _files_of_digits(rng: np.random.Generator, many: int) -> Split:
    """Handwritten digits as a folder of PNG files."""
    from PIL import Image

    x, y = load_digits(return_X_y=True)
    order = rng.permutation(len(x))
    with tempfile.TemporaryDirectory() as place:
        for part, rows in (("train", order[:many]), ("test", order[many:])):
            for row in rows:
                file = Path(place, part, str(y[row]), f"{row}.png")
                file.parent.mkdir(parents=True, exist_ok=True)
                pixels = np.uint8(x[row].reshape(8, 8) * 255 / 16)
                Image.fromarray(pixels).resize((32, 32)).save(file)
        found = data.load(Path(place, "train"), test=Path(place, "test"))
        return Split(found.train, found.train.labels, found.test, found.test.labels, "images")


def measure(who: str, method: str, split: Split, given: Any, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Accuracy of the delivered model on right labels, and what it was trained with."""
    start = time.process_time()
    if who in SIMPLE:
        model = SIMPLE[who](seed)
        if split.form == "tokens":
            model = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10, max_iter=300))
        sides = (split.x, split.x_test)
        x, x_test = sides if split.form == "tokens" else (each.inputs.numpy() for each in sides)
        right = model.fit(x, given).predict(x_test) == split.y_test
        return {"accuracy": float(right.mean()), "cpu_seconds": round(time.process_time() - start, 1)}
    old = who == "old"
    model = OLD_MODELS[split.form] if old else "text" if split.form == "tokens" else "auto"
    train: Any = (split.x, given) if split.form == "tokens" else split.x.with_labels(given)
    settings = {**(OLD if old else {}), **settings}
    result = crust.fit(model, train, method=method, seed=seed, progress=False, **settings)
    names = np.array(split.x.decode(split.y_test) if isinstance(split.x, Examples) else split.y_test)
    chosen = {name: result.config["experiment"][name] for name in CHOSEN}
    right = result.predict(split.x_test) == names
    spent = {"model": result.config["model"], **chosen, "cpu_seconds": round(time.process_time() - start, 1)}
    return {"accuracy": float(right.mean()), "warnings": result.warnings(), **spent}


def jobs(options: argparse.Namespace) -> Iterable[tuple[str, float, int, str, str]]:
    """Set, noise, seed, who, method: seed after seed, so that what there is can be compared whenever it stops."""
    sets = options.sets.split(",") if options.sets else PARTS[options.part]
    for seed in range(options.seeds):
        for name in sets:
            for rate in NOISES:
                for who in options.who.split(","):
                    images = name in ("shapes", "digit-files") or name.startswith("cifar-")
                    text = name in ("lists", "spam")
                    if (who in SIMPLE and images) or (who == "trees" and text):
                        continue
                    for method in ["none"] if who in SIMPLE else options.methods.split(","):
                        yield name, rate, seed, who, method


def run(options: argparse.Namespace, lines: list[dict[str, Any]]) -> None:
    names = ("data", "noise", "seed", "who", "method")
    done = {tuple(line[name] for name in names) for line in lines}
    variants = {name: json.loads(text) for name, _, text in (word.partition("=") for word in options.set)}
    split, at = None, None
    for job in jobs(options):
        if job in done:
            continue
        name, rate, seed, who, method = job
        if at != (name, seed):
            split, at = split_of(name, options, seed), (name, seed)
        assert split is not None
        spec, classes = f"symmetric:{rate}", int(split.y.max()) + 1
        given = noise.make_noisy_labels(split.y, spec, classes, seed).labels if rate else split.y
        found = measure(who, method, split, given, seed, variants.get(who, {}))
        about = {"part": next((part for part, sets in PARTS.items() if name in sets), "other"), "rows": len(split.y)}
        lines.append({**dict(zip(names, job, strict=True)), **about, **found, "date": date.today().isoformat()})
        write_atomic(options.results, ("[\n" + ",\n".join(map(json.dumps, lines)) + "\n]\n").encode())
        print(*job, f"{100 * found['accuracy']:.1f}", flush=True)


def show(lines: list[dict[str, Any]]) -> None:
    """A row a condition, a column a competitor: means over the seeds that all of its columns have."""
    frame = pd.DataFrame(lines).assign(accuracy=lambda each: 100 * each["accuracy"])
    frame["who"] = frame["who"].where(frame["method"] == "none", frame["who"] + " " + frame["method"])
    for part, some in frame.groupby("part"):
        table = some.pivot_table(index=["noise", "data"], columns="who", values="accuracy", aggfunc="mean")
        table["seeds"] = some.groupby(["noise", "data"])["seed"].nunique()
        print(f"\n{part}: accuracy of the delivered model, in percent\n{table.round(1).to_string()}")
        for column in (name for name in table if name.startswith("default ")):
            others = [name for name in table if name in SIMPLE or name == column.replace("default", "old")]
            for other in others:
                gap = (table[column] - table[other]).dropna()
                means = ", ".join(f"noise {rate}: {one.mean():+.1f}" for rate, one in gap.groupby(level="noise"))
                print(f"{column} minus {other}: {means}; worst {gap.min():+.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--trials", type=Path, default=Path("trials"))
    parser.add_argument("--results", type=Path, default=FILE)
    parser.add_argument("--part", choices=PARTS, default="choosing")
    parser.add_argument("--sets", help="only these, by name")
    parser.add_argument("--rows", type=int, default=3000, help="most rows that are trained on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default="erm,crust")
    parser.add_argument("--who", default=f"default,old,{','.join(SIMPLE)}")
    parser.add_argument("--set", action="append", default=[], metavar="WHO=JSON", help="settings of one")
    parser.add_argument("--show", action="store_true", help="only print what was measured")
    options = parser.parse_args()
    lines = json.loads(options.results.read_text()) if options.results.exists() else []
    if not options.show:
        torch.set_num_threads(1)
        run(options, lines)
    show(lines)


if __name__ == "__main__":
    main()
