"""Losses and choices that several methods are made of: plain functions on tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.errors import InputError


def cross_entropy(logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean cross-entropy; a weight multiplies its example's loss, and the mean is over the examples."""
    losses = F.cross_entropy(logits, y, reduction="none")
    return (losses if weight is None else losses * weight).mean()


def soft_cross_entropy(logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """The same for labels that are distributions."""
    losses = -(target * F.log_softmax(logits, dim=1)).sum(dim=1)
    return (losses if weight is None else losses * weight).mean()


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Labels as rows with a single one."""
    # Not F.one_hot: it asks for the largest label, and the device would have to answer.
    return torch.zeros(len(y), classes, device=y.device).scatter_(1, y[:, None], 1.0)


def target_rows(target: Any, n: int, classes: int, what: str = "the labels") -> Tensor:
    """Labels of n examples, which are numbers or rows of shares, as rows; refused where they are neither.

    Numbers on a GPU are not looked at: it would have to answer.

    Example:
        >>> target_rows(torch.tensor([1, 0]), 2, 2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        >>> target_rows(torch.tensor([1, 7]), 2, 2)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: the labels hold 7, but there are 2 classes: give numbers from 0 to 1
    """
    if not isinstance(target, Tensor) or target.is_complex() or len(target.shape) not in (1, 2) or len(target) != n:
        shape = f" of shape {tuple(target.shape)}" if isinstance(target, Tensor) else ""
        raise InputError(
            f"{what} of {n} examples are a {type(target).__name__}{shape}: give a tensor, one number an example",
            code="batch-labels",
        )
    if target.dim() == 2:
        if not target.is_floating_point() or target.shape[1] != classes:
            raise InputError(
                f"{what} have shape {tuple(target.shape)}, but there are {classes} classes: give a share of each",
                code="batch-labels",
            )
        return target.float()
    if target.device.type == "cpu":
        odd = target[(target != target.long()) | (target < 0) | (target >= classes)]
        if len(odd):
            raise InputError(
                f"{what} hold {odd[0].item():g}, but there are {classes} classes: give numbers from 0 to {classes - 1}",
                code="label-range",
            )
    return one_hot(target.long(), classes)


def mix(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """share * a + (1 - share) * b, a share for each row."""
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
    surest may be outliers, so those from quantile q of the column on are passed over; but no more than half of the
    examples that are predicted to be of the class, or the anchor of a rare class would be of another one.

    Args:
        P: probabilities, a row an example.
        q: the quantile; None: pass nobody over.

    Returns:
        The matrix; its rows sum to 1.
    """
    n = len(P)
    # By rank: by value, all that are equally sure, as those of a saturated softmax, would be passed over at once.
    place = 0 if q is None else min(n - math.ceil(q * (n - 1)), n - 1)
    classes = np.arange(P.shape[1])
    places = np.minimum(place, np.bincount(P.argmax(axis=1), minlength=len(classes)) // 2)
    anchors = np.argsort(-np.asarray(P, np.float64), axis=0, kind="stable")[places, classes]
    T = np.asarray(P, np.float64)[anchors]
    return T / T.sum(axis=1, keepdims=True)


def corrected_nll(logits: Tensor, T: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """Cross-entropy of the noisy label when the prediction has gone through the noise T, P(given | true): -log (p T)_y.

    Reference:
        Patrini et al.: Making Deep Neural Networks Robust to Label Noise: a Loss Correction Approach, CVPR 2017.
    """
    p = F.softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=1)
    noisy = (p * T.to(p)[:, y].T).sum(dim=1)
    losses = -noisy.clamp_min(1e-7).log()
    return (losses if weight is None else losses * weight).mean()


def log_abs_det(logits: Tensor, y: Tensor) -> Tensor:
    """log |det U| of U = Σ onehot(y) pᵀ, the joint counts of given labels and predictions, in float64.

    It is -inf where U is singular, as it is where a class does not occur in y.

    Reference:
        Xu et al.: L_DMI: A Novel Information-theoretic Loss Function for Training Deep Nets Robust to Label Noise,
        NeurIPS 2019.
    """
    p = F.softmax(logits.double(), dim=1)
    U = one_hot(y, logits.shape[1]).to(p).T @ p
    return torch.linalg.slogdet(U).logabsdet


def gce(logits: Tensor, y: Tensor, q: float = 0.7, weight: Tensor | None = None) -> Tensor:
    """Generalised cross-entropy, (1 - p_y^q) / q: the mean absolute error at q = 1, cross-entropy as q goes to 0.

    Reference:
        Zhang, Sabuncu: Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels, NeurIPS
        2018.

    Example:
        >>> z, y = torch.zeros(1, 4), torch.tensor([2])
        >>> float(gce(z, y, 1.0)), round(float(gce(z, y, 0.5)), 6)
        (0.75, 1.0)
    """
    own = F.log_softmax(logits, dim=1).gather(1, y[:, None])[:, 0]
    losses = -torch.expm1(q * own) / q if q else -own
    return (losses if weight is None else losses * weight).mean()


def towards_sce(logits: Tensor, target: Tensor, bound: Tensor, weight: Tensor | None = None) -> Tensor:
    """Between cross-entropy (a bound of 0) and symmetric cross-entropy (1), as each example's bound says.

    Symmetric cross-entropy hardly pulls at labels that the network finds unlikely, but never lets go of them. A mixed
    label is taken part by part: the mean of the losses of its classes.

    Example:
        >>> z, y = torch.randn(3, 4), torch.tensor([0, 1, 3])
        >>> both = [sce(z, y), towards_sce(z, one_hot(y, 4), torch.ones(3))]
        >>> bool(torch.isclose(*both))
        True
    """
    log_p = F.log_softmax(logits, dim=1)
    own, reverse = -(target * log_p).sum(dim=1), -(target * torch.expm1(log_p)).sum(dim=1)
    losses = (1 - (1 - SCE_ALPHA) * bound) * own - SCE_LOG_ZERO * bound * reverse
    return (losses if weight is None else losses * weight).mean()


SCE_ALPHA, SCE_LOG_ZERO = 0.1, -4.0  # as its authors have them for CIFAR-10


def sce(
    logits: Tensor,
    y: Tensor,
    alpha: float = SCE_ALPHA,
    beta: float = 1.0,
    log_zero: float = SCE_LOG_ZERO,
    weight: Tensor | None = None,
) -> Tensor:
    """Symmetric cross-entropy: alpha times cross-entropy plus beta times its reverse, -Σ p log y with log 0 := -4.

    Reference:
        Wang et al.: Symmetric Cross Entropy for Robust Learning with Noisy Labels, ICCV 2019.

    Example:
        >>> z, y = torch.zeros(1, 4), torch.tensor([2])
        >>> float(sce(z, y, alpha=0.0, beta=1.0))  # three quarters of the probability are elsewhere
        3.0
    """
    own = F.log_softmax(logits, dim=1).gather(1, y[:, None])[:, 0]
    losses = -alpha * own + beta * log_zero * torch.expm1(own)  # expm1: minus the probability of all other classes
    return (losses if weight is None else losses * weight).mean()
