"""Small runs on real tables, mails and digits, with labels that are wrong in a known way: what audits are tried on.

Sets and kinds of noise are those of the scoreboard (`benchmarks.regret`), its split into choosing and confirming sets
too: how an audit works is chosen on the first, and the second confirm it. `hard:RATE` is noise on the examples that a
forest (five folds, true labels) is least sure of, which go to the class that it takes for the second best.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.regret.conditions import SETS, Condition, Noise
from benchmarks.regret.splits import Split, from_zero_to_one, labels_of, split_of
from crust.data import load

BY_CLASS = (
    "true",
    *(f"symmetric:{rate}" for rate in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)),
    *(f"{kind}:{rate}" for kind in ("pair-flip", "class-dependent") for rate in (0.1, 0.2, 0.3, 0.4)),
)
BY_EXAMPLE = ("instance:0.15", "instance:0.3", "instance:0.45", "hard:0.1", "hard:0.2")
TRIED = ("segment", "phoneme", "vowel", "splice", "lists-tokens")  # of the choosing sets
KEPT = ("letter", "optdigits", "texture", "ring", "digits", "spam-tokens")  # of the confirming ones
SEEDS = {"choose": (0,), "confirm": (5, 6)}
ROWS = (300, 400, 500, 700)
FEW = {"lists-tokens", "spam-tokens"}  # of whose runs, which take longest, there is one in three
NETWORKS: dict[str, dict[str, Any]] = {
    "default": {},
    "poor": {"epochs": 2},
    "memorising": {"method": "erm", "epochs": 60},
    "locked in": {"method": "crust-paper", "epochs": 30},
}


@dataclass(frozen=True)
class SmallRun:
    """A set, its wrong labels, how many rows of it, and how it is trained.

    Example:
        >>> SmallRun("vowel", "symmetric:0.2", 0).name
        'vowel/symmetric:0.2/default/0'
    """

    data: str
    noise: str
    seed: int
    network: str = "default"

    @property
    def name(self) -> str:
        return f"{self.data}/{self.noise}/{self.network}/{self.seed}"

    @property
    def part(self) -> str:
        return SETS[self.data].part

    @property
    def rows(self) -> int:
        return ROWS[zlib.crc32(self.name.encode()) % len(ROWS)]

    @property
    def by_example(self) -> bool:
        return self.noise in BY_EXAMPLE

    def examples(self, data_dir: Path) -> tuple[Any, NDArray[np.int64], NDArray[np.int64], int]:
        """What is trained on without its labels, true labels, given labels, and how many classes there are."""
        condition = Condition(self.data, Noise(self.noise, 0.0), SETS[self.data].protocol)
        found = split_of(condition, self.seed, data_dir)
        if self.data == "digits":  # as images, as they are read by name
            digits = load("digits").train
            order = np.random.default_rng(self.seed).permutation(len(digits))
            found = Split(digits.subset(order), digits, digits.labels[order], digits.labels, 10)
        found = found.rows(np.arange(min(self.rows, len(found.labels))))
        kind, _, rate = self.noise.partition(":")
        if kind == "hard":
            given = hard_noise(from_zero_to_one(found.train), found.labels, float(rate), self.seed)
        else:
            given = labels_of(condition, found, self.seed, data_dir)
        return found.train, found.labels, given, found.classes

    @property
    def settings(self) -> dict[str, Any]:
        return {**NETWORKS[self.network], "seed": self.seed}


def is_knowable(noise: str, classes: int) -> bool:
    """Whether a class's own label is its commonest: where it is not, nobody can tell which labels are wrong.

    Example:
        >>> is_knowable("symmetric:0.5", 2), is_knowable("symmetric:0.5", 3), is_knowable("class-dependent:0.3", 2)
        (False, True, False)
    """
    kind, _, rate = noise.partition(":")
    most = {"symmetric": 1, "class-dependent": 2, "instance": 1}.get(kind, 0) * float(rate or 0)
    return 1 - most > most / (classes - 1) + 0.05


def train_set(inputs: Any, given: NDArray[np.int64]) -> Any:
    """As `crust.fit` takes it."""
    return (inputs, given) if isinstance(inputs, list) else inputs.with_labels(given)


def small_runs(part: str) -> Iterator[SmallRun]:
    """All of a part, in an order in which any beginning is balanced."""
    sets = TRIED if part == "choose" else KEPT
    found = [SmallRun(data, noise, seed) for seed in SEEDS[part] for data in sets for noise in (*BY_CLASS, *BY_EXAMPLE)]
    found += [
        SmallRun(data, noise, SEEDS[part][0], network)
        for data in sets
        for noise in ("symmetric:0.2", "pair-flip:0.3")
        for network in NETWORKS
        if network != "default"
    ]
    order = np.random.default_rng(0).permutation(len(found)).tolist()
    return (found[i] for i in order if found[i].data not in FEW or i % 3 == 0)


def hard_noise(features: NDArray[np.floating], labels: NDArray[np.int64], rate: float, seed: int) -> NDArray[np.int64]:
    """Wrong labels where a forest is unsure: odds of an error grow with its doubt, and it says which."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    rng = np.random.default_rng([seed, 3])
    x = np.asarray(features).reshape(len(labels), -1)
    names, codes = np.unique(labels, return_inverse=True)
    few = int(np.bincount(codes).min())
    p = cross_val_predict(
        RandomForestClassifier(100, random_state=seed), x, codes, cv=max(2, min(5, few)), method="predict_proba"
    )
    own = p[np.arange(len(codes)), codes]
    p[np.arange(len(codes)), codes] = -1
    doubt = rng.exponential(size=len(codes)) / (1.02 - own)  # sampled without replacement, by doubt
    wrong = np.argsort(doubt)[: round(rate * len(codes))]
    given = labels.copy()
    given[wrong] = names[p[wrong].argmax(axis=1)]
    return given
