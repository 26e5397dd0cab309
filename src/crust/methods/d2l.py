"""D2L (Ma et al. 2018): when the features begin to need more dimensions, noise is being learnt; from then on the
labels are mixed with what the network predicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.data.batches import split_batches
from crust.training.context import Context
from crust.training.epoch_scaling import scaled
from crust.training.losses import cross_entropy, one_hot, soft_cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings

TINY = 1e-8  # added to ratios of distances
NOTHING = 1e-4  # what the symmetric loss takes for a label's probability of 0
MANY = 100  # classes from which on the symmetric loss has the weights for CIFAR-100


class D2LSettings(Settings):
    initial: Annotated[int, Field(ge=0)] | Literal["auto"] = Field("auto", description="epochs before the first window")
    window: int = Field(5, ge=2, description="epochs whose mean and deviation a new dimension is held against")
    deviations: float = Field(2.0, ge=0, description="how far above the mean of the window is a turn")
    least_rise: float = Field(0.01, ge=0, description="as a share of the mean: less is no rise")
    neighbours: int = Field(20, ge=2, description="that the dimension is measured from")
    examples: int = Field(1280, ge=3, description="at random, for one measurement")
    group: int = Field(128, ge=3, description="neighbours are looked for among so many")
    before: Literal["ce", "sce"] = Field("ce", description="the loss until the turn")
    rollback: bool = Field(True, description="at the turn, back to the weights of one epoch earlier")


class D2L(Method):
    name = "d2l"
    summary = "labels mixed with predictions once the dimensionality of the features begins to rise"
    Settings = D2LSettings
    settings: D2LSettings

    def __init__(self, settings: D2LSettings):
        super().__init__(settings)
        self.lids: list[float] = []
        self.turned: int | None = None  # the epoch
        self.alpha = 1.0
        self.previous: dict[str, Tensor] | None = None  # weights at the beginning of the last epoch

    def begin_epoch(self, context: Context) -> Selection | None:
        settings, epoch = self.settings, context.epoch
        self.lids.append(self._measure(context))
        network = context.processes.bare(context.networks[0])
        rolled = False
        if self.turned is None and self._turns(len(self.lids), context.epochs):
            self.turned = epoch
            if settings.rollback and self.previous is not None:
                network.load_state_dict(self.previous)
                context.weights_changed()
                rolled = True
        if self.turned is not None:
            self.alpha = label_weight(self.lids, epoch, context.epochs)
        waits = self.turned is None and settings.rollback and self._may_turn(len(self.lids) + 1, context.epochs)
        weights = network.state_dict() if waits else None
        self.previous = None if weights is None else {name: w.detach().clone() for name, w in weights.items()}
        lid = self.lids[-1]
        facts = {"lid": lid if math.isfinite(lid) else None, "turned": self.turned, "alpha": self.alpha}
        return Selection(np.arange(context.n), facts=facts | ({"rolled_back": True} if rolled else {}))

    def _measure(self, context: Context) -> float:
        """The dimensionality of the features of some examples at random; the last one where it cannot be measured."""
        some = context.rng("lid").permutation(context.n)[: self.settings.examples]
        features = context.predict(some, features=True).features
        assert features is not None
        rows = split_batches(np.arange(len(some)), self.settings.group)
        found = np.concatenate([lid(features[part], self.settings.neighbours) for part in rows])
        found = found[np.isfinite(found) & (found > 0)]
        if len(found):
            return float(found.mean())
        return self.lids[-1] if self.lids else math.nan

    def _may_turn(self, measured: int, epochs: int) -> bool:
        """Whether so many measurements are enough for a check; auto: as early in the run as in the published one."""
        window, given = self.settings.window, self.settings.initial
        initial = max(0, scaled(45, 120, epochs) - window) if given == "auto" else given
        return measured > initial + window

    def _turns(self, measured: int, epochs: int) -> bool:
        settings = self.settings
        return self._may_turn(measured, epochs) and rises(
            self.lids, settings.window, settings.deviations, settings.least_rise
        )

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        logits = outputs[0].logits
        if self.turned is not None:
            return [mixed_loss(logits, batch.y, self.alpha)]
        if self.settings.before == "sce":
            forward, backward = (6.0, 0.1) if context.classes >= MANY else (0.1, 1.0)
            return [symmetric_loss(logits, batch.y, forward, backward)]
        return [cross_entropy(logits, batch.y)]

    def state(self) -> dict[str, Any]:
        return {
            "lids": np.array(self.lids, np.float64),
            "turned": self.turned,
            "alpha": self.alpha,
            "previous": self.previous,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.lids, self.turned, self.alpha = state["lids"].tolist(), state["turned"], state["alpha"]
        self.previous = state["previous"]


def lid(points: NDArray[Any], neighbours: int) -> NDArray[np.float64]:
    """The local intrinsic dimensionality of each point by maximum likelihood: -k / sum of ln(r_j / r_k).

    Returns:
        One number a point; nan where all its neighbours are copies of it, or where there are no two neighbours.

    Reference:
        Amsaleg et al.: Estimating Local Intrinsic Dimensionality, KDD 2015.
    """
    x = torch.from_numpy(np.asarray(points, np.float64))
    k = min(neighbours, len(x) - 1)
    if k < 2:
        return np.full(len(x), np.nan)
    far = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(math.inf)
    near = far.topk(k, largest=False).values.numpy()
    outer = near[:, -1]
    ratios = near / np.where(outer > 0, outer, 1)[:, None]
    sums = np.log(ratios + TINY).sum(axis=1)
    usable = (outer > 0) & (sums < 0)
    return np.where(usable, -k / np.where(usable, sums, -1), np.nan)


def rises(lids: Sequence[float], window: int, deviations: float = 2.0, least: float = 0.01) -> bool:
    """Whether the last number stands out above those before it."""
    if len(lids) <= window:
        return False
    past = np.array(lids[-window - 1 : -1])
    mean, spread = past.mean(), past.std()
    return bool(lids[-1] - mean > max(deviations * spread, least * mean))


def label_weight(lids: Sequence[float], epoch: int, epochs: int) -> float:
    """How much the given labels still weigh: exp(-(e / E) * LID_e / the smallest LID before)."""
    past = [value for value in lids[:-1] if value > 0]
    if not past or not lids[-1] > 0:
        return 1.0
    return math.exp(-(epoch / epochs) * lids[-1] / min(past))


def mixed_loss(logits: Tensor, y: Tensor, alpha: float) -> Tensor:
    """Cross-entropy with alpha of the given label and 1 - alpha of the predicted one."""
    classes = logits.shape[1]
    said = one_hot(logits.detach().argmax(1), classes)
    target = alpha * one_hot(y, classes) + (1 - alpha) * said
    return soft_cross_entropy(logits, target.to(logits.dtype))


def symmetric_loss(logits: Tensor, y: Tensor, forward: float, backward: float) -> Tensor:
    """forward * cross-entropy + backward * the same with label and prediction in each other's place."""
    p = F.softmax(logits, dim=1).gather(1, y[:, None])[:, 0]
    return forward * cross_entropy(logits, y) + backward * (-math.log(NOTHING) * (1 - p)).mean()
