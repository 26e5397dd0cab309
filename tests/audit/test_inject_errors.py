"""Injected labels: like the noise, anywhere, in place of as much noise as they add."""

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from crust.audit.accuracy.inject_errors import ENOUGH, FEW, LEAST, SHARE, inject_errors


def audited(n=600, classes=4, rate=0.2, seed=0, knows=1.0):
    """Given and suggested labels, error score, probability, true labels; the network knows a share of the examples."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    labels = np.where(rng.random(n) < rate, (true + rng.integers(1, classes, n)) % classes, true)
    known = rng.random(n) < knows
    suggested = np.where(known, true, rng.integers(0, classes, n))
    probability = np.where(known, 0.6 + 0.4 * rng.random(n), 0.3 + 0.4 * rng.random(n))
    error_score = np.where(labels != suggested, probability, 1 - probability)
    return labels, suggested, error_score, probability, true


def inject(labels, suggested, error_score, probability, true=None, classes=4, seed=1):
    rate = float((labels != suggested).mean())
    return inject_errors(error_score, labels, suggested, rate, classes, np.random.default_rng(seed))


@drawn(
    n=st.integers(30, 400),
    classes=st.integers(2, 6),
    rate=st.floats(0, 1),
    knows=st.floats(0, 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_injected_labels_are_others_and_nobody_injected_is_dropped(n, classes, rate, knows, seed):
    audit = audited(n, classes, rate, seed, knows)
    labels, suggested = audit[:2]
    errors = inject(*audit, classes=classes, seed=seed)
    assert (errors.labels[errors.injected] != labels[errors.injected]).all()
    assert errors.labels.min() >= 0
    assert errors.labels.max() < classes
    others = np.setdiff1d(np.arange(n), errors.injected)
    assert (errors.labels[others] == labels[others]).all()
    assert not set(errors.dropped) & set(errors.injected)
    assert (labels[errors.dropped] != suggested[errors.dropped]).all()
    assert sorted([*errors.dropped, *errors.kept]) == list(range(n))
    before, after = np.bincount(labels, minlength=classes), np.bincount(labels[errors.kept], minlength=classes)
    assert (after >= np.minimum(before, FEW)).all()  # no label goes altogether
    assert 0 <= errors.p_injected_is_true <= classes


def test_as_many_are_left_out_as_get_an_error():
    audit = audited()
    errors = inject(*audit)
    suspects = (audit[0] != audit[1]).sum()
    assert len(errors.injected) == round(SHARE * suspects)
    assert abs(len(errors.dropped) - len(errors.injected)) <= 1
    large = audited(n=20_000)
    assert len(inject(*large).injected) == LEAST * 20_000
    assert len(inject(*audited(n=2000, rate=0.9)).injected) == ENOUGH


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_where_little_is_suspected_labels_are_injected_all_the_same(rate):
    errors = inject(*audited(rate=rate))
    assert len(errors.injected) == round(LEAST * 600)


def test_injected_labels_go_where_the_noise_goes():
    """Only the first class is ever mislabelled, and always as the second."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 2000)
    labels = np.where((true == 0) & (rng.random(2000) < 0.4), 1, true)
    errors = inject(labels, true, 1.0 * (labels != true), np.ones(2000))
    assert set(labels[errors.injected]) == {0}
    assert set(errors.labels[errors.injected]) == {1}


def test_where_next_to_nothing_is_wrong_labels_are_injected_anywhere():
    """Not all of the kind of the one suspect: a network would take that for the rule."""
    audit = audited(rate=0.0, n=1000)
    audit[0][7] = (audit[0][7] + 1) % 4
    audit[2][7] = 1.0
    errors = inject(*audit)
    pairs = set(zip(audit[0][errors.injected].tolist(), errors.labels[errors.injected].tolist(), strict=True))
    assert len(pairs) > 8


def test_anybody_of_a_label_may_be_injected_easy_or_hard():
    """Those that the run contradicts as often as the others: the noise does not ask what a network knows."""
    audit = audited(n=20_000, knows=0.6)
    errors = inject(*audit)
    kept = errors.kept
    suspected = audit[0] != audit[1]
    assert suspected[errors.injected].mean() == pytest.approx(suspected[kept].mean(), abs=0.05)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_how_many_are_right_by_accident_is_foreseen(classes):
    labels, suggested, error_score, probability, true = audited(n=20_000, classes=classes, rate=0.3)
    errors = inject(labels, suggested, error_score, probability, classes=classes)
    right = (errors.labels[errors.injected] == true[errors.injected]).mean()
    left = 0.3 - len(errors.dropped) / 20_000
    assert right == pytest.approx(errors.p_injected_is_true * left, abs=0.035)
