"""CRUST with our own rule: the most central examples of each predicted class, seen through the memory of the run.

Three changes to Algorithm 1. The k most central examples of a group instead of k medoids, since a representative subset
represents the noise too. Gradients from probabilities averaged over the epochs, since a network forgets wrong labels
between the epochs in which it is made to learn them. No cluster weights, which would give the outermost of the chosen
the weight of all that was left out. What each of them is worth on real data is still to be measured.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.errors import InputError
from crust.selection import Coreset
from crust.training import coresets, noise_rate
from crust.training.averaging import WeightAverage
from crust.training.context import Context
from crust.training.losses import cross_entropy, soft_cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings
from crust.training.mixing import mix_with


class CrustSettings(Settings):
    share: float | Literal["auto"] = 0.5  # of the training examples; auto: one minus the estimated noise rate
    grouping: coresets.Grouping = "prediction"
    rule: coresets.Rule = "central"
    proxy: Literal["logits", "features", "exact"] = "logits"
    memory: float = Field(0.9, ge=0, lt=1)  # how much of the averaged probabilities is kept each time; 0: none
    average: float = Field(0.0, ge=0, lt=1)  # how much of the averaged weights is kept at each step; 0: no average
    weights: Literal["none", "cluster", "trust"] = "none"  # trust: the averaged probability of the given label
    targets: Literal["given", "refined"] = "given"  # refined: what is not trusted is left to the average
    mixup: Literal["cluster", "group", "coreset", "all", "none"] = "cluster"  # where an example's partner comes from
    mix_labels: bool = False  # False: the partner takes the label of its medoid
    alpha: float = Field(1.0, gt=0)  # of Beta(alpha, alpha)
    partners: int = Field(1, ge=1)
    least: float = Field(0.25, ge=0, le=1)  # of the share: what each given label keeps at least, so that none starves
    warmup: int = Field(1, ge=0)
    every: int = Field(1, ge=1)


class Crust(Method):
    name = "crust"
    summary = "the most central examples by predicted class in averaged gradient space, cluster mixup"
    Settings = CrustSettings
    settings: CrustSettings

    def __init__(self, settings: CrustSettings):
        super().__init__(settings)
        share = self.settings.share
        if share != "auto" and not 0 < share <= 1:
            raise InputError(f"setting share is {share}: give a share above 0 and up to 1, or auto")
        if self.settings.memory and self.settings.proxy != "logits":
            raise InputError("only the logits proxy can be averaged over the run: set memory to 0")
        self.coreset: Coreset | None = None
        self.average: NDArray[np.float64] | None = None
        self.weight = 0.0
        self.groups: NDArray[np.int64] | None = None
        self.steady = WeightAverage(self.settings.average)
        self.partners: NDArray[np.int64] | None = None

    def looks_at_all(self, epoch: int) -> bool:
        since = epoch - self.settings.warmup
        return since >= 0 and since % self.settings.every == 0

    def begin_epoch(self, context: Context) -> Selection | None:
        settings = self.settings
        if context.epoch < settings.warmup:
            if settings.mixup in ("cluster", "group", "none") or not settings.mix_labels:
                return None
            self.partners = context.rng("partners").permutation(context.n)  # the coreset is everyone as yet
            return Selection(np.arange(context.n), partners=self.partners)
        context.averaged = self.steady.weights or None  # a resumed run comes by here first
        facts: dict[str, Any] = {}
        if self.looks_at_all(context.epoch) or self.coreset is None:
            proxies, predictions, losses = self._look(context)
            share = settings.share
            if share == "auto":
                rate = noise_rate.from_losses(losses)
                share = facts["share"] = float(np.clip(1.0 - rate, 0.05, 1.0))
                facts["noise_rate"] = rate
            self.groups = {"prediction": predictions, "label": context.labels, "none": np.zeros(context.n, np.int64)}[
                settings.grouping
            ]
            self.coreset = coresets.choose(
                proxies,
                predictions,
                losses,
                context.labels,
                float(share),
                grouping=settings.grouping,
                rule=settings.rule,
                seed=int(context.rng("selection").integers(2**31)),
            )
            self.coreset, facts["starving"] = coresets.feed(self.coreset, context.labels, losses, settings.least)
        trust = self._trust(context) if settings.weights == "trust" else None
        drawn = self._draw(context, trust) if settings.mixup != "none" else None
        shaped: coresets.Weights = "cluster" if settings.weights == "cluster" else "none"
        selection = coresets.as_selection(self.coreset, shaped, drawn)
        if trust is not None:
            weights = trust[selection.indices]
            selection.weights = (weights / weights.mean()).astype(np.float32)
        selection.facts = facts
        self.partners = selection.partners
        return selection

    def _look(self, context: Context) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
        """Proxies, predictions and losses: of this moment, or of the averaged probabilities."""
        seen = context.look_at_all(self.settings.proxy)
        keep = self.settings.memory
        if not keep:
            return seen.proxies, seen.predictions, seen.losses
        assert seen.probabilities is not None
        if self.average is None:
            self.average = np.zeros_like(seen.probabilities, dtype=np.float64)
        self.average = keep * self.average + (1 - keep) * seen.probabilities
        self.weight = keep * self.weight + (1 - keep)  # so that the first averages are not too small
        mean = self._mean()
        rows = np.arange(context.n)
        losses = -np.log(np.maximum(mean[rows, context.labels], 1e-12))
        proxies = mean.copy()
        proxies[rows, context.labels] -= 1
        return proxies.astype(np.float32), mean.argmax(axis=1), losses

    def _mean(self) -> NDArray[np.float64]:
        """Probabilities averaged over the run so far."""
        assert self.average is not None
        return self.average / self.weight

    def _trust(self, context: Context) -> NDArray[np.float64]:
        """The averaged probability of each given label."""
        found = self._mean()[np.arange(context.n), context.labels]
        return np.asarray(np.maximum(found, 1e-6))

    def _draw(self, context: Context, trust: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Partners for the members of the coreset."""
        assert self.coreset is not None
        settings, rng = self.settings, context.rng("partners")
        if settings.mixup == "cluster":
            return coresets.cluster_partners(self.coreset, rng, settings.partners)
        pools = np.zeros(context.n, np.int64)
        if settings.mixup == "group" and self.groups is not None:
            pools = self.groups
        if settings.mixup == "coreset":
            pools = np.full(context.n, -1)
            pools[self.coreset.indices] = 0
        chances = trust if settings.mixup == "coreset" else None
        return coresets.pool_partners(self.coreset.indices, pools, rng, settings.partners, chances)

    def prepare(self, batch: Batch, context: Context) -> Batch:
        settings = self.settings
        other = None
        if settings.targets == "refined" and self.average is not None:
            batch.target = self._refined(batch.index, context)
        if self.partners is None:
            return batch
        partners = self.partners[batch.rows]
        if settings.targets == "refined" and settings.mix_labels and self.average is not None:
            other = self._refined(partners, context)
        return mix_with(
            batch,
            partners,
            context,
            alpha=settings.alpha,
            beta=settings.alpha,
            labels=settings.mix_labels,
            other=other,
        )

    def _refined(self, index: NDArray[np.int64], context: Context) -> Tensor:
        """Given labels as far as they are trusted, and the averaged probabilities for the rest."""
        mean, given = self._mean()[index], context.labels[index]
        trust = mean[np.arange(len(given)), given][:, None]
        soft = trust * np.eye(context.classes)[given] + (1 - trust) * mean
        return context.tensor(soft.astype(np.float32))

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if self.settings.average:
            self.steady.update(context.processes.bare(context.networks[0]))
        if batch.target is None:
            return [cross_entropy(outputs[0].logits, batch.y, batch.weight)]
        return [soft_cross_entropy(outputs[0].logits, batch.target, batch.weight)]

    def end_epoch(self, context: Context) -> None:
        if self.settings.average:
            self.steady.update(context.processes.bare(context.networks[0]))
            context.averaged = self.steady.weights

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        return {} if self.average is None else {"average": self.average / self.weight}

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"weight": self.weight}
        if self.settings.average:
            found["steady"] = self.steady.state()
        if self.coreset is not None:
            found["coreset"], found["groups"] = self.coreset.arrays(), self.groups
        if self.average is not None:
            found["average"] = self.average
        return found

    def load_state(self, state: dict[str, Any]) -> None:
        self.weight, self.average, self.groups = state["weight"], state.get("average"), state.get("groups")
        self.coreset = Coreset.from_arrays(state["coreset"]) if "coreset" in state else None
        if "steady" in state:
            self.steady.load(state["steady"])
