"""Lazy greedy gives greedy's answer; stochastic greedy gives that of the obvious one, and keeps its promise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.selection.common import all_distances, check_picks, make, proxies
from tests.selection.oracle import assign_oracle, brute_force_optimum, facility, greedy_oracle
from tests.selection.strategies import points

from crust.selection.assignment import Picks
from crust.selection.distances import Distances
from crust.selection.executors import Ticker, WorkStopped
from crust.selection.greedy import Greedy, Room
from crust.selection.lazy_stochastic import lazy, stochastic

METRICS = ["euclidean", "sqeuclidean", "cosine"]
hypothesis = settings(deadline=None, max_examples=100)


def obvious(D, k, epsilon, rng):
    """Stochastic greedy, every gain computed anew."""
    D = D.astype(np.float64)
    n = len(D)
    size = math.ceil(n / k * math.log(1 / epsilon))
    nearest, order, gains = np.full(n, D.max()), [], []
    for _ in range(k):
        rest = np.setdiff1d(np.arange(n), order)
        sample = rest if size >= len(rest) else np.sort(rng.choice(rest, size, replace=False, shuffle=False))
        gain = np.maximum(0.0, nearest - D[sample]).sum(axis=1)
        order.append(int(sample[gain.argmax()]))
        gains.append(gain.max())
        nearest = np.minimum(nearest, D[order[-1]])
    return order, gains, *assign_oracle(D.astype(np.float32), order)


def assert_is(picks, order, gains, owner, nearest):
    assert picks.order.tolist() == list(order)
    np.testing.assert_allclose(picks.gains, gains, rtol=1e-9, atol=1e-9 * max(gains))
    assert picks.owner.tolist() == owner.tolist()
    assert picks.nearest.tobytes() == nearest.tobytes()


def assert_same(a: Picks, b: Picks) -> None:
    assert_is(a, b.order.tolist(), b.gains, b.owner, b.nearest)
    assert a.gains.tolist() == b.gains.tolist()


def greedy(x, k, metric="euclidean"):
    return Greedy(make(x, metric), k, room=None, list_bytes=2**28, threads=1, ticker=Ticker()).run()


@hypothesis
@given(x=points(), share=st.floats(0, 1))
def test_lazy_is_the_oracle(x, share):
    k = max(1, round(share * len(x)))
    picks = lazy(make(x, approximate=False), k, threads=1, ticker=Ticker())
    assert_is(picks, *greedy_oracle(all_distances(x), k))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["proxies", "lattice", "duplicates"])
def test_lazy_is_greedy_to_the_last_bit(metric, kind):
    x = proxies(900, 8)
    if kind == "lattice":
        x = np.round(2 * x) + 0.25
    elif kind == "duplicates":
        x = x[np.random.default_rng(0).integers(0, 300, 900)]
    expected = greedy(x, 600, metric)
    assert_same(lazy(make(x, metric), 600, threads=2, ticker=Ticker()), expected)
    assert_same(lazy(make(x, metric), 600, threads=1, ticker=Ticker(), room=Room()), expected)


def test_lazy_of_points_at_very_different_scales():
    x = np.random.default_rng(0).normal(size=(300, 2)) * 10.0 ** np.arange(-12, 3).repeat(20)[:, None]
    assert_same(lazy(make(x), 300, threads=1, ticker=Ticker()), greedy(x, 300))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lazy_reads_a_matrix(dtype):
    x, index = proxies(120, 4), np.arange(0, 120, 3)
    D = all_distances(x)
    picks = lazy(Distances.of_matrix(D.astype(dtype), None), 50, threads=1, ticker=Ticker())
    assert_is(picks, *greedy_oracle(D, 50))
    for room in (None, Room()):
        part = lazy(Distances.of_matrix(D.astype(dtype), index), 20, threads=1, ticker=Ticker(), room=room)
        assert_is(part, *greedy_oracle(D[np.ix_(index, index)], 20))


@hypothesis
@given(x=points(), share=st.floats(0, 1), epsilon=st.sampled_from([0.01, 0.1, 0.5, 0.9]), seed=st.integers(0, 99))
def test_stochastic_is_the_obvious_one(x, share, epsilon, seed):
    k = max(1, round(share * len(x)))
    expected = obvious(all_distances(x), k, epsilon, np.random.default_rng(seed))
    for clusters in (0, 1, 2):
        with pytest.MonkeyPatch.context() as patch:
            if clusters:  # approximate distances for few points too; with clusters never, and as soon as there are two
                patch.setattr("crust.selection.distances.ALL_EXACT", 0)
                patch.setattr("crust.selection.marginal_gains.WORTH_CLUSTERS", 2.0 if clusters == 2 else 0.0)
                patch.setattr("crust.selection.marginal_gains.CLUSTERED", 2)
            rng = np.random.default_rng(seed)
            assert_is(stochastic(make(x), k, epsilon=epsilon, rng=rng, threads=2, ticker=Ticker()), *expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [6, 40])
@pytest.mark.parametrize("kind", ["proxies", "lattice", "duplicates"])
def test_stochastic_settles_what_its_bounds_leave_open(metric, d, kind, monkeypatch):
    x = proxies(700, d)
    if kind == "lattice":
        x = np.round(3 * x) + 0.25
    elif kind == "duplicates":
        x = x[np.random.default_rng(0).integers(0, 200, 700)]
    expected = obvious(all_distances(x, metric), 250, 0.1, np.random.default_rng(5))
    for threads, worth in ((1, 0.0), (2, 1 / 6), (1, 2.0)):
        monkeypatch.setattr("crust.selection.marginal_gains.WORTH_CLUSTERS", worth)  # never, where it pays, always
        rng = np.random.default_rng(5)
        assert not make(x, metric).exact
        picks = stochastic(make(x, metric), 250, epsilon=0.1, rng=rng, threads=threads, ticker=Ticker())
        assert_is(picks, *expected)
    check_picks(picks, all_distances(x, metric), 250)


def test_stochastic_reads_a_matrix():
    x, index = proxies(150, 4), np.arange(1, 150, 2)
    D = all_distances(x)[np.ix_(index, index)]
    distances = Distances.of_matrix(all_distances(x), index)
    picks = stochastic(distances, 9, epsilon=0.2, rng=np.random.default_rng(0), threads=1, ticker=Ticker())
    assert_is(picks, *obvious(D, 9, 0.2, np.random.default_rng(0)))


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.1, 0.4])
def test_stochastic_keeps_its_bound_on_average(k, epsilon):
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(9, 2)) ** 3
        D = all_distances(x)
        values = []
        for draw in range(40):
            rng = np.random.default_rng(draw)
            picks = stochastic(make(x), k, epsilon=epsilon, rng=rng, threads=1, ticker=Ticker())
            values.append(facility(D, picks.order.tolist()))
        assert np.mean(values) >= (1 - 1 / math.e - epsilon) * brute_force_optimum(D, k)


def test_stochastic_is_close_to_greedy_on_proxies():
    x = proxies(3000, 16)
    picks = stochastic(make(x), 100, epsilon=0.1, rng=np.random.default_rng(0), threads=1, ticker=Ticker())
    assert picks.nearest.sum() <= 1.05 * greedy(x, 100).nearest.sum()


@pytest.mark.parametrize("run", [lazy, lambda *a, **o: stochastic(*a, **o, epsilon=0.1, rng=np.random.default_rng(0))])
def test_a_stopped_ticker_ends_the_work(run):
    ticker = Ticker()
    ticker.stopped = True
    with pytest.raises(WorkStopped):
        run(make(proxies(500, 5)), 10, threads=1, ticker=ticker)
