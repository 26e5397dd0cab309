"""Losses and choices that several methods are made of: plain functions on tensors."""

from __future__ import annotations

import torch  # noqa: F401 - for the examples
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
