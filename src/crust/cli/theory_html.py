"""The page of `crust theory`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from statistics import mean, stdev
from typing import Any

from crust.cli.formatting import percent
from crust.report.html.builder import Html, tag
from crust.report.html.document import page, section, table

HINTS = {
    "spectrum": "The information space is what lies left of the cut: what it holds is learned fast.",
    "alignment": "Each set in the spaces of its own Jacobian. Small sets have few dimensions: see the line of chance.",
    "epsilon": "At the last epoch, chosen as the run chooses; dashed: the means of random subsets of that size.",
}

WORDS = (
    "σ₁ is the largest singular value, rank the dimension of the information space; then the share of the given labels "
    "that lies in it, for all examples, those with right and with wrong labels, the coreset and random subsets of its "
    "size. The paper's claim is ‖Π_N(y_S)‖/√k ≤ ‖Π_N(y)‖/√n, for the coreset and for how many of the random subsets."
)


def build(summary: dict[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The whole page from a diagnosis in plain numbers."""
    return page(
        f"The theory, asked of {summary['name']}",
        tag("p", _first_words(summary)),
        *(section(_title(name), _image(name, content), hint=HINTS[name]) for name, content in pictures.items()),
        section("Epoch by epoch", table(*epoch_rows(summary)), hint=WORDS),
        *_quality(summary),
        *_theorem(summary["guarantee"]),
    )


def epoch_rows(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The epochs as a table: heads and rows."""
    heads = ["epoch", "σ₁", "rank", "all", "right", "wrong", "coreset", "random", "claim", "at random"]
    rows = []
    for moment in summary["moments"]:
        sets = moment["sets"]
        cells = [f"{moment['epoch']}", f"{moment['singular_values'][0]:.4g}", f"{moment['rank']:,}"]
        cells += [percent(sets[name]["labels"]["information"] if name in sets else None)
                  for name in ("all", "right", "wrong", "coreset")]  # fmt: skip
        cells.append(_spread([one["labels"]["information"] for one in moment["random_sets"]], percent))
        cells += [yes(moment["claim"]), percent(moment["claim_at_random"])]
        rows.append(cells)
    return heads, rows


def quality_rows(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The coreset of each epoch as a table."""
    heads = ["epoch", "k", "wrong", "of all", "α", "β", "r", "ε/‖J‖", "JᵀJ", "gradient"]
    rows = []
    for moment in summary["moments"]:
        found = moment["quality"]
        if found is None:
            continue
        cells = [f"{moment['epoch']}", f"{found['members']:,}", percent(found["noise"]), percent(found["noise_of_all"])]
        cells += [f"{found['alpha']:.3g}", f"{found['beta']:.3g}", _range(found["r_min"], found["r_max"])]
        for name in ("norm_share", "gram", "gradient"):
            drawn = [one[name] for one in found["random"]]
            cells.append(f"{found['errors'][name]:.2f} ({_spread(drawn, '{:.2f}'.format)})")
        rows.append(cells)
    return heads, rows


def premise_rows(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The check list as a table."""
    rows = [
        [
            one["name"],
            number(one["value"]),
            number(one["bound"]),
            yes(one["holds"]),
            "–" if one["factor"] is None else f"{one['factor']:.3g} ×",
            ("the corollary: " if one["needed"] else "the theorem: ") + one["why"],
        ]
        for one in found["premises"]
    ]
    return ["premise", "value", "at most", "holds", "value over bound", "for"], rows


def outcome_words(found: dict[str, Any]) -> str:
    """What the descent did, in a sentence or two."""
    outcome = found["outcome"]
    steps = "without end" if found["steps"] is None else f"{found['steps']:,.0f} steps"
    words = f"The theorem asks for η = {found['learning_rate']:.3g} and {steps}. "
    if outcome is None:
        return words + "The descent was left out."
    words += f"After {outcome['steps']:,} of them {percent(outcome['right'])} of the coreset have their true label"
    if outcome["right_of_wrong"] is not None:
        words += f" ({percent(outcome['right_of_wrong'])} of those whose given label is wrong)"
    for value, bound, what in (
        ("largest_error", "promised_error", "the largest error is"),
        ("moved", "promised_move", "the weights moved by"),
    ):
        words += f"; {what} {number(outcome[value])} (promised: at most {number(outcome[bound])})"
    return ". ".join([words, *found["notes"], ""]).strip()


def yes(value: bool | None) -> str:
    """A yes or no."""
    return "–" if value is None else "yes" if value else "no"


def number(value: float | None) -> str:
    """A number; None is one without bound."""
    return "∞" if value is None else f"{value:.3g}"


def _first_words(summary: dict[str, Any]) -> str:
    noise = "" if summary["noise"] is None else f", of whose labels {percent(summary['noise'])} are wrong"
    return (
        f"{summary['method']} trained {summary['model']}, {summary['parameters']:,} parameters. "
        f"Looked at: {summary['points']:,} of its training examples{noise}."
    )


def _quality(summary: dict[str, Any]) -> list[Html]:
    heads, rows = quality_rows(summary)
    if not rows:
        return [section("Coresets", tag("p", f"{summary['method']} chooses no part of the examples to train on."))]
    last = [moment["quality"] for moment in summary["moments"] if moment["quality"] is not None][-1]
    bounds = [
        [one["name"], number(one["low"]), number(one["value"]), number(one["high"]), yes(one["holds"])]
        for one in last["bounds"]
    ]
    hint = (
        "How well k members stand for all of the examples: wrong labels among them, the smallest and the largest "
        "singular value α and β, the weights r, and three errors, in brackets those of random subsets of the same size."
    )
    return [
        section("Coresets", table(heads, rows), hint=hint),
        section(
            "Bounds on singular values",
            table(["", "at least", "value", "at most", "holds"], bounds),
            hint="Of the weighted Jacobian at the last epoch. The last line is how the paper prints it.",
        ),
    ]


def _theorem(found: dict[str, Any] | None) -> list[Html]:
    if found is None:
        return []
    verdict = "All premises of the corollary hold." if found["holds"] else "Not all premises of the corollary hold."
    return [section("Theorem 1 at the last epoch", tag("p", verdict, " ", outcome_words(found)),
                    table(*premise_rows(found)))]  # fmt: skip


def _image(name: str, content: bytes) -> Html:
    source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return tag("img", src=source, alt=_title(name), class_="fit")


def _title(name: str) -> str:
    return {
        "spectrum": "The spectrum of the Jacobian",
        "alignment": "Labels in the information space",
        "epsilon": "Errors over the size of the coreset",
    }[name]


def _range(low: float, high: float) -> str:
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _spread(values: list[float], show: Any) -> str:
    if not values:
        return "–"
    return show(mean(values)) + (f" ± {show(stdev(values))}" if len(values) > 1 else "")
