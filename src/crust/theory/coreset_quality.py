"""`coreset_quality`: how well a weighted subset stands for all examples, and how clean it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from crust.errors import InputError
from crust.theory.gram import (
    Weighted,
    check_gram_memory,
    check_repeats,
    gram,
    labelled,
    largest_eigenvalue,
    least,
    main_clusters,
    roots_of,
)  # fmt: skip
from crust.theory.inputs import members_of
from crust.theory.jacobian import Jacobian


@dataclass(frozen=True)
class Errors:
    """Three errors of standing for all examples."""

    norm: float  # |√r_max ‖J_S‖ - ‖J‖|, the paper's ε
    norm_share: float  # the same over ‖J‖
    gram: float  # ‖JᵀJ - J_SᵀRJ_S‖ / ‖JᵀJ‖
    gradient: float  # ‖Jᵀg - J_SᵀRg_S‖ / ‖Jᵀg‖, with the gradients g of the losses at the outputs


@dataclass(frozen=True)
class Bound:
    """Something that must lie between two numbers."""

    name: str
    low: float
    value: float
    high: float
    always: bool = True  # whether algebra promises it; else the paper does, or only where more is true

    @property
    def holds(self) -> bool:
        """With room for rounding."""
        room = 1e-6 * max(abs(self.low), abs(self.high) if np.isfinite(self.high) else 0.0, abs(self.value))
        return bool(self.low - room <= self.value <= self.high + room)


@dataclass(frozen=True)
class CoresetQuality:
    """What `coreset_quality` found.

    Attributes:
        alpha: the smallest ‖J_rᵀu‖ over the support subspace of the main clusters.
        beta: √r_max ‖J_S‖.
        norm: ‖J‖ of all examples.
        r_min: the smallest weight.
        r_max: the largest.
        clusters: the main cluster of each member.
        noise: the share of wrong labels among the members; None where true labels are not known.
        noise_weighted: the same by weight.
        noise_by_cluster: the same by weight in each main cluster.
        noise_of_all: the share of wrong labels in all examples.
        errors: of standing for all examples.
        random: the errors of random subsets of the same size, each member with weight n/k.
        bounds: what is promised of singular values, and whether it is so.

    Example:
        >>> found = CoresetQuality(1.0, 2.0, 2.0, 1.0, 1.0, np.zeros(2), None, None, None, None, Errors(0, 0, 0, 0))
        >>> found.condition
        2.0
    """

    alpha: float
    beta: float
    norm: float
    r_min: float
    r_max: float
    clusters: NDArray[np.int64]
    noise: float | None
    noise_weighted: float | None
    noise_by_cluster: NDArray[np.float64] | None
    noise_of_all: float | None
    errors: Errors
    random: list[Errors] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)

    @property
    def condition(self) -> float:
        """β/α: its square is what the number of steps in the theorem grows with."""
        return self.beta / self.alpha if self.alpha else np.inf

    def table(self) -> Any:
        """A pandas table: each error of the coreset beside those of random subsets."""
        import pandas as pd

        names = ["norm", "norm_share", "gram", "gradient"]
        drawn = pd.DataFrame([vars(one) for one in self.random], columns=names, dtype=float)
        of_coreset = [getattr(self.errors, name) for name in names]
        columns = {"random, mean": list(drawn.mean()), "random, standard deviation": list(drawn.std())}
        return pd.DataFrame({"error": names, "coreset": of_coreset, **columns})


@dataclass(frozen=True)
class Problem:
    """A network, its data and labels, brought into form once and asked many times."""

    jacobian: Jacobian
    matrix: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: NDArray[np.float64] | None
    residual: NDArray[np.float64]
    loss: str

    @cached_property
    def reference(self) -> Reference:
        """What subsets are held against."""
        return Reference(self)

    @property
    def wrong(self) -> NDArray[np.bool_] | None:
        return None if self.truth is None else np.asarray((self.y != self.truth).any(1))


def make_problem(
    model: nn.Module, data: Any, labels: Any, true_labels: Any, loss: str | None, memory_limit: int | None
) -> Problem:
    """Check everything, then compute the Gram matrix."""
    found = labelled(model, data, labels, true_labels, loss, memory_limit, check_gram_memory)
    return Problem(found[0], gram(found[0]), *found[1:])


def coreset_quality(
    model: nn.Module,
    data: Any,
    labels: Any = None,
    coreset: Any = None,
    *,
    true_labels: Any = None,
    weights: Any = None,
    clusters: int | Sequence[int] | NDArray[np.int64] | None = None,
    loss: str | None = None,
    repeats: int = 10,
    memory_limit: int | None = None,
    seed: int = 0,
) -> CoresetQuality:
    """How well a coreset stands for all examples, beside random subsets of its size.

    Args:
        model, data, labels, loss, memory_limit: as in `alignment`.
        coreset: a `Coreset`, or positions.
        true_labels: where they are known, to measure the noise in the coreset.
        weights: r, one a member; default: the coreset's own, or n/k for positions.
        clusters: the K main clusters of the paper: their number, by default that of the different labels, or the
            cluster of each member. A number makes K medoids of the members' Jacobian rows.
        repeats: random subsets.
        seed: of the random subsets.

    Returns:
        A `CoresetQuality`.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
        >>> found = coreset_quality(torch.nn.Linear(2, 1, bias=False), x, [1.0, 1.0, -1.0, -1.0], [0, 2], clusters=2)
        >>> round(found.alpha, 6), round(found.beta, 6), round(found.errors.gram, 6)
        (1.414214, 2.828427, 0.0)
    """
    if coreset is None:
        raise InputError("there is no coreset: give a Coreset, or the positions of its members", code="missing-coreset")
    check_repeats(repeats)
    problem = make_problem(model, data, labels, true_labels, loss, memory_limit)
    return quality_of(problem, coreset, weights, clusters, repeats, seed)


def quality_of(
    problem: Problem, coreset: Any, weights: Any, clusters: Any, repeats: int, seed: int = 0
) -> CoresetQuality:
    """The same for a problem that is in form already."""
    n, outputs = problem.jacobian.n, problem.jacobian.outputs
    index, r = members_of(coreset, n, weights)
    found = Weighted(problem.matrix, outputs, index, r)
    main = main_clusters(found, len(np.unique(problem.y, axis=0)) if clusters is None else clusters)
    noise: dict[str, Any] = dict.fromkeys(("noise", "noise_weighted", "noise_by_cluster", "noise_of_all"))
    if problem.wrong is not None:
        wrong = problem.wrong[index]
        noise |= {"noise": float(wrong.mean()), "noise_weighted": float((wrong * r).sum() / r.sum())}
        noise["noise_by_cluster"] = np.bincount(main, wrong * r) / np.bincount(main, r)
        noise["noise_of_all"] = float(problem.wrong.mean())
    reference = problem.reference
    rng = np.random.default_rng(seed)
    drawn = [np.sort(rng.choice(n, len(index), replace=False)) for _ in range(repeats)]
    equal = np.full(len(index), n / len(index))
    return CoresetQuality(
        alpha=least(found.scaled, found.cluster_basis(main, weighted=True)),
        beta=float(np.sqrt(r).max()) * found.norm,
        norm=reference.norm,
        r_min=float(r.min()),
        r_max=float(r.max()),
        clusters=main,
        **noise,
        errors=reference.errors(found),
        random=[reference.errors(Weighted(problem.matrix, outputs, each, equal)) for each in drawn],
        bounds=_singular_value_bounds(found, main),
    )


class Reference:
    """All examples, which subsets are held against."""

    def __init__(self, problem: Problem):
        squares, vectors = np.linalg.eigh(problem.matrix)
        self.root = vectors * roots_of(squares)[::-1]  # K = root rootᵀ
        self.matrix, self.residual = problem.matrix, problem.residual.reshape(-1)
        self.norm = float(np.sqrt(max(squares[-1], 0.0)))
        self.gradient = float(np.sqrt(max(float(self.residual @ self.matrix @ self.residual), 0.0)))

    def errors(self, subset: Weighted) -> Errors:
        """The eigenvalues of Jᵀ D J are those of rootᵀ D root, which is as small as the number of rows."""
        d = subset.difference()
        far = largest_eigenvalue(lambda v: self.root.T @ ((self.root @ v).T * d).T, len(d))
        left = d * self.residual
        gap = float(np.sqrt(max(float(left @ self.matrix @ left), 0.0)))
        norm = abs(float(np.sqrt(subset.weights).max()) * subset.norm - self.norm)
        top = max(self.norm, np.finfo(np.float64).tiny)
        gradient = gap / self.gradient if self.gradient else (0.0 if gap == 0 else np.inf)
        return Errors(norm, norm / top, far / top**2, gradient)


def _singular_value_bounds(found: Weighted, main: NDArray[np.int64]) -> list[Bound]:
    """What is said of the singular values of J_r, by us and by the paper."""
    low, high = float(np.sqrt(found.weights).min()), float(np.sqrt(found.weights).max())
    plain, values = found.plain, found.values
    worst_low = int(np.argmin(values - low * plain))
    worst_high = int(np.argmax(values - high * plain))
    printed = found.matrix * (found.roots**2)[:, None] * found.roots**2
    top = float(np.sqrt(max(np.linalg.eigvalsh(printed)[-1], 0.0)))
    return [
        Bound("√r_min σ_i(J_S) ≤ σ_i(J_r), all i", low * plain[worst_low], values[worst_low], np.inf),
        Bound("σ_i(J_r) ≤ √r_max σ_i(J_S), all i", 0.0, values[worst_high], high * plain[worst_high]),
        Bound(
            "√r_min σ_min(J_S, S₊) ≤ σ_min(J_r, √r S₊)",
            low * least(found.matrix, found.cluster_basis(main, weighted=False)),
            least(found.scaled, found.cluster_basis(main, weighted=True)),
            np.inf,
            always=False,
        ),
        Bound("as printed, ‖diag(r) J_S‖ ≤ √r_max ‖J_S‖", 0.0, top, high * plain[0], always=False),
    ]
