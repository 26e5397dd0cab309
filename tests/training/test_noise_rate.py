"""How many labels are wrong, as the harness estimates it for methods that must know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crust
from crust import data, noise
from crust.methods import METHODS
from crust.methods.erm import Erm
from crust.training import noise_estimation
from crust.training.method import Settings
from crust.training.noise_estimation import estimate, most_confident

TOLERANCE = 0.1


class Asks(Erm):
    class Settings(Settings):
        noise_rate: noise_estimation.Rate = "estimate"
        noise_type: noise_estimation.NoiseType = "estimate"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("symmetric:0.2", "symmetric"),
        ("symmetric:0.5", "symmetric"),
        ("symmetric:0.8", "symmetric"),
        ("pair-flip:0.4", "asymmetric"),
    ],
)
def test_the_estimate_lies_near_the_truth(monkeypatch, kind, expected):
    monkeypatch.setitem(METHODS, "asks", Asks)
    digits = data.load("digits")
    wrong = noise.make_noisy_labels(digits.train.labels, kind, classes=10, seed=0).labels
    arguments = {"epochs": 20, "batch_size": 32, "stop_after": 11, "audit_every": 20}
    result = crust.fit("mlp", digits.train, labels=wrong, method="asks", **arguments)
    assert result.history["stage"] == ["estimate 1"] * 5 + ["estimate 2"] * 5 + ["train"]
    real = float((wrong != digits.train.labels).mean())
    known = result.config["noise_info"]
    assert known["noise_rate"] == {"value": pytest.approx(real, abs=TOLERANCE), "source": "estimated"}
    assert known["noise_type"] == {"value": expected, "source": "estimated"}


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0, 0.9))
def test_networks_that_are_right_count_the_wrong_labels(classes, seed, rate):
    rng = np.random.default_rng(seed)
    n = 400
    true = rng.integers(0, classes, n)
    labels = np.where(rng.random(n) < rate, (true + 1) % classes, true)
    sure = rng.uniform(0.6, 1.0, n)
    p = (1 - sure)[:, None] / classes + sure[:, None] * np.eye(classes)[true]
    assert estimate(p, labels, symmetric=False) == pytest.approx((labels != true).mean(), abs=0.25)


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 12), st.integers(0, 10**6), st.floats(0, 0.5))
def test_a_network_that_is_often_wrong_still_knows_what_examples_are_not(classes, seed, rate):
    """It takes half of the examples for a class next to their own, and is sure of that."""
    rng = np.random.default_rng(seed)
    n = 4000
    true = rng.integers(0, classes, n)
    labels = np.where(rng.random(n) < rate, (true + rng.integers(1, classes, n)) % classes, true)
    other = (true + 1) % classes
    first, second = np.where(rng.random(n) < 0.5, (true, other), (other, true))
    p = rng.uniform(0, 0.1, (n, classes)) + 0.5 * np.eye(classes)[first] + 0.3 * np.eye(classes)[second]
    p /= p.sum(axis=1, keepdims=True)
    real = (labels != true).mean()
    assert estimate(p, labels, symmetric=False) > real + 0.05  # half of what it is sure of is wrong
    assert estimate(p, labels, symmetric=True) == pytest.approx(real, abs=0.1)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(2, 5), st.integers(0, 10**6), st.floats(0.05, 1))
def test_the_surest_are_the_clearest_of_each_predicted_class(n, classes, seed, share):
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), n)
    chosen = most_confident(p, share)
    predictions = p.argmax(axis=1)
    margin = np.sort(p, axis=1)[:, -1] - np.sort(p, axis=1)[:, -2]
    assert set(predictions[chosen]) == set(predictions)
    for name in set(predictions):
        inside = chosen[predictions[chosen] == name]
        outside = np.setdiff1d(np.flatnonzero(predictions == name), inside)
        assert len(inside) == max(1, round(share * (predictions == name).sum()))
        assert not len(outside) or margin[inside].min() >= margin[outside].max()


def test_how_long_the_halves_are_trained():
    from crust.training.settings import TrainSettings

    def epochs(n, **more):
        return noise_estimation.Estimator(n, 10, TrainSettings(**more)).epochs

    assert epochs(50_000, epochs=120) == 30
    assert epochs(10_000, epochs=40) == 10
    assert epochs(1000, epochs=40) == 20  # three updates an epoch
    assert epochs(100, epochs=3) == 3
    halves = noise_estimation.Estimator(101, 10, TrainSettings()).halves
    assert np.array_equal(np.sort(np.concatenate(halves)), np.arange(101))
