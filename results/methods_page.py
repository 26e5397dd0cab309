"""The page on which all methods stand side by side: what they reach, their cost, what they had to know, who wins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from crust.experiments.outputs.table_markdown import markdown
from crust.experiments.paper.tables_and_figures import own_settings
from crust.methods import METHODS
from results.tables import INTRODUCTION, NOISES, bold_best, cell, is_ceiling, of_runs, passes, runs

Lines = Sequence[dict[str, Any]]
SECONDS = Path("benchmarks/results/methods.json")  # of `python -m benchmarks.methods`, on a quiet machine
OWN = Path("docs/methods")
PAGE = "[all methods](../results/methods.md)"
MISSING = (
    "A dash is a run that has not been made yet. Passes: examples that went through a network, forward and backward, "
    "of all stages, as a multiple of `erm`'s. Seconds: the same for a whole run, all of them in one run of "
    "`python -m benchmarks.methods` ({date}, {images:,} images, {epochs} epochs). In bold: the best without oracle "
    "knowledge. `oracle` is told which labels are right; all others see given labels only here."
)


def methods_page(lines: Lines) -> str:
    """All methods side by side; what has not been run shows a dash."""
    timed = json.loads(SECONDS.read_text()) if SECONDS.exists() else {"methods": []}
    seconds = {row["method"]: row["seconds"] for row in timed["methods"]}
    told = MISSING if timed["methods"] else MISSING.split(" Seconds:")[0] + " Seconds are not compared yet."
    about = {name: timed[name] for name in ("date", "images", "epochs") if name in timed}
    parts = ["# All methods, measured", INTRODUCTION, told.format(**about) if about else told]
    for labels, title in NOISES.items():
        parts += [f"## {title}", _table(lines, labels, seconds), *_reading(lines, labels)]
    why = reading(lines)
    parts += ["## Who wins where, and why" if why else "", why, "## What they were told", _knowledge(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def own_page(name: str, lines: Lines) -> str:
    """A method's own page, with what was measured in place of its last paragraph, which begins with `Measured`.

    A page without one is left as it is until there is a run to speak of.
    """
    text = (OWN / f"{name}.md").read_text(encoding="utf-8")
    written, mark, _ = text.rpartition("\nMeasured")
    if not mark and not any(runs(lines, name, labels, **own_settings(name, "cpu")) for labels in NOISES):
        return text
    return f"{written if mark else text}\n{measured(name, lines)}\n"


def measured(name: str, lines: Lines) -> str:
    """One paragraph: accuracy beside `erm`, audit and cost."""
    found = []
    for labels, title in NOISES.items():
        some, plain = runs(lines, name, labels, **own_settings(name, "cpu")), runs(lines, "erm", labels)
        if not some:
            found.append(f"{title}: not measured yet")
            continue
        words = f"{title}: {cell(of_runs(some, 'accuracy', 'last'))}%"
        if name != "erm" and plain:
            words += f" (`erm` {cell(of_runs(plain, 'accuracy', 'last'))})"
        doubts = of_runs(some, "audit", "auroc")
        words += f", audit AUROC {cell(doubts, scale=1, digits=3)}" if doubts else ""
        own, base = passes(some), passes(plain)
        if name != "erm" and own is not None and base is not None:
            words += f", {own / base:.2f} of `erm`'s passes"
        found.append(words)
    return f"Measured on CIFAR-10 in small, last epoch ({PAGE}): " + "; ".join(found) + "."


def _all(lines: Lines, labels: str) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Rows of a table by their names: the method, and its runs."""
    found = {
        f"[`{name}`](../methods/{name}.md)": (name, runs(lines, name, labels, **own_settings(name, "cpu")))
        for name in METHODS
    }
    half = runs(lines, "erm", labels, **HALF)
    return {**found, "`erm`, half of the epochs (as many updates as a coreset of 50%)": ("erm", half)}


def _table(lines: Lines, labels: str, seconds: dict[str, float]) -> str:
    rows, competes = [], []
    base = passes(runs(lines, "erm", labels))
    for name, (method, some) in _all(lines, labels).items():
        competes.append(not is_ceiling(method))
        own = passes(some)
        halved = name.startswith("`erm`, half")
        cost = seconds.get(method) if not halved else 0.5 * seconds["erm"] if "erm" in seconds else None
        rows.append(
            [
                name,
                *(cell(of_runs(some, "accuracy", each)) for each in ("last", "last10", "best")),
                cell(of_runs(some, "audit", "auroc"), scale=1, digits=3),
                "–" if own is None or base is None else f"{own / base:.2f}",
                "–" if cost is None else f"{cost:.2f}",
                str(len(some)),
            ]
        )
    header = ["method", "last epoch", "mean of last 10", "best epoch", "audit AUROC", "passes", "seconds", "seeds"]
    return markdown(header, bold_best(rows, [1, 2, 4], competes))


def _reading(lines: Lines, labels: str) -> list[str]:
    """What the numbers say, computed from them."""
    known = {
        name: mean(of_runs(some, "accuracy", "last"))
        for name, (method, some) in _all(lines, labels).items()
        if some and not is_ceiling(method)
    }
    plain = {name: value for name, value in known.items() if name.startswith("[")}
    erm = known.get(next(name for name in _all(lines, labels) if name.startswith("[`erm`")))
    if len(plain) < 2:
        return []
    order = sorted(plain, key=lambda name: -plain[name])
    best = ", ".join(f"{_bare(name)} {100 * plain[name]:.1f}" for name in order[:4])
    words = f"The best on the last epoch: {best}."
    if erm is not None:
        below = [_bare(name) for name in order if plain[name] < erm - 0.005]
        words += f" `erm` reaches {100 * erm:.1f}"
        words += (
            f"; below it by more than half a point: {', '.join(below)}." if below else "; none is clearly below it."
        )
    return [words]


def _bare(name: str) -> str:
    return name[1:].split("]")[0] if name.startswith("[") else name


def _knowledge(lines: Lines) -> str:
    """What methods needed to know of the noise, where they took it from, and what it was."""
    rows = []
    for name, kind in METHODS.items():
        if kind.needs == "nothing":
            continue
        cells = [f"`{name}`", kind.needs]
        for labels in NOISES:
            found = []
            for line in runs(lines, name, labels, **own_settings(name, "cpu")):
                known = line["facts"].get("noise_info", {})
                found += [
                    f"{what.replace('_', ' ')} {_shown(one['value'])} ({one['source']})" for what, one in known.items()
                ]
            cells.append("; ".join(found) or "–")
        rows.append(cells)
    return markdown(["method", "needs", *NOISES.values()], rows)


def _shown(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


HALF = {"epochs": 20}  # as many updates as 40 epochs on half of the data
BEST = ("dividemix", "crust-half", "co-teaching", "crust-released")
LOSSES = ("gce", "sce", "elr", "d2l")
MATRICES = ("t-revision", "l-dmi", "f-correction")
OTHERS = ("mixup", "decoupling", "mentornet", "incv")
CONTROLS = ("erm", "random", "oracle")
TEXT = """\
Pairs of numbers: symmetric noise, then human labels; accuracy of the last epoch.

**Whom to train on matters more than which loss.** The best four on both, of those with two seeds ({best}), judge \
examples one by one and leave \
out, or label anew, what they suspect. Methods that keep every label and change the loss end below them ({losses}), \
and so do those that describe the noise by a matrix ({matrices}).

**Two networks are worth some points, at their price.** Against `crust-half`, `dividemix` has {dividemix} points at \
{dividemix_cost:.1f} times the passes of `erm`, `co-teaching` {co_teaching} at {co_teaching_cost:.1f} times; \
`crust-half` takes {half_cost:.2f} of them. Among the methods that take no more passes than `erm`, `crust-half` is \
first on both.{sized}

**Human mistakes are harder.** From a random half to the truly right half `crust-half` covers {covered} of the way. \
People err on images that networks find hard too: the coresets hold {clean} percent right labels, where {before} of \
all are right, and the audit's AUROC is {auroc}.

**Stopping early does much of it.** `erm` with half of the epochs reaches {half}. Under symmetric noise {low} end no \
more than two points above that: they slow down what plain training memorises and do not stop it, or, as `incv`, \
leave little to learn from.

**Why some are low here.** [`f-correction`](../methods/f-correction.md) reads its matrix off a network that knows two \
fifths of the images, and gets a flat one; with the true matrix it ends 8 points higher. [`elr`](../methods/elr.md) \
pulls only where predictions are sharp, which they are not before labels are memorised. \
[`mentornet`](../methods/mentornet.md) keeps the published share of each batch, about two thirds where half of the \
labels are right. [`incv`](../methods/incv.md) trains its last networks on the third of the images that short \
trainings on half of the data predict as they are labelled; where the noise is called asymmetric, as that of people, \
it takes the selected to be twice as noisy as they are and learns from the easiest alone. [`d2l`](../methods/d2l.md) \
turns at epoch 16, though the dimension that it watches rises from the third on, and even then a fifth to a half of \
each target is the given label.

**What this does not say.** The network is small, there are 9,000 images and no augmentation, so wrong labels are \
memorised sooner than in the experiments of the authors, who chose their constants for 50,000 images. Most \
methods have one seed: a point or two between them means nothing. All have the defaults of their papers, scaled; \
the rule of `crust-half` was chosen [here](training.md), looking at the test accuracy of these two kinds of noise, an \
advantage that the others did not have. The runs of `f-correction` and `t-revision` here are older than the limit on \
their anchors, which changes rows of classes that are predicted for less than 6% of the examples."""


def reading(lines: Lines) -> str:
    """Some paragraphs; nothing as long as a run that they speak of is missing.

    Example:
        >>> reading([])
        ''
    """
    halves = {labels: runs(lines, "erm", labels, **HALF) for labels in NOISES}
    made = {
        name: {labels: runs(lines, name, labels, **own_settings(name, "cpu")) for labels in NOISES}
        for name in (*BEST, *LOSSES, *MATRICES, *OTHERS, *CONTROLS)
    }
    if not all(some for each in (halves, *made.values()) for some in each.values()):
        return ""
    last = {name: [_last(some) for some in each.values()] for name, each in made.items()}
    half = [_last(some) for some in halves.values()]
    low = sorted((name for name in (*LOSSES, *MATRICES, *OTHERS) if last[name][0] <= half[0] + 2), key=last.__getitem__)
    plain, ours = (list(made[name].values()) for name in ("erm", "crust-half"))

    def named(names: Sequence[str]) -> str:
        return ", ".join(f"`{name}` {_pair(last[name])}" for name in names)

    def ahead(name: str) -> str:
        return _pair([own - base for own, base in zip(last[name], last["crust-half"], strict=True)], "+.1f")

    def cost(name: str) -> float:
        own, base = (passes(line for some in made[each].values() for line in some) for each in (name, "erm"))
        return own / base

    rows = zip(last["crust-half"], last["random"], last["oracle"], strict=True)
    return TEXT.format(
        best=named(BEST),
        losses=named(LOSSES),
        matrices=named(MATRICES),
        dividemix=ahead("dividemix"),
        dividemix_cost=cost("dividemix"),
        co_teaching=ahead("co-teaching"),
        co_teaching_cost=cost("co-teaching"),
        half_cost=cost("crust-half"),
        sized=_sized(lines),
        covered=_pair([(own - chance) / (right - chance) for own, chance, right in rows], ".2f"),
        clean=_pair([100 * mean(line["curves"]["clean_fraction"][-1] for line in some) for some in ours], ".0f"),
        before=_pair([100 * mean(line["curves"]["clean_fraction"][-1] for line in some) for some in plain], ".0f"),
        auroc=_pair([mean(of_runs(some, "audit", "auroc")) for some in ours], ".2f"),
        half=_pair(half),
        low=", ".join(f"`{name}`" for name in low),
    )


def _sized(lines: Lines) -> str:
    """A sentence on `crust`, once it has been run on both."""
    made = [runs(lines, "crust", labels) for labels in NOISES]
    base = passes(line for labels in NOISES for line in runs(lines, "erm", labels))
    own = passes(line for some in made for line in some)
    if own is None or base is None or not all(made):
        return ""
    reached = _pair([_last(some) for some in made])
    return f" `crust`, which sizes its coreset itself, reaches {reached} at {own / base:.2f} times the passes of `erm`."


def _last(some: Lines) -> float:
    return 100 * mean(of_runs(some, "accuracy", "last"))


def _pair(values: Sequence[float], form: str = ".1f") -> str:
    return " and ".join(format(value, form) for value in values)
