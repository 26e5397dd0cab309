"""Forward correction (Patrini et al. 2017): learn how labels go wrong, then let predictions go wrong the same way.

Two whole trainings. The first learns the noisy labels; what its best weights say of one sure example of each class is
taken for the matrix of the noise. The second begins anew and is asked for the noisy label through that matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from crust.training.context import Context
from crust.training.losses import anchor_T, corrected_nll, cross_entropy
from crust.training.method import Batch, Method, Output, Settings, Stage

MANY = 50  # classes from which on the surest example is the anchor, as published for CIFAR-100


class FCorrectionSettings(Settings):
    quantile: float | None = Field(None, gt=0, le=1)  # of the anchors; null: 0.97, with 50 classes or more 1 (surest)
    smallest: float = Field(0.0, ge=0, lt=1)  # entries of the matrix below this are zero
    identity: float = Field(0.0, ge=0, le=1)  # share of the identity in the matrix
    retrain: bool = True  # False: go on from the first training's weights, as some comparisons do
    first_epochs: int | None = Field(None, ge=1)  # of the first training; null: as many as of the second


class FCorrection(Method):
    name = "f-correction"
    summary = "estimate the noise matrix from a first training, then train anew through it"
    Settings = FCorrectionSettings
    settings: FCorrectionSettings

    def __init__(self, settings: FCorrectionSettings):
        super().__init__(settings)
        self.T: NDArray[np.float64] | None = None

    def stages(self) -> list[Stage]:
        start: Any = "initial" if self.settings.retrain else "keep"
        return [
            Stage("estimate", self.settings.first_epochs, end="best", select_by="val_loss", counts=False),
            Stage("corrected", start=start, select_by="method"),
        ]

    def end_stage(self, context: Context) -> None:
        if self.T is None:
            quantile = self.settings.quantile or (1.0 if context.classes >= MANY else 0.97)
            found = context.predict().probabilities
            self.T = adjusted(
                anchor_T(found, quantile if quantile < 1 else None), self.settings.smallest, self.settings.identity
            )

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        if self.T is None:
            return [cross_entropy(outputs[0].logits, batch.y)]
        return [corrected_nll(outputs[0].logits, torch.as_tensor(self.T, device=context.device), batch.y)]

    def score(self, probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
        """Minus the corrected loss of the (noisy) validation set."""
        assert self.T is not None
        noisy = (probabilities @ self.T)[np.arange(len(labels)), labels]
        return float(np.log(np.maximum(noisy, 1e-7)).mean())

    def state(self) -> dict[str, Any]:
        return {} if self.T is None else {"T": self.T}

    def load_state(self, state: dict[str, Any]) -> None:
        self.T = state.get("T")


def adjusted(T: NDArray[np.float64], smallest: float, identity: float) -> NDArray[np.float64]:
    """The two knobs of the published code, both off by default: no tiny entries, and a share of the identity.

    Example:
        >>> adjusted(np.array([[0.9, 0.1], [0.3, 0.7]]), 0.2, 0.5).tolist()
        [[1.0, 0.0], [0.15, 0.85]]
    """
    kept = np.where(np.less(T, smallest), 0.0, T)
    sums = kept.sum(axis=1, keepdims=True)
    kept = np.where(sums > 0, kept / np.where(sums > 0, sums, 1.0), np.eye(len(T)))
    return identity * np.eye(len(T)) + (1 - identity) * kept
