"""T-Revision (Xia et al. 2019): importance weights from an estimated transition matrix, which training then revises.

Three stages. Plain training, whose early-stopped network gives the matrix by its anchors. Training in which each loss
weighs what the network holds of its label, clean against noisy. The same with a slack on the matrix that is trained
too, through the weights.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.training.context import Context
from crust.training.epoch_scaling import stretched
from crust.training.losses import anchor_T, cross_entropy
from crust.training.method import Batch, Method, Output, Selection, Settings, Stage

FLOOR = 1e-6  # of a probability that is divided by


def project_transition(T: Tensor, slack: Tensor) -> Tensor:
    """T + slack as a transition matrix: nothing below 0, rows that sum to 1; a row that has nothing left is T's own."""
    moved = (T + slack).clamp(min=0.0)
    total = moved.sum(dim=1, keepdim=True)
    return torch.where(total > FLOOR, moved / total.clamp(min=FLOOR), T)


def noisy(probabilities: Tensor, T: Tensor, y: Tensor) -> Tensor:
    """The chance of each given label once the noise has been at work: (pT) at y.

    Example:
        >>> noisy(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.8, 0.2], [0.0, 1.0]]), torch.tensor([1])).tolist()
        [0.20000000298023224]
    """
    return (probabilities * T.T[y]).sum(dim=1)


def importance(logits: Tensor, y: Tensor, T: Tensor, cap: float) -> Tensor:
    """What an example weighs: the chance that its label is clean's, over the chance that it is given."""
    p = torch.softmax(logits, dim=1)
    return _capped_ratio(p, y, noisy(p, T, y), cap)


def released_importance(logits: Tensor, y: Tensor, T: Tensor, slack: Tensor, cap: float) -> Tensor:
    """As the published code has it: example i of a batch is given T + (i + 1) slack, as it comes out."""
    p = torch.softmax(logits, dim=1)
    count = torch.arange(1, len(y) + 1, device=y.device)
    return _capped_ratio(p, y, noisy(p, T, y) + count * noisy(p, slack, y), cap)


def reweighted(logits: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Mean of weight times cross-entropy; whether gradients go through the weight is for the weight to say."""
    return (weight * F.cross_entropy(logits, y, reduction="none")).mean()


def prob_label_wrong(probabilities: NDArray[Any], labels: NDArray[np.int64], T: NDArray[Any]) -> NDArray[np.float64]:
    """One minus the chance that a given label is the true one: 1 - p_y T_yy / (pT)_y."""
    p = np.asarray(probabilities, np.float64)
    kept = p[np.arange(len(p)), labels] * T[labels, labels]
    return 1.0 - kept / np.maximum((p * T.T[labels]).sum(axis=1), FLOOR)


def _capped_ratio(p: Tensor, y: Tensor, below: Tensor, cap: float) -> Tensor:
    return (p.gather(1, y[:, None])[:, 0] / below.clamp(min=FLOOR)).clamp(max=cap)


class TRevisionSettings(Settings):
    estimate_epochs: int | None = Field(
        None, ge=1, description="of the first training; null: as many updates as in a tenth of a published run"
    )
    anchors: Literal["auto", "percentile", "argmax"] = Field(
        "auto", description="how the matrix is estimated; auto: argmax above 20 classes"
    )
    revision: Literal["corrected", "released"] = Field(
        "corrected", description="released: T + (i + 1) slack for example i of a batch"
    )
    network_rate: float = Field(5e-7, gt=0, description="of the network while T is revised, by Adam")
    slack_rate: float = Field(0.0001, gt=0, description="learning rate of the slack")
    cap: float = Field(20.0, ge=1, description="no example weighs more")


class TRevision(Method):
    name = "t-revision"
    summary = "importance weights from an estimated transition matrix, which is then revised by training"
    Settings = TRevisionSettings
    settings: TRevisionSettings
    state_names = ("T", "slack", "error_scores")

    def __init__(self, settings: TRevisionSettings):
        super().__init__(settings)
        self.first = settings.estimate_epochs  # of the first stage; None until the data is known
        self.T: Tensor | None = None  # as estimated
        self.slack: Tensor | None = None  # of the last stage
        self.error_scores: NDArray[np.float64] | None = None

    def begin_run(self, context: Context) -> None:
        own, epochs = self.settings.estimate_epochs, context.experiment.epochs
        self.first = own or stretched(20, 200, epochs, context.n, of_examples=45_000)

    def stages(self) -> list[Stage]:
        settings = self.settings
        return [
            Stage("estimate", epochs=self.first, end="best", counts=False),
            Stage("reweight", select_by="method", end="best", counts=False),
            Stage(
                "revise",
                optimizer="adam",
                learning_rate=settings.network_rate,
                extra_learning_rate=settings.slack_rate,
                weight_decay=1e-4,
                schedule=False,
                select_by="method",
            ),
        ]

    def begin_stage(self, context: Context) -> None:
        if context.stage == 2:
            self.slack = torch.zeros(context.classes, context.classes, requires_grad=True)

    def extra_parameters(self) -> list[Tensor]:
        return [] if self.slack is None else [self.slack]

    def begin_epoch(self, context: Context) -> Selection | None:
        if self.T is None:
            return None
        return Selection(np.arange(context.n), facts={"diagonal": float(self.transition().diagonal().mean())})

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        logits, y, cap = outputs[0].logits, batch.y, self.settings.cap
        if self.T is None:
            return [cross_entropy(logits, y)]
        T = self.T.to(logits.device)
        if self.slack is None:
            return [reweighted(logits, y, importance(logits, y, T, cap).detach())]
        slack = self.slack.to(logits.device)
        if self.settings.revision == "released":
            return [reweighted(logits, y, released_importance(logits, y, T, slack, cap))]
        return [reweighted(logits, y, importance(logits, y, project_transition(T, slack), cap))]

    def anchored(self, P: NDArray[np.floating]) -> Tensor:
        """The matrix by the anchors of these predictions."""
        sharp = self.settings.anchors == "argmax" or (self.settings.anchors == "auto" and P.shape[1] > 20)
        return torch.from_numpy(anchor_T(P, None if sharp else 0.97)).float()

    def transition(self) -> NDArray[np.float64]:
        """The matrix as it stands: estimated, and revised as far as that has come."""
        assert self.T is not None
        T = self.T if self.slack is None else project_transition(self.T, self.slack.detach())
        return T.double().numpy()

    def score(self, probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
        """How often the most likely noisy label is the given one."""
        return float(((probabilities @ self.transition()).argmax(axis=1) == labels).mean())

    def end_stage(self, context: Context) -> None:
        found = context.predict().probabilities
        if self.T is None:
            self.T = self.anchored(found)
        self.error_scores = prob_label_wrong(found, context.labels, self.transition())

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """The chance that the noise made the label, by the matrix and the weights at the end of the last stage."""
        return {} if self.error_scores is None else {"flipped": self.error_scores}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        if self.slack is not None:
            self.slack.requires_grad_()
