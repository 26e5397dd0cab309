"""The student: cross-entropy, each example weighed by the mentor."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust._util import seeding
from crust.data.batches import split_batches
from crust.errors import InputError
from crust.methods.mentornet import curricula
from crust.methods.mentornet.mentor import Mentor, from_table, grid, taught
from crust.training.context import Context
from crust.training.distributed import Tally
from crust.training.losses import cross_entropy
from crust.training.method import Batch, Known, Method, Output, Selection, Settings, Stage
from crust.training.noise_estimation import Rate


class MentorNetSettings(Settings):
    variant: Literal["pd", "self-paced", "dd"] = Field(
        "pd", description="of the mentor: a predefined curriculum, self-paced, or learned from clean labels"
    )
    noise_rate: Rate = Field("estimate", description="chooses the percentile, where that is auto")
    percentile: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = Field(
        "auto", description="of the losses: the threshold"
    )
    decay: float = Field(0.5, ge=0, lt=1, description="how much of the moving percentile is kept each batch")
    first: Literal["percentile", "zero"] = Field("percentile", description="where the moving percentile begins")
    burn_in: Annotated[int, Field(ge=0, le=100)] | Literal["auto"] = Field(
        "auto", description="hundredths of the run in which all weigh 1"
    )
    dropout: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        "auto", description="share of a batch left out at random"
    )
    scale_decay: bool = Field(True, description="weight decay times the mean weight of the batch, for sgd and adam")
    mentor_steps: int = Field(600, ge=1, description="in which a mentor is trained")
    clean_share: float = Field(0.0, ge=0, le=1, description="dd: of the examples, whose true labels it may see")
    first_stage: Literal["all", "clean"] = Field(
        "all", description="dd: who is trained on while the losses of the clean are written down"
    )


class MentorNet(Method):
    name = "mentornet"
    summary = "each example weighed by a small network that was taught a curriculum beforehand"
    needs = "the noise rate (estimated); variant dd: some true labels"
    Settings = MentorNetSettings
    settings: MentorNetSettings
    state_names = ("threshold", "error_scores", "dump")

    def __init__(self, settings: MentorNetSettings):
        super().__init__(settings)
        if settings.variant == "dd" and not settings.clean_share:
            raise InputError(
                "mentornet's variant dd learns from true labels of some examples: allow it a clean_share of them, "
                "such as 0.1, or use another variant",
                code="missing-setting",
            )
        fixed = settings.variant == "self-paced" or settings.percentile != "auto"
        self.estimates_itself = fixed  # the noise rate then chooses nothing
        self.mentor: Mentor | None = None
        self.threshold: float | None = None if settings.first == "percentile" else 0.0
        self.dump: NDArray[np.float32] | None = None  # (epochs, clean examples): losses of the variant dd
        self._losses = np.empty(0, np.float32)  # of this epoch in the first stage of dd; nan: not by this process
        self._facts: dict[str, Any] = {}
        self._percentile = 0.0
        self._steps = 1

    def stages(self) -> list[Stage]:
        """One; before it, for the variant dd, plain training in which losses of clean examples are written down."""
        student = Stage(start="initial" if self.settings.variant == "dd" else "keep")
        if self.settings.variant == "dd":
            return [Stage("losses", counts=False, select_by="last"), student]
        return [student]

    def begin_run(self, context: Context) -> None:
        self.error_scores = Tally(context.n)
        if self.settings.variant == "dd" and context.true_labels is None:
            raise InputError(
                "mentornet's variant dd needs true labels: give true_labels, or use another variant",
                code="missing-true-labels",
            )

    def begin_stage(self, context: Context) -> None:
        if self.settings.variant == "dd" and self.dump is None:
            clean = self._clean(context)
            context.noise_info["clean_labels"] = Known(len(clean), "true")
            self.dump = np.empty((0, len(clean)), np.float32)
        elif self.settings.variant == "pd":
            self._teach(context)

    def end_stage(self, context: Context) -> None:
        if self._dumping:
            self._teach(context)

    @property
    def _dumping(self) -> bool:
        return self.settings.variant == "dd" and self.mentor is None

    def _clean(self, context: Context) -> NDArray[np.int64]:
        """The examples whose true labels may be seen; always the same."""
        k = max(2, round(self.settings.clean_share * context.n))
        rng = seeding.numpy_rng(context.settings.seed, "clean")
        return np.sort(rng.permutation(context.n)[:k])

    def _teach(self, context: Context) -> None:
        """The first process teaches the mentor, on the CPU; the others copy it."""
        weights = None
        if context.processes.first:
            generator = seeding.torch_rng(context.settings.seed, "mentor")
            steps = self.settings.mentor_steps
            if self.settings.variant == "pd":
                weights = taught(grid, steps, generator).state_dict()
            else:
                weights = taught(from_table(self._rows(context)), steps, generator, binary=True).state_dict()
        self._hire(context.processes.gather(weights)[0])

    def _hire(self, weights: dict[str, Tensor]) -> None:
        self.mentor = Mentor(torch.Generator().manual_seed(0)).requires_grad_(False).eval()
        self.mentor.load_state_dict(weights)

    def _rows(self, context: Context) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Loss, difference from the 90th percentile of all, time, and whether the label is right."""
        assert self.dump is not None
        assert context.true_labels is not None
        clean, epochs = self._clean(context), len(self.dump)
        right = (context.labels == context.true_labels)[clean]
        rng = seeding.numpy_rng(context.settings.seed, "times")
        times = (100 * (np.arange(epochs)[:, None] + rng.random(self.dump.shape)) / context.epochs).astype(np.int64)
        known = np.isfinite(self.dump)
        loss = torch.from_numpy(self.dump[known])
        wanted = torch.from_numpy(np.broadcast_to(right, self.dump.shape)[known].astype(np.float32))
        return loss, loss - curricula.nearest_rank(loss, 0.9), torch.from_numpy(times[known]), wanted

    # ------------------------------------------------------------ an epoch

    def begin_epoch(self, context: Context) -> Selection | None:
        self._facts = {}
        if self._dumping:
            self._losses = np.full(context.n, np.nan, np.float32)
            everyone = self.settings.first_stage == "all"
            return Selection(np.arange(context.n) if everyone else self._clean(context), facts=self._facts)
        settings = self.settings
        if settings.percentile != "auto":
            self._percentile = settings.percentile
        else:
            known = context.noise_info.get("noise_rate")
            self._percentile = curricula.percentile(settings.variant, 0.0 if known is None else known.value)
        self._facts["percentile"] = self._percentile
        if self.mentor is not None:
            self.mentor.to(context.device)
        batches = len(split_batches(np.arange(context.n), context.settings.batch_size))
        self._steps = -(-batches // context.processes.count)
        return Selection(np.arange(context.n), facts=self._facts)

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        logits = outputs[0].logits
        losses = F.cross_entropy(logits.detach(), batch.y, reduction="none")
        if self._dumping:
            self._losses[batch.index] = losses.cpu().numpy()
            return [cross_entropy(logits, batch.y)]
        time = self._time(context)
        weights = self._weigh(losses, time, batch.index) * self._kept(len(losses), time, context)
        mean = float(weights.mean())
        if not mean:
            return [None]  # nobody counts: no step
        loss = cross_entropy(logits, batch.y, weights)
        settings = context.settings
        if self.settings.scale_decay and mean < 1 and settings.weight_decay and settings.optimizer != "adamw":
            trained = [p for p in context.networks[0].parameters() if p.requires_grad]
            size = torch.stack([p.square().sum() for p in trained]).sum()
            excess = (mean - 1) * settings.weight_decay / 2 * size  # the optimizer adds all of the decay
            loss = loss + excess - excess.detach()  # changes the gradient, not the loss that is shown
        return [loss]

    def _time(self, context: Context) -> int:
        """Hundredths of the training; the variant dd stops the clock after the burn-in."""
        time = 100 * (context.epoch * self._steps + context.step) // (context.epochs * self._steps)
        return min(time, self._burn_in) if self.settings.variant == "dd" else time

    @property
    def _burn_in(self) -> int:
        given = self.settings.burn_in
        return curricula.BURN_IN[self.settings.variant] if given == "auto" else given

    def _weigh(self, losses: Tensor, time: int, index: NDArray[np.int64]) -> Tensor:
        """The mentor's weights of a batch; it moves the threshold first."""
        settings = self.settings
        self.threshold = curricula.moved(self.threshold, losses, self._percentile, settings.decay)
        if time < self._burn_in - 1:
            return torch.ones_like(losses)
        difference = losses - self.threshold
        if self.mentor is None:
            weights = curricula.self_paced(difference)
        else:
            weights = self.mentor.weigh(losses, difference, time)
        self.error_scores.count(index, 1 - weights.cpu().numpy())
        return weights

    def _kept(self, n: int, time: int, context: Context) -> Tensor:
        """One for those who are not left out at random, at least for one."""
        given = self.settings.dropout
        share = curricula.dropout(self.settings.variant, time) if given == "auto" else given
        kept = torch.ones(n)
        if share:
            kept[context.rng("dropout", step=True).permutation(n)[max(1, int(n * (1 - share) + 1e-9)) :]] = 0
        return kept.to(context.device)

    def end_epoch(self, context: Context) -> None:
        processes = context.processes
        if self._dumping:
            assert self.dump is not None
            clean = self._clean(context)
            row = np.full(len(clean), np.nan, np.float32)
            for part in processes.gather(self._losses[clean]):
                row = np.where(np.isnan(row), part, row)
            self.dump = np.concatenate([self.dump, row[None]])
            return
        new = self.error_scores.gather(processes)
        thresholds = [value for value in processes.gather(self.threshold) if value is not None]
        self.threshold = float(np.mean(thresholds)) if thresholds else None
        self._facts |= {"threshold": self.threshold, "mean_weight": 1.0 if new is None else 1 - new}

    # ------------------------------------------------------------ what is left

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """One minus the mean weight that the mentor has given since the burn-in."""
        return {"mentor": self.error_scores.rate()} if self.error_scores.visits.any() else {}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "mentor": None if self.mentor is None else self.mentor.state_dict()}

    def load_state(self, state: dict[str, Any]) -> None:
        weights = state.pop("mentor")
        super().load_state(state)
        if weights is not None:
            self._hire(weights)
