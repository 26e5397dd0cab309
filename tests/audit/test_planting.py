"""Planted labels: like the noise, anywhere, in place of as much noise as they add."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from crust.audit.accuracy.inject_errors import ENOUGH, FEW, LEAST, SHARE, draw_plants


def audited(n=600, classes=4, rate=0.2, seed=0, knows=1.0):
    """Given and suggested labels, doubt, probability and the true labels; the network knows a share of the examples."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    labels = np.where(rng.random(n) < rate, (true + rng.integers(1, classes, n)) % classes, true)
    known = rng.random(n) < knows
    suggested = np.where(known, true, rng.integers(0, classes, n))
    probability = np.where(known, 0.6 + 0.4 * rng.random(n), 0.3 + 0.4 * rng.random(n))
    doubt = np.where(labels != suggested, probability, 1 - probability)
    return labels, suggested, doubt, probability, true


def plant(labels, suggested, doubt, probability, true=None, classes=4, seed=1):
    return draw_plants(doubt, labels, suggested, probability, classes, np.random.default_rng(seed))


@drawn(
    n=st.integers(30, 400),
    classes=st.integers(2, 6),
    rate=st.floats(0, 1),
    knows=st.floats(0, 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_planted_labels_are_others_and_nobody_planted_is_dropped(n, classes, rate, knows, seed):
    audit = audited(n, classes, rate, seed, knows)
    labels, suggested = audit[:2]
    plants = plant(*audit, classes=classes, seed=seed)
    assert (plants.labels[plants.planted] != labels[plants.planted]).all()
    assert plants.labels.min() >= 0
    assert plants.labels.max() < classes
    others = np.setdiff1d(np.arange(n), plants.planted)
    assert (plants.labels[others] == labels[others]).all()
    assert not set(plants.dropped) & set(plants.planted)
    assert (labels[plants.dropped] != suggested[plants.dropped]).all()
    assert sorted([*plants.dropped, *plants.kept]) == list(range(n))
    before, after = np.bincount(labels, minlength=classes), np.bincount(labels[plants.kept], minlength=classes)
    assert (after >= np.minimum(before, FEW)).all()  # no label goes altogether
    assert 0 <= plants.accidents <= classes


def test_as_many_are_left_out_as_are_planted():
    audit = audited()
    plants = plant(*audit)
    suspects = (audit[0] != audit[1]).sum()
    assert len(plants.planted) == round(SHARE * suspects)
    assert abs(len(plants.dropped) - len(plants.planted)) <= 1
    large = audited(n=20_000)
    assert len(plant(*large).planted) == LEAST * 20_000
    assert len(plant(*audited(n=2000, rate=0.9)).planted) == ENOUGH


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_where_little_is_suspected_labels_are_planted_all_the_same(rate):
    plants = plant(*audited(rate=rate))
    assert len(plants.planted) == round(LEAST * 600)


def test_planted_labels_go_where_the_noise_goes():
    """Only the first class is ever mislabelled, and always as the second."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 2000)
    labels = np.where((true == 0) & (rng.random(2000) < 0.4), 1, true)
    plants = plant(labels, true, 1.0 * (labels != true), np.ones(2000))
    assert set(labels[plants.planted]) == {0}
    assert set(plants.labels[plants.planted]) == {1}


def test_where_next_to_nothing_is_wrong_labels_are_planted_anywhere():
    """Not all of the kind of the one suspect: a network would take that for the rule."""
    audit = audited(rate=0.0, n=1000)
    audit[0][7] = (audit[0][7] + 1) % 4
    audit[2][7] = 1.0
    plants = plant(*audit)
    pairs = set(zip(audit[0][plants.planted].tolist(), plants.labels[plants.planted].tolist(), strict=True))
    assert len(pairs) > 8


def test_anybody_of_a_label_may_be_planted_easy_or_hard():
    """Those that the run contradicts as often as the others: the noise does not ask what a network knows."""
    audit = audited(n=20_000, knows=0.6)
    plants = plant(*audit)
    kept = plants.kept
    doubted = audit[0] != audit[1]
    assert doubted[plants.planted].mean() == pytest.approx(doubted[kept].mean(), abs=0.05)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_how_many_are_right_by_accident_is_foreseen(classes):
    labels, suggested, doubt, probability, true = audited(n=20_000, classes=classes, rate=0.3)
    plants = plant(labels, suggested, doubt, probability, classes=classes)
    right = (plants.labels[plants.planted] == true[plants.planted]).mean()
    left = 0.3 - len(plants.dropped) / 20_000
    assert right == pytest.approx(plants.accidents * left, abs=0.035)
