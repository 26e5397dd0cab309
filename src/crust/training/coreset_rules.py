"""From one evaluation pass over all examples to the coreset that an epoch is trained on.

The parts of CRUST, each a plain choice: how the examples are grouped, which are chosen in a group, what they weigh,
and with whom they are mixed. The methods of the family differ in these choices only.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from crust._util.large_arrays import ROWS
from crust.selection import Coreset, centrality, select
from crust.selection.dealt_groups import dealt_centrality, dealt_select
from crust.selection.together import ALONE, Together
from crust.training.distributed import OwnRows
from crust.training.epoch_scaling import warmup_of
from crust.training.method import Selection
from crust.training.noise_estimation import HeldOutNoise, held_out_noise

if TYPE_CHECKING:
    from crust.gradients import GradientPass

Grouping = Literal["prediction", "label", "none"]
Rule = Literal["greedy", "central", "small-loss", "random"]
Budget = Literal["label", "group"]
Weights = Literal["cluster", "none"]

MEMORISED_GAP = 0.08  # so much oftener right by the given labels on what was trained on, and two standard errors
ENOUGH_UPDATES = 200  # of the weights, or half of the run: a network knows something
HELD_MEMORY = 0.5  # of the passes over held-out examples, which memorise nothing
LEAST_WORTH = 0.15  # others that are worth less are left out, which also saves their passes
CENTRALITY_SAMPLE = 1024  # 2 in 10,000 choices differ from those by all distances (docs/scale.md)
BOUND_AT = 0.05  # the noise rate from which on the loss is symmetric cross-entropy as its authors have it


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
    together: Together = ALONE,
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
        together: the processes, where each has some rows of the proxies; all else is known to everyone.

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
        ranks = losses if selection == "small-loss" else _central_ranks(proxies, groups, len(labels), together)
        return _smallest(ranks, labels, share)
    if selection == "small-loss":
        return _smallest(losses, groups, share)
    threads = torch.get_num_threads()
    if together.count > 1 and selection != "random":
        codes = np.zeros(len(labels), np.int64) if groups is None else groups
        return dealt_select(proxies, share, codes, together, algorithm=selection, threads=threads)
    return select(together.join(proxies), share, groups=groups, algorithm=selection, seed=seed, threads=threads)


def distances_to_group(
    proxies: NDArray[np.floating],
    groups: NDArray[np.int64] | None,
    n: int,
    together: Together = ALONE,
    device: Any = None,
) -> NDArray[np.float64]:
    """How central each of n examples is in its group, by a sample where the group is large.

    Where several processes have the proxies, large groups stay where they are and small ones are dealt out whole.
    """
    how: dict[str, Any] = {"sample": CENTRALITY_SAMPLE, "threads": torch.get_num_threads(), "device": device}
    if together.count == 1:
        return centrality(proxies, groups, **how)
    return dealt_centrality(proxies, np.zeros(n, np.int64) if groups is None else groups, together, **how)


def _central_ranks(
    proxies: NDArray[np.floating], groups: NDArray[np.int64] | None, n: int, together: Together
) -> NDArray[np.float64]:
    """The share of its group that is more central than an example: comparable between groups of any size and width."""
    far = distances_to_group(proxies, groups, n, together)
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


def underrepresented(chosen: NDArray[np.int64], labels: NDArray[np.int64], least: float = 0.25) -> list[int]:
    """The given labels of which hardly anyone was chosen: less than a part of what their number would let expect.

    Example:
        >>> underrepresented(np.array([0, 1, 2]), np.array([0, 0, 0, 1, 1, 1]))
        [1]
    """
    counts, found = np.bincount(labels), np.bincount(labels[chosen], minlength=labels.max() + 1)
    expected = len(chosen) / len(labels) * counts
    return [int(label) for label in np.flatnonzero((found < least * expected) & (counts > 0))]


class SizedCoreset:
    """A coreset that finds its own size, pass by pass over the training set.

    It begins as everyone. What held-out examples say bounds the noise (`noise_estimation.held_out_noise`), and once
    the given labels are memorised (the network agrees with those it is trained on clearly more often than with those
    held out), members are: of every given label the share that is surely right, the most central first; and everyone
    whose label the network agrees with; but no more than are right at the least noise that is likely. Probabilities
    are averaged over the passes, so that neither one epoch's whim nor what was memorised last decides.

    What the others are worth: among the labels that held-out predictions contradict, the share that is right after
    all, since the network erred; squared, since a wrong label does more harm than a right one does good.
    """

    def __init__(self, n: int, memory: float, together: Together = ALONE):
        self.memory, self.together = memory, together
        self.mine = together.slice(n)  # the rows of ours in the average, where several processes have it
        self.looks = 0
        self.member = np.ones(n, bool)
        self.worth = 0.0
        self.average: NDArray[np.floating] | None = None  # probabilities of the training examples
        self.held: NDArray[np.floating] | None = None  # of those held out
        self.noise: HeldOutNoise | None = None
        self.memorised = False
        self.bound = 0.0  # how far the members' loss is from cross-entropy to symmetric cross-entropy

    def look(
        self,
        seen: GradientPass,
        labels: NDArray[np.int64],
        held_out: GradientPass | None,
        held_labels: NDArray[np.int64] | None,
        known: float | None,
    ) -> None:
        """Take in a pass over the training set and the held-out examples.

        Args:
            seen: the pass, with probabilities; of our examples, where there are several processes.
            labels: the given labels, of all examples.
            held_out: the pass over the held-out examples with the same weights; None: nothing is held out.
            held_labels: their labels.
            known: the noise rate, where it was said.
        """
        assert seen.probabilities is not None
        self.looks += 1
        self.average = _averaged(self.average, seen.probabilities, self.memory)
        together = self.together
        agreed = float(together.add(np.array([(seen.predictions == labels[self.mine]).sum()]))[0]) / len(labels)
        if held_out is not None and held_labels is not None and held_out.probabilities is not None:
            self.held = _averaged(self.held, held_out.probabilities, HELD_MEMORY)
            found = held_out_noise(self.held, held_labels)
            apart = agreed - (1 - found.disagreement)
            if apart < MEMORISED_GAP / 2 and not self.memorised:  # as yet the training examples are as good witnesses
                found = found.with_more(held_out_noise(seen.probabilities, labels, together))
            spread = math.sqrt(found.disagreement * (1 - found.disagreement) / len(held_labels))
            self.memorised = self.memorised or apart > MEMORISED_GAP + 2 * spread
        else:  # what is trained on is all there is: it says less and less, so that only early passes count
            found = held_out_noise(seen.probabilities, labels, together)
            if self.memorised and self.noise is not None:
                found = self.noise
        self.noise = found if self.noise is None else self.noise.least(found)
        if known is not None:
            self.noise = HeldOutNoise(known, math.inf, 1.0, False, max(known, self.noise.disagreement))
        self.bound = min(1.0, self.noise.high / BOUND_AT)

    def ready(self, epoch: int, epochs: int, steps: int, select_after: int | None) -> bool:
        """Whether members are chosen from now on, after so many epochs of so many steps.

        Small sets are memorised before much is known: then who is left out early is left out for good.
        """
        if select_after is not None:
            self.memorised = epoch >= select_after
        elif self.held is None:
            self.memorised = epoch >= warmup_of(None, epochs)
        elif epoch * steps < min(ENOUGH_UPDATES, epochs * steps / 2):
            return False
        return self.memorised

    def choose(self, labels: NDArray[np.int64], *, grouping: Grouping, selection: Rule, device: Any = None) -> None:
        """The members, by what the passes have said so far, and what the others are worth; `device` computes it."""
        assert self.average is not None
        assert self.noise is not None
        n, together, own_labels = len(labels), self.together, labels[self.mine]
        predictions = together.join(self.average.argmax(axis=1).astype(np.int32)).astype(np.int64)
        groups = {"prediction": predictions, "label": labels, "none": None}[grouping]
        rows = np.arange(len(own_labels))
        own = self.average[rows, own_labels]
        if selection == "small-loss":
            far = -together.join(own).astype(np.float64)
        else:
            self.average[rows, own_labels] -= 1  # the gradient proxies, in their place: a copy could take gigabytes
            far = distances_to_group(self.average, groups, n, together, device)
            self.average[rows, own_labels] = own
        member = predictions == labels
        member[_smallest(far, labels, max(1 / n, 1 - self.noise.disagreement)).indices] = True
        lacking = round(n * (1 - self.noise.rate)) - int(member.sum())
        if lacking > 0:  # a network that knows little agrees with few
            outside = np.flatnonzero(~member)
            member[outside[np.argsort(far[outside], kind="stable")][:lacking]] = True
        most = max(1, int(n * (1 - self.noise.low)))
        if member.sum() > most:
            order = np.flatnonzero(member)
            member[order[np.argsort(far[order], kind="stable")][most:]] = False
        self.member = member
        noise = self.noise
        worth = ((noise.disagreement - noise.rate) / noise.disagreement) ** 2 if noise.disagreement > 0 else 0.0
        self.worth = worth if worth > LEAST_WORTH else 0.0

    def facts(self) -> dict[str, Any]:
        """For the history."""
        if self.noise is None:
            return {}
        low, rate, high = self.noise.low, self.noise.rate, self.noise.disagreement
        noise = {"low": round(low, 4), "rate": round(rate, 4), "high": round(high, 4)}
        return {
            "noise_range": noise,
            "n_members": int(self.member.sum()),
            "others_worth": round(self.worth, 4),
            "memorised": self.memorised,
        }

    def state(self) -> dict[str, Any]:
        noise = None if self.noise is None else list(dataclasses.astuple(self.noise))
        own = {name: value for name, value in vars(self).items() if name not in ("memory", "together", "mine")}
        average = (
            self.average if self.together.count == 1 or self.average is None else OwnRows(self.average, self.looks)
        )
        return {**own, "noise": noise, "average": average}

    def load(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # a copy, which is changed in its place
        self.average = None if self.average is None else self.average[self.mine]
        self.noise = None if state["noise"] is None else HeldOutNoise(*state["noise"])


def _averaged(old: NDArray[np.floating] | None, new: NDArray[np.floating], memory: float) -> NDArray[np.floating]:
    """What was known, in its place, and what is new; a piece at a time, since there may be gigabytes of it."""
    if old is None:
        return new.copy()
    for first in range(0, len(old), ROWS):
        part = slice(first, first + ROWS)
        old[part] = np.float32(memory) * old[part] + np.float32(1 - memory) * new[part]
    return old


def pass_due(epoch: int, epochs: int, every: int | None) -> bool:
    """Whether a coreset that sizes itself asks for a pass over everything before this epoch.

    Often at first, when labels begin to be memorised; then every twentieth, in the second half every tenth of the run,
    where the audit makes one anyway. So it costs a twentieth more than plain training with its audit.

    Example:
        >>> [epoch for epoch in range(40) if pass_due(epoch, 40, None)]
        [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36]
    """
    if epoch == 0:
        return False
    if every is not None:
        return epoch % every == 0
    if epoch <= min(4, epochs // 8):
        return True
    return epoch % (math.ceil(epochs / 20) if epoch < epochs / 2 else max(1, epochs // 10)) == 0


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
