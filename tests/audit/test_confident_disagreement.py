"""The examples that a network is surest of."""

import numpy as np
import pytest

from crust.audit.accuracy.confident_disagreement import contradicted, noticed, surest


def test_the_surest_of_each_suggested_class():
    rng = np.random.default_rng(0)
    suggested, probability = rng.integers(0, 3, 3000), rng.random(3000)
    found = surest(suggested, probability)
    assert len(set(found.tolist())) == len(found) == sum(round(0.1 * (suggested == name).sum()) for name in range(3))
    for name in range(3):
        mine = np.isin(np.arange(3000), found) & (suggested == name)
        assert probability[mine].min() >= probability[(suggested == name) & ~mine].max()


def test_of_few_examples_more_are_asked():
    assert len(surest(np.zeros(200, np.int64), np.ones(200))) == 100
    assert len(surest(np.zeros(50, np.int64), np.ones(50))) == 50


def test_noise_that_does_not_ask_how_easy_an_example_is_shows_as_often_as_it_is():
    rng = np.random.default_rng(1)
    true, probability = rng.integers(0, 5, 20_000), rng.random(20_000)
    labels = np.where(rng.random(20_000) < 0.3, (true + 1) % 5, true)
    suggested = np.where(rng.random(20_000) < probability, true, rng.integers(0, 5, 20_000))  # wrong where unsure
    share, asked = contradicted(labels, suggested, probability)
    assert asked == pytest.approx(2000, abs=10)
    assert share == pytest.approx(0.3, abs=0.06)
    injected = rng.random(20_000) < 0.05
    seen, spread = noticed(injected, np.where(injected, (true + 2) % 5, labels), suggested, probability)
    assert seen > 0.8
    assert spread == pytest.approx(0.1, abs=0.02)


def test_what_is_learnt_by_memorising_is_not_noticed():
    labels = np.arange(1000) % 4
    injected = np.arange(1000) % 9 == 0
    seen, spread = noticed(injected, labels, labels, np.ones(1000))
    assert seen < 0.1
    assert spread == 1.0
