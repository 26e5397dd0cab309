"""`alignment`: how much of the labels lies in the information space of the Jacobian, and how much in the nuisance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from crust.theory.gram import check_repeats, labelled
from crust.theory.inputs import members_of
from crust.theory.spectrum import Cut, Spaces


@dataclass(frozen=True)
class Share:
    """One vector, such as the labels of a subset, in the two spaces."""

    information: float  # the share of its squared length that lies in the information space
    nuisance: float  # ‖Π_N v‖/√k for k examples, the paper's measure


@dataclass(frozen=True)
class Aligned:
    """One set of examples."""

    examples: int  # how many
    rank: int  # the dimension of its information space
    chance: float  # the share of a random vector that lies in it: rank over rows
    labels: Share  # the given labels in the spaces of this set's own Jacobian
    residual: Share  # f - y, or p - y for cross-entropy
    error: Share | None = None  # given minus true labels; None where true labels are not known, or no label is wrong


@dataclass(frozen=True)
class Alignment:
    """What `alignment` found.

    Attributes:
        sets: by name: `all`, `right` and `wrong` (all examples by whether their label is right), `coreset`,
            `coreset, right` and `coreset, wrong`.
        random: subsets of the coreset's size.
        cut: where the spectra were cut.

    Example:
        >>> one = Aligned(4, 1, 0.25, Share(0.9, 0.3), Share(0.5, 0.4))
        >>> two = Aligned(2, 1, 0.5, Share(0.95, 0.2), Share(0.5, 0.4))
        >>> found = Alignment({"all": one, "coreset": two}, [one, two], 1)
        >>> found.claim, found.claim_at_random
        (True, 1.0)
    """

    sets: dict[str, Aligned]
    random: list[Aligned] = field(default_factory=list)
    cut: Cut = "gap"

    @property
    def claim(self) -> bool | None:
        """Whether ‖Π_N(y_S)‖/√k ≤ ‖Π_N(y)‖/√n for the coreset, as the paper says; None without one."""
        return self._claims([self.sets["coreset"]])[0] if "coreset" in self.sets else None

    @property
    def claim_at_random(self) -> float | None:
        """The share of the random subsets of which the same is true: the coreset is to be read beside it."""
        return float(np.mean(self._claims(self.random))) if self.random else None

    def _claims(self, sets: Iterable[Aligned]) -> list[bool]:
        return [one.labels.nuisance <= self.sets["all"].labels.nuisance for one in sets]

    def table(self) -> Any:
        """A pandas table: a row a set; of random subsets mean and standard deviation."""
        import pandas as pd

        rows = [{"set": name, **_alignment_row(one)} for name, one in self.sets.items()]
        if self.random:
            drawn = pd.DataFrame([_alignment_row(one) for one in self.random])
            rows.append({"set": f"random, mean of {len(drawn)}", **drawn.mean().to_dict()})
            if len(drawn) > 1:
                rows.append({"set": "random, standard deviation", **drawn.std().to_dict()})
        return pd.DataFrame(rows)


def _alignment_row(one: Aligned) -> dict[str, float]:
    found: dict[str, float] = {"examples": one.examples, "rank": one.rank, "chance": one.chance}
    for name in ("labels", "residual", "error"):
        share = getattr(one, name)
        found[f"{name}, information"] = np.nan if share is None else share.information
        found[f"{name}, nuisance"] = np.nan if share is None else share.nuisance
    return found


def alignment(
    model: nn.Module,
    data: Any,
    labels: Any = None,
    *,
    true_labels: Any = None,
    coreset: Any = None,
    cut: Cut = 0.9,
    loss: str | None = None,
    repeats: int = 10,
    k: int = 50,
    memory_limit: int | None = None,
    seed: int = 0,
) -> Alignment:
    """How much of the labels lies in the information space: of all examples, of a coreset, and of what is in it.

    Each set is measured in the spaces of its own Jacobian, J(W, X_S), as in the paper. A small set has few dimensions,
    so a fixed rank holds more of any vector: read every share beside `chance`, and a coreset beside `random`.

    Args:
        model: any network; run in eval mode, nothing in it changes.
        data: inputs as a tensor or an array, (inputs, labels), `Examples`, or a dataset.
        labels: the given labels; default: those of the data. Numbers of classes, or the targets of a scalar output.
        true_labels: where they are known.
        coreset: a `Coreset`, or positions.
        cut: the information space by rank (a whole number), by share of the energy (between 0 and 1), or "gap".
        loss: `cross-entropy` or `squared`; default: by the number of outputs.
        repeats: random subsets of the coreset's size.
        k: leading singular values, where the data is too large for all of them.
        memory_limit: bytes; None: half of what is free.
        seed: of the random subsets.

    Returns:
        An `Alignment`.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 2.0], [0.1, 2.0]])
        >>> model = torch.nn.Linear(2, 1, bias=False)
        >>> given, true = [1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]
        >>> found = alignment(model, x, given, true_labels=true, coreset=[0, 2], cut=2)
        >>> round(found.sets["coreset"].labels.information, 6), found.claim
        (1.0, True)
    """
    check_repeats(repeats)
    jacobian, y, truth, residual, _ = labelled(model, data, labels, true_labels, loss, memory_limit)
    members = None if coreset is None else members_of(coreset, jacobian.n)[0]
    return alignment_of(Spaces(jacobian, k, seed), y, truth, residual, members, cut, repeats, seed)


def alignment_of(
    spaces: Spaces,
    y: NDArray[np.float64],
    truth: NDArray[np.float64] | None,
    residual: NDArray[np.float64],
    members: NDArray[np.int64] | None,
    cut: Cut,
    repeats: int,
    seed: int = 0,
) -> Alignment:
    """The same for labels and residuals that are in form already."""
    n = len(y)
    vectors = {"labels": y, "residual": residual}
    if truth is not None:
        vectors["error"] = y - truth

    def measure(index: NDArray[np.int64]) -> Aligned:
        return _aligned(spaces, index, {name: rows[index] for name, rows in vectors.items()}, cut)

    sets = {"all": np.arange(n)}
    wrong = None if truth is None else (y != truth).any(1)
    if wrong is not None:
        sets |= {"right": np.flatnonzero(~wrong), "wrong": np.flatnonzero(wrong)}
    if members is not None:
        sets["coreset"] = members
        if wrong is not None:
            sets |= {"coreset, right": members[~wrong[members]], "coreset, wrong": members[wrong[members]]}
    rng = np.random.default_rng(seed)
    drawn = [] if members is None else [np.sort(rng.choice(n, len(members), replace=False)) for _ in range(repeats)]
    return Alignment(
        {name: measure(index) for name, index in sets.items() if len(index)}, [measure(index) for index in drawn], cut
    )


def _aligned(spaces: Spaces, index: NDArray[np.int64], vectors: dict[str, NDArray[np.float64]], cut: Cut) -> Aligned:
    whole = len(index) == spaces.jacobian.n
    order = None if whole and np.array_equal(index, np.arange(len(index))) else index
    found = spaces.of(order)
    if isinstance(cut, (int, np.integer)) and cut > len(found.left):
        cut = len(found.left)  # a rank that a small part of a set cannot have is all that it has
    basis = found.cut(cut)
    shares = {name: _share_in_basis(basis, rows) for name, rows in vectors.items() if name != "error" or rows.any()}
    return Aligned(len(index), basis.shape[1], basis.shape[1] / len(basis), **shares)


def _share_in_basis(basis: NDArray[np.float64], rows: NDArray[np.float64]) -> Share:
    vector = rows.reshape(-1)
    inside = float(np.square(basis.T @ vector).sum())
    whole = float(np.square(vector).sum())
    outside = max(0.0, whole - inside)
    return Share(inside / whole if whole else 1.0, float(np.sqrt(outside / len(rows))))
