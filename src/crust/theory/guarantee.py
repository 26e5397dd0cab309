"""`guarantee`: Theorem 1 and its corollary as a check list, what they promise, and what came true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import grad

from crust._util.torch_modules import evaluating
from crust.errors import InputError
from crust.theory.coreset_quality import CoresetQuality, Problem, make_problem, quality_of
from crust.theory.descent import descend, margin_of, right, weighted_loss
from crust.theory.gram import Weighted, largest_outside
from crust.theory.inputs import members_of
from crust.theory.smoothness import secants, smoothness


@dataclass(frozen=True)
class Premise:
    """One condition: a value and what it may be at most."""

    name: str  # what it says
    value: float  # what was measured
    bound: float  # what it may be at most
    needed: bool = True  # whether the corollary (ε = 0) needs it; the others are needed by the theorem for ε > 0
    why: str = ""  # where it comes from, in a few words

    @property
    def holds(self) -> bool:
        """Whether the value is within its bound."""
        return bool(self.value <= self.bound * (1 + 1e-9))

    @property
    def factor(self) -> float:
        """The value over its bound: above 1 it is missed by that factor."""
        if self.bound == 0:
            return 0.0 if self.value == 0 else math.inf
        return self.value / self.bound


@dataclass(frozen=True)
class Outcome:
    """What gradient descent on the coreset did."""

    steps: int  # that were made
    complete: bool  # whether these are the τ steps of the theorem
    right: float  # the share of the coreset that was given its true label
    right_of_wrong: float | None  # the same among members whose given label is wrong; None where there are none
    first_right: int | None  # the first step (to within a two-hundredth of all) after which all were right; None: never
    largest_error: float  # ‖f - ỹ‖∞ at the end
    promised_error: float  # 2λ
    moved: float  # ‖W - W⁰‖
    promised_move: float  # 4‖r⁰‖/α
    smoothness: float  # ‖J_r(W) - J_r(W⁰)‖ / ‖W - W⁰‖ from the first to the last weights
    diverged: bool  # whether the outputs grew beyond all bounds

    @property
    def all_right(self) -> bool:
        """Whether every selected example was given its true label."""
        return self.right == 1.0 and not self.diverged

    @property
    def as_promised(self) -> bool:
        """Whether all three came true: the labels, the error, and how far the weights moved."""
        return self.all_right and self.largest_error <= self.promised_error and self.moved <= self.promised_move


@dataclass(frozen=True)
class Guarantee:
    """What `guarantee` found.

    Attributes:
        premises: the check list.
        margin: δ.
        noise: ρ, the share of wrong labels in the coreset.
        alpha: the smallest singular value of J_r over the support subspace.
        beta: √r_max ‖J_S‖.
        smoothness: L, estimated from below; see `crust.theory.smoothness`.
        residual: ‖r⁰‖, weighted.
        precision: λ = max(‖Π₊e‖∞, δ/8).
        learning_rate: η.
        steps: τ; infinite where α is 0.
        quality: the coreset's.
        outcome: of the descent; None where it was not run.
        notes: what of the theorem carries over to this network and loss.

    Example:
        >>> found = Guarantee([Premise("a", 1.0, 2.0)], 2.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.25, 0.5, 14.0, None)
        >>> found.holds
        True
    """

    premises: list[Premise]
    margin: float
    noise: float
    alpha: float
    beta: float
    smoothness: float
    residual: float
    precision: float
    learning_rate: float
    steps: float
    quality: CoresetQuality | None
    outcome: Outcome | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether all premises of the corollary hold, so that its prediction is promised."""
        return self.alpha > 0 and all(premise.holds for premise in self.premises if premise.needed)

    def table(self) -> Any:
        """The check list as a pandas table."""
        import pandas as pd

        heads = ("premise", "value", "at most", "holds", "factor", "for", "why")
        rows = [
            (one.name, one.value, one.bound, one.holds, one.factor, "corollary" if one.needed else "theorem", one.why)
            for one in self.premises
        ]
        return pd.DataFrame(rows, columns=heads)


MUCH_SMALLER = 0.1  # what the paper calls much smaller
SQUARED_ONLY = "Only for the squared loss are η, τ and 4‖r⁰‖/α a promise: with cross-entropy the descent is measured"
CARRIES_OVER = "For any loss α, β, ρ, ε and the alignment of labels stand: they are the network's and the data's own"
SCALAR_ONLY = "The theorem is for scalar outputs: here it is read entry by entry for one-hot rows, with a margin of 1"


def guarantee(
    model: nn.Module,
    data: Any,
    labels: Any = None,
    coreset: Any = None,
    *,
    true_labels: Any = None,
    weights: Any = None,
    clusters: int | Sequence[int] | NDArray[np.int64] | None = None,
    loss: str | None = None,
    max_steps: int = 2000,
    memory_limit: int | None = None,
    seed: int = 0,
) -> Guarantee:
    """Which premises of Theorem 1 hold here, by what factor the others miss, and whether its prediction comes true.

    The prediction is tested: weighted gradient descent on the coreset from the present weights, with the theorem's
    step size, for its number of steps or `max_steps`. The network itself stays as it is.

    Args:
        model, data, labels, loss, memory_limit: as in `alignment`. The paper has scalar outputs, labels in [-1, 1], and
            the squared loss.
        coreset, weights, clusters: as in `coreset_quality`.
        true_labels: the theorem is about them.
        max_steps: at most so many steps of descent; 0 leaves it out.
        seed: of the search for L.

    Returns:
        A `Guarantee`.

    Reference:
        Mirzasoleiman, Cao, Leskovec: Coresets for Robust Training of Neural Networks against Noisy Labels, 2020;
        Theorem 4.1 and the corollaries of its appendix.

    Example:
        >>> x = torch.eye(2).repeat_interleave(4, 0)
        >>> true = np.repeat([1.0, -1.0], 4)
        >>> given = true * [1, 1, 1, -1, 1, 1, 1, 1]
        >>> linear = torch.nn.Linear(2, 1, bias=False)
        >>> found = guarantee(linear, x, given, np.arange(8), true_labels=true, clusters=np.repeat([0, 1], 4))
        >>> found.noise, found.outcome.all_right
        (0.125, True)
    """
    if coreset is None:
        raise InputError("there is no coreset: give a Coreset, or the positions of its members", code="missing-coreset")
    if true_labels is None:
        raise InputError("the theorem is about true labels: give true_labels", code="missing-true-labels")
    if isinstance(max_steps, bool) or not hasattr(max_steps, "__index__") or max_steps < 0:
        raise InputError(f"max_steps is {max_steps!r}: give a whole number, or 0 for no descent", code="max-steps")
    problem = make_problem(model, data, labels, true_labels, loss, memory_limit)
    return guarantee_of(problem, coreset, weights, clusters, int(max_steps), seed)


def guarantee_of(problem: Problem, coreset: Any, weights: Any, clusters: Any, max_steps: int, seed: int) -> Guarantee:
    """The same for a problem that is in form already, with true labels."""
    assert problem.truth is not None
    jacobian = problem.jacobian
    index, r = members_of(coreset, jacobian.n, weights)
    quality = quality_of(problem, coreset, weights, clusters, repeats=0)
    found = Weighted(problem.matrix, jacobian.outputs, index, r)
    y, truth = problem.y[index], problem.truth[index]
    margin = margin_of(problem.y, problem.truth)
    roots = np.sqrt(r)[:, None]
    start = problem.residual[index]
    size = float(np.linalg.norm(roots * start))
    projected = cluster_means(y - truth, r, quality.clusters)
    precision = max(float(np.abs(projected).max()), margin / 8)
    bend = smoothness(jacobian, index, r, _downhill(problem, index, r), seed)
    alpha, beta = quality.alpha, quality.beta
    rate = step_size(alpha, beta, bend, size)
    steps = step_count(rate, alpha, size, precision)
    basis = found.cluster_basis(quality.clusters, weighted=True)
    apart = (roots * (start + y - truth)).reshape(-1)  # √r (f - ỹ)
    outside = apart - basis @ (basis.T @ apart)
    noise = quality.noise
    assert noise is not None
    assert quality.noise_by_cluster is not None
    time, gamma = steps * rate, 1 - 8 * noise / margin
    premises = [
        Premise("ρ < δ/8, noise in the coreset", noise, margin / 8, why="Theorem 1"),
        Premise(
            "ρ < δ/8 in every main cluster, by weight",
            float(quality.noise_by_cluster.max()),
            margin / 8,
            why="the proof of the lemma needs it in each; the text asks for it overall",
        ),
        Premise(
            "‖Π₊e‖∞ < δ/4, mean label error of a cluster",
            float(np.abs(projected).max()),
            margin / 4,
            why="what the proof uses of ρ: 2λ < δ/2",
        ),
        Premise(
            "μ ≪ α, J_r outside of the support subspace",
            largest_outside(found.scaled, basis),
            MUCH_SMALLER * alpha,
            why="the corollary has μ = 0; at most a tenth of α is taken as that",
        ),
        Premise(
            "f⁰ - ỹ in the support subspace: share outside",
            float(np.linalg.norm(outside) / max(float(np.linalg.norm(apart)), 1e-300)),
            MUCH_SMALLER,
            why="the corollary has 0; at most a tenth is taken as that",
        ),
        Premise(
            "L ≤ αβ/‖r⁰‖, smoothness",
            bend,
            alpha * beta / size if size else math.inf,
            needed=False,
            why="where it fails the corollary still holds with a smaller η",
        ),
        Premise(
            "L ≤ 2/(5τηΘ(1 + 8ητβ²)), Θ = ‖r⁰‖",
            bend,
            0.0 if time == math.inf else 2 / (5 * time * size * (1 + 8 * time * beta**2)) if size else math.inf,
            needed=False,
            why="the proof for ε > 0",
        ),
        Premise(
            "ε ≤ γδ/(16√k τηΘβ), γ = 1 - 8ρ/δ",
            quality.errors.norm,
            0.0
            if gamma <= 0 or time == math.inf
            else gamma * margin / (16 * math.sqrt(len(index)) * time * size * beta)
            if size
            else math.inf,
            needed=False,
            why="O(δα²/(kβ log(√k/ρ))) with the constants of the proof",
        ),
    ]
    if jacobian.outputs == 1:
        largest = float(max(np.abs(problem.y).max(), np.abs(problem.truth).max()))
        premises.insert(0, Premise("labels in [-1, 1]", largest, 1.0, why="the problem setting"))
    outcome = None
    if max_steps:
        outcome = _test(problem, index, r, rate, steps, min(steps, max_steps), precision, size, alpha, margin)
    notes = [CARRIES_OVER, SQUARED_ONLY] if problem.loss != "squared" else []
    if jacobian.outputs > 1:
        notes.append(SCALAR_ONLY)
    if outcome is not None and outcome.smoothness > bend * (1 + 1e-6):
        notes.append(f"On the way down the Jacobian changed faster than the estimate of L: {outcome.smoothness:.3g}")
    if alpha == 0:
        notes.append("The theorem says nothing where α is 0: the descent has used η = 1/(2β²)")
    return Guarantee(premises, margin, noise, alpha, beta, bend, size, precision, rate, steps, quality, outcome, notes)


def step_size(alpha: float, beta: float, smoothness: float, residual: float) -> float:
    """η = 1/(2β²)·min(1, αβ/(L‖r⁰‖)); without the second part where α is 0, which would forbid any step."""
    if beta == 0:
        raise InputError("the Jacobian of the coreset is zero: nothing can be learned from it", code="zero-jacobian")
    bends = smoothness * residual
    return 1 / (2 * beta**2) * (min(1.0, alpha * beta / bends) if bends > 0 and alpha > 0 else 1.0)


def step_count(rate: float, alpha: float, residual: float, precision: float) -> float:
    """τ = 5/(ηα²)·log(‖r⁰‖/λ), rounded up; at least one, infinite where α is 0."""
    if alpha == 0:
        return math.inf
    if residual <= precision:
        return 1.0
    return float(math.ceil(5 / (rate * alpha**2) * math.log(residual / precision)))


def cluster_means(
    rows: NDArray[np.float64], r: NDArray[np.float64], clusters: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Π₊ in the units of the outputs: the mean of each main cluster by weight, (K, C)."""
    whole = np.bincount(clusters, r)
    sums = np.stack([np.bincount(clusters, r * column) for column in rows.T], 1)
    return np.asarray(sums / whole[:, None])


def _downhill(problem: Problem, index: NDArray[np.int64], r: NDArray[np.float64]) -> Tensor:
    jacobian = problem.jacobian
    y = torch.as_tensor(problem.y[index], dtype=jacobian.dtype, device=jacobian.device)
    total = weighted_loss(jacobian, index, r, y if problem.loss == "squared" else y.argmax(1), problem.loss)
    with evaluating(jacobian.model):
        return -grad(total)(jacobian.flat()).detach()  # type: ignore[no-any-return]


def _test(
    problem: Problem,
    index: NDArray[np.int64],
    r: NDArray[np.float64],
    rate: float,
    steps: float,
    allowed: float,
    precision: float,
    size: float,
    alpha: float,
    margin: float,
) -> Outcome:
    jacobian = problem.jacobian
    assert problem.truth is not None
    y, truth = problem.y[index], problem.truth[index]
    path = descend(jacobian, index, r, y, truth, problem.loss, rate, int(allowed), margin)
    good = right(path.outputs, truth, margin) if not path.diverged else np.zeros(len(index), bool)
    wrong = (y != truth).any(1)
    here = jacobian.flat()
    roots = torch.as_tensor(np.sqrt(r), dtype=jacobian.dtype, device=jacobian.device)
    return Outcome(
        steps=path.steps,
        complete=not path.diverged and path.steps >= steps,
        right=float(good.mean()),
        right_of_wrong=float(good[wrong].mean()) if wrong.any() else None,
        first_right=path.first_right,
        largest_error=float(np.abs(path.outputs - truth).max()),
        promised_error=2 * precision,
        moved=float((path.weights - here).norm()),
        promised_move=4 * size / alpha if alpha else math.inf,
        smoothness=math.nan if path.diverged else secants(jacobian, index, roots, here, [path.weights])[0],
        diverged=path.diverged,
    )
