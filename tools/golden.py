"""Did moving code change what it computes? The bytes that two commits give on this machine, compared.

    python tools/golden.py BASE [COMMIT]     compare two commits (COMMIT: the working tree where it is left out)
    python tools/golden.py --print           the hashes of the crust that is imported, as JSON

For every method two epochs on digits: hashes of the kept weights, the history without seconds, and the audit table;
and of what `crust.select` chooses. Bytes depend on the CPU and on torch, so this is no part of `make test`: two commits
are compared on one machine. Columns and keys that were renamed since are brought to their present names first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
# What makes a method cheap enough for a small run; old and new names of a setting, whichever it has.
CHEAP: dict[str, list[dict[str, Any]]] = {
    "crust-released": [{"warmup": 1}, {"select_after": 1}],
    "d2l": [{"examples": 40, "group": 20, "neighbours": 5}],
    "incv": [{"sub_epochs": 1}],
    "l-dmi": [{"dmi_batch_size": 30}],
    "mentornet": [{"mentor_steps": 50}],
}
COLUMNS = {
    "label": "given_label",
    "suggested": "predicted_label",
    "probability": "predicted_prob",
    "chosen": "selection_rate",
    "weight": "mean_weight",
    "loss": "mean_loss",
    "margin": "aum",
    "held_out": "is_held_out",
}
KEYS = {
    "clean": "clean_fraction",
    "clean_weighted": "clean_fraction_weighted",
    "chosen": "n_selected",
    "knowledge": "noise_info",
}
# Columns that a commit may add, and keys whose value is time or names, not numbers.
IGNORED_COLUMNS = {"is_label_issue"}
IGNORED_KEYS = {"seconds", "passes"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def of_table(table: Any) -> dict[str, str]:
    table = table.rename(columns=COLUMNS)
    if "doubt" in table:
        table["label_quality"] = 1 - table.pop("doubt")
    found = {}
    for name in sorted(set(table) - IGNORED_COLUMNS):
        values = table[name]
        if name == "label_quality":  # it was 1 - doubt, and doubt was 1 - probability: the last bits are rounding
            values = values.round(12)
        plain = values.to_numpy().tobytes() if values.dtype != object else repr(values.tolist()).encode()
        found[name] = digest(plain)
    return found


def of_history(lines: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for line in lines:
        for key, value in line.items():
            if key not in IGNORED_KEYS:
                found.setdefault(KEYS.get(key, key), []).append(value)
    return {key: digest(json.dumps(value, sort_keys=True).encode()) for key, value in found.items()}


def of_method(name: str, true_labels: np.ndarray, labels: np.ndarray, examples: Any, test: Any) -> dict[str, Any]:
    import crust

    fields = set(crust.METHODS[name].Settings.model_fields)
    own = next((one for one in CHEAP.get(name, []) if set(one) <= fields), {})
    result = crust.fit(
        "mlp", examples, labels=labels, true_labels=true_labels, test_set=test, method=name, epochs=2, seed=0, **own
    )
    weights = b"".join(value.numpy().tobytes() for value in result.model.state_dict().values())
    return {"weights": digest(weights), "history": of_history(result.history.lines), "audit": of_table(result.audit())}


def of_selection() -> dict[str, str]:
    import crust

    rng = np.random.default_rng(0)
    points, groups = rng.standard_normal((600, 7)).astype(np.float32), rng.integers(0, 4, 600)
    found = {}
    for algorithm in ("greedy", "lazy", "stochastic", "sieve", "greedi", "central", "random"):
        for some in (None, groups):
            if algorithm == "sieve" and some is not None:
                continue
            one = crust.select(points, 60, groups=some, algorithm=algorithm)
            parts = [one.indices, one.weights, one.assignment, one.gains, np.float64(one.objective)]
            found[f"{algorithm}{'' if some is None else ', grouped'}"] = digest(b"".join(p.tobytes() for p in parts))
    return found


def hashes() -> dict[str, Any]:
    import crust
    import crust.data

    digits = crust.data.load("digits", limit=400)
    truth = np.asarray(digits.train.labels)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(len(truth)) < 0.3, rng.integers(0, 10, len(truth)), truth)
    found: dict[str, Any] = {"select": of_selection()}
    for name in sorted(crust.METHODS):
        found[name] = of_method(name, truth, labels, digits.train, digits.test)
    return found


def hashes_at(commit: str | None) -> dict[str, Any]:
    """The hashes of a commit, computed by this very script in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = ROOT
        if commit is not None:
            tree = Path(folder) / "tree"
            subprocess.run(["git", "worktree", "add", "--detach", "-f", str(tree), commit], cwd=ROOT, check=True,
                           capture_output=True)  # fmt: skip
        try:
            run = subprocess.run(
                [sys.executable, __file__, "--print"],
                env={**os.environ, "PYTHONPATH": str(tree / "src")},
                stdout=subprocess.PIPE,
                check=True,
            )
        finally:
            if commit is not None:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return json.loads(run.stdout)  # type: ignore[no-any-return]


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in sorted(old.keys() | new.keys())
            for line in differences(old.get(key), new.get(key), f"{path}/{key}")
        ]
    return [] if old == new else [f"{path[1:]}: {old} → {new}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?")
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--print", action="store_true")
    asked = parser.parse_args()
    if asked.print:
        print(json.dumps(hashes()))
        return 0
    if asked.base is None:
        parser.error("name a commit to compare with")
    found = differences(hashes_at(asked.base), hashes_at(asked.commit))
    print("\n".join(found) or f"the same bytes: {asked.base} and {asked.commit or 'the working tree'}")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
