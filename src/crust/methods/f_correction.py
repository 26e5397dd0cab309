"""Forward correction (Patrini et al. 2017): learn how labels go wrong, then let predictions go wrong the same way.

Two whole trainings. The first learns the noisy labels; what its best weights say of one sure example of each class is
taken for the matrix of the noise. The second begins anew and is asked for the noisy label through that matrix. Who
knows the matrix gives it, and only the second is trained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, field_validator
from torch import Tensor

from crust.errors import InputError
from crust.training.context import Context
from crust.training.losses import anchor_T, corrected_nll, cross_entropy
from crust.training.method import Batch, Known, Method, Output, Selection, Settings, Stage

MANY = 20  # with more classes the surest example is the anchor, as published for CIFAR-100


class FCorrectionSettings(Settings):
    quantile: float | None = Field(
        None, gt=0, le=1, description="of the anchors; null: 0.97, with more than 20 classes 1 (surest)"
    )
    smallest: float = Field(0.0, ge=0, lt=1, description="entries of the matrix below this are zero")
    identity: float = Field(0.0, ge=0, le=1, description="share of the identity in the matrix")
    retrain: bool = Field(
        True,
        description="train a second network; false: go on from the first training's weights, as some comparisons do",
    )
    first_epochs: int | None = Field(None, ge=1, description="of the first training; null: as many as of the second")
    transitions: list[list[float]] | None = Field(
        None, description="row: true class, column: given label; null: estimated"
    )

    @field_validator("transitions")
    @classmethod
    def _chances(cls, rows: list[list[float]] | None) -> list[list[float]] | None:
        if rows is not None:
            square = all(len(row) == len(rows) for row in rows)
            if not square or any(min(row) < 0 or abs(sum(row) - 1) > 1e-3 for row in rows):
                raise ValueError("give a row for each true class with the chance of every given label, summing to 1")
        return rows


class FCorrection(Method):
    name = "f-correction"
    summary = "estimate the noise matrix from a first training, then train anew through it"
    Settings = FCorrectionSettings
    settings: FCorrectionSettings
    state_names = ("T",)

    def __init__(self, settings: FCorrectionSettings):
        super().__init__(settings)
        known = settings.transitions
        self.T: NDArray[np.float64] | None = None if known is None else np.array(known)

    def stages(self) -> list[Stage]:
        start: Any = "initial" if self.settings.retrain else "keep"
        estimate = Stage("estimate", self.settings.first_epochs, end="best", select_by="val_loss", counts=False)
        corrected = Stage("corrected", start=start, select_by="method")
        return [corrected] if self.settings.transitions is not None else [estimate, corrected]

    def begin_run(self, context: Context) -> None:
        if self.T is not None and len(self.T) != context.classes:
            rows, classes = len(self.T), context.classes
            raise InputError(
                f"transitions has {rows} rows, but there are {classes} classes: give a row for each",
                code="classes-count",
            )
        if self.T is not None:  # by the chance that a label is right, on average over the classes
            context.noise_info["transitions"] = Known(round(float(self.T.diagonal().mean()), 4), "given")

    def end_stage(self, context: Context) -> None:
        if self.T is None:
            quantile = self.settings.quantile or (1.0 if context.classes > MANY else 0.97)
            found = context.predict().probabilities
            self.T = adjusted(
                anchor_T(found, quantile if quantile < 1 else None), self.settings.smallest, self.settings.identity
            )

    def begin_epoch(self, context: Context) -> Selection | None:
        if self.T is None:
            return None
        return Selection(np.arange(context.n), facts={"diagonal": float(self.T.diagonal().mean())})

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if self.T is None:
            return [cross_entropy(outputs[0].logits, batch.y)]
        return [corrected_nll(outputs[0].logits, torch.as_tensor(self.T, device=context.device), batch.y)]

    def score(self, probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
        """Minus the corrected loss of the (noisy) validation set."""
        assert self.T is not None
        noisy = (probabilities @ self.T)[np.arange(len(labels)), labels]
        return float(np.log(np.maximum(noisy, 1e-7)).mean())


def adjusted(T: NDArray[np.float64], smallest: float, identity: float) -> NDArray[np.float64]:
    """The two knobs of the published code, both off by default: no tiny entries, and a share of the identity."""
    kept = np.where(np.less(T, smallest), 0.0, T)
    sums = kept.sum(axis=1, keepdims=True)
    kept = np.where(sums > 0, kept / np.where(sums > 0, sums, 1.0), np.eye(len(T)))
    return identity * np.eye(len(T)) + (1 - identity) * kept
