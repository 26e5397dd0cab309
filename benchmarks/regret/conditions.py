"""What is run for the scoreboard, as data: sets, noises, protocols, methods, seeds, and who is chosen on what.

The split into conditions that rules are chosen on and those that confirm the choice was written down before a line was
recorded. CIFAR-10 belongs to neither: the first rule of `crust` was chosen by looking at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from crust.experiments import make
from crust.methods import METHODS

CHOOSE, CONFIRM, CIFAR = "choose", "confirm", "cifar10"
SEEDS = {CHOOSE: range(5), CONFIRM: range(5, 15), CIFAR: range(2)}
LIMIT = 6000  # training rows at most
IMBALANCED = 20  # how many times the largest class is the smallest, where a noise says so


@dataclass(frozen=True)
class Noise:
    """What is wrong with the training labels, and whether classes are of different size.

    Args:
        labels: `true`, a noise of `crust.noise`, people's labels, or `class-dependent:RATE`.
        share: of wrong labels, on average.
        imbalance: how many times the largest class is the smallest; None: as they are.

    Example:
        >>> Noise("symmetric:0.3", 0.3, 20).name
        'symmetric:0.3,20:1'
    """

    labels: str
    share: float
    imbalance: int | None = None

    @property
    def name(self) -> str:
        return self.labels if self.imbalance is None else f"{self.labels},{self.imbalance}:1"


CLEAN = Noise("true", 0.0)
CHOOSING = (
    CLEAN,
    Noise("symmetric:0.1", 0.1),
    Noise("symmetric:0.2", 0.2),
    Noise("symmetric:0.4", 0.4),
    Noise("pair-flip:0.25", 0.25),
)
UNEQUAL = Noise("class-dependent:0.2", 0.2)
INSTANCE = Noise("instance:0.3", 0.3)
IMBALANCE = Noise("symmetric:0.3", 0.3, IMBALANCED)
CONFIRMING = (*CHOOSING, Noise("derangement:0.4", 0.4), UNEQUAL, INSTANCE, IMBALANCE)
SHORT = Noise("symmetric:0.3", 0.3)  # of runs of a few epochs
ON_CIFAR = (  # the most important first
    CLEAN,
    Noise("symmetric:0.1", 0.1),
    Noise("symmetric:0.2", 0.2),
    Noise("human:aggre", 0.09),
    Noise("human:random1", 0.17),
    Noise("symmetric:0.5", 0.5),
    Noise("symmetric:0.8", 0.8),
    Noise("derangement:0.4", 0.4),
    Noise("human:worse", 0.4),
    Noise("symmetric:0.4", 0.4),
    Noise("pair-flip:0.25", 0.25),
    UNEQUAL,
    INSTANCE,
    IMBALANCE,
)


@dataclass(frozen=True)
class Protocol:
    """How all methods are trained in a condition."""

    model: str
    experiment: Mapping[str, Any]


PLAIN = {"momentum": 0.9, "nesterov": False, "lr_milestones": (2 / 3, 5 / 6), "drop_factor": 0.1}
PROTOCOLS = {
    "mlp": Protocol(
        "mlp",
        {
            **PLAIN, "epochs": 40, "batch_size": 128, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 5e-4,
            "test_every": 40,
        },
    ),
    "text-5": Protocol(
        "text",
        {
            **PLAIN, "epochs": 5, "batch_size": 32, "optimizer": "adamw", "learning_rate": 1e-3, "weight_decay": 0.01,
            "test_every": 5,
        },
    ),
    "cpu": Protocol("resnet8", {}),  # the scale of that name, whose recorded lines are taken over
}  # fmt: skip


@dataclass(frozen=True)
class DataSet:
    """A set in one form.

    Args:
        form: how it is made into inputs: `table`, `tfidf`, `vectors`, `tokens`, `digits` or `cifar10`.
        part: choosing, confirming, or neither.
        noises: in their order.
        protocol: of its conditions.
        balanced: whether balanced accuracy counts, since the classes are of very different size.
    """

    form: str
    part: str
    noises: tuple[Noise, ...]
    protocol: str = "mlp"
    balanced: bool = False


SETS = {
    **{name: DataSet("table", CHOOSE, CHOOSING) for name in ("segment", "phoneme", "vowel", "splice")},
    **{name: DataSet("table", CONFIRM, CONFIRMING) for name in ("letter", "optdigits", "texture", "ring")},
    "digits": DataSet("digits", CONFIRM, CONFIRMING),
    **{f"lists-{form}": DataSet(form, CHOOSE, CHOOSING, balanced=True) for form in ("tfidf", "vectors")},
    **{f"spam-{form}": DataSet(form, CONFIRM, CONFIRMING) for form in ("tfidf", "vectors")},
    "lists-tokens": DataSet("tokens", CHOOSE, (*CHOOSING, SHORT), "text-5", balanced=True),
    "spam-tokens": DataSet("tokens", CONFIRM, (*CONFIRMING, SHORT), "text-5"),
    "cifar10": DataSet("cifar10", CIFAR, ON_CIFAR, "cpu"),
}


@dataclass(frozen=True)
class Contender:
    """A method with settings of its own, by the name that it has on the page."""

    name: str
    method: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether this version of crust has the method."""
        return self.method in METHODS


CONTENDERS = (
    *(Contender(name, name) for name in ("erm", "crust", "crust-half", "gce", "sce", "elr", "mixup", "small-loss")),
    *(Contender(name, name) for name in ("crust-paper", "crust-released", "oracle", "crust-semi")),
    *(Contender(name, name) for name in ("co-teaching", "dividemix")),
    Contender("dividemix, lambda_u=0", "dividemix", (("lambda_u", 0.0),)),
)


@dataclass(frozen=True)
class Condition:
    """A set with its noise, and how everyone is trained on it.

    Example:
        >>> condition = Condition("vowel", Noise("symmetric:0.2", 0.2), "mlp")
        >>> condition.name, condition.part, condition.balanced
        ('vowel/symmetric:0.2/mlp', 'choose', False)
    """

    data: str
    noise: Noise
    protocol: str

    @property
    def name(self) -> str:
        return f"{self.data}/{self.noise.name}/{self.protocol}"

    @property
    def part(self) -> str:
        return SETS[self.data].part

    @property
    def balanced(self) -> bool:
        """Whether balanced accuracy is what counts."""
        return SETS[self.data].balanced or self.noise.imbalance is not None


@dataclass(frozen=True)
class Job:
    """One run."""

    condition: Condition
    contender: Contender
    seed: int

    @property
    def name(self) -> str:
        return f"{self.condition.name} {self.contender.name} seed {self.seed}"

    @property
    def spec(self) -> dict[str, Any]:
        """Every setting in full, as result lines have it; on CIFAR-10 the very specification of `crust reproduce`."""
        base = _spec(self.condition, self.contender)
        return {**base, "experiment": {**base["experiment"], "seed": self.seed}}


@cache
def _spec(condition: Condition, contender: Contender) -> dict[str, Any]:
    """The specification of seed 0."""
    protocol, noise = PROTOCOLS[condition.protocol], condition.noise
    more: dict[str, Any] = {} if noise.imbalance is None else {"imbalance": noise.imbalance}
    where: dict[str, Any] = {}
    if SETS[condition.data].form != "cifar10":
        where = {"data": condition.data, "limit": LIMIT, "model": protocol.model, "augment": False}
        more["protocol"] = condition.protocol
    settings = {**protocol.experiment, **dict(contender.settings)}
    return {**make(contender.method, noise.labels, scale="cpu", **where, **settings), **more}


def conditions() -> Iterator[Condition]:
    """All conditions, set after set."""
    for name, one in SETS.items():
        for noise in one.noises:
            yield Condition(name, noise, one.protocol)


def jobs(only: str = "") -> list[Job]:
    """All runs in the order of the queue, those of methods that are not there left out.

    CIFAR-10 takes minutes a run and comes last. Seeds are outermost, so that what is there at any time is balanced, and
    methods with one network come before those with two.

    Args:
        only: a regular expression that is searched for in the names of the runs.

    Example:
        >>> [job.name for job in jobs("^vowel/true/mlp (erm|gce) seed [01]$")]
        ['vowel/true/mlp erm seed 0', 'vowel/true/mlp gce seed 0', 'vowel/true/mlp erm seed 1', ...]
    """
    found = [
        (SETS[condition.data].form == "cifar10", turn, METHODS[contender.method].networks, condition, contender, seed)
        for condition in conditions()
        for turn, seed in enumerate(SEEDS[condition.part])
        for contender in CONTENDERS
        if contender.is_there
    ]
    found.sort(key=lambda entry: entry[:3])
    every = (Job(*entry[3:]) for entry in found)
    return [job for job in every if re.search(only, job.name)]
