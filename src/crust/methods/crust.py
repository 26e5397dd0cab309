"""CRUST with our own rule: the most central examples of each predicted class, mixed with each other.

Three changes to Algorithm 1, each measured (docs/methods/crust.md). The most central examples instead of medoids
weighted by the sizes of their clusters, since a representative subset represents the noise too. The budget goes to the
given labels, not to the predicted classes, so that a class which is seldom predicted does not starve. And partners come
from the whole coreset, since most of the central examples are alone in their clusters.

`crust-paper` is the same method with the settings of the paper's Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from crust.errors import InputError
from crust.selection import Coreset
from crust.training import coreset_rules
from crust.training.context import Context
from crust.training.epoch_scaling import warmup_of
from crust.training.method import Batch, Method, Selection, Settings
from crust.training.mixup_batches import mix_with
from crust.training.noise_estimation import Rate


class CrustSettings(Settings):
    fraction: float | Literal["auto"] = 0.5  # of the training examples; auto: one minus the noise rate
    noise_rate: Rate = "estimate"  # for auto: the share of wrong labels, or where to take it from
    grouping: coreset_rules.Grouping = "prediction"
    selection: coreset_rules.Rule = "central"
    budget: coreset_rules.Budget = (
        "label"  # who gets its part of the fraction: every given label, so that none starves, or group
    )
    proxy: Literal["logits", "features", "exact"] = "logits"
    weights: coreset_rules.Weights = "none"
    mixup: Literal["coreset", "cluster", "none"] = "coreset"  # where an example's partner comes from
    mix_labels: bool = True  # False: an example keeps its own label
    alpha: float = Field(1.0, gt=0)  # of Beta(alpha, alpha)
    partners: int = Field(1, ge=1)
    select_after: int | None = Field(None, ge=0)  # epochs on everything first; None: an eighth of all, from 1 to 5
    select_every: int = Field(1, ge=1)


class Crust(Method):
    name = "crust"
    summary = "the most central examples by predicted class in gradient space, mixed with each other"
    Settings = CrustSettings
    settings: CrustSettings

    def __init__(self, settings: CrustSettings):
        super().__init__(settings)
        fraction = self.settings.fraction
        if fraction != "auto" and not 0 < fraction <= 1:
            raise InputError(f"setting fraction is {fraction}: give one above 0 and up to 1, or auto")
        if self.settings.budget == "label":
            self._check_budget()
        self.estimates_itself = fraction != "auto"  # the noise rate then chooses nothing
        self.coreset: Coreset | None = None
        self.partners: NDArray[np.int64] | None = None

    def _check_budget(self) -> None:
        """What goes by clusters needs medoids of groups, and so does facility location."""
        settings = self.settings
        other = {"selection": settings.selection in ("greedy", "random"), "weights": settings.weights == "cluster"}
        other["mixup"] = settings.mixup == "cluster"
        for name in (name for name, wrong in other.items() if wrong):
            raise InputError(f"{name}={getattr(settings, name)} needs the clusters of whole groups: set budget=group")

    def train_set_pass(self, epoch: int, epochs: int) -> str | None:
        since = epoch - warmup_of(self.settings.select_after, epochs)
        return self.settings.proxy if since >= 0 and since % self.settings.select_every == 0 else None

    def begin_epoch(self, context: Context) -> Selection | None:
        settings = self.settings
        self.partners = None
        if context.epoch < warmup_of(settings.select_after, context.epochs):
            if settings.mixup != "coreset":
                return None
            self.partners = context.rng("partners").permutation(context.n)  # the coreset is everyone as yet
            return Selection(np.arange(context.n), partners=self.partners)
        facts: dict[str, Any] = {}
        if self.train_set_pass(context.epoch, context.epochs) or self.coreset is None:
            fraction = self._fraction(context)
            seen = context.evaluate_train_set(settings.proxy)
            self.coreset = coreset_rules.choose(
                seen.proxies,
                seen.predictions,
                seen.losses,
                context.labels,
                fraction,
                grouping=settings.grouping,
                selection=settings.selection,
                seed=int(context.rng("selection").integers(2**31)),
                budget=settings.budget,
            )
            facts["starving"] = coreset_rules.starving(self.coreset.indices, context.labels)
        selection = coreset_rules.as_selection(self.coreset, settings.weights, self._draw(self.coreset, context))
        selection.facts = facts
        self.partners = selection.partners
        return selection

    def _fraction(self, context: Context) -> float:
        if self.settings.fraction != "auto":
            return float(self.settings.fraction)
        return float(np.clip(1.0 - context.noise_info["noise_rate"].value, 0.05, 1.0))

    def _draw(self, coreset: Coreset, context: Context) -> NDArray[np.int64] | None:
        """Partners for the members of the coreset, a row each."""
        rng, each = context.rng("partners"), self.settings.partners
        if self.settings.mixup == "none":
            return None
        if self.settings.mixup == "cluster":
            return coreset_rules.cluster_partners(coreset, rng, each)
        return coreset_rules.any_partners(coreset.indices, rng, each)

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if self.partners is None:
            return batch
        settings = self.settings
        partners = self.partners[batch.rows]
        return mix_with(batch, partners, context, alpha=settings.alpha, beta=settings.alpha, labels=settings.mix_labels)

    def state(self) -> dict[str, Any]:
        return {} if self.coreset is None else {"coreset": self.coreset.arrays()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.coreset = Coreset.from_arrays(state["coreset"]) if "coreset" in state else None


class CrustPaperSettings(CrustSettings):
    fraction: float | Literal["auto"] = 0.5
    selection: coreset_rules.Rule = "greedy"
    budget: coreset_rules.Budget = "group"
    weights: coreset_rules.Weights = "cluster"
    mixup: Literal["coreset", "cluster", "none"] = "cluster"
    alpha: float = Field(1.0, gt=0)  # of Beta(alpha, alpha); the paper does not say
    partners: int = Field(1, ge=1)  # |R_j|
    select_after: int | None = Field(0, ge=0)


class CrustPaper(Crust):
    """`crust` with the settings of Algorithm 1: medoids by predicted class, cluster weights, cluster mixup."""

    name = "crust-paper"
    summary = "Algorithm 1 of the paper as written: facility location by predicted class, weights, cluster mixup"
    Settings = CrustPaperSettings
