"""What cheaper looks cost in accuracy: seldom ones, in half precision, at a part of the examples.

python -m benchmarks.looks optdigits.csv segment.csv     tables with a column `label`; three seeds each

A quarter of the labels is wrong, a fifth of the table is the test set with right labels. `crust` is trained as it
comes, and with its looks changed; a look at a part keeps for all others what was last seen of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import crust
from crust.data import load
from crust.training import evaluation

RESULTS = Path(__file__).parent / "results"
WRONG, TEST = 0.25, 0.2


def half_precision() -> AbstractContextManager[Any]:
    """The network computes in bfloat16 whenever it only looks."""
    plain = evaluation.gradients.proxies

    def proxies(*args: Any, **options: Any) -> Any:
        return plain(*args, **{**options, "autocast": torch.bfloat16})

    return patch.object(evaluation.gradients, "proxies", proxies)


def at_a_part(share: float) -> AbstractContextManager[Any]:
    """Each look at the training set sees a part of it anew."""
    plain, last, rng = evaluation.evaluate, {}, np.random.default_rng(0)

    def evaluate(context: Any, examples: Any, *args: Any, **options: Any) -> Any:
        found = plain(context, examples, *args, **options)
        if examples is not context.plain:
            return found
        if last:
            stale = rng.random(len(examples)) >= share
            for name in ("predictions", "losses", "confidence", "margins", "probabilities"):
                getattr(found, name)[stale] = last[name][stale]
        last.update({f.name: np.copy(getattr(found, f.name)) for f in dataclasses.fields(found)
                     if getattr(found, f.name) is not None})  # fmt: skip
        return found

    return patch.object(evaluation, "evaluate", evaluate)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "as it comes": (nullcontext, {}),
    "a look every epoch": (nullcontext, {"select_every": 1}),
    "every second epoch": (nullcontext, {"select_every": 2}),
    "every fifth epoch": (nullcontext, {"select_every": 5}),
    "every second, in bfloat16": (half_precision, {"select_every": 2}),
    "every second, at half of the examples": (lambda: at_a_part(0.5), {"select_every": 2}),
    "every second, at a quarter": (lambda: at_a_part(0.25), {"select_every": 2}),
}


def accuracy(path: Path, seed: int, case: str) -> float:
    data = load(path).train
    rng = np.random.default_rng([seed, 7])
    order = rng.permutation(len(data))
    cut = round(TEST * len(data))
    train, test = data.subset(np.sort(order[cut:])), data.subset(np.sort(order[:cut]))
    labels = train.labels.copy()
    wrong = rng.random(len(labels)) < WRONG
    labels[wrong] = (labels[wrong] + rng.integers(1, len(data.classes), int(wrong.sum()))) % len(data.classes)
    changed, settings = CASES[case]
    with changed():
        noisy = dataclasses.replace(train, labels=labels)
        result = crust.fit("mlp", noisy, test_set=test, method="crust", seed=seed, progress=False, **settings)
    return float(result.history.accuracy()["last"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"| looks | {' | '.join(path.stem for path in options.tables)} |\n|---|{'---|' * len(options.tables)}")
    for case in CASES:
        row: dict[str, Any] = {"looks": case}
        for path in options.tables:
            row[path.stem] = [accuracy(path, seed, case) for seed in range(options.seeds)]
        rows.append(row)
        cells = [f"{np.mean(row[path.stem]):.3f}" for path in options.tables]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)
    (RESULTS / "looks.json").write_text(json.dumps({"date": date.today().isoformat(), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
