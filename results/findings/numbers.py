"""Numbers of runs with the same labels and seeds, what their differences say, and how both are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from crust.experiments.outputs.table_summary import ResultIndex
from crust.experiments.paper.tables_and_figures import own_settings
from crust.experiments.specs import make
from results.tables import cell, first_choice

CLEAR = 1.0  # points: less is no difference on 10,000 test images and few seeds
NOISES = {
    "symmetric:0.2": "symmetric 0.2",
    "symmetric:0.5": "symmetric 0.5",
    "symmetric:0.8": "symmetric 0.8",
    "derangement:0.4": "asymmetric 0.4",
    "human:worse": "human `worse`",
}
HALF = "symmetric:0.5"
UNKNOWN = "not measured yet"


@dataclass(frozen=True)
class Finding:
    """One claim of the paper, and what our runs say.

    Args:
        title: what it is about.
        claim: what the paper says; empty where it says nothing, and there is only something to know.
        verdict: of it.
        sentences: what was found.
        table: the numbers, as Markdown; empty where there are none.

    Example:
        >>> Finding("Mixup", "It helps.", "holds", ["By 2 points."]).verdict
        'holds'
    """

    title: str
    claim: str
    verdict: str
    sentences: Sequence[str]
    table: str = ""


class Runs:
    """Numbers of runs by seed, looked up by what was run.

    Example:
        >>> line = {"key": "x", "spec": make("erm", "true"), "accuracy": {"last": 0.5}}
        >>> Runs(ResultIndex([line])).last("erm", "true")
        {0: 50.0}
    """

    def __init__(self, found: ResultIndex):
        self.found = found

    def lines(self, method: str, labels: str, **settings: Any) -> dict[int, dict[str, Any]]:
        """By seed."""
        return self.found.runs(make(method, labels, **own_settings(method, "cpu"), **settings))

    def last(self, method: str, labels: str, **settings: Any) -> dict[int, float]:
        """Test accuracy of the last epoch."""
        return {seed: 100 * line["accuracy"]["last"] for seed, line in self.lines(method, labels, **settings).items()}

    def clean(self, method: str, labels: str, epoch: int | None = -1, **settings: Any) -> dict[int, float]:
        """The share of right labels among those that an epoch was trained on; None: the first that chose.

        Of `crust` by weight: it may train on all others too, as much as they are worth.
        """
        name = "clean_fraction_weighted" if method == "crust" else "clean_fraction"
        lines = self.lines(method, labels, **settings).items()
        return {
            seed: 100 * line["curves"][name][first_choice(line) if epoch is None else epoch]
            for seed, line in lines
            if name in line["curves"]
        }

    def clean_of_all(self, labels: str) -> dict[int, float]:
        """The share of right labels among all: what plain training sees, or `crust-half` in its first epoch."""
        return self.clean("crust-half", labels, 0) | self.clean("erm", labels)


def differences(ones: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """By the seeds that both have.

    Example:
        >>> differences({0: 3.0, 1: 5.0}, {1: 4.0, 2: 9.0})
        [1.0]
    """
    return [ones[seed] - others[seed] for seed in sorted(ones.keys() & others.keys())]


def clear(values: Sequence[float]) -> int:
    """1 where differences are clearly positive, -1 where negative, 0 where neither: too small, or too scattered.

    Example:
        >>> clear([1.0]), clear([-3.0, -2.0]), clear([0.9]), clear([4.0, -1.0])
        (1, -1, 0, 0)
    """
    middle = mean(values)
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return 0 if abs(middle) < max(CLEAR, 2 * error) else 1 if middle > 0 else -1


def every(comparisons: Sequence[Sequence[float]]) -> str:
    """What comparisons, each by some seeds, say of a claim that each of them is won.

    Example:
        >>> every([[2.0, 2.2], [1.5]]), every([[-0.2]]), every([[3.0], [0.3]]), every([])
        ('holds', 'does not hold', 'holds in part', 'not measured yet')
    """
    if not comparisons:
        return UNKNOWN
    won = [clear(values) == 1 for values in comparisons]
    return "holds" if all(won) else "holds in part" if any(won) else "does not hold"


def on_average(comparisons: Sequence[Sequence[float]]) -> str:
    """What comparisons say of a claim that they are won on the whole.

    Of three and more, their mean must lie beyond two standard errors; of fewer, one of them must be clear. Where the
    mean does not and some are clearly won all the same, it depends on the conditions: the claim holds in part.

    Example:
        >>> on_average([[0.4], [0.5], [0.6]]), on_average([[0.4]]), on_average([[-2.0], [-1.0]])
        ('holds', 'no clear difference', 'the other way round')
        >>> on_average([[3.0], [-3.0]]), on_average([[5.0], [0.0], [-0.5]])
        ('holds in part', 'holds in part')
    """
    if not comparisons:
        return UNKNOWN
    signs = {clear(values) for values in comparisons}
    if {1, -1} <= signs:
        return "holds in part"
    means = [mean(values) for values in comparisons]
    if len(means) > 2 and abs(mean(means)) >= 2 * stdev(means) / len(means) ** 0.5:
        return "holds" if mean(means) > 0 else "the other way round"
    if len(means) > 2:
        return "holds in part" if 1 in signs else "no clear difference"
    return {1: "holds", -1: "the other way round", 0: "no clear difference"}[max(signs, key=abs)]


def shown(values: Sequence[float], digits: int = 1) -> str:
    """Mean ± standard deviation and n, with its sign.

    Example:
        >>> shown([1.0, 2.0]), shown([-0.25]), shown([])
        ('+1.5 ± 0.7 (2)', '-0.2 (1)', 'missing')
    """
    if not values:
        return "missing"
    return f"{cell(values, scale=1, digits=digits, sign='+')} ({len(values)})"


def plain(values: Iterable[float], digits: int = 1) -> str:
    """The same without a sign.

    Example:
        >>> plain([50.0, 52.0]), plain([])
        ('51.0 ± 1.4 (2)', 'missing')
    """
    return shown(list(values), digits).removeprefix("+")


def so_far(verdict: str, done: int, asked: int) -> str:
    """A verdict that says how much it rests on, while comparisons are missing.

    Example:
        >>> so_far("holds", 1, 2), so_far("holds", 2, 2), so_far("not measured yet", 0, 2)
        ('holds so far (1 of 2 comparisons)', 'holds', 'not measured yet')
    """
    return verdict if done in (0, asked) else f"{verdict} so far ({done} of {asked} comparisons)"


def of_variants(verdicts: Mapping[str, str]) -> str:
    """Verdicts of several variants in one line, each with the names of those whose result it is.

    Example:
        >>> of_variants({"crust-paper": "does not hold", "crust-released": "holds", "crust": "holds"})
        'does not hold for `crust-paper`; holds for `crust-released` and `crust`'
        >>> of_variants({"crust-paper": "not measured yet", "crust": "not measured yet"})
        'not measured yet'
    """
    names: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        names.setdefault(verdict, []).append(f"`{name}`")
    if set(names) <= {UNKNOWN}:
        return UNKNOWN
    return "; ".join(f"{verdict} for {listed(some)}" for verdict, some in names.items())


def listed(words: Sequence[str]) -> str:
    """Words as in a sentence.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a"])
        ('a, b and c', 'a')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
