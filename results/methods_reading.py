"""Who wins where, and why: what is read from the page of all methods, with its numbers taken from the result lines."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from crust.experiments.paper.tables_and_figures import own_settings
from results.tables import NOISES, of_runs, passes, runs

Lines = Sequence[dict[str, Any]]
HALF = {"epochs": 20}  # as many updates as 40 epochs on half of the data
BEST = ("dividemix", "crust", "co-teaching", "crust-released")
LOSSES = ("gce", "sce", "elr", "d2l")
MATRICES = ("t-revision", "l-dmi", "f-correction")
OTHERS = ("mixup", "decoupling", "mentornet", "incv")
CONTROLS = ("erm", "random", "oracle")
TEXT = """\
Pairs of numbers: symmetric noise, then human labels; accuracy of the last epoch.

**Whom to train on matters more than which loss.** The best four on both ({best}) judge examples one by one and leave \
out, or label anew, what they doubt. Methods that keep every label and change the loss end below them ({losses}), and \
so do those that describe the noise by a matrix ({matrices}).

**Two networks are worth some points, at their price.** Against `crust`, `dividemix` has {dividemix} points at \
{dividemix_cost:.1f} times the passes of `erm`, `co-teaching` {co_teaching} at {co_teaching_cost:.1f} times; `crust` \
takes {crust_cost:.2f} of them. Among the methods that take no more passes than `erm`, `crust` is first on both.

**Human mistakes are harder.** From a random half to the truly right half `crust` covers {covered} of the way. People \
err on images that networks find hard too: the coresets hold {clean} percent right labels, where {before} of all are \
right, and the audit's AUROC is {auroc}.

**Stopping early does much of it.** `erm` with half of the epochs reaches {half}. Under symmetric noise {low} end no \
more than two points above that: they slow down what plain training learns by heart and do not stop it, or, as `incv`, \
leave little to learn from.

**Why some are low here.** [`f-correction`](../methods/f-correction.md) reads its matrix off a network that knows two \
fifths of the images, and gets a flat one; with the true matrix it ends 8 points higher. [`elr`](../methods/elr.md) \
pulls only where predictions are sharp, which they are not before labels are learnt by heart. \
[`mentornet`](../methods/mentornet.md) keeps the published share of each batch, about two thirds where half of the \
labels are right. [`incv`](../methods/incv.md) trains its last networks on the third of the images that short \
trainings on half of the data predict as they are labelled; where the noise is called asymmetric, as that of people, \
it takes the selected to be twice as noisy as they are and learns from the easiest alone. [`d2l`](../methods/d2l.md) \
turns at epoch 16, though the dimension that it watches rises from the third on, and even then a fifth to a half of \
each target is the given label.

**What this does not say.** The network is small, there are 9,000 images and no augmentation, so wrong labels are \
learnt by heart sooner than in the experiments of the authors, who chose their constants for 50,000 images. Most \
methods have one seed: a point or two between them means nothing. All have the defaults of their papers, scaled; \
`crust`'s own rule was chosen [here](training.md), looking at the test accuracy of these two kinds of noise, an \
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
    plain, ours = (list(made[name].values()) for name in ("erm", "crust"))

    def named(names: Sequence[str]) -> str:
        return ", ".join(f"`{name}` {_pair(last[name])}" for name in names)

    def ahead(name: str) -> str:
        return _pair([own - base for own, base in zip(last[name], last["crust"], strict=True)], "+.1f")

    def cost(name: str) -> float:
        own, base = (passes(line for some in made[each].values() for line in some) for each in (name, "erm"))
        return own / base

    rows = zip(last["crust"], last["random"], last["oracle"], strict=True)
    return TEXT.format(
        best=named(BEST),
        losses=named(LOSSES),
        matrices=named(MATRICES),
        dividemix=ahead("dividemix"),
        dividemix_cost=cost("dividemix"),
        co_teaching=ahead("co-teaching"),
        co_teaching_cost=cost("co-teaching"),
        crust_cost=cost("crust"),
        covered=_pair([(own - chance) / (right - chance) for own, chance, right in rows], ".2f"),
        clean=_pair([100 * mean(line["curves"]["clean_fraction"][-1] for line in some) for some in ours], ".0f"),
        before=_pair([100 * mean(line["curves"]["clean_fraction"][-1] for line in some) for some in plain], ".0f"),
        auroc=_pair([mean(of_runs(some, "audit", "auroc")) for some in ours], ".2f"),
        half=_pair(half),
        low=", ".join(f"`{name}`" for name in low),
    )


def _last(some: Lines) -> float:
    return 100 * mean(of_runs(some, "accuracy", "last"))


def _pair(values: Sequence[float], form: str = ".1f") -> str:
    return " and ".join(format(value, form) for value in values)
