"""Any choice of medoids completed to an assignment, and the two plainest choices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.selection.common import all_distances, check_picks, make, proxies
from tests.selection.strategies import points

from crust.selection.assignment import complete, diameter
from crust.selection.central_points import central, random
from crust.selection.distances import Distances
from crust.selection.executors import Ticker, WorkStopped

METRICS = ["euclidean", "sqeuclidean", "cosine"]
hypothesis = settings(deadline=None, max_examples=50)


def rows_of(rng: np.random.Generator, kind: str) -> np.ndarray:
    if kind == "two places":
        return rng.normal(size=(2, 5))[rng.integers(0, 2, 1000)]
    if kind == "sphere":  # very many pairs that are nearly as far apart as the farthest
        x = rng.normal(size=(1500, 3))
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "offset":
        return 1e4 + rng.normal(size=(1500, 30))
    return proxies(2500, 10) if kind == "few dimensions" else rng.normal(size=(2500, 30))


@hypothesis
@given(x=points(), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_complete_gives_each_point_to_its_nearest_medoid(x, share, seed):
    D, k = all_distances(x), max(1, round(share * len(x)))
    order = np.random.default_rng(seed).permutation(len(x))[:k]
    picks = complete(make(x), order, float(D.max()), threads=2, ticker=Ticker())
    assert picks.order.tolist() == order.tolist()
    check_picks(picks, D, k)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [3, 40])
def test_complete_settles_what_approximate_distances_leave_open(metric, d):
    x = 0.001 + np.round(proxies(1000, d), 2)  # rounded: many ties
    D = all_distances(x, metric)
    order = np.random.default_rng(1).permutation(1000)[:150]
    assert not make(x, metric).exact
    for threads, approximate in ((1, True), (3, True), (1, False)):
        distances = make(x, metric, approximate=approximate)
        check_picks(complete(distances, order, float(D.max()), threads=threads, ticker=Ticker()), D, 150)


def test_the_part_of_a_matrix_that_is_a_group():
    whole = all_distances(proxies(90, 4))
    index = np.arange(0, 90, 2)
    D = whole[np.ix_(index, index)]
    for matrix in (whole, whole.astype(np.float64)):
        distances = Distances.of_matrix(matrix, index)
        assert diameter(distances, threads=1, ticker=Ticker()) == D.max()
        order = np.array([40, 3, 7])
        check_picks(complete(distances, order, float(D.max()), threads=1, ticker=Ticker()), D, 3)
        check_picks(central(distances, 5, threads=1, ticker=Ticker()), D, 5)


@hypothesis
@given(x=points())
def test_diameter_is_the_largest_distance(x):
    assert diameter(make(x), threads=1, ticker=Ticker()) == all_distances(x).max()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["few dimensions", "many dimensions", "two places", "sphere", "offset"])
def test_diameter_of_many_points(metric, kind):
    x = rows_of(np.random.default_rng(0), kind)
    D = all_distances(x, metric)
    for threads in (1, 2):
        assert diameter(make(x, metric), threads=threads, ticker=Ticker()) == D.max()


@hypothesis
@given(x=points(), share=st.floats(0, 1))
def test_central_is_the_order_of_the_sums(x, share):
    D, k = all_distances(x), max(1, round(share * len(x)))
    picks = central(make(x), k, threads=1, ticker=Ticker())
    assert picks.order.tolist() == np.argsort(D.sum(axis=1, dtype=np.float64), kind="stable")[:k].tolist()
    check_picks(picks, D, k)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [5, 40])
@pytest.mark.parametrize("duplicates", [False, True])
def test_central_settles_close_sums(metric, d, duplicates):
    x = proxies(1000, d)
    if duplicates:
        x = x[np.random.default_rng(0).integers(0, 350, 1000)]  # equal sums, in threes
    D = all_distances(x, metric)
    expected = np.argsort(D.sum(axis=1, dtype=np.float64), kind="stable")
    for k, threads in ((1, 2), (100, 1), (500, 2), (1000, 1)):
        picks = central(make(x, metric), k, threads=threads, ticker=Ticker())
        assert picks.order.tolist() == expected[:k].tolist()
    check_picks(picks, D, 1000)


@hypothesis
@given(x=points(), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_random_picks_are_distinct_and_repeat_by_seed(x, share, seed):
    k = max(1, round(share * len(x)))
    one, two = (random(make(x), k, rng=np.random.default_rng(seed), threads=t, ticker=Ticker()) for t in (1, 2))
    assert one.order.tolist() == two.order.tolist()
    check_picks(one, all_distances(x), k)


def test_random_is_uniform():
    x = make(np.arange(6.0)[:, None])
    rng = np.random.default_rng(0)
    counts = np.zeros(6)
    for _ in range(600):
        counts[random(x, 2, rng=rng, threads=1, ticker=Ticker()).order] += 1
    assert np.abs(counts - 200).max() < 50


def test_a_stopped_ticker_ends_the_work():
    ticker = Ticker()
    ticker.stopped = True
    with pytest.raises(WorkStopped):
        central(make(proxies(500, 5)), 10, threads=1, ticker=ticker)
