"""CRUST as the paper's Algorithm 1 states it: medoids by predicted class, cluster weights, cluster mixup."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.selection import Coreset
from crust.training import coresets
from crust.training.context import Context
from crust.training.losses import cross_entropy, soft_cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings
from crust.training.mixing import mix_with


class CrustPaperSettings(Settings):
    share: float = Field(0.5, gt=0, le=1)
    grouping: coresets.Grouping = "prediction"
    rule: coresets.Rule = "greedy"
    proxy: Literal["logits", "features", "exact"] = "logits"
    weights: coresets.Weights = "cluster"
    mixup: Literal["cluster", "none"] = "cluster"
    alpha: float = Field(1.0, gt=0)  # of Beta(alpha, alpha); the paper does not say
    partners: int = Field(1, ge=1)  # |R_j|
    warmup: int = Field(0, ge=0)
    every: int = Field(1, ge=1)  # epochs between selections


class CrustPaper(Method):
    name = "crust-paper"
    summary = "Algorithm 1 of the paper as written: facility location by predicted class, weights, cluster mixup"
    Settings = CrustPaperSettings
    settings: CrustPaperSettings

    def __init__(self, settings: CrustPaperSettings):
        super().__init__(settings)
        self.coreset: Coreset | None = None
        self.partners: NDArray[np.int64] | None = None

    def looks_at_all(self, epoch: int, epochs: int) -> bool:
        since = epoch - self.settings.warmup
        return since >= 0 and since % self.settings.every == 0

    def begin_epoch(self, context: Context) -> Selection | None:
        settings = self.settings
        if context.epoch < settings.warmup:
            return None
        if self.looks_at_all(context.epoch, context.epochs) or self.coreset is None:
            seen = context.look_at_all(settings.proxy)
            self.coreset = coresets.choose(
                seen.proxies,
                seen.predictions,
                seen.losses,
                context.labels,
                settings.share,
                grouping=settings.grouping,
                rule=settings.rule,
                seed=int(context.rng("selection").integers(2**31)),
            )
        drawn = None
        if settings.mixup == "cluster":
            drawn = coresets.cluster_partners(self.coreset, context.rng("partners"), settings.partners)
        selection = coresets.as_selection(self.coreset, settings.weights, drawn)
        self.partners = selection.partners
        return selection

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if self.partners is None or self.coreset is None:
            return batch
        alpha = self.settings.alpha
        return mix_with(batch, self.partners[batch.rows], context, alpha=alpha, beta=alpha)

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if batch.target is None:
            return [cross_entropy(outputs[0].logits, batch.y, batch.weight)]
        return [soft_cross_entropy(outputs[0].logits, batch.target, batch.weight)]

    def state(self) -> dict[str, Any]:
        return {} if self.coreset is None else {"coreset": self.coreset.arrays()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.coreset = Coreset.from_arrays(state["coreset"]) if state else None
