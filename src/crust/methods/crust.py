"""CRUST with our own rule: the most central examples of each predicted class, as many as seem to have right labels.

What the paper's frame is kept to: look at all gradients, group them by predicted class, choose central examples, train
on those. How many are chosen follows from the run itself (`fraction="auto"`, `coreset_rules.SizedCoreset`): plain
training while nothing is memorised, then everyone whose label the network agrees with or who is central in its group;
the others are trained on by a bounded loss, as much as they are worth: on clean data nearly like all, where many labels
are wrong not at all. docs/methods/crust.md has what each part is worth.

`crust-half` is the same with a coreset of half of the examples (or any other share), mixed within itself, and
`crust-paper` with the settings of the paper's Algorithm 1.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.errors import InputError
from crust.selection import Coreset
from crust.selection.together import ALONE, Together
from crust.training import coreset_rules
from crust.training.context import Context
from crust.training.epoch_scaling import decay_of_average, warmup_of
from crust.training.losses import one_hot, towards_sce
from crust.training.method import Batch, Method, Output, Selection, Settings, Stage
from crust.training.mixup_batches import mix_with
from crust.training.noise_estimation import Rate


class CrustSettings(Settings):
    fraction: float | Literal["auto", "noise-rate"] = Field(
        "auto",
        description="size of the coreset: a share, noise-rate (one minus it), or auto (as many as seem right)",
    )
    noise_rate: Rate = Field("estimate", description="the share of wrong labels, or where to take it from")
    grouping: coreset_rules.Grouping = Field(
        "prediction",
        description="what examples are selected within",
    )
    selection: coreset_rules.Rule = Field(
        "central", description="who is chosen in a group: the most central, or by greedy facility location"
    )
    budget: coreset_rules.Budget = Field(
        "label",
        description="who gets its part of the fraction: every given label (so that none is left out) or every group",
    )
    proxy: Literal["logits", "features", "exact"] = Field(
        "logits",
        description="gradients compared by logits, by features, or exactly (last layer)",
    )
    memory: float = Field(0.8, ge=0, lt=1, description="auto: how much of what earlier passes said is kept")
    bound: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = Field(
        "auto", description="the members' loss, from cross-entropy (0) to symmetric cross-entropy (1); auto: by noise"
    )
    others: Literal["bounded", "none"] = Field(
        "bounded", description="auto: whether the others are trained on as much as they are worth"
    )
    averaged: bool = Field(
        True, description="keep and measure weights averaged over about an epoch, where ema does not say otherwise"
    )
    weights: coreset_rules.Weights = Field("none", description="what a member of the coreset weighs")
    mixup: Literal["auto", "coreset", "cluster", "none"] = Field(
        "auto",
        description="where mixing partners come from; auto: the coreset for images, else none",
    )
    mix_labels: bool = Field(True, description="mix the labels as well; false: an example keeps its own")
    alpha: float = Field(1.0, gt=0, description="of mixup's Beta(alpha, alpha)")
    partners: int = Field(1, ge=1, description="mixed copies of an example in a step")
    select_after: int | None = Field(
        None,
        ge=0,
        description="epochs on everything first; null: until labels are memorised (auto), else an eighth",
    )
    select_every: int | None = Field(
        None, ge=1, description="epochs between selections; null: every epoch, or as the passes of auto allow"
    )


class Crust(Method):
    name = "crust"
    summary = "the most central examples by predicted class in gradient space, as many as seem to have right labels"
    Settings = CrustSettings
    settings: CrustSettings

    def __init__(self, settings: CrustSettings):
        super().__init__(settings)
        fraction = self.settings.fraction
        if not isinstance(fraction, str) and not 0 < fraction <= 1:
            raise InputError(
                f"setting fraction is {fraction}: give one above 0 and up to 1, or auto", code="fraction-range"
            )
        if self.settings.budget == "label" or fraction == "auto":
            self._check_budget()
        self.estimates_itself = fraction != "noise-rate"  # else two short trainings estimate the rate first
        self.ema: float | None = None  # None: as the experiment says
        self.coreset: Coreset | None = None
        self.partners: NDArray[np.int64] | None = None
        self.sized: coreset_rules.SizedCoreset | None = None  # fraction="auto"
        self.members: NDArray[np.bool_] | None = None  # of the epoch's rows
        self.together: Together = ALONE

    def begin_run(self, context: Context) -> None:
        self.together = context.together
        if self.settings.averaged and context.experiment.ema is None:
            together = context.experiment.batch_size * context.experiment.accumulate
            self.ema = decay_of_average(context.n, together)

    def stages(self) -> list[Stage]:
        return [Stage(ema=self.ema)]

    def _check_budget(self) -> None:
        """What goes by clusters needs medoids of groups, and so does facility location."""
        settings = self.settings
        other = {"selection": settings.selection in ("greedy", "random"), "weights": settings.weights == "cluster"}
        other["mixup"] = settings.mixup == "cluster"
        for name in (name for name, wrong in other.items() if wrong):
            raise InputError(
                f"{name}={getattr(settings, name)} needs the clusters of whole groups: set budget=group and a fraction",
                code="needs-clusters",
            )

    def train_set_pass(self, epoch: int, epochs: int) -> str | None:
        settings = self.settings
        if settings.fraction == "auto":
            due = coreset_rules.pass_due(epoch, epochs, settings.select_every)
        else:
            since = epoch - warmup_of(settings.select_after, epochs)
            due = since >= 0 and since % (settings.select_every or 1) == 0
        return settings.proxy if due else None

    def begin_epoch(self, context: Context) -> Selection | None:
        self.partners = self.members = None
        return self._by_size(context) if self.settings.fraction == "auto" else self._by_fraction(context)

    def _by_size(self, context: Context) -> Selection:
        """As many as seem to be right, and the others as much as they are worth."""
        settings = self.settings
        if self.sized is None:
            self.sized = coreset_rules.SizedCoreset(context.n, settings.memory, context.together)
        sized, facts = self.sized, {}
        if self.train_set_pass(context.epoch, context.epochs) is not None:
            known = context.noise_info.get("noise_rate")
            sized.look(
                context.evaluate_our_part(settings.proxy),
                context.labels,
                context.evaluate_validation(),
                None if context.validation is None else context.validation.labels,
                None if known is None else float(known.value),
            )
            steps = math.ceil(context.n / (context.settings.batch_size * context.settings.accumulate))
            if sized.ready(context.epoch, context.epochs, steps, settings.select_after):
                how: dict[str, Any] = {"grouping": settings.grouping, "selection": settings.selection}
                sized.choose(context.labels, **how, device=context.device)
            facts = sized.facts()
        member = sized.member
        worth = sized.worth if settings.others == "bounded" else 0.0
        indices = np.arange(context.n) if worth else np.flatnonzero(member)
        self.members = member[indices]
        weights = np.where(self.members, 1.0, worth).astype(np.float32) if worth and not member.all() else None
        if self._mixes(context):
            self.partners = indices.copy()
            mine = np.flatnonzero(self.members)
            self.partners[mine] = context.rng("partners").permutation(indices[mine])
        return Selection(indices, weights, self.partners, facts)

    def _by_fraction(self, context: Context) -> Selection | None:
        """A share that is given, or one minus the noise rate."""
        settings = self.settings
        if context.epoch < warmup_of(settings.select_after, context.epochs):
            if not self._mixes(context) or settings.mixup == "cluster":
                return None
            self.partners = context.rng("partners").permutation(context.n)  # the coreset is everyone as yet
            return Selection(np.arange(context.n), partners=self.partners)
        facts: dict[str, Any] = {}
        if self.train_set_pass(context.epoch, context.epochs) or self.coreset is None:
            seen, together = context.evaluate_our_part(settings.proxy), context.together
            self.coreset = coreset_rules.choose(
                seen.proxies,
                together.join(seen.predictions),
                together.join(seen.losses),
                context.labels,
                self._fraction(context),
                grouping=settings.grouping,
                selection=settings.selection,
                seed=int(context.rng("selection").integers(2**31)),
                budget=settings.budget,
                together=together,
            )
            facts["underrepresented"] = coreset_rules.underrepresented(self.coreset.indices, context.labels)
        selection = coreset_rules.as_selection(self.coreset, settings.weights, self._draw(self.coreset, context))
        selection.facts = facts
        self.partners = selection.partners
        return selection

    def _fraction(self, context: Context) -> float:
        if isinstance(self.settings.fraction, str):
            return float(np.clip(1.0 - context.noise_info["noise_rate"].value, 0.05, 1.0))
        return float(self.settings.fraction)

    def _mixes(self, context: Context) -> bool:
        """Images gain by mixing; tables lose as often as they gain, and token ids cannot be mixed."""
        if self.settings.mixup == "auto":
            return len(context.train.shape) == 3
        return self.settings.mixup != "none"

    def _draw(self, coreset: Coreset, context: Context) -> NDArray[np.int64] | None:
        """Partners for the members of the coreset, a row each."""
        rng, each = context.rng("partners"), self.settings.partners
        if not self._mixes(context):
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

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        """Cross-entropy; of a coreset that sized itself the more bounded, the more noise there is."""
        aim = context.objective
        if self.sized is None or self.members is None or aim.loss is not None:
            return super().losses(outputs, batch, context)
        own = self.sized.bound if self.settings.bound == "auto" else float(self.settings.bound)
        bounds = np.where(self.members[batch.rows], own, 1.0).astype(np.float32)
        target = aim.target(batch, context.classes)
        target = one_hot(batch.y, context.classes) if target is None else target
        return [towards_sce(outputs[0].logits, target, context.tensor(bounds), aim.weight(batch))]

    @classmethod
    def takes_loss(cls) -> bool:
        """Who is trained on, and how much, stays; a loss that is given is in the place of the bounded one."""
        return cls.losses is Crust.losses

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.coreset is None else {"coreset": self.coreset.arrays()}
        return found if self.sized is None else found | {"sized": self.sized.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.coreset = Coreset.from_arrays(state["coreset"]) if "coreset" in state else None
        if "sized" in state:
            n = len(state["sized"]["member"])
            self.sized = coreset_rules.SizedCoreset(n, self.settings.memory, self.together)
            self.sized.load(state["sized"])


class CrustHalfSettings(CrustSettings):
    fraction: float | Literal["auto", "noise-rate"] = 0.5
    memory: float = Field(0.0, ge=0, lt=1)
    bound: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = 0.0
    others: Literal["bounded", "none"] = "none"
    averaged: bool = False
    mixup: Literal["auto", "coreset", "cluster", "none"] = "coreset"
    select_every: int | None = Field(1, ge=1)


class CrustHalf(Crust):
    """`crust` with a coreset of a fixed size, mixed within itself: what `crust` was before it found its own size."""

    name = "crust-half"
    summary = "the most central half by predicted class in gradient space, mixed with each other"
    Settings = CrustHalfSettings


class CrustPaperSettings(CrustHalfSettings):
    fraction: float | Literal["auto", "noise-rate"] = 0.5
    selection: coreset_rules.Rule = "greedy"
    budget: coreset_rules.Budget = "group"
    weights: coreset_rules.Weights = "cluster"
    mixup: Literal["auto", "coreset", "cluster", "none"] = "cluster"
    alpha: float = Field(1.0, gt=0, description="of mixup's Beta(alpha, alpha); the paper does not say")
    partners: int = Field(1, ge=1, description="mixed copies of an example in a step: |R_j| of the paper")
    select_after: int | None = Field(0, ge=0)


class CrustPaper(Crust):
    """`crust-half` with the settings of Algorithm 1: medoids by predicted class, cluster weights, cluster mixup."""

    name = "crust-paper"
    summary = "Algorithm 1 of the paper as written: facility location by predicted class, weights, cluster mixup"
    Settings = CrustPaperSettings
