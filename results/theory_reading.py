"""What the measured theory says, in words that are made from the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

Summary = dict[str, Any]


def title(summary: Summary) -> str:
    """A run's name on the page."""
    return f"{summary['method']}, {summary['model']}"


def reading(summaries: Sequence[Summary]) -> list[str]:
    """Sentences on every kind of network, then on every run; all of the last epoch that was asked."""
    models = list(dict.fromkeys(summary["model"] for summary in summaries))
    return [
        *(_of_model(model, [one for one in summaries if one["model"] == model]) for model in models),
        *(_of_run(summary) for summary in summaries),
    ]


def against(value: float, drawn: Sequence[float]) -> int:
    """1 where a value is above what chance gives by more than two standard deviations, -1 below, else 0.

    Example:
        >>> against(5.0, [1.0, 2.0, 3.0]), against(3.5, [1.0, 2.0, 3.0]), against(5.0, [1.0])
        (1, 0, 0)
    """
    if len(drawn) < 2:
        return 0
    far = value - mean(drawn)
    return 0 if abs(far) <= 2 * stdev(drawn) else 1 if far > 0 else -1


def _of_model(model: str, runs: Sequence[Summary]) -> str:
    last = [run["moments"][-1] for run in runs]
    sizes = [moment["sets"]["all"]["chance"] for moment in last]
    words = f"**{model}**: the information space has {_range(sizes)} of the dimensions"
    sides = [moment["sets"] for moment in last if {"right", "wrong"} <= set(moment["sets"])]
    if sides:
        right, wrong = ([sets[name]["labels"]["information"] for sets in sides] for name in ("right", "wrong"))
        gaps = [100 * (a - b) for a, b in zip(right, wrong, strict=True)]
        words += (
            f", and in it lie {_range(right)} of the right labels' vector and {_range(wrong)} of the wrong ones': "
            f"{_span(gaps)} points between them"
        )
    return words + "."


def _of_run(summary: Summary) -> str:
    last = summary["moments"][-1]
    words = [f"**{title(summary)}**, epoch {last['epoch']}:"]
    quality = last["quality"]
    if quality is None:
        return f"{words[0]} nothing is chosen."
    cleaner = 0
    if quality["noise"] is not None:
        cleaner = _cleaner(quality, summary["points"])
        words.append(f"{quality['noise']:.0%} of the chosen labels are wrong, of all {quality['noise_of_all']:.0%};")
    lies = last["sets"]["coreset"]["labels"]["information"]
    drawn = [one["labels"]["information"] for one in last["random_sets"]]
    side = against(lies, drawn)
    words.append(
        f"{lies:.0%} of their vector lies in the information space, "
        f"{('less than', 'as much as', 'more than')[side + 1]} of random subsets ({mean(drawn):.0%}):"
    )
    words.append(_choice(cleaner, side))
    near = {
        what: -against(quality["errors"][name], [one[name] for one in quality["random"]])
        for name, what in (("gram", "JᵀJ"), ("gradient", "the gradient"))
    }
    said = ("is farther from {} of all than a random subset is", "is as near to {} of all as a random subset is",
            "is nearer to {} of all than a random subset is")  # fmt: skip
    words.append(
        "It " + ", and ".join(said[side + 1].format(what) for what, side in near.items()) + _means(cleaner, near)
    )
    if summary["guarantee"] is not None:
        premises = summary["guarantee"]["premises"]
        words.append(f"It keeps {sum(one['holds'] for one in premises)} of the theorem's {len(premises)} premises.")
    return " ".join(words)


def _cleaner(quality: dict[str, Any], n: int) -> int:
    """1 where fewer of the chosen labels are wrong than a random choice gives, -1 where more, beyond two deviations."""
    p, k = quality["noise_of_all"], quality["members"]
    spread = math.sqrt(p * (1 - p) / k * (n - k) / max(1, n - 1))
    far = quality["noise"] - p
    return 0 if abs(far) <= 2 * spread else -1 if far > 0 else 1


def _choice(cleaner: int, side: int) -> str:
    if cleaner > 0:
        return (
            "it leaves out wrong labels, and those are the ones that the network's leading directions cannot fit."
            if side > 0
            else "it leaves out wrong labels, though not those that the leading directions cannot fit."
        )
    if cleaner < 0:
        return "it prefers wrong labels: their gradients lie apart from all others, so that each stands for itself."
    return "its labels are no better than chance has them."


def _means(cleaner: int, near: dict[str, int]) -> str:
    if cleaner > 0 and max(near.values()) <= 0:
        return ": what it gains comes from the labels it leaves out, not from standing for all the data."
    if cleaner <= 0 and max(near.values()) > 0:
        return ": it stands for all the data, and for the wrong labels in it."
    return "."


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * one:.0f}" for one in (min(shares), max(shares)))
    return f"{low}%" if low == high else f"{low} to {high}%"


def _span(values: Sequence[float]) -> str:
    low, high = (f"{one:.0f}" for one in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
