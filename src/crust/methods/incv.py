"""INCV (Chen et al. 2019): cross-validation, again and again, finds labels that a network predicts unseen.

Phase A. All examples are candidates. Each iteration cuts the candidates in halves; a network is trained on one half and
the selected, and predicts the other: whose label it predicts is selected, the largest losses are discarded where the
noise is symmetric. Phase B. Two networks are trained on the selected by co-teaching; later candidates join them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust._util import seeding
from crust.training.context import Context
from crust.training.epoch_scaling import scaled
from crust.training.losses import cross_entropy, small_loss
from crust.training.method import Batch, Known, Method, Output, Selection, Settings, Stage
from crust.training.noise_estimation import (
    NoiseType,
    confusion,
    most_confident,
    rate_from_agreement,
    type_from_confusion,
)

SELECTED, CANDIDATE, DISCARDED = 0, 1, 2


def halves(candidates: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The candidates in two parts of one size, at random; the second has one more where their number is odd."""
    mixed = rng.permutation(candidates)
    middle = len(mixed) // 2
    return np.sort(mixed[:middle]), np.sort(mixed[middle:])


def largest_losses(losses: NDArray[np.floating], count: int) -> NDArray[np.int64]:
    """Positions of the largest losses; none where the count is 0, all where it is larger than their number."""
    return np.argsort(-np.asarray(losses, np.float64), kind="stable")[:count]


def discard_ratio(rate: float) -> float:
    """How many are discarded for each that is selected: the odds of a wrong label, at most 2."""
    return min(2.0, rate / (1.0 - rate))


def selected_noise(rate: float, classes: int, noise_type: str) -> float:
    """The noise rate among the selected: two draws of the noise are wrong in the same way, of all that agree."""
    both_wrong, both_right = rate**2, (1.0 - rate) ** 2
    return both_wrong / (both_wrong + (classes - 1 if noise_type == "symmetric" else 1) * both_right)


def best_until(rate: float, noise_type: str) -> int:
    """Up to which iteration the best epoch predicts, and not the last one: the more noise, the fewer iterations."""
    if noise_type == "asymmetric" or rate > 0.6:
        return 1
    return 2 if rate > 0.3 else 4


class IncvSettings(Settings):
    iterations: int | None = Field(
        None, ge=1, description="of cross-validation; null: 4, and 2 in runs of fewer than 100 epochs"
    )
    sub_epochs: int | None = Field(
        None, ge=1, description="of each of the two fits of an iteration; null: a quarter of the epochs"
    )
    noise_type: NoiseType = Field("estimate", description="estimate: from the first half that is held out")
    recipe: Literal["experiment", "published"] = Field(
        "experiment", description="published: Adam at 0.001 with rate drops of its own"
    )


class Incv(Method):
    name = "incv"
    summary = "labels that cross-validation predicts unseen, then co-teaching on them"
    networks = 2
    needs = "the noise type (estimated)"
    state_names = ("sets", "sides", "fits", "over", "rate", "noise_type")
    estimates_itself = True  # from its own first sub-fit
    Settings = IncvSettings
    settings: IncvSettings

    def __init__(self, settings: IncvSettings):
        super().__init__(settings)
        self.sets = np.empty(0, np.int8)
        self.sides = np.empty(0, np.int8)  # which half of the candidates an example was put in; -1: neither
        self.fits = 0  # sub-fits that are done
        self.over = False  # phase A
        self.rate: float | None = None  # of the noise
        self.noise_type: str | None = None

    def begin_run(self, context: Context) -> None:
        epochs = context.experiment.epochs
        self.iterations = self.settings.iterations or (4 if epochs >= 100 else 2)
        self.sub_epochs = self.settings.sub_epochs or scaled(50, 200, epochs)
        self.sets = np.full(context.n, CANDIDATE, np.int8)
        self.sides = np.full(context.n, -1, np.int8)
        self.cut_again(context)

    def cut_again(self, context: Context) -> None:
        """New halves of the candidates; where there are not two, or iterations enough, phase A is over."""
        candidates = np.flatnonzero(self.sets == CANDIDATE)
        self.over = self.fits == 2 * self.iterations or len(candidates) < 2
        self.sides[:] = -1
        if not self.over:
            rng = seeding.numpy_rng(context.experiment.seed, "halves", self.fits)
            for side, members in enumerate(halves(candidates, rng)):
                self.sides[members] = side

    # ------------------------------------------------------------ stages

    def next_stage(self, done: int) -> Stage | None:
        published = self.settings.recipe == "published"
        if not self.over:
            iteration = self.fits // 2 + 1
            best = self.rate is None or self.noise_type is None or iteration <= best_until(self.rate, self.noise_type)
            return Stage(
                f"sub-fit {iteration}.{self.fits % 2 + 1}",
                epochs=self.sub_epochs,
                start="initial",
                end="best" if best else "last",
                networks=1,
                held=self.held_out(),
                counts=False,
                **(_adam(((0.4, 0.5), (0.6, 0.25), (0.8, 0.1))) if published else {}),
            )
        if done == self.fits:
            factors = ((0.4, 0.1), (0.6, 0.01), (0.8, 0.001), (0.9, 0.0005))
            return Stage("co-teaching", start="initial", **(_adam(factors) if published else {}))
        return None

    def held_out(self) -> NDArray[np.int64]:
        """The half that the sub-fit predicts."""
        return np.flatnonzero(self.sides == 1 - self.fits % 2)

    def begin_epoch(self, context: Context) -> Selection | None:
        counts = np.bincount(self.sets, minlength=3)
        facts: dict[str, Any] = dict(zip(("selected", "candidates", "discarded"), counts.tolist(), strict=True))
        if not self.over:
            return Selection(np.flatnonzero((self.sets == SELECTED) | (self.sides == self.fits % 2)), facts=facts)
        members = np.flatnonzero(self.sets == SELECTED)
        if not len(members):  # nobody was predicted as labelled: all there is
            members = np.arange(context.n)
        self.joining = np.empty((0, 0), np.int64)
        if context.epoch > self.late() * context.epochs and (self.sets == SELECTED).any():
            self.joining = self.drawn(context, len(members))
        return Selection(members, facts=facts)

    def end_stage(self, context: Context) -> None:
        if not self.over:
            self.sort_out(context)
            self.fits += 1
            if self.fits % 2 == 0:
                self.cut_again(context)

    # ------------------------------------------------------------ phase A

    def sort_out(self, context: Context) -> None:
        """Select and discard among those that were held out."""
        held = self.held_out()
        seen = context.predict(held)
        agree = seen.predictions == context.labels[held]
        if self.rate is None:
            self.rate = rate_from_agreement(float(agree.mean()), context.classes)
            sure = most_confident(seen.probabilities)
            counts = confusion(context.labels[held][sure], seen.predictions[sure], context.classes)
            context.noise_info.setdefault("noise_type", Known(type_from_confusion(counts), "estimated"))
            context.noise_info["noise_rate"] = Known(self.rate, "estimated")
            self.noise_type = context.noise_info["noise_type"].value
        if self.noise_type == "symmetric":
            count = int(discard_ratio(self.rate) * int(agree.sum()) + 1e-9)
            self.sets[held[largest_losses(seen.losses, count)]] = DISCARDED
        self.sets[held[agree]] = SELECTED

    # ------------------------------------------------------------ phase B

    def late(self) -> float:
        """After which share of the epochs the candidates join."""
        return 0.4 if self.noise_type == "asymmetric" or (self.rate or 0.0) > 0.6 else 0.2

    def drawn(self, context: Context, members: int) -> NDArray[np.int64]:
        """The candidates of each batch of the epoch, a row each; none twice."""
        candidates = np.flatnonzero(self.sets == CANDIDATE)
        size = context.settings.batch_size
        each = min(size * len(candidates) // members, size // 2)
        if not each:
            return np.empty((0, 0), np.int64)
        mixed = context.rng("candidates").permutation(candidates)
        return mixed[: len(mixed) // each * each].reshape(-1, each)

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if not self.over:
            return batch
        index, x = batch.index, batch.x
        number = context.step * context.processes.count + context.processes.rank
        if number < len(self.joining):
            more = self.joining[number]
            index = np.concatenate([index, more])
            if isinstance(x, Mapping):  # texts are padded together
                x = context.inputs(index, "joined")
            else:
                x = torch.cat([x, context.inputs(more, "joined")])
        y = context.tensor(context.labels[index])
        n = self.kept(len(batch.index), context)
        picks = [
            small_loss(F.cross_entropy(context.evaluate_batch(x, k).logits, y, reduction="none"), n) for k in (0, 1)
        ]
        picks.reverse()  # each is trained on what the other has picked
        inputs, labels = [_batch_rows(x, pick) for pick in picks], [y[pick] for pick in picks]
        first = picks[0].cpu().numpy()
        # To the loop a batch is what the first network is trained on.
        return Batch(inputs[0], labels[0], index[first], first, inputs=inputs, extra={"labels": labels})

    def kept(self, size: int, context: Context) -> int:
        """How many of a batch of the selected are trained on: all at first, soon all but the noise among them."""
        noise = self.rate or 0.0
        if (self.sets == SELECTED).any():
            noise = selected_noise(noise, context.classes, self.noise_type or "symmetric")
        grown = min(1.0, context.epoch / (0.05 * context.epochs))
        return max(round(size * (1.0 - noise * grown)), min(2, size))  # two, since BatchNorm refuses one

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if not self.over:
            return [cross_entropy(outputs[0].logits, batch.y)]
        return [cross_entropy(output.logits, y) for output, y in zip(outputs, batch.extra["labels"], strict=True)]

    # ------------------------------------------------------------ what it leaves

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """0: selected, 0.5: still a candidate, 1: discarded."""
        return {"unselected": self.sets / 2.0}


def _batch_rows(x: Any, pick: Tensor) -> Any:
    return {name: value[pick] for name, value in x.items()} if isinstance(x, Mapping) else x[pick]


def _adam(factors: tuple[tuple[float, float], ...]) -> dict[str, Any]:
    return {"optimizer": "adam", "learning_rate": 0.001, "weight_decay": 1e-4, "factors": factors}
