"""Losses and choices that several methods are made of: plain functions on tensors."""

from __future__ import annotations

import math

import numpy as np
import torch  # noqa: F401 - for the examples
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name


def cross_entropy(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy; a weight multiplies its example's loss, and the mean is over the examples.

    Example:
        >>> float(cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))) == float(torch.tensor(4.0).log())
        True
    """
    losses = F.cross_entropy(logits, y, reduction="none")
    return (losses if weight is None else losses * weight).mean()


def soft_cross_entropy(logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """The same for labels that are distributions.

    Example:
        >>> z, y = torch.randn(3, 4), torch.tensor([0, 1, 3])
        >>> bool(torch.isclose(soft_cross_entropy(z, one_hot(y, 4)), cross_entropy(z, y)))
        True
    """
    losses = -(target * F.log_softmax(logits, dim=1)).sum(dim=1)
    return (losses if weight is None else losses * weight).mean()


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Labels as rows with a single one.

    Example:
        >>> one_hot(torch.tensor([1]), 3).tolist()
        [[0.0, 1.0, 0.0]]
    """
    return F.one_hot(y, classes).float()


def mix(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """share * a + (1 - share) * b, a share for each row.

    Example:
        >>> mix(torch.ones(2, 3), torch.zeros(2, 3), torch.tensor([1.0, 0.5]))[:, 0].tolist()
        [1.0, 0.5]
    """
    share = share.reshape(-1, *[1] * (a.dim() - 1)).to(a.dtype)
    return share * a + (1 - share) * b


def small_loss(losses: Tensor, n: int) -> Tensor:
    """Positions of the n smallest losses, in the order of the batch; of equal ones the first.

    Example:
        >>> small_loss(torch.tensor([3.0, 1.0, 2.0, 1.0]), 3).tolist()
        [1, 2, 3]
    """
    return losses.detach().argsort(stable=True)[:n].sort().values


def anchor_T(P: NDArray[np.floating], q: float | None = 0.97) -> NDArray[np.float64]:  # noqa: N802 - its usual name
    """A transition matrix from the predictions of a network that has learnt the noisy labels (Patrini et al. 2017).

    Row i is what the network says of an anchor of class i: the example that is surest to be of that class. The very
    surest may be outliers, so those from quantile q of the column on are passed over.

    Args:
        P: probabilities, a row an example.
        q: the quantile; None: pass nobody over.

    Returns:
        The matrix; its rows sum to 1.

    Example:
        >>> P = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
        >>> anchor_T(P, None).tolist(), anchor_T(P, 0.97).tolist()
        ([[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]])
    """
    n = len(P)
    # By rank: by value, all that are equally sure, as those of a saturated softmax, would be passed over at once.
    place = 0 if q is None else min(n - math.ceil(q * (n - 1)), n - 1)
    anchors = np.argsort(-np.asarray(P, np.float64), axis=0, kind="stable")[place]
    T = np.asarray(P, np.float64)[anchors]
    return T / T.sum(axis=1, keepdims=True)
