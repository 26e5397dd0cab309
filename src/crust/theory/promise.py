"""What `guarantee` returns: the check list, what it promises, and what came true."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from crust.theory.quality import CoresetQuality

__all__ = ["Guarantee", "Outcome", "Premise"]


@dataclass(frozen=True)
class Premise:
    """One condition: a value and what it may be at most.

    Attributes:
        name: what it says.
        value: what was measured.
        bound: what it may be at most.
        needed: whether the corollary (ε = 0) needs it; the others are needed by the theorem for ε > 0.
        why: where it comes from, in a few words.

    Example:
        >>> premise = Premise("noise", 0.5, 0.25)
        >>> premise.holds, premise.factor
        (False, 2.0)
    """

    name: str
    value: float
    bound: float
    needed: bool = True
    why: str = ""

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
    """What gradient descent on the coreset did.

    Attributes:
        steps: that were made.
        complete: whether these are the τ steps of the theorem.
        right: the share of the coreset that was given its true label.
        right_of_wrong: the same among members whose given label is wrong; None where there are none.
        first_right: the first step (to within a two-hundredth of all) after which all were right; None: never.
        largest_error: ‖f - ỹ‖∞ at the end.
        promised_error: 2λ.
        moved: ‖W - W⁰‖.
        promised_move: 4‖r⁰‖/α.
        smoothness: ‖J_r(W) - J_r(W⁰)‖ / ‖W - W⁰‖ from the first to the last weights.
        diverged: whether the outputs grew beyond all bounds.

    Example:
        >>> Outcome(10, True, 1.0, 1.0, 4, 0.1, 0.5, 1.0, 8.0, 0.2, False).as_promised
        True
    """

    steps: int
    complete: bool
    right: float
    right_of_wrong: float | None
    first_right: int | None
    largest_error: float
    promised_error: float
    moved: float
    promised_move: float
    smoothness: float
    diverged: bool

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

        return pd.DataFrame(
            [
                {
                    "premise": one.name,
                    "value": one.value,
                    "at most": one.bound,
                    "holds": one.holds,
                    "factor": one.factor,
                    "for": "corollary" if one.needed else "theorem",
                    "why": one.why,
                }
                for one in self.premises
            ]
        )
