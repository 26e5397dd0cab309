"""Regret: how far a method stays behind the best of the others in a condition, with its paired standard error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

BySeed = Mapping[int, float]
CHEAP = 1.1  # times the passes of erm in the same condition


@dataclass(frozen=True)
class Estimate:
    """A mean over paired seeds.

    Args:
        mean: of them.
        error: its standard error; None where there is one seed.
        n: how many seeds.

    Example:
        >>> Estimate.of([1.0, 3.0])
        Estimate(mean=2.0, error=1.0, n=2)
    """

    mean: float
    error: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        return cls(mean(values), stdev(values) / sqrt(len(values)) if len(values) > 1 else None, len(values))

    def verdict(self, limit: float) -> str:
        """How the mean stands to a limit: only above it by more than two standard errors is it missed.

        Example:
            >>> [Estimate(mean, 0.1, 9).verdict(0.5) for mean in (0.5, 0.7, 0.71)], Estimate(0.6, None, 1).verdict(0.5)
            (['reached', 'within the error', 'missed'], 'open, one seed')
        """
        over = self.mean - limit
        if over <= 0:
            return "reached"
        if self.error is None:
            return "open, one seed"
        return "missed" if over > 2 * self.error + 1e-9 else "within the error"


def average(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over conditions; their errors are independent.

    Example:
        >>> average([Estimate(1.0, 3.0, 5), Estimate(2.0, 4.0, 5)])
        Estimate(mean=1.5, error=2.5, n=10)
    """
    errors = [one.error for one in estimates]
    known = [error for error in errors if error is not None]
    error = sqrt(sum(one**2 for one in known)) / len(known) if len(known) == len(errors) else None
    return Estimate(mean(one.mean for one in estimates), error, sum(one.n for one in estimates))


def regret(scores: Mapping[str, BySeed], name: str, rivals: Iterable[str]) -> Estimate | None:
    """How far a method stays behind the best of the others in one condition.

    The best is picked on every second of the method's seeds and scored on those between, and the other way round: the
    best of many by the very seeds that it is scored on would be ahead by luck. So it may be negative.

    Args:
        scores: accuracies by method and seed.
        name: the method.
        rivals: whom it is compared with; those without a result on every seed of the method are left out.

    Returns:
        The regret, in the unit of the scores; None where there are no two seeds, or nobody to compare with.

    Example:
        >>> scores = {"a": {0: 90.0, 1: 92.0}, "b": {0: 91.0, 1: 90.0}, "c": {0: 80.0, 1: 95.0}}
        >>> regret(scores, "a", scores)  # by seed 0 it is b, by seed 1 it is c
        Estimate(mean=-6.0, error=4.0, n=2)
    """
    own = scores.get(name, {})
    seeds = sorted(own)
    others = [one for one in rivals if one != name and all(seed in scores.get(one, {}) for seed in seeds)]
    halves = seeds[::2], seeds[1::2]
    if not others or not halves[1]:
        return None
    found = []
    for pick, judged in (halves, halves[::-1]):
        best = max(others, key=lambda one: mean(scores[one][seed] for seed in pick))
        found += [scores[best][seed] - own[seed] for seed in judged]
    return Estimate.of(found)


def deficit(scores: Mapping[str, BySeed], name: str, reference: str) -> Estimate | None:
    """How far a method stays behind another one, over the seeds that both have; None where there are none.

    Example:
        >>> deficit({"erm": {0: 90.0, 1: 91.0}, "crust": {0: 89.0, 1: 91.0, 2: 50.0}}, "crust", "erm")
        Estimate(mean=0.5, error=0.5, n=2)
    """
    own, other = scores.get(name, {}), scores.get(reference, {})
    both = sorted(set(own) & set(other))
    return Estimate.of([other[seed] - own[seed] for seed in both]) if both else None


def relative(passes: Mapping[str, BySeed], name: str, to: str = "erm") -> float | None:
    """The passes of a method as a multiple of another one's, over the seeds that both have; None without any.

    Example:
        >>> relative({"erm": {0: 10.0}, "crust": {0: 12.0, 1: 99.0}}, "crust")
        1.2
    """
    both = set(passes.get(name, {})) & set(passes.get(to, {}))
    return sum(passes[name][seed] for seed in both) / sum(passes[to][seed] for seed in both) if both else None


def cheap(passes: Mapping[str, BySeed]) -> list[str]:
    """The methods that cost no more than `erm` and a tenth.

    Example:
        >>> cheap({"erm": {0: 10.0}, "crust": {0: 10.9}, "dividemix": {0: 36.0}})
        ['erm', 'crust']
    """
    ratios = {name: relative(passes, name) for name in passes}
    return [name for name, ratio in ratios.items() if ratio is not None and ratio <= CHEAP]
