"""GreeDi: shards here or in processes, and what the second round makes of them."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.selection.common import all_distances, check_picks, make, proxies
from tests.selection.oracle import brute_force_optimum, facility, greedy_oracle
from tests.selection.strategies import points

from crust.selection import greedi as greedi_module
from crust.selection.distances import Distances
from crust.selection.executors import LocalProcesses, SharedArray, Ticker, WorkStopped, open_engine
from crust.selection.greedi import greedi
from crust.selection.greedy import Greedy

hypothesis = settings(deadline=None, max_examples=50)


class Elsewhere:
    """An engine that takes its time, and hands over nothing but bytes."""

    def __init__(self):
        self.items = 0

    def map(self, function, items):
        for item in items:
            self.items += 1
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item)))))


def run(x, k, *, seed=0, threads=1, metric="euclidean", **options):
    rng = np.random.default_rng(seed)
    return greedi(make(x, metric), k, rng=rng, threads=threads, ticker=Ticker(), **options)


def obvious(D, k, shards, rng):
    """The same two rounds on whole matrices; returns the medoids."""
    n = len(D)
    deal = rng.permutation(n)
    chosen = []
    for s in range(min(shards, n)):
        rows = np.sort(deal[s::shards])
        order, *_ = greedy_oracle(D[np.ix_(rows, rows)], min(k, len(rows)))
        chosen.append(rows[order])
    union = np.sort(np.concatenate(chosen))
    nearest, order = np.full(n, D.max(), np.float64), []
    for _ in range(k):
        gain = np.where(np.isin(union, order), -1.0, np.maximum(0.0, nearest - D[union]).sum(axis=1))
        order.append(int(union[gain.argmax()]))
        nearest = np.minimum(nearest, D[order[-1]])
    full = [c.tolist() for c in chosen if len(c) == k]
    best = [min(full, key=lambda c: D[c].min(axis=0).sum(dtype=np.float64))] if full else []
    return min([order, *best], key=lambda c: D[c].min(axis=0).sum(dtype=np.float64))


@hypothesis
@given(x=points(), share=st.floats(0, 1), shards=st.integers(2, 6), seed=st.integers(0, 99))
def test_it_is_the_obvious_one(x, share, shards, seed):
    D, k = all_distances(x), max(1, round(share * len(x)))
    picks = run(x, k, seed=seed, shards=shards)
    assert picks.order.tolist() == obvious(D, k, shards, np.random.default_rng(seed))
    check_picks(picks, D, k)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("d", [6, 40])
def test_threads_engines_and_memory_change_nothing(metric, d):
    x = proxies(1500, d)
    expected = run(x, 60, metric=metric, shards=3)
    check_picks(expected, all_distances(x, metric), 60)
    engine = Elsewhere()
    for options in ({"threads": 2}, {"engine": engine}, {"memory": 2**16}):
        picks = run(x, 60, metric=metric, shards=3, **options)
        assert picks.order.tolist() == expected.order.tolist()
        assert picks.gains.tolist() == expected.gains.tolist()
    assert engine.items == 3


def test_processes_share_the_points():
    x = proxies(900, 12)
    expected = run(x, 40, shards=4)
    with LocalProcesses(2) as engine:
        assert run(x, 40, shards=4, engine=engine).order.tolist() == expected.order.tolist()
        assert run(x, 30, shards=4, engine=engine).order.tolist() == run(x, 30, shards=4).order.tolist()
        with engine.share(x) as shared:
            assert isinstance(shared, SharedArray)
            assert len(pickle.dumps(shared)) < 1000
            np.testing.assert_array_equal(shared.open(), x)
        with pytest.raises(FileNotFoundError):
            shared.open()


def test_engines_by_name():
    with open_engine("local", 1) as engine:
        assert list(engine.map(abs, [-3])) == [3]
    mine = Elsewhere()
    for given_engine in (None, mine):
        with open_engine(given_engine, 1) as engine:
            assert engine is given_engine
    for wrong in ("lokal", 7):
        with refused("unknown-engine"), open_engine(wrong, 1):
            pass


def test_an_error_in_a_process_comes_back():
    with LocalProcesses(1) as engine, pytest.raises(ZeroDivisionError):
        list(engine.map(_reciprocal, [1, 0]))


def _reciprocal(item):
    return 1 / item


def test_one_shard_is_exact_greedy():
    x = proxies(600, 5)
    exact = Greedy(make(x), 200, room=None, list_bytes=2**28, threads=1, ticker=Ticker()).run()
    for options in ({"shards": 1}, {}):  # so few points are one shard
        picks = run(x, 200, **options)
        assert picks.order.tolist() == exact.order.tolist()
        assert picks.gains.tolist() == exact.gains.tolist()


def test_large_budgets_get_fewer_shards(monkeypatch):
    monkeypatch.setattr(greedi_module, "SHARD_POINTS", 50)
    x = proxies(600, 5)
    exact = Greedy(make(x), 300, room=None, list_bytes=2**28, threads=1, ticker=Ticker()).run()
    assert run(x, 300).order.tolist() == exact.order.tolist()
    assert run(x, 10).order.tolist() != exact.order[:10].tolist()


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("shards", [2, 3])
def test_it_keeps_its_bound(k, shards):
    for seed in range(8):
        x = np.random.default_rng(seed).normal(size=(10, 2)) ** 3
        D = all_distances(x)
        optimum = brute_force_optimum(D, k)
        values = [facility(D, run(x, k, seed=s, shards=shards).order.tolist()) for s in range(10)]
        assert min(values) >= (1 - 1 / math.e) ** 2 / min(math.sqrt(k), shards) * optimum
        assert np.mean(values) >= (1 - 1 / math.e) / 2 * optimum


def test_it_is_close_to_greedy_on_proxies(monkeypatch):
    x = proxies(4000, 16)
    exact = Greedy(make(x), 80, room=None, list_bytes=2**28, threads=1, ticker=Ticker()).run()
    assert run(x, 80, shards=5).nearest.sum() <= 1.01 * exact.nearest.sum()
    monkeypatch.setattr(greedi_module, "MEASURED_POINTS", 1000)
    sampled = run(x, 80, shards=5)
    assert sampled.nearest.sum() <= 1.05 * exact.nearest.sum()
    check_picks(sampled, all_distances(x), 80)


def test_a_matrix_is_read_by_shards():
    D = all_distances(proxies(200, 4))
    index = np.arange(0, 200, 2)
    part = D[np.ix_(index, index)]
    for matrix in (D, D.astype(np.float64)):
        rng = np.random.default_rng(0)
        distances = Distances.of_matrix(matrix, index)
        picks = greedi(distances, 8, rng=rng, threads=1, ticker=Ticker(), shards=3, engine=Elsewhere())
        assert picks.order.tolist() == obvious(part, 8, 3, np.random.default_rng(0))
        check_picks(picks, part, 8)


def test_a_stopped_ticker_ends_the_work():
    ticker = Ticker()
    ticker.stopped = True
    with pytest.raises(WorkStopped):
        greedi(make(proxies(500, 5)), 5, rng=np.random.default_rng(0), threads=1, ticker=ticker, shards=2)
