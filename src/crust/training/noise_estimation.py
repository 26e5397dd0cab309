"""What held-out predictions say about the noise: how many labels are wrong, and whether they went wrong at random.

A network that has learnt from noisy labels predicts about as noisily as they are. Where its predictions on examples
that it was not trained on agree with their labels, two independent draws of the same noise have met (Chen et al. 2019).

How many labels are wrong, estimated from the run itself.

What a method must know of the noise: estimated by the harness, unless the user says it or asks for the truth.

A method asks by having a setting `noise_rate` or `noise_type`. Where it says "estimate", the run begins with two short
trainings, each on one half of the examples, whose networks judge the other half; they are counted as part of the
method's cost. What was used stands in `context.noise_info`, in the history and in the run's config, with its source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from scipy.special import gammaln

from crust._util import seeding
from crust.errors import InputError
from crust.selection.together import ALONE, Together, lower_quantile
from crust.training.context import Context
from crust.training.method import Known, Method, Stage
from crust.training.settings import TrainSettings

KindOfNoise = Literal["symmetric", "asymmetric"]
STEP = 0.001
ODD = 0.25  # more than this share of the disagreements in odd places: the noise has a direction


def expected_agreement(rate: float, classes: int) -> float:
    """How often two independent draws of symmetric noise agree: both right, or both wrong in the same way."""
    return (1 - rate) ** 2 + rate**2 / (classes - 1)


def rate_from_agreement(agreement: float, classes: int) -> float:
    """The smallest noise rate, in steps of 0.001, at which no more agreement than this is expected.

    Returns:
        The rate; below the agreement of blind guessing that of labels which say nothing, 1 - 1/classes.
    """
    last = int((1 - 1 / classes) / STEP + 1e-9)
    for step in range(last + 1):
        if expected_agreement(step * STEP, classes) <= agreement + 1e-12:
            return round(step * STEP, 3)
    return round(last * STEP, 3)


def confusion(labels: NDArray[np.int64], predictions: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """How often each given label (row) met each prediction (column)."""
    return np.bincount(labels * classes + predictions, minlength=classes**2).reshape(classes, classes)


def oddness(counts: NDArray[np.integer]) -> float:
    """How far the disagreements of a confusion are from where symmetric noise would put them, from 0 to 1.

    Symmetric noise says nothing about the true class, so the predictions that disagree with a label are spread as all
    predictions are. The answer is the total variation distance from that, averaged over the disagreements, less what
    chance alone makes of it in a sample of that size. The two add up as squares: chance hardly moves a distance that
    is there already, so that the answer for the same noise does not grow with the number of examples.
    """
    classes = len(counts)
    spread = counts.sum(axis=0) / max(1, counts.sum())
    distance = chance = total = 0.0
    for row in range(classes):
        others = np.arange(classes) != row
        seen, expected = counts[row, others].astype(np.float64), spread[others]
        if not seen.sum() or not expected.sum():
            continue
        expected = expected / expected.sum()
        distance += seen.sum() * 0.5 * np.abs(seen / seen.sum() - expected).sum()
        chance += 0.5 * _mean_deviation(seen.sum(), expected).sum()
        total += seen.sum()
    return float(np.sqrt(max(0.0, distance**2 - chance**2)) / total) if total else 0.0


def _mean_deviation(n: float, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """E|X - np| of binomial counts, exactly (de Moivre): the normal approximation fails below one expected count."""
    p = p[(p > 0) & (p < 1)]
    m = np.minimum(np.floor(n * p) + 1, n)
    chosen = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return 2 * m * np.exp(chosen + m * np.log(p) + (n - m + 1) * np.log1p(-p))


def most_confident(probabilities: NDArray[np.floating], share: float = 0.25) -> NDArray[np.int64]:
    """Positions of the clearest predictions of each predicted class, at least one of each that occurs."""
    return most_confident_per_class(probabilities.argmax(axis=1), _sureness(probabilities), share)


def _sureness(probabilities: NDArray[np.floating]) -> NDArray[np.floating]:
    """How much likelier the likeliest class is than the next."""
    top = np.partition(probabilities, -2, axis=1) if probabilities.shape[1] > 1 else np.sort(probabilities, axis=1)
    return top[:, -1] - top[:, -2]


def most_confident_per_class(
    predictions: NDArray[np.int64], sureness: NDArray[np.floating], share: float
) -> NDArray[np.int64]:
    """Positions of the surest so many of each predicted class, at least one of each that occurs.

    Example:
        >>> most_confident_per_class(np.array([0, 0, 0, 1]), np.array([0.8, 0.2, 0.6, 0.4]), 0.5).tolist()
        [0, 2, 3]
    """
    found = []
    for name in np.unique(predictions):
        members = np.flatnonzero(predictions == name)
        order = members[np.argsort(-sureness[members], kind="stable")]
        found.append(order[: max(1, round(share * len(order)))])
    return np.sort(np.concatenate(found))


def type_from_confusion(counts: NDArray[np.integer]) -> KindOfNoise:
    """Whether wrong labels went anywhere or somewhere in particular, as far as held-out predictions can tell.

    With two classes there is only one other place to go: the answer is then symmetric.
    """
    return "asymmetric" if oddness(counts) > ODD else "symmetric"


SURE = 0.25  # of the examples of a predicted class are judged, where there are few
ENOUGH, LEAST = 300, 0.05  # so many examples are enough to judge, but no smaller share
UNLIKELY = 0.2  # of all pairs of an example and a class: those with the smallest probabilities


def estimate(probabilities: NDArray[np.floating], labels: NDArray[np.int64], symmetric: bool) -> float:
    """The noise rate, from what networks say of examples that they were not trained on.

    Among the examples that a network is surest of, most of its predictions are right, so that the share of their labels
    which say something else is about the share of wrong labels. It is too high by the share of predictions that are
    wrong even there. Where wrong labels may be anything (symmetric noise), there is a second way: a network that does
    not know what an example is still knows what it is not. Hardly a right label is among the least likely pairs of an
    example and a class, and a wrong one is there as often as any class is. This is too high as well where the network
    is poor, so the smaller of the two is taken.

    Measured on CIFAR-10 (10,000 images, two ResNet-8 after 10 epochs on half of it each, which know 21 to 49% of the
    others): what is said by the surest quarter, the surest twentieth, and the unlikely pairs, and the truth:

    - symmetric 0.2: 0.42, 0.37, 0.23; 0.20
    - symmetric 0.5: 0.69, 0.67, 0.54; 0.50
    - symmetric 0.8: 0.87, 0.87, 0.83; 0.80
    - derangement 0.4: 0.61, 0.52, 0.13; 0.40
    - human labels `worse`: 0.51, 0.47, 0.17; 0.41

    On digits (`mlp`, symmetric noise of 0.1 to 0.8, 24 runs) the surest quarter is off by 0.032 on average, the
    unlikely pairs by 0.036, the smaller of the two by 0.026; with 0.3 derangement the surest quarter by 0.029.

    Tried on digits before, and worse: the confident joint with the mean confidence of each class as threshold,
    agreement of predictions and labels by INCV's formula, anchors at the 97th percentile after temperature scaling, a
    mixture of two Gaussians on the losses. Networks that have memorised more judge worse, and after fewer than
    some 50 updates all of these are useless.

    Args:
        probabilities: (n, classes), out of sample.
        labels: the given labels.
        symmetric: whether wrong labels may be any class.

    Returns:
        The estimated share of wrong labels.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true, sure = rng.integers(0, 4, 2000), rng.random(2000)
        >>> labels = np.where(rng.random(2000) < 0.3, (true + rng.integers(1, 4, 2000)) % 4, true)
        >>> guess = np.where(rng.random(2000) < sure, true, rng.integers(0, 4, 2000))
        >>> p = 0.25 * (1 - sure[:, None]) + sure[:, None] * np.eye(4)[guess]
        >>> abs(estimate(p, labels, symmetric=True) - 0.3) < 0.1
        True
    """
    chosen = most_confident(probabilities, float(np.clip(ENOUGH / max(len(labels), 1), LEAST, SURE)))
    found = float((probabilities[chosen].argmax(axis=1) != labels[chosen]).mean())
    return min(found, _among_the_unlikely(probabilities, labels)) if symmetric else found


def _among_the_unlikely(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64], together: Together = ALONE
) -> float:
    """How often given labels are among the least likely classes, beside how often any class is."""
    n, classes = probabilities.shape
    limit = lower_quantile(probabilities, UNLIKELY, together)
    given = probabilities[np.arange(n), labels]
    counts = together.add(np.array([(given <= limit).sum(), (probabilities <= limit).sum()]))
    any_label = float(counts[0]) * classes / float(counts[1])  # of the labels are drawn from all classes
    return min(1.0, any_label) * (classes - 1) / classes


ASKED, MOST_ASKED = 40, 0.6
MOST_PAIRS = 2**25  # of an example and a class, that are looked at for the noise rate


@dataclass(frozen=True)
class HeldOutNoise:
    """What examples that were not trained on say of the noise: a range, since a network's errors look like noise.

    Attributes:
        surest: the share of other labels among the surest predictions, which are hardly wrong themselves.
        asked: how many these are.
        unlikely: the rate by what a network says that examples are not, which a poor one knows sooner.
        symmetric: whether wrong labels seem to be anything; only then the unlikely say something.
        disagreement: the share of other labels among all predictions: wrong labels and wrong predictions.
    """

    surest: float
    asked: float
    unlikely: float
    symmetric: bool
    disagreement: float

    @property
    def rate(self) -> float:
        """The likeliest share of wrong labels."""
        found = min(self.surest, self.unlikely) if self.symmetric else self.surest
        return min(found, self.disagreement)

    @property
    def low(self) -> float:
        """The least that is likely (95%), given how few were asked."""
        error = math.sqrt(self.rate * (1 - self.rate) / self.asked) + 0.5 / self.asked
        return max(0.0, self.rate - 1.645 * error)

    @property
    def high(self) -> float:
        """The most that is likely (one standard error, by Wilson's formula), given how few were asked."""
        if math.isinf(self.asked):
            return self.rate
        spread = math.sqrt(self.rate * (1 - self.rate) / self.asked + 0.25 / self.asked**2)
        return min(self.disagreement, (self.rate + 0.5 / self.asked + spread) / (1 + 1 / self.asked))

    def least(self, newer: HeldOutNoise) -> HeldOutNoise:
        """The smallest shares of both: networks that know too little say too much. The kind of noise is the newer's."""
        first = min(self, newer, key=lambda one: one.surest)
        return HeldOutNoise(
            first.surest,
            first.asked,
            min(self.unlikely, newer.unlikely),
            newer.symmetric,
            min(self.disagreement, newer.disagreement),
        )

    def with_more(self, other: HeldOutNoise) -> HeldOutNoise:
        """What more witnesses say, but for the disagreement."""
        return HeldOutNoise(other.surest, other.asked, other.unlikely, other.symmetric, self.disagreement)


def held_out_noise(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64], together: Together = ALONE
) -> HeldOutNoise:
    """How many labels seem to be wrong, by predictions for examples that were not trained on.

    Where several processes have the probabilities, `labels` are those of all examples; the answer is the same.
    """
    n, classes = len(labels), probabilities.shape[1]
    rows = together.slice(n)
    if n * classes > MOST_PAIRS:  # they all say the same: a part is enough
        part = np.arange(MOST_PAIRS // classes) * n // (MOST_PAIRS // classes)
        here = (part >= rows[0]) & (part <= rows[-1]) if len(rows) else np.zeros(len(part), bool)
        probabilities, rows = probabilities[part[here] - rows[:1]], np.flatnonzero(here)
        labels = labels[part]
    # Of many examples the very surest are enough to ask; of few more are asked, or chance alone answers.
    share = float(min(MOST_ASKED, max(np.clip(ENOUGH / len(labels), LEAST, SURE), ASKED / len(labels))))
    predictions = together.join(probabilities.argmax(axis=1).astype(np.int32)).astype(np.int64)
    sure = most_confident_per_class(predictions, together.join(_sureness(probabilities)), share)
    symmetric = classes > 2 and (
        type_from_confusion(confusion(labels[sure], predictions[sure], classes)) == "symmetric"
    )
    return HeldOutNoise(
        float((predictions[sure] != labels[sure]).mean()),
        float(len(sure)),
        _among_the_unlikely(probabilities, labels[rows], together),
        symmetric,
        float((predictions != labels).mean()),
    )


Rate = Annotated[float, Field(ge=0, lt=1)] | Literal["estimate", "true"]
NoiseType = Literal["symmetric", "asymmetric", "estimate", "true"]
NAMES = ("noise_rate", "noise_type")
SHARE = 0.25  # of the experiment's epochs, for each half
UPDATES = 60  # after fewer a network knows too little to judge others


class Estimator(Method):
    """Plain training on halves, and what it says of the noise. Used by the loop before the method itself."""

    name = "estimate"
    summary = "two networks, each trained on half of the examples, judge the other half"

    def __init__(self, n: int, classes: int, experiment: TrainSettings):
        super().__init__(Method.Settings())
        steps = max(1, n // 2 // experiment.batch_size)
        enough = min(experiment.epochs, math.ceil(UPDATES / steps))
        self.epochs = max(2, enough, round(SHARE * experiment.epochs))
        order = seeding.numpy_rng(experiment.seed, "halves").permutation(n)
        self.halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        self.probabilities = np.full((n, classes), np.nan, np.float32)
        self.known: dict[str, Known] = {}

    def stages(self) -> list[Stage]:
        return [
            Stage(
                f"estimate {number}",
                epochs=self.epochs,
                start="initial",
                end="best",  # by the labels of the other half: before they are memorised
                networks=1,
                counts=False,
                subset=half,
                held=self.halves[2 - number],
            )
            for number, half in enumerate(self.halves, 1)
        ]

    def end_stage(self, context: Context) -> None:
        other = self.halves[1 - context.stage]
        self.probabilities[other] = context.predict(other).probabilities
        if context.stage == 1:
            sure = most_confident(self.probabilities)
            counts = confusion(context.labels[sure], self.probabilities[sure].argmax(axis=1), context.classes)
            kind = type_from_confusion(counts)
            rate = estimate(self.probabilities, context.labels, kind == "symmetric")
            estimated = {"noise_rate": rate, "noise_type": kind}
            for name, value in estimated.items():
                context.noise_info.setdefault(name, Known(value, "estimated"))

    def state(self) -> dict[str, Any]:
        return {"probabilities": self.probabilities}

    def load_state(self, state: dict[str, Any]) -> None:
        self.probabilities = state["probabilities"]


def told(
    settings: BaseModel, labels: NDArray[np.int64], truth: NDArray[np.int64] | None, classes: int, method: str
) -> tuple[dict[str, Known], bool]:
    """What is known before the run, and whether anything has to be estimated.

    Example:
        >>> class Mine(BaseModel):
        ...     noise_rate: Rate = "true"
        >>> told(Mine(), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), 2, "mine")
        ({'noise_rate': Known(value=0.25, source='true')}, False)
        >>> told(Mine(noise_rate=0.3), np.zeros(2), None, 2, "mine")[0]["noise_rate"].source
        'given'
    """
    known: dict[str, Known] = {}
    wanted = {name: getattr(settings, name) for name in NAMES if hasattr(settings, name)}
    for name, value in wanted.items():
        if value == "true":
            if truth is None:
                raise InputError(
                    f"{name}=true needs true labels: give true_labels, or let {method} estimate it",
                    code="missing-true-labels",
                )
            counts = confusion(labels, truth, classes)
            real = float((labels != truth).mean()) if name == "noise_rate" else type_from_confusion(counts)
            known[name] = Known(real, "true")
        elif value != "estimate":
            known[name] = Known(value, "given")
    return known, "estimate" in wanted.values()


def described(knowledge: dict[str, Known]) -> dict[str, dict[str, Any]]:
    """For the history and the config."""
    return {name: {"value": known.value, "source": known.source} for name, known in knowledge.items()}
