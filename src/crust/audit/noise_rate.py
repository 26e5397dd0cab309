"""The noise rate of a set of labels: one estimate with one interval, from labels that nobody trained on.

Whoever trains on a label may memorise it, so that only the predictions for examples held out say how many labels are
wrong. They disagree with a label because it is wrong or because they are. What tells these apart is how sure they are:
the surer a prediction, the oftener it is right, and noise that depends on the class alone asks nobody how sure he is.
So P(prediction and label agree) = a (1 − η) + (1 − a) η / (C − 1) with a = σ(s logit(p) + b), where p is the stated
probability: an overconfident network has a small s, one that knows nothing has s near 0 and says nothing of η. All
three are laid on a grid and η is read from what is left of its prior, every value alike.

This is the one place where a noise rate comes from; `crust verify` narrows it by a second training, and where a run was
verified its number is shown in place of this one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

LEVEL = 0.9
FEWEST = 20  # examples that were held out: of fewer nothing is said
LUCK = 0.05  # so much oftener than by chance is something, if it is no luck
CHANCE = 2.33  # standard errors by which predictions must agree with the labels oftener than by chance
BINS = 80  # of the stated probabilities
RATES = np.linspace(0.0, 0.9, 181)
SHARPNESS = np.exp(np.linspace(-2.5, 1.5, 17))  # s
SHIFT = np.linspace(-2.5, 2.5, 21)  # b, from what is expected of it
WIDE_SHARPNESS, WIDE_SHIFT = 0.7, 1.2  # standard deviations of log s and of b, before anything was seen
# What is expected of b: networks that have memorised labels, and those that are very sure, are right less often than
# they say. Chosen on the choosing runs of benchmarks.verify_coverage, where the truth is known.
EXPECTED, BY_GAP, BY_SURENESS = 1.4, -2.2, -0.45


@dataclass(frozen=True)
class NoiseRate:
    """An estimate with its interval, or why there is none.

    Example:
        >>> NoiseRate(0.21, 0.15, 0.28).sentence()
        'estimated noise rate: 21 % (90% interval: 15 to 28 %)'
        >>> NoiseRate(reason="nothing was held out").sentence()
        'noise rate: cannot say, since nothing was held out'
    """

    value: float | None = None
    low: float = 0.0
    high: float = 1.0
    reason: str | None = None  # where there is no value
    source: str = "held-out examples"

    def sentence(self) -> str:
        """What is said of it wherever it is shown."""
        if self.value is None:
            return f"noise rate: cannot say, since {self.reason}"
        value, low, high = (
            f"{100 * share:.{0 if share >= 0.1 else 1}f}" for share in (self.value, self.low, self.high)
        )
        return f"estimated noise rate: {value} % (90% interval: {low} to {high} %)"


def noise_rate(table: pd.DataFrame, classes: int | None = None, verified: dict[str, Any] | None = None) -> NoiseRate:
    """The share of wrong labels among those of an audit.

    Args:
        table: an audit; examples that were held out, or all of them where nobody trained on any, are asked.
        classes: how many there are; default: as many as occur.
        verified: what `crust verify` has found of the run, which is then shown.

    Example:
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> true, sure = rng.integers(0, 3, 2000), rng.uniform(0.6, 1, 2000)
        >>> given = np.where(rng.random(2000) < 0.2, (true + rng.integers(1, 3, 2000)) % 3, true)
        >>> predicted = np.where(rng.random(2000) < sure, true, (true + rng.integers(1, 3, 2000)) % 3)
        >>> columns = {"given_label": given, "predicted_label": predicted, "predicted_prob": sure, "is_held_out": True}
        >>> found = noise_rate(pd.DataFrame(columns))
        >>> found.low < 0.2 < found.high, found.high - found.low < 0.15
        (True, True)
    """
    if verified is not None:
        return from_verified(verified)
    rows = table[unseen(table)]
    if len(rows) < FEWEST:
        many = f"only {len(rows)} labels were held out" if len(rows) else "no labels were held out of training"
        return NoiseRate(reason=f"{many}: crust verify asks in another way")
    if not np.isfinite(rows["predicted_prob"].to_numpy(np.float64)).all():
        return NoiseRate(reason="the run has not looked at all examples: let it end")
    if classes is None:
        classes = len({*table["given_label"].tolist(), *table["predicted_label"].tolist()})
    given, predicted = rows["given_label"], rows["predicted_label"]
    agree = (given == predicted).to_numpy()
    reason = near_chance(given.to_numpy(), predicted.to_numpy())
    if reason is not None:
        return NoiseRate(reason=reason)
    trained = (table["given_label"] == table["predicted_label"])[~unseen(table)]
    gap = float(trained.mean() - agree.mean()) if len(trained) else 0.0
    return interval(RATES, posterior(agree, rows["predicted_prob"].to_numpy(np.float64), classes, gap))


def from_verified(found: dict[str, Any]) -> NoiseRate:
    """The one of `crust verify`."""
    if found["noise_rate"] is None:
        return NoiseRate(reason=found["cannot_say"], source="crust verify")
    return NoiseRate(**found["noise_rate"], source="crust verify")


def unseen(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Which examples nobody has trained on: those held out, or all in an audit without training."""
    held = table["is_held_out"].to_numpy(bool) if "is_held_out" in table else np.zeros(len(table), bool)
    if not held.any() and ("mean_weight" not in table or table["mean_weight"].isna().all()):
        return np.ones(len(table), bool)
    return held


def near_chance(given: NDArray[Any], predicted: NDArray[Any]) -> str | None:
    """The reason to say nothing: predictions agree with the labels hardly oftener than if they knew nothing.

    Example:
        >>> near_chance(np.array([0, 1] * 50), np.array([0, 1] * 50)) is None
        True
        >>> near_chance(np.array([0, 1] * 50), np.array([0, 0, 1, 1] * 25))
        'the predictions for 100 held-out examples agree with 50 % of the labels, by chance with 50 %'
        >>> near_chance(np.array([0, 1] * 10), np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 0] * 2))[-45:]
        'by chance with 50 %; of so few it may be luck'
    """
    names, codes = np.unique(np.concatenate([given, predicted]).astype(str), return_inverse=True)
    shares = [np.bincount(part, minlength=len(names)) / len(given) for part in np.split(codes, 2)]
    chance, agreed = float(shares[0] @ shares[1]), float((given == predicted).mean())
    if agreed - chance > CHANCE * math.sqrt(max(chance * (1 - chance), 1e-9) / len(given)) or chance == 1:
        return None
    said = (
        f"the predictions for {len(given)} held-out examples agree with {100 * agreed:.0f} % of the labels, by chance"
    )
    few = "; of so few it may be luck" if agreed > chance + LUCK else ""
    return f"{said} with {100 * chance:.0f} %{few}"


def posterior(agree: NDArray[np.bool_], probability: Array, classes: int, gap: float = 0.0) -> Array:
    """How likely each of `RATES` is, by whether predictions agree with the labels and how sure they are.

    `gap` is how much oftener they agree with labels that were trained on.
    """
    agreed, asked, sure = _binned(agree, probability)
    expected = EXPECTED + BY_GAP * gap + BY_SURENESS * float(logit(np.clip(probability.mean(), 0.01, 0.99)))
    right = expit(SHARPNESS[:, None, None] * sure + expected + SHIFT[None, :, None])  # s, b, bin
    prior = -0.5 * ((np.log(SHARPNESS)[:, None] / WIDE_SHARPNESS) ** 2 + (SHIFT[None, :] / WIDE_SHIFT) ** 2)
    logs = np.empty((len(RATES), *prior.shape))
    for i, rate in enumerate(RATES):
        p = np.clip(right * (1 - rate) + (1 - right) * rate / max(1, classes - 1), 1e-6, 1 - 1e-6)
        logs[i] = np.log(p) @ agreed + np.log1p(-p) @ (asked - agreed) + prior
    found = np.exp(logs - logs.max()).sum(axis=(1, 2))
    return np.asarray(found / found.sum())


def _binned(agree: NDArray[np.bool_], probability: Array) -> tuple[Array, Array, Array]:
    """Agreements, examples and the logit of the stated probability, bin by bin: of many examples few numbers."""
    order = np.argsort(probability, kind="stable")
    parts = np.array_split(order, min(BINS, len(order)))
    sure = np.array([logit(np.clip(probability[part], 1e-4, 1 - 1e-4)).mean() for part in parts])
    return np.array([agree[part].sum() for part in parts], float), np.array([len(part) for part in parts], float), sure


def interval(values: Array, weights: Array, level: float = LEVEL) -> NoiseRate:
    """The median, and the shortest interval that holds `level` of the weight; at an end it reaches it.

    Example:
        >>> found = interval(np.linspace(0, 1, 11), np.array([6, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0]) / 10)
        >>> found.value, found.low, found.high
        (0.0, 0.0, 0.1)
    """
    total = np.concatenate([[0.0], np.cumsum(weights)])
    ends = np.searchsorted(total, total[:-1] + level - 1e-9)  # the first end that holds enough, for each beginning
    widths = np.where(ends <= len(values), values[np.minimum(ends, len(values)) - 1] - values, np.inf)
    first = int(np.argmin(widths))
    middle = values[np.searchsorted(total[1:], 0.5)]
    value, low, high = (round(float(v), 5) for v in (middle, values[first], values[ends[first] - 1]))
    return NoiseRate(value, low, high)
