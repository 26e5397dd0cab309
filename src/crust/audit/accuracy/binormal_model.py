"""How many labels are wrong, from how many of the injected ones and how many of all are above some thresholds.

All that is above a threshold is wrong or right: F = ηW + (1 − η)R. W, the share of the wrong ones that is found, is
what is found of the injected ones. R, the share of the right ones that is doubted all the same, is not known. At high
thresholds it would be next to nothing if the network knew the data; networks that do not know it doubt right labels of
hard examples too. So R is taken to follow W by the usual curve of detection (binormal: Φ⁻¹(R) = −A + B Φ⁻¹(W)), whose
two numbers are fitted together with η. The true curves of five runs on CIFAR-10 are straight in these terms (within
0.03), with slopes B from 0.85 to 1.01. Left free, B makes the noise rate unsure, so it is held near one value; of 0.85,
0.9 and 1.0 the first came nearest under symmetric noise of 0.2 (0.23 instead of 0.25) and did as well under 0.5.

This alone would take a network's doubts about clean data for noise. So there is a bound: no more labels are wrong than
are contradicted among the examples that the network is surest of, made up for what does not show there: of the injected
labels it is known how many do (`crust.audit.accuracy.confident_disagreement`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, logit, ndtr, ndtri

from crust.audit.accuracy.confident_disagreement import SILENT, Surest

Array = NDArray[np.float64]
APART = (2.5, 1.5)  # A and its spread: what is usual, where the numbers do not say
SLOPE = (np.log(0.85), 0.05)  # the same of log B, more firmly
LOW, HIGH = (-10.0, 0.0, -1.0), (5.0, 8.0, 1.0)  # of logit η, A, log B
STARTS = ((-1.5, 2.0, -0.1), (0.0, 1.5, -0.1), (-3.0, 2.0, -0.1))
EDGE = 1e-6


@dataclass(frozen=True)
class BinormalModel:
    """The model, with what is known beforehand.

    Example:
        >>> model, found = BinormalModel(2000, 10000), np.array([0.2, 0.4, 0.6, 0.8, 0.9])
        >>> _, wrong, right = model.rates(found, np.array([0.0, 2.0, -0.16]))
        >>> round(float(expit(model.fit(found, 0.3 * wrong + 0.7 * right)[0])), 2)
        0.3
    """

    injected: int  # how many label errors were injected
    examples: int  # how many there are in all
    # how often an injected label is the true one, for each that was wrong before (`InjectedErrors`)
    p_injected_is_true: float = 0.0
    dropped: float = 0.0  # the share of all examples that was left out, most of them with wrong labels
    surest: Surest = SILENT  # what the surest examples say

    def rates(self, injected: Array, x: Array) -> tuple[Array, Array, Array]:
        """The noise rate, and the shares of the wrong and of the right labels above thresholds.

        Args:
            injected: the share of the injected errors above them; a row for each row of `x` where there are several.
            x: logit of the noise rate, A, log B; its last axis has length 3.
        """
        rate, apart, slope = expit(x[..., :1]), x[..., 1:2], np.exp(x[..., 2:])
        accident = np.clip(self.p_injected_is_true * (rate - self.dropped), 0.0, 0.5)
        wrong = np.clip(injected, EDGE, 1 - EDGE)
        for _ in range(10):  # injected labels that are right by accident are found as right ones are
            right = ndtr(-apart + slope * ndtri(wrong))
            wrong = np.clip((injected - accident * right) / (1 - accident), EDGE, 1 - EDGE)
        return rate[..., 0], wrong, ndtr(-apart + slope * ndtri(wrong))

    def fit(self, injected: Array, everyone: Array) -> Array:
        """Logit of the noise rate, A and log B that explain best what is above the thresholds.

        `injected` is the share of the injected errors that is above each threshold, rising; `everyone` that of all
        labels.
        """
        seen = (injected, everyone, self.surest.contradicted)
        fits = [least_squares(self.residuals, start, bounds=(LOW, HIGH), args=seen) for start in STARTS]
        return np.asarray(min(fits, key=lambda fit: fit.cost).x)

    def bootstrap(self, x: Array, injected: Array, everyone: Array, surest: Array) -> Array:
        """What would have been fitted, about, to other numbers: one step of Gauss and Newton from the fit x.

        The arguments are those of `fit` and the share of the surest that is contradicted, a row for each draw; so is
        what is returned.
        """
        middle = (injected.mean(axis=0), everyone.mean(axis=0), self.surest.contradicted)
        steps = 1e-4 * np.eye(3)
        slopes = np.array([self.residuals(x + h, *middle) - self.residuals(x - h, *middle) for h in steps]).T / 2e-4
        residuals = np.array([self.residuals(x, *draw) for draw in zip(injected, everyone, surest, strict=True)])
        moves = (residuals - residuals.mean(axis=0)) @ np.linalg.pinv(slopes).T
        found = np.clip(x - moves, LOW, HIGH)
        rate = expit(x[0])  # moves along the rate itself: next to 0 its logit goes anywhere
        found[:, 0] = np.clip(logit(np.clip(rate - rate * (1 - rate) * moves[:, 0], EDGE, 1 - EDGE)), LOW[0], HIGH[0])
        return found

    def draw_surest(self, count: int, rng: np.random.Generator) -> Array:
        """What share of the surest might as well have been contradicted, in so many draws."""
        sure = self.surest
        shares = rng.binomial(sure.asked, sure.contradicted, count) / sure.asked
        return np.asarray(shares * rng.normal(1.0, sure.spread, count))

    def residuals(self, x: Array, injected: Array, everyone: Array, surest: float) -> Array:
        """In standard deviations: between thresholds, how far the shares of all labels are from what is expected; how
        far the noise rate is beyond what the surest say; how far the curve is from what is usual."""
        rate, wrong, right = self.rates(injected, x)
        expected = np.maximum(_between(rate * wrong + (1 - rate) * right), EDGE)
        caught = np.maximum(_between(injected), 1 / self.injected)
        spread = np.sqrt(expected / self.examples + rate**2 * caught / self.injected)
        sure = self.surest
        chance = np.sqrt(sure.contradicted * sure.asked + 1) / sure.asked
        beyond = min(0.0, surest - sure.noticed * float(rate)) / np.hypot(chance, sure.spread * sure.contradicted)
        prior = [(x[1] - APART[0]) / APART[1], (x[2] - SLOPE[0]) / SLOPE[1]]
        return np.concatenate([(_between(everyone) - expected) / spread, [beyond], prior])


def _between(above: Array) -> Array:
    return np.diff(above, prepend=0.0, append=1.0)
