"""From one look at all examples to the coreset that an epoch is trained on.

The parts of CRUST, each a plain choice: how the examples are grouped, which are chosen in a group, what they weigh,
and with whom they are mixed. The methods of the family differ in these choices only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from crust.selection import Coreset, centrality, select
from crust.training.method import Selection

Grouping = Literal["prediction", "label", "none"]
Rule = Literal["greedy", "central", "small-loss", "random"]
Budget = Literal["label", "group"]
Weights = Literal["cluster", "none"]


def choose(
    proxies: NDArray[np.floating],
    predictions: NDArray[np.int64],
    losses: NDArray[np.floating],
    labels: NDArray[np.int64],
    share: float,
    *,
    grouping: Grouping,
    selection: Rule,
    seed: int,
    budget: Budget = "group",
) -> Coreset:
    """A coreset of the given share: the rule applied in each group.

    Args:
        proxies: one gradient proxy an example.
        predictions: predicted classes.
        losses: of the given labels.
        labels: the given labels.
        share: of all examples.
        grouping: by predicted class, by given label, or not at all.
        selection: facility location, most central, smallest loss, or at random.
        seed: for `random`.
        budget: what is divided in proportion: the share of every group, or that of every given label, which then has
            those of its examples that rank highest in their groups (`central` and `small-loss` only).

    Returns:
        The coreset, with indices into all examples.

    Example:
        >>> p = np.array([[0.0], [0.1], [0.2], [5.0]])
        >>> zero = np.zeros(4, np.int64)
        >>> choose(p, zero, p[:, 0], zero, 0.25, grouping="none", selection="central", seed=0).indices.tolist()
        [1]
    """
    groups = {"prediction": predictions, "label": labels, "none": None}[grouping]
    if budget == "label":
        ranks = losses if selection == "small-loss" else _central_ranks(proxies, groups)
        return _smallest(ranks, labels, share)
    if selection == "small-loss":
        return _smallest(losses, groups, share)
    return select(proxies, share, groups=groups, algorithm=selection, seed=seed, threads=torch.get_num_threads())


def _central_ranks(proxies: NDArray[np.floating], groups: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """The share of its group that is more central than an example: comparable between groups of any size and width."""
    n = len(proxies)
    far = centrality(proxies, groups, threads=torch.get_num_threads())
    codes = np.zeros(n, np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = np.lexsort((far, codes))  # stable: of equals the lower index comes first
    sizes = np.bincount(codes)
    place = np.arange(n) - (np.cumsum(sizes) - sizes)[codes[order]]
    ranks = np.empty(n)
    ranks[order] = place / sizes[codes[order]]
    return ranks


def _smallest(losses: NDArray[np.floating], groups: NDArray[np.int64] | None, share: float) -> Coreset:
    """The examples with the smallest losses (or ranks) of each group; everyone belongs to the next smaller chosen."""
    from crust.selection.budget import resolve_k, split_budget

    n = len(losses)
    codes = np.zeros(n, np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(codes)
    budgets = split_budget(resolve_k(share, n), sizes)
    indices, owners = [], np.empty(n, np.int64)
    for group, k in enumerate(budgets):
        members = np.flatnonzero(codes == group)
        order = members[np.argsort(losses[members], kind="stable")]
        chosen = order[:k] if k else order[:1]
        indices.append(order[:k])
        owners[order] = chosen[np.minimum(np.arange(len(order)), len(chosen) - 1)]
    found = np.concatenate(indices)
    place = np.zeros(n, np.int64)
    place[found] = np.arange(len(found))
    assignment = place[owners]
    weights = np.bincount(assignment, minlength=len(found))
    far = np.abs(losses - losses[found[assignment]]).astype(np.float32)
    return Coreset(found, weights, assignment, np.zeros(len(found)), float(far.sum(dtype=np.float64)), far)


def starving(chosen: NDArray[np.int64], labels: NDArray[np.int64], least: float = 0.25) -> list[int]:
    """The given labels of which hardly anyone was chosen: less than a part of what their number would let expect.

    Example:
        >>> starving(np.array([0, 1, 2]), np.array([0, 0, 0, 1, 1, 1]))
        [1]
    """
    counts, found = np.bincount(labels), np.bincount(labels[chosen], minlength=labels.max() + 1)
    expected = len(chosen) / len(labels) * counts
    return [int(label) for label in np.flatnonzero((found < least * expected) & (counts > 0))]


def cluster_partners(coreset: Coreset, rng: np.random.Generator, each: int = 1) -> NDArray[np.int64]:
    """For each medoid `each` partners from its own cluster, at random; itself where it is alone.

    Example:
        >>> coreset = Coreset([0, 2], [2, 1], [0, 0, 1], [1.0, 1.0], 0.0, [0.0, 0.1, 0.0])
        >>> cluster_partners(coreset, np.random.default_rng(0)).tolist()
        [[1], [2]]
    """
    k = len(coreset.indices)
    others = np.ones(coreset.n, bool)
    others[coreset.indices] = False
    order = np.argsort(coreset.assignment + k * ~others, kind="stable")[: int(others.sum())]
    counts = np.bincount(coreset.assignment[order], minlength=k)
    starts = np.cumsum(counts) - counts
    drawn = starts[:, None] + (rng.random((k, each)) * np.maximum(counts, 1)[:, None]).astype(np.int64)
    own = coreset.indices[:, None]
    if not len(order):
        return np.repeat(own, each, axis=1)
    return np.where(counts[:, None] > 0, order[np.minimum(drawn, len(order) - 1)], own)


def any_partners(indices: NDArray[np.int64], rng: np.random.Generator, each: int = 1) -> NDArray[np.int64]:
    """For each member of a coreset `each` partners among all members: every member is a partner equally often.

    Example:
        >>> sorted(any_partners(np.array([3, 5, 9]), np.random.default_rng(0), 2)[:, 1].tolist())
        [3, 5, 9]
    """
    return np.stack([rng.permutation(indices) for _ in range(each)], axis=1)


def label_partners(
    indices: NDArray[np.int64], pool: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each example a partner with the same given label from the pool, at random."""
    partners = indices.copy()
    for label in np.unique(labels[indices]):
        mine = np.flatnonzero(labels[indices] == label)
        candidates = pool[labels[pool] == label]
        if len(candidates):
            partners[mine] = candidates[rng.integers(0, len(candidates), len(mine))]
    return partners


def as_selection(coreset: Coreset, weights: Weights, partners: NDArray[np.int64] | None) -> Selection:
    """The rows of an epoch: each member of the coreset once for each of its partners."""
    each = 1 if partners is None else partners.shape[1]
    indices = np.repeat(coreset.indices, each)
    scaled = None
    if weights == "cluster":
        raw = np.repeat(coreset.weights, each).astype(np.float64)
        scaled = (raw / raw.mean()).astype(np.float32)
    return Selection(indices, scaled, None if partners is None else partners.reshape(-1))
