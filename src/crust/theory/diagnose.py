"""The theory's questions put to a run: at some of its epochs, on some of its examples, with its own selection."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crust.errors import InputError
from crust.runs.checkpoints import Reopened
from crust.theory.alignment import Alignment, alignment_of
from crust.theory.coreset_quality import CoresetQuality, Errors, Problem, make_problem, quality_of
from crust.theory.guarantee import Guarantee, guarantee_of
from crust.theory.spectrum import Cut, Spaces, Spectrum, gram_spectrum

SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
QUALITY = (
    "alpha", "beta", "norm", "r_min", "r_max", "noise", "noise_weighted", "noise_by_cluster", "noise_of_all", "errors",
    "random",
)  # fmt: skip
GUARANTEE = (
    "margin", "noise", "alpha", "beta", "smoothness", "residual", "precision", "learning_rate", "steps", "notes",
    "holds",
)  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """One epoch of a run."""

    epoch: int
    spectrum: Spectrum
    alignment: Alignment
    quality: CoresetQuality | None


@dataclass(frozen=True)
class CoresetSize:
    """A coreset of one size, chosen as the run chooses, and random ones beside it."""

    share: float
    errors: Errors
    random: list[Errors]


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found."""

    name: str
    method: str
    model: str
    parameters: int
    points: int
    cut: Cut
    noise: float | None
    moments: list[Moment]
    sizes: list[CoresetSize] = field(default_factory=list)
    guarantee: Guarantee | None = None

    def summary(self) -> dict[str, Any]:
        """All of it as plain numbers that JSON can hold; of long spectra every value that a plot needs."""
        found = {
            **_values(self, "name", "method", "model", "parameters", "points", "cut", "noise"),
            "moments": [_moment(moment, self.cut) for moment in self.moments],
            "sizes": self.sizes,
            "guarantee": None if self.guarantee is None else _guarantee(self.guarantee),
        }
        return dict(_as_json(found))


def diagnose(
    run: Reopened,
    epochs: Sequence[int] | None = None,
    *,
    points: int = 200,
    cut: Cut = 0.9,
    repeats: int = 10,
    max_steps: int = 500,
    shares: Sequence[float] = SHARES,
    memory_limit: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Diagnosis:
    """Spectrum, alignment and the quality of the run's own coresets at some epochs, and the theorem at the last one.

    The method chooses anew from the same few examples at each epoch, with the weights and the memory that it had then.

    Args:
        run: the run.
        epochs: which; default: up to six of those that are there, spread evenly.
        points: training examples to measure on, drawn at random.
        cut: of the spectrum, as in `crust.theory.alignment`.
        repeats: random subsets.
        max_steps: of the descent that tests the theorem; 0 for none.
        shares: sizes of coresets to compare at the last epoch.
        memory_limit: bytes; None: half of what is free.
        say: told what is being done.
    """
    if points < 2:
        raise InputError(f"points is {points}: give at least 2 examples", code="points-range")
    rows = run.sample(points)
    chosen = run.hold(epochs)
    part, truth = run.examples.subset(rows), None if run.truth is None else run.truth[rows]
    moments: list[Moment] = []
    problem, members = None, None
    for epoch in chosen:
        say(f"epoch {epoch}: gradients of {len(rows)} examples")
        problem = make_problem(run.network(epoch), part, part.labels, truth, None, memory_limit)
        members = run.choice(epoch, rows)
        moments.append(_look(problem, epoch, members, cut, repeats))
    assert problem is not None
    found, sizes = None, []
    if members is not None:
        sizes = _sizes(run, chosen[-1], rows, problem, shares, min(repeats, 5), say)
        if run.truth is not None:
            say(f"epoch {chosen[-1]}: the theorem")
            found = guarantee_of(problem, members.indices, members.weights, None, max_steps, 0)
    return Diagnosis(
        run.folder.path.name,
        run.method,
        run.config["model"],
        problem.jacobian.m,
        len(rows),
        cut,
        None if problem.wrong is None else float(problem.wrong.mean()),
        moments,
        sizes,
        found,
    )


def _look(problem: Problem, epoch: int, members: Any, cut: Cut, repeats: int) -> Moment:
    jacobian = problem.jacobian
    spectrum = gram_spectrum(jacobian, False, problem.matrix)
    spaces = Spaces(jacobian, matrix=problem.matrix)
    index = None if members is None else members.indices
    aligned = alignment_of(spaces, problem.y, problem.truth, problem.residual, index, cut, repeats)
    quality = None if members is None else quality_of(problem, index, members.weights, None, repeats)
    return Moment(epoch, spectrum, aligned, quality)


def _sizes(
    run: Reopened,
    epoch: int,
    rows: np.ndarray,
    problem: Problem,
    shares: Sequence[float],
    repeats: int,
    say: Callable[[str], None],
) -> list[CoresetSize]:
    found = []
    if not hasattr(run.own, "fraction"):
        return []
    for share in shares:
        say(f"epoch {epoch}: a coreset of {share:.0%}")
        members = run.choice(epoch, rows, share)
        if members is not None:
            quality = quality_of(problem, members.indices, members.weights, None, repeats)
            found.append(CoresetSize(share, quality.errors, quality.random))
    return found


def _moment(moment: Moment, cut: Cut) -> dict[str, Any]:
    quality = None
    if moment.quality is not None:
        bounds = moment.quality.bounds
        quality = {
            **_values(moment.quality, *QUALITY),
            "members": len(moment.quality.clusters),
            "bounds": [{**dataclasses.asdict(bound), "holds": bound.holds} for bound in bounds],
        }
    return {
        "epoch": moment.epoch,
        "singular_values": moment.spectrum.singular_values,
        "rank": moment.spectrum.rank(cut),
        "energy": moment.spectrum.energy,
        "sets": moment.alignment.sets,
        "random_sets": moment.alignment.random,
        "claim": moment.alignment.claim,
        "claim_at_random": moment.alignment.claim_at_random,
        "quality": quality,
    }


def _guarantee(found: Guarantee) -> dict[str, Any]:
    premises = [{**dataclasses.asdict(one), "holds": one.holds, "factor": one.factor} for one in found.premises]
    outcome = None
    if found.outcome is not None:
        outcome = {**dataclasses.asdict(found.outcome), "as_promised": found.outcome.as_promised}
    return {**_values(found, *GUARANTEE), "premises": premises, "outcome": outcome}


def _values(of: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _as_json(value: Any) -> Any:
    """Numbers, lists and dicts; what is not finite becomes None, since JSON has no name for it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _as_json(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_as_json(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
