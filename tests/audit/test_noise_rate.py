"""The noise rate: the truth in its interval, the grid against a slow sum, and silence where nothing can be known."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from crust.audit.noise_rate import (
    BY_GAP,
    BY_SURENESS,
    EXPECTED,
    RATES,
    SHARPNESS,
    SHIFT,
    WIDE_SHARPNESS,
    WIDE_SHIFT,
    NoiseRate,
    interval,
    noise_rate,
    posterior,
)


def judged(seed, rate, n=150, classes=4, knows=1.0, sure=1.0):
    """A table of held-out examples, judged by a network that is right as often as it says, or overconfident."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    given = np.where(rng.random(n) < rate, (true + rng.integers(1, classes, n)) % classes, true)
    logit = knows * rng.exponential(2.5, n) + np.log(1 / (classes - 1))
    right = rng.random(n) < expit(logit)
    predicted = np.where(right, true, (true + rng.integers(1, classes, n)) % classes)
    columns = {"given_label": given, "predicted_label": predicted, "predicted_prob": expit(sure * logit)}
    return pd.DataFrame({**columns, "is_held_out": True})


@pytest.mark.parametrize(("knows", "sure"), [(1.5, 1.0), (1.5, 3.0), (0.5, 1.0)])
def test_the_truth_lies_in_nine_of_ten_intervals(knows, sure):
    found = [(rate, noise_rate(judged(seed, rate, knows=knows, sure=sure), 4))
             for seed, rate in enumerate(np.tile([0.0, 0.1, 0.2, 0.3, 0.4], 8))]  # fmt: skip
    said = [(rate, one) for rate, one in found if one.value is not None]
    assert len(said) > 30
    assert np.mean([one.low - 0.01 <= rate <= one.high + 0.01 for rate, one in said]) >= 0.8


def test_the_grid_is_what_a_slow_sum_gives():
    rng = np.random.default_rng(0)
    agree, p, classes = rng.random(12) < 0.6, rng.uniform(0.3, 0.99, 12), 3
    found = posterior(agree, p, classes, gap=0.2)
    mean = p.mean()
    expected = EXPECTED + 0.2 * BY_GAP + BY_SURENESS * np.log(mean / (1 - mean))
    slow = np.zeros(len(RATES))
    for i in range(0, len(RATES), 30):
        for s in SHARPNESS:
            for b in SHIFT:
                weight = np.exp(-0.5 * ((np.log(s) / WIDE_SHARPNESS) ** 2 + (b / WIDE_SHIFT) ** 2))
                for said, q in zip(agree, p, strict=True):
                    a = expit(s * np.log(q / (1 - q)) + expected + b)
                    one = a * (1 - RATES[i]) + (1 - a) * RATES[i] / (classes - 1)
                    weight *= one if said else 1 - one
                slow[i] += weight
    few = found[::30]
    assert few / few.sum() == pytest.approx(slow[::30] / slow.sum(), rel=1e-4)


def test_of_what_was_trained_on_only_counts_how_much_of_it_was_memorised():
    table = judged(0, 0.3)
    trained = table.assign(is_held_out=False)
    other = trained.assign(predicted_prob=1.0, given_label=(trained["given_label"] + 1) % 4,
                           predicted_label=(trained["predicted_label"] + 1) % 4)  # fmt: skip
    found = [noise_rate(pd.concat([table, more]), 4) for more in (trained, other)]
    assert found[0] == found[1] == noise_rate(table, 4)
    memorised = trained.assign(predicted_label=trained["given_label"])
    assert noise_rate(pd.concat([table, memorised]), 4).value <= found[0].value  # less is made of what it disagrees on


def test_a_network_at_chance_says_nothing_of_the_noise():
    said = [noise_rate(judged(seed, 0.1, knows=0.0, sure=-30.0), 4) for seed in range(20)]
    assert sum(one.value is None for one in said) >= 17  # and is sure of every prediction
    silent = next(one for one in said if one.value is None)
    assert silent.sentence().startswith("noise rate: cannot say, since the predictions for ")
    assert (silent.low, silent.high) == (0.0, 1.0)
    few = noise_rate(judged(0, 0.1, n=10), 4)
    assert few.reason.startswith("only 10 labels were held out")
    assert noise_rate(judged(0, 0.1).assign(predicted_prob=np.nan), 4).value is None


def test_the_shortest_interval_of_a_grid_holds_enough_and_no_shorter_one_does():
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights = rng.dirichlet(np.full(30, 0.3))
        values = np.arange(30.0)
        found = interval(values, weights)
        inside = weights[int(found.low) : int(found.high) + 1].sum()
        assert inside >= 0.9 - 1e-9
        width = found.high - found.low
        for first in range(30):
            shorter = weights[first : first + int(width)].sum()
            assert width == 0 or shorter < 0.9
    assert NoiseRate(0.004, 0.0, 0.02).sentence() == "estimated noise rate: 0.4 % (90% interval: 0.0 to 2.0 %)"
