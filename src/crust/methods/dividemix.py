"""DivideMix (Li, Socher and Hoi 2020): two networks divide the data for each other, MixMatch learns from both parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust._util.torch_modules import forward_logits
from crust.errors import InputError
from crust.training.context import Context
from crust.training.epoch_scaling import stretched
from crust.training.gaussian_mixture import clean_probability
from crust.training.losses import cross_entropy, mix, one_hot
from crust.training.method import Batch, Method, Output, Selection, Settings
from crust.training.noise_estimation import Rate

PUBLISHED = 300  # epochs of the runs that the constants are from
MANY = 100  # classes, from which on the authors use other constants


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """Probabilities with their contrast raised: p ** (1 / temperature), to sum 1 again."""
    return torch.softmax(probabilities.clamp_min(1e-30).log() / temperature, dim=-1)


def refined_targets(
    y: Tensor, trust: Tensor, labelled: Tensor, own: Tensor, both: Tensor, temperature: float
) -> Tensor:
    """What one network shall learn: labels refined with its own predictions, guesses of both where there is no label.

    Args:
        y: given labels.
        trust: how likely each is right, says the other network.
        labelled: where the label counts.
        own: this network's probabilities.
        both: the mean of both networks'.
        temperature: to sharpen with.

    Returns:
        A distribution an example.
    """
    refined = mix(one_hot(y, own.shape[1]).to(own.dtype), own, trust)
    return sharpen(torch.where(labelled[:, None], refined, both), temperature)


def divided_loss(logits: Tensor, target: Tensor, labelled: Tensor, share: float, unlabelled_weight: float) -> Tensor:
    """Cross-entropy where there is a label, squared error where it was guessed, and a pull to predict all classes.

    Both means are over as many rows as belong to the part on average, not over those that are in this batch: a part
    of one row does not count as much as one of a hundred, and an empty one is zero.
    """
    logs = F.log_softmax(logits, dim=1)
    rows, part = len(labelled), labelled.to(logits.dtype)
    supervised = -((target * logs).sum(dim=1) * part).sum() / max(1.0, rows * share)
    errors = (logs.exp() - target).square().mean(dim=1)
    unsupervised = (errors * (1 - part)).sum() / max(1.0, rows * (1 - share))
    return supervised + unlabelled_weight * unsupervised + away_from_uniform(logs)


def away_from_uniform(logs: Tensor) -> Tensor:
    """The divergence of the uniform distribution from the mean prediction of a batch."""
    rows, classes = logs.shape
    mean = torch.logsumexp(logs, dim=0) - np.log(rows)  # logs of mean probabilities
    return -mean.mean() - float(np.log(classes))


def negative_entropy(logits: Tensor) -> Tensor:
    """The mean negative entropy of predictions: added to a loss it keeps a network from being sure too soon."""
    logs = F.log_softmax(logits, dim=1)
    return (logs.exp() * logs).sum(dim=1).mean()


class DivideMixSettings(Settings):
    noise_rate: Rate = Field("estimate", description="chooses lambda_u, where that is auto")
    lambda_u: float | Literal["auto"] = Field(
        "auto", description="weight of the unlabelled part; auto: by the noise rate"
    )
    warmup: int | None = Field(
        None, ge=0, description="epochs of plain training first; null: 10 of 300 of 50,000, in proportion"
    )
    ramp: int | None = Field(None, ge=1, description="epochs until lambda_u counts in full; null: 16 of 300 of 50,000")
    threshold: float = Field(0.5, ge=0, lt=1, description="a label counts where it is more likely right than this")
    temperature: float = Field(0.5, gt=0, description="of the guessed labels: lower is sharper")
    alpha: float = Field(4.0, gt=0, description="of mixup's Beta(alpha, alpha)")
    confidence_penalty: bool = Field(False, description="during warm-up: against asymmetric noise")


class DivideMix(Method):
    name = "dividemix"
    summary = "two networks split the data by loss for each other; mixup with refined and guessed labels"
    networks = 2
    needs = "the noise rate (estimated)"
    Settings = DivideMixSettings
    settings: DivideMixSettings
    state_names = ("warmup", "trust")

    def __init__(self, settings: DivideMixSettings):
        super().__init__(settings)
        if settings.lambda_u != "auto" and settings.lambda_u < 0:
            raise InputError(
                f"setting lambda_u is {settings.lambda_u}: give a weight of 0 or more, or auto", code="bad-setting"
            )
        self.estimates_itself = settings.lambda_u != "auto"  # the noise rate then chooses nothing
        self.warmup: int | None = None
        self.trust: NDArray[np.float64] | None = None  # (2, n): network k's own opinion of each label
        self.labelled = np.ones((2, 0), bool)  # (2, n): whose label network k learns, by the other's opinion
        self.weight = 0.0

    # ------------------------------------------------------------ divide

    def train_set_pass(self, epoch: int, epochs: int) -> str | None:
        return "logits" if self.warmup is not None and epoch >= self.warmup else None

    def begin_epoch(self, context: Context) -> Selection | None:
        self.warmup = self._warmup(context)
        if context.epoch < self.warmup:
            return None
        self.trust = np.stack([clean_probability(context.evaluate_train_set(network=k).losses) for k in range(2)])
        self.labelled = np.stack([self._divide(self.trust[1 - k]) for k in range(2)])
        self.weight = unlabelled_weight(self.settings.lambda_u, context)
        facts = {"labelled": self.labelled.mean(axis=1).tolist(), "lambda_u": self.weight}
        # Everyone is trained on; the weights are for the history and the audit: whose label was counted.
        return Selection(np.arange(context.n), self.labelled.mean(axis=0).astype(np.float32), facts=facts)

    def _warmup(self, context: Context) -> int:
        if self.settings.warmup is not None:
            return self.settings.warmup
        return stretched(30 if context.classes >= MANY else 10, PUBLISHED, context.epochs, context.n)

    def _divide(self, trust: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Who is labelled; everyone, where the mixture has found nobody."""
        found: NDArray[np.bool_] = trust > self.settings.threshold
        return found if found.any() else np.ones_like(found)

    # ------------------------------------------------------------ mix

    def prepare(self, batch: Batch, context: Context) -> Batch:
        if self.trust is None or self.warmup is None or context.epoch < self.warmup:
            return batch
        if isinstance(batch.x, Mapping) or not batch.x.is_floating_point():
            raise InputError(
                "these inputs cannot be mixed, and dividemix needs that: use another method", code="cannot-mix"
            )
        views = [batch.x, context.inputs(batch.index)] if augmented(context) else [batch.x]
        guesses = [torch.stack([self._guess(view, k, context) for view in views]).mean(dim=0) for k in range(2)]
        both = (guesses[0] + guesses[1]) / 2
        rng = context.rng("mix", step=True)
        rows = len(views) * len(batch.y)
        other = context.tensor(rng.permutation(rows))
        share = float(rng.beta(self.settings.alpha, self.settings.alpha))
        shares = context.tensor(np.full(rows, max(share, 1 - share), np.float32))
        wanted, labelled = [], []
        for k in range(2):
            trust = context.tensor(self.trust[1 - k][batch.index], torch.float32)
            labelled.append(context.tensor(self.labelled[k][batch.index]))
            found = refined_targets(batch.y, trust, labelled[k], guesses[k], both, self.settings.temperature)
            found = found.repeat(len(views), 1)
            wanted.append(mix(found, found[other], shares))
        x = torch.cat(views)
        return Batch(
            mix(x, x[other], shares),
            batch.y.repeat(len(views)),
            np.tile(batch.index, len(views)),
            np.tile(batch.rows, len(views)),
            extra={"targets": wanted, "labelled": [part.repeat(len(views)) for part in labelled]},
        )

    def _guess(self, x: Tensor, network: int, context: Context) -> Tensor:
        """Probabilities of a batch, in train mode: BatchNorm shall know inputs that are not mixed, too."""
        with torch.no_grad(), context.processes.accelerator.autocast():
            logits = forward_logits(context.processes.bare(context.networks[network]), x).float()
        context.cost.spend(forward=len(logits))
        return torch.softmax(logits, dim=1)

    # ------------------------------------------------------------ learn

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if "targets" not in batch.extra:
            plain = [cross_entropy(output.logits, batch.y) for output in outputs]
            if self.settings.confidence_penalty:
                plain = [loss + negative_entropy(output.logits) for loss, output in zip(plain, outputs, strict=True)]
            return list(plain)
        weight = self.weight * self._ramped(context)
        return [
            divided_loss(
                output.logits,
                batch.extra["targets"][k],
                batch.extra["labelled"][k],
                float(self.labelled[k].mean()),
                weight,
            )
            for k, output in enumerate(outputs)
        ]

    def _ramped(self, context: Context) -> float:
        assert self.warmup is not None
        ramp = self.settings.ramp or stretched(16, PUBLISHED, context.epochs, context.n, most=0.5)
        steps = -(-context.n // (context.settings.batch_size * context.processes.count))
        return float(np.clip((context.epoch + context.step / steps - self.warmup) / ramp, 0.0, 1.0))

    # ------------------------------------------------------------ remember

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """How unlikely the mixtures of both networks find each label, in the last pass."""
        return {} if self.trust is None else {"mixture": 1 - self.trust.mean(axis=0)}


def unlabelled_weight(setting: float | Literal["auto"], context: Context) -> float:
    """The weight of the unlabelled part: the authors' choices, made by the noise rate that is known here.

    They are 0 for 20% of symmetric noise and for their asymmetric noise, which is 40% of half of the classes and so
    20% of all labels as well, 25 for 50 and 80%, and 150 with a hundred classes, over which the squared error is a
    mean. The type of the noise is not asked.
    """
    if setting != "auto":
        return setting
    if context.noise_info["noise_rate"].value < 0.35:
        return 0.0
    return 150.0 if context.classes >= MANY else 25.0


def augmented(context: Context) -> bool:
    """Whether drawing the same example again gives another view of it."""
    return context.plain is not context.train or (context.augment and context.train.kind != "features")
