"""What a method must know of the noise: estimated by the harness, unless the user says it or asks for the truth.

A method asks by having a setting `noise_rate` or `noise_type`. Where it says "estimate", the run begins with two short
trainings, each on one half of the examples, whose networks judge the other half; they are counted as part of the
method's cost. What was used stands in `context.knowledge`, in the history and in the run's config, with its source.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from torch import Tensor

from crust.errors import InputError
from crust.training import noise_rate, randomness
from crust.training.agreement import confusion, type_from_confusion
from crust.training.context import Context
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Known, Method, Output, Stage
from crust.training.settings import TrainSettings

Rate = Annotated[float, Field(ge=0, lt=1)] | Literal["estimate", "true"]
NoiseType = Literal["symmetric", "asymmetric", "estimate", "true"]
NAMES = ("noise_rate", "noise_type")
SHARE = 0.25  # of the experiment's epochs, for each half
UPDATES = 60  # after fewer a network knows too little to judge others


class Estimator(Method):
    """Plain training on halves, and what it says of the noise. Used by the loop before the method itself."""

    name = "estimate"
    summary = "two networks, each trained on half of the examples, judge the other half"

    def __init__(self, n: int, classes: int, experiment: TrainSettings):
        super().__init__(Method.Settings())
        steps = max(1, n // 2 // experiment.batch_size)
        enough = min(experiment.epochs, math.ceil(UPDATES / steps))
        self.epochs = max(2, enough, round(SHARE * experiment.epochs))
        order = randomness.numpy_rng(experiment.seed, "halves").permutation(n)
        self.halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        self.probabilities = np.full((n, classes), np.nan, np.float32)
        self.known: dict[str, Known] = {}

    def stages(self) -> list[Stage]:
        return [
            Stage(
                f"estimate {number}",
                epochs=self.epochs,
                start="initial",
                end="best",  # by the labels of the other half: before they are learnt by heart
                networks=1,
                counts=False,
                subset=half,
                held=self.halves[2 - number],
            )
            for number, half in enumerate(self.halves, 1)
        ]

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        return [cross_entropy(outputs[0].logits, batch.y)]

    def end_stage(self, context: Context) -> None:
        other = self.halves[1 - context.stage]
        self.probabilities[other] = context.predict(other).probabilities
        if context.stage == 1:
            sure = noise_rate.surest(self.probabilities)
            counts = confusion(context.labels[sure], self.probabilities[sure].argmax(axis=1), context.classes)
            kind = type_from_confusion(counts)
            rate = noise_rate.estimate(self.probabilities, context.labels, kind == "symmetric")
            estimated = {"noise_rate": rate, "noise_type": kind}
            for name, value in estimated.items():
                context.knowledge.setdefault(name, Known(value, "estimated"))

    def state(self) -> dict[str, Any]:
        return {"probabilities": self.probabilities}

    def load_state(self, state: dict[str, Any]) -> None:
        self.probabilities = state["probabilities"]


def told(
    settings: BaseModel, labels: NDArray[np.int64], truth: NDArray[np.int64] | None, classes: int, method: str
) -> tuple[dict[str, Known], bool]:
    """What is known before the run, and whether anything has to be estimated.

    Example:
        >>> class Mine(BaseModel):
        ...     noise_rate: Rate = "true"
        >>> told(Mine(), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), 2, "mine")
        ({'noise_rate': Known(value=0.25, source='true')}, False)
        >>> told(Mine(noise_rate=0.3), np.zeros(2), None, 2, "mine")[0]["noise_rate"].source
        'given'
    """
    known: dict[str, Known] = {}
    wanted = {name: getattr(settings, name) for name in NAMES if hasattr(settings, name)}
    for name, value in wanted.items():
        if value == "true":
            if truth is None:
                raise InputError(f"{name}=true needs true labels: give true_labels, or let {method} estimate it")
            counts = confusion(labels, truth, classes)
            real = float((labels != truth).mean()) if name == "noise_rate" else type_from_confusion(counts)
            known[name] = Known(real, "true")
        elif value != "estimate":
            known[name] = Known(value, "given")
    return known, "estimate" in wanted.values()


def described(knowledge: dict[str, Known]) -> dict[str, dict[str, Any]]:
    """For the history and the config.

    Example:
        >>> described({"noise_rate": Known(0.4, "given")})
        {'noise_rate': {'value': 0.4, 'source': 'given'}}
    """
    return {name: {"value": known.value, "source": known.source} for name, known in knowledge.items()}
