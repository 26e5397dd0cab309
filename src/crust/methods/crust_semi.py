"""Two networks that tell each other how far to believe each label: `crust`'s sibling for those who have the time.

Both train on everyone by the loss of `crust`, which is the more bounded, the more noise those held out show. What the
networks have said of an example on its earlier visits, averaged, and the noise rate give the probabilities of its true
label (`likely_labels`): the given label counts as much as it is likely right, and the guesses for the rest a part of
that. Where no label seems wrong it is plain training. docs/methods/crust-semi.md has what each part is worth.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.coreset_rules import BOUND_AT, HELD_MEMORY
from crust.training.epoch_scaling import decay_of_average, warmup_of
from crust.training.losses import one_hot, towards_sce
from crust.training.method import Batch, Method, Output, Selection, Settings, Stage
from crust.training.noise_estimation import HeldOutNoise, Rate, held_out_noise

SMALLEST = 1e-6  # probability: averages in float32 know no smaller one
PIECE = 65536  # examples at once, where all are gone through


def likely_labels(probabilities: Tensor, y: Tensor, rate: float) -> Tensor:
    """The probabilities of each true label, by what is predicted and what is given: Bayes' rule for symmetric noise.

    Args:
        probabilities: predicted, a row an example.
        y: the given labels.
        rate: the share of wrong labels, which may be any other class.

    Example:
        >>> p, y = torch.tensor([[0.98, 0.01, 0.01], [0.6, 0.3, 0.1]]), torch.tensor([1, 1])
        >>> [[round(value, 2) for value in row] for row in likely_labels(p, y, 0.2).tolist()]
        [[0.92, 0.07, 0.01], [0.19, 0.77, 0.03]]
        >>> likely_labels(p, y, 0.0).tolist()  # no label is wrong
        [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    classes = probabilities.shape[1]
    given = one_hot(y, classes)
    noise = given * (1 - rate) + (1 - given) * (rate / max(1, classes - 1))
    found = probabilities.clamp_min(SMALLEST) * noise
    return found / found.sum(dim=1, keepdim=True)


class CrustSemiSettings(Settings):
    noise_rate: Rate = Field("estimate", description="the share of wrong labels, or where to take it from")
    judges: Literal["other", "both"] = Field(
        "other", description="whose averaged predictions a network's labels are judged by: the other's, or both"
    )
    guesses: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how much the guessed labels count beside the given one: 0 not, 1 as likely as they are",
    )
    memory: float = Field(0.7, ge=0, lt=1, description="how much of what earlier visits said is kept")
    bound: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = Field(
        "auto", description="the loss, from cross-entropy (0) to symmetric cross-entropy (1); auto: by noise"
    )
    begin: float = Field(0.1, ge=0, le=1, description="share of the epochs before labels are judged at all")
    ramp: float = Field(0.1, ge=0, le=1, description="share of the epochs until they are judged in full")
    averaged: bool = Field(
        True, description="keep and measure weights averaged over about an epoch, where ema does not say otherwise"
    )


class CrustSemi(Method):
    name = "crust-semi"
    summary = "two networks, each trained on every label as far as the other believes it"
    networks = 2
    Settings = CrustSemiSettings
    settings: CrustSemiSettings
    estimates_itself = True  # by those held out

    def __init__(self, settings: CrustSemiSettings):
        super().__init__(settings)
        self.ema: float | None = None  # None: as the experiment says
        self.seen: Tensor | None = None  # (2, n, classes): what each network said on earlier visits, averaged
        self.held: NDArray[np.floating] | None = None  # the same for those held out, by the first network
        self.noise: HeldOutNoise | None = None
        self.own: NDArray[np.float32] | None = None  # how likely each given label is, by both, at the last epoch's end

    def begin_run(self, context: Context) -> None:
        if self.settings.averaged and context.experiment.ema is None:
            self.ema = decay_of_average(context.n, context.experiment.batch_size)

    def stages(self) -> list[Stage]:
        return [Stage(ema=self.ema)]

    def begin_stage(self, context: Context) -> None:
        self.seen = torch.zeros(2, context.n, context.classes, device=context.device)

    def begin_epoch(self, context: Context) -> Selection:
        assert self.seen is not None
        self.seen = self.seen.to(context.device)
        if context.epoch:
            self._listen(context)
        self.visited: list[NDArray[np.int64]] = []  # in this epoch, by this process
        self.rate = self._rate(context)
        self.bound = 0.0 if self.noise is None else min(1.0, self.noise.high / BOUND_AT)
        if self.settings.bound != "auto":
            self.bound = float(self.settings.bound)
        # Everyone is trained on; the weights are for the history and the audit: how likely the given label is right.
        return Selection(np.arange(context.n), self.own, facts=self._facts())

    def _listen(self, context: Context) -> None:
        """What those held out say of the noise; where nobody is, those trained on, before much is memorised."""
        known = context.noise_info.get("noise_rate")
        held = context.evaluate_validation()
        if known is not None:
            self.noise = HeldOutNoise(float(known.value), math.inf, 1.0, False, float(known.value))
        elif held is not None and context.validation is not None:
            assert held.probabilities is not None
            old = held.probabilities if self.held is None else self.held
            self.held = (HELD_MEMORY * old + (1 - HELD_MEMORY) * held.probabilities).astype(np.float32)
            self._least(held_out_noise(self.held, context.validation.labels))
        elif context.epoch <= max(1, warmup_of(None, context.epochs)):
            assert self.seen is not None
            self._least(held_out_noise(self.seen.mean(dim=0).cpu().numpy(), context.labels))

    def _least(self, found: HeldOutNoise) -> None:
        self.noise = found if self.noise is None else self.noise.least(found)

    def _rate(self, context: Context) -> float:
        """The noise rate that labels are judged by: none at first, when networks know nothing."""
        if self.noise is None:
            return 0.0
        passed = context.epoch - self.settings.begin * context.epochs
        return self.noise.rate * float(np.clip(passed / max(1.0, self.settings.ramp * context.epochs), 0, 1))

    def _facts(self) -> dict[str, Any]:
        """For the history."""
        if self.noise is None:
            return {}
        noise = {"low": self.noise.low, "rate": self.noise.rate, "high": self.noise.disagreement}
        found: dict[str, Any] = {"noise_range": {name: round(value, 4) for name, value in noise.items()}}
        return found if self.own is None else {**found, "believed": round(float(self.own.mean()), 4)}

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        """Each label as far as it is believed, and the guesses for it as far as they count."""
        assert self.seen is not None
        where, y = context.tensor(batch.index), one_hot(batch.y, context.classes)
        self._remember(outputs, batch.index, context)
        bounds = torch.full((len(y),), self.bound, device=y.device)
        found: list[Tensor | None] = []
        for k, output in enumerate(outputs):
            target = y
            if self.rate > 0:
                judge = self.seen[1 - k, where] if self.settings.judges == "other" else self.seen[:, where].mean(dim=0)
                likely = likely_labels(judge, batch.y, self.rate)
                target = likely * (y + self.settings.guesses * (1 - y))
            found.append(towards_sce(output.logits, target, bounds))
        return found

    def _remember(self, outputs: list[Output], index: NDArray[np.int64], context: Context) -> None:
        """Move the averages towards what the networks say now; on the first visit that is all there is."""
        assert self.seen is not None
        where = context.tensor(index)
        for k, output in enumerate(outputs):
            old, now = self.seen[k, where], output.logits.detach().softmax(dim=1)
            known = (old.sum(dim=1, keepdim=True) > 0).to(now.dtype) * self.settings.memory
            self.seen[k, where] = (known * old + (1 - known) * now).to(old.dtype)
        self.visited.append(index)

    def end_epoch(self, context: Context) -> None:
        assert self.seen is not None
        if context.processes.count > 1:
            mine = np.unique(np.concatenate([np.empty(0, np.int64), *self.visited]))
            rows = self.seen[:, context.tensor(mine)].cpu().numpy()
            for index, values in context.processes.gather((mine, rows)):
                self.seen[:, context.tensor(index)] = context.tensor(values)
        if self.rate > 0:
            y = torch.from_numpy(context.labels)
            parts = [
                likely_labels(
                    self.seen[:, first : first + PIECE].mean(dim=0),
                    y[first : first + PIECE].to(context.device),
                    self.rate,
                ).gather(1, y[first : first + PIECE, None].to(context.device))[:, 0]
                for first in range(0, context.n, PIECE)
            ]
            self.own = torch.cat(parts).cpu().numpy()

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """How unlikely both networks together find each given label."""
        return {} if self.own is None else {"disbelief": 1 - self.own.astype(np.float64)}

    def state(self) -> dict[str, Any]:
        found = {"seen": self.seen, "held": self.held, "own": self.own}
        noise = {} if self.noise is None else {"noise": list(dataclasses.astuple(self.noise))}
        return {name: value for name, value in found.items() if value is not None} | noise

    def load_state(self, state: dict[str, Any]) -> None:
        self.seen, self.held, self.own = (state.get(name) for name in ("seen", "held", "own"))
        self.noise = HeldOutNoise(*state["noise"]) if "noise" in state else None
