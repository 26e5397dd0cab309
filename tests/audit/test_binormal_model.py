"""The noise rate from what is found of injected labels and of all: against curves that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr

from crust.audit.accuracy.binormal_model import BinormalModel
from crust.audit.accuracy.confident_disagreement import SILENT, Surest

EDGES = np.array([0.2, 0.4, 0.6, 0.8, 0.9])


@given(rate=st.floats(0.02, 0.9), apart=st.floats(1.5, 4.0), slope=st.floats(0.8, 0.9))
@settings(max_examples=60, deadline=None)
def test_exact_shares_give_back_the_rate(rate, apart, slope):
    model = BinormalModel(2000, 50_000)
    x = np.array([logit(rate), apart, np.log(slope)])
    _, wrong, right = model.rates(EDGES, x)
    found = expit(model.fit(EDGES, rate * wrong + (1 - rate) * right)[0])
    assert found == pytest.approx(rate, abs=0.06)


def test_right_labels_that_are_doubted_do_not_count_as_wrong():
    """Read off at the threshold that 40% of the injected labels reach, the rate would be 0.14."""
    right = ndtr(-1.5 + 0.85 * np.array([-0.8416, -0.2533, 0.2533, 0.8416, 1.2816]))
    everyone = 0.05 * EDGES + 0.95 * right
    assert everyone[1] / EDGES[1] > 0.14
    found = expit(BinormalModel(2000, 50_000).fit(EDGES, everyone)[0])
    assert found == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("p_injected_is_true", [0.0, 0.3, 1.0])
def test_injected_labels_that_are_right_by_accident_are_taken_out(p_injected_is_true):
    model = BinormalModel(2000, 50_000, p_injected_is_true=p_injected_is_true, dropped=0.05)
    rate, x = 0.3, np.array([logit(0.3), 2.0, -0.1])
    wrong = np.array([0.2, 0.4, 0.6, 0.8, 0.9])
    right = BinormalModel(2000, 50_000).rates(wrong, x)[2]
    injected = wrong + p_injected_is_true * (rate - 0.05) * (right - wrong)
    assert model.rates(injected, x)[1] == pytest.approx(wrong, abs=1e-3)
    found = expit(model.fit(injected, rate * wrong + (1 - rate) * right)[0])
    assert found == pytest.approx(rate, abs=0.03)


def test_shares_keep_their_order_and_their_bounds():
    injected = np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0])
    for rate in (1e-3, 0.5, 0.99):
        _, wrong, right = BinormalModel(100, 1000, p_injected_is_true=1.0).rates(
            injected, np.array([logit(rate), 2.0, 0.0])
        )
        for each in (wrong, right):
            assert (np.diff(each) >= 0).all()
            assert each.min() >= 0
            assert each.max() <= 1


def test_draws_lie_around_the_fit_and_follow_what_is_drawn():
    model = BinormalModel(400, 5000)
    rng = np.random.default_rng(0)
    _, wrong, right = model.rates(EDGES, np.array([logit(0.2), 2.2, -0.1]))
    everyone = 0.2 * wrong + 0.8 * right
    x = model.fit(EDGES, everyone)
    parts = [np.diff(each, prepend=0.0, append=1.0) for each in (EDGES, everyone)]
    injected = np.cumsum(rng.multinomial(400, parts[0], 300), axis=1)[:, :-1] / 400
    all_above = np.cumsum(rng.multinomial(5000, parts[1], 300), axis=1)[:, :-1] / 5000
    draws = model.bootstrap(x, injected, all_above, np.ones(300))
    assert np.median(expit(draws[:, 0])) == pytest.approx(expit(x[0]), abs=0.01)
    again = np.array([model.fit(*draw)[0] for draw in zip(injected[:40], all_above[:40], strict=True)])
    assert np.corrcoef(draws[:40, 0], again)[0, 1] > 0.9  # one step is about as good as fitting anew


def test_no_more_is_wrong_than_the_surest_examples_say():
    """Clean data that the network doubts as it would doubt injected labels: only the surest tell the difference."""
    right = ndtr(-1.2 + 0.7 * np.array([-0.8416, -0.2533, 0.2533, 0.8416, 1.2816]))
    without, none, some = (
        expit(BinormalModel(65, 1300, surest=surest).fit(EDGES, right)[0])
        for surest in (SILENT, Surest(0.0, 130, 0.9, 0.3), Surest(0.1, 130, 0.9, 0.3))
    )
    assert without > 0.1
    assert none < 0.02
    assert none < some < 0.15


def test_the_surest_are_drawn_around_what_was_seen():
    model = BinormalModel(100, 1000, surest=Surest(0.2, 200, 1.0, 0.15))
    drawn = model.draw_surest(2000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(0.2, abs=0.01)
    assert 0.03 < drawn.std() < 0.06


def test_a_network_that_memorises_sets_no_bound():
    """It contradicts hardly any of the labels that it is surest of, and hardly any injected one either."""
    _, wrong, right = BinormalModel(200, 2000).rates(EDGES, np.array([logit(0.3), 2.5, -0.16]))
    everyone = 0.3 * wrong + 0.7 * right
    believed, known = (
        expit(BinormalModel(200, 2000, surest=Surest(0.03, 200, noticed, 0.3)).fit(EDGES, everyone)[0])
        for noticed in (1.0, 0.1)
    )
    assert believed < 0.15
    assert known == pytest.approx(0.3, abs=0.03)
