"""The noise rate from what is found of planted labels and of all: against curves that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr

from crust.audit.accuracy.binormal_model import Setting, drawn_surest, fitted, redrawn, shares
from crust.audit.accuracy.confident_disagreement import SILENT, Surest

EDGES = np.array([0.2, 0.4, 0.6, 0.8, 0.9])


@given(rate=st.floats(0.02, 0.9), apart=st.floats(1.5, 4.0), slope=st.floats(0.8, 0.9))
@settings(max_examples=60, deadline=None)
def test_exact_shares_give_back_the_rate(rate, apart, slope):
    setting = Setting(2000, 50_000)
    x = np.array([logit(rate), apart, np.log(slope)])
    _, wrong, right = shares(EDGES, x, setting)
    found = expit(fitted(EDGES, rate * wrong + (1 - rate) * right, setting)[0])
    assert found == pytest.approx(rate, abs=0.06)


def test_right_labels_that_are_doubted_do_not_count_as_wrong():
    """Read off at the threshold that 40% of the planted labels reach, the rate would be 0.14."""
    right = ndtr(-1.5 + 0.85 * np.array([-0.8416, -0.2533, 0.2533, 0.8416, 1.2816]))
    everyone = 0.05 * EDGES + 0.95 * right
    assert everyone[1] / EDGES[1] > 0.14
    found = expit(fitted(EDGES, everyone, Setting(2000, 50_000))[0])
    assert found == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("accidents", [0.0, 0.3, 1.0])
def test_planted_labels_that_are_right_by_accident_are_taken_out(accidents):
    setting = Setting(2000, 50_000, accidents=accidents, dropped=0.05)
    rate, x = 0.3, np.array([logit(0.3), 2.0, -0.1])
    wrong = np.array([0.2, 0.4, 0.6, 0.8, 0.9])
    right = shares(wrong, x, Setting(2000, 50_000))[2]
    planted = wrong + accidents * (rate - 0.05) * (right - wrong)
    assert shares(planted, x, setting)[1] == pytest.approx(wrong, abs=1e-3)
    found = expit(fitted(planted, rate * wrong + (1 - rate) * right, setting)[0])
    assert found == pytest.approx(rate, abs=0.03)


def test_shares_keep_their_order_and_their_bounds():
    planted = np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0])
    for rate in (1e-3, 0.5, 0.99):
        _, wrong, right = shares(planted, np.array([logit(rate), 2.0, 0.0]), Setting(100, 1000, accidents=1.0))
        for each in (wrong, right):
            assert (np.diff(each) >= 0).all()
            assert each.min() >= 0
            assert each.max() <= 1


def test_draws_lie_around_the_fit_and_follow_what_is_drawn():
    setting = Setting(400, 5000)
    rng = np.random.default_rng(0)
    _, wrong, right = shares(EDGES, np.array([logit(0.2), 2.2, -0.1]), setting)
    everyone = 0.2 * wrong + 0.8 * right
    x = fitted(EDGES, everyone, setting)
    parts = [np.diff(each, prepend=0.0, append=1.0) for each in (EDGES, everyone)]
    planted = np.cumsum(rng.multinomial(400, parts[0], 300), axis=1)[:, :-1] / 400
    all_above = np.cumsum(rng.multinomial(5000, parts[1], 300), axis=1)[:, :-1] / 5000
    draws = redrawn(x, planted, all_above, np.ones(300), setting)
    assert np.median(expit(draws[:, 0])) == pytest.approx(expit(x[0]), abs=0.01)
    again = np.array([fitted(*draw, setting)[0] for draw in zip(planted[:40], all_above[:40], strict=True)])
    assert np.corrcoef(draws[:40, 0], again)[0, 1] > 0.9  # one step is about as good as fitting anew


def test_no_more_is_wrong_than_the_surest_examples_say():
    """Clean data that the network doubts as it would doubt planted labels: only the surest tell the difference."""
    right = ndtr(-1.2 + 0.7 * np.array([-0.8416, -0.2533, 0.2533, 0.8416, 1.2816]))
    without, none, some = (
        expit(fitted(EDGES, right, Setting(65, 1300, surest=surest))[0])
        for surest in (SILENT, Surest(0.0, 130, 0.9, 0.3), Surest(0.1, 130, 0.9, 0.3))
    )
    assert without > 0.1
    assert none < 0.02
    assert none < some < 0.15


def test_the_surest_are_drawn_around_what_was_seen():
    setting = Setting(100, 1000, surest=Surest(0.2, 200, 1.0, 0.15))
    drawn = drawn_surest(2000, setting, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(0.2, abs=0.01)
    assert 0.03 < drawn.std() < 0.06


def test_a_network_that_learns_by_heart_sets_no_bound():
    """It contradicts hardly any of the labels that it is surest of, and hardly any planted one either."""
    _, wrong, right = shares(EDGES, np.array([logit(0.3), 2.5, -0.16]), Setting(200, 2000))
    everyone = 0.3 * wrong + 0.7 * right
    believed, known = (
        expit(fitted(EDGES, everyone, Setting(200, 2000, surest=Surest(0.03, 200, noticed, 0.3)))[0])
        for noticed in (1.0, 0.1)
    )
    assert believed < 0.15
    assert known == pytest.approx(0.3, abs=0.03)
