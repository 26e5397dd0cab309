"""Sieves: their promise, on arrays and on streams, whatever the chunks."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.selection.common import all_distances, check_picks, make, proxies
from tests.selection.oracle import brute_force_optimum, facility
from tests.selection.strategies import points

from crust.selection import sieve_streaming as stream_module
from crust.selection.distances import Distances
from crust.selection.executors import Ticker, WorkStopped
from crust.selection.lazy_stochastic import lazy
from crust.selection.sieve_streaming import Sieves, sieve, sieve_stream

hypothesis = settings(deadline=None, max_examples=60)


def run(x, k, *, metric="euclidean", epsilon=0.1, seed=0, threads=1, **options):
    rng = np.random.default_rng(seed)
    return sieve(make(x, metric), k, epsilon=epsilon, rng=rng, threads=threads, ticker=Ticker(), **options)


def in_chunks(x, sizes):
    ends = np.cumsum(sizes)
    return (part for part in np.split(x, ends[ends < len(x)]))


@hypothesis
@given(x=points(), share=st.floats(0, 1), reservoir=st.integers(1, 50), epsilon=st.sampled_from([0.05, 0.3]))
def test_the_budget_is_exact_and_assignments_are_nearest(x, share, reservoir, epsilon):
    k = max(1, round(share * len(x)))
    picks = run(x, k, epsilon=epsilon, reservoir=reservoir)
    check_picks(picks, all_distances(x), k)


@hypothesis
@given(x=points(most=9), k=st.integers(1, 4), epsilon=st.sampled_from([0.01, 0.1, 0.3]), seed=st.integers(0, 9))
def test_it_keeps_its_bound(x, k, epsilon, seed):
    k = min(k, len(x))
    D = all_distances(x)
    value = facility(D, run(x, k, epsilon=epsilon, seed=seed).order.tolist())
    optimum = brute_force_optimum(D, k)
    assert value >= (0.5 - epsilon) * optimum * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.2])
@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_sieves_alone_keep_half_of_what_can_be_added(epsilon, room):
    for seed in range(30):
        x = np.random.default_rng(seed).normal(size=(10, 2)) ** 3
        D = all_distances(x)
        first = int(D.sum(axis=1).argmin())
        sieves = Sieves(D[first].copy(), room, epsilon, 1, Ticker())
        for i in range(10):  # one by one, so that guesses come and go
            sieves.offer(D[i : i + 1], i)
        picks = sieves.best().picks
        alone = facility(D, [first])
        assert len(picks) <= room
        assert sieves.best().value == pytest.approx(facility(D, [first, *picks]) - alone)
        best = max(facility(D, [first, *others]) for others in combinations(range(10), room)) - alone
        assert sieves.best().value >= (0.5 - epsilon) * best - 1e-9


def test_every_pick_of_a_sieve_gains_enough_and_is_counted():
    x = proxies(600, 6)
    D = all_distances(x)
    first = int(D.sum(axis=1).argmin())
    sieves = Sieves(D[first, :200].copy(), 12, 0.1, 2, Ticker())
    for left in range(0, 600, 64):
        sieves.offer(D[left : left + 64, :200], left)
    assert len(sieves.sieves) > 2
    for one in sieves.sieves.values():
        nearest = D[first, :200].astype(np.float64)
        for pick in one.picks:
            gain = np.maximum(0, nearest - D[pick, :200]).sum()
            assert gain >= one.threshold * (1 - 1e-9)
            nearest = np.minimum(nearest, D[pick, :200])
        assert one.nearest.tolist() == nearest.tolist()
        assert one.value == pytest.approx((D[first, :200] - nearest).sum())


def test_other_measured_points():
    x = proxies(300, 6)
    D = all_distances(x)
    measured = np.arange(100)
    sieves = Sieves(D[7, measured].copy(), 9, 0.1, 1, Ticker())
    sieves.offer(D[:150][:, measured], 0)
    slots, new = np.array([3, 50, 99]), np.array([200, 210, 290])
    measured[slots] = new
    sieves.replace(slots, D[7, new], {pick: D[pick, new] for pick in range(150)})
    for one in sieves.sieves.values():
        nearest = D[np.ix_([7, *one.picks], measured)].min(axis=0)
        assert one.nearest.tolist() == nearest.tolist()
        assert one.value == pytest.approx((D[7, measured].astype(np.float64) - nearest).sum())


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_threads_change_nothing_and_the_choice_is_good(metric):
    x = proxies(3000, 10)
    one, two = (run(x, 40, metric=metric, threads=threads, reservoir=1000) for threads in (1, 2))
    assert one.order.tolist() == two.order.tolist()
    check_picks(one, all_distances(x, metric), 40)
    greedy = lazy(make(x, metric), 40, threads=1, ticker=Ticker())
    by_chance = np.random.default_rng(0).permutation(3000)[:40]
    D = all_distances(x, metric)
    total = one.nearest.sum()
    assert total < D[by_chance].min(axis=0).sum()
    assert total < 1.25 * greedy.nearest.sum()


def test_a_matrix_is_read_once():
    D = all_distances(proxies(150, 4))
    index = np.arange(0, 150, 2)
    part = D[np.ix_(index, index)]
    for matrix in (D, D.astype(np.float64)):
        rng = np.random.default_rng(0)
        picks = sieve(Distances.of_matrix(matrix, index), 8, epsilon=0.1, rng=rng, threads=1, ticker=Ticker())
        check_picks(picks, part, 8)


@hypothesis
@given(x=points(), share=st.floats(0, 1), reservoir=st.integers(1, 30), seed=st.integers(0, 9))
def test_a_stream_gives_k_distinct_points_of_its_own(x, share, reservoir, seed):
    k = max(1, round(share * len(x)))
    picks = sieve_stream([x], k, reservoir=reservoir, seed=seed)
    assert len(set(picks.positions.tolist())) == k
    np.testing.assert_array_equal(picks.vectors, x.astype(np.float64)[picks.positions])


def test_the_sizes_of_chunks_change_nothing():
    x = proxies(4000, 5)
    expected = sieve_stream([x], 30, reservoir=300)
    for sizes in ([1] * 700 + [512] * 9, [1000, 0, 3000], [37] * 200):
        for threads in (1, 2):
            picks = sieve_stream(in_chunks(x, sizes), 30, reservoir=300, threads=threads)
            assert picks.positions.tolist() == expected.positions.tolist()
    assert sieve_stream([torch.from_numpy(x)], 30, reservoir=300).positions.tolist() == expected.positions.tolist()
    assert sieve_stream([x], 30, reservoir=300, seed=1).positions.tolist() != expected.positions.tolist()


def test_the_reservoir_is_uniform_over_the_whole_stream(monkeypatch):
    monkeypatch.setattr(stream_module, "AT_ONCE", 16)
    counts = np.zeros(100)
    for seed in range(300):
        rows = stream_module._Rows([np.arange(100.0)[:, None]], "euclidean")
        stream = stream_module._Stream(rows.take(20), 2, 10, 0.5, "euclidean", seed, 1)
        while len(block := rows.take(16)):
            stream.read(block)
        assert stream.vectors[:, 0].tolist() == stream.positions.tolist()
        counts[stream.positions[:10]] += 1  # those that are measured
    assert np.abs(counts - 30).max() < 25
    assert abs(counts[:20].mean() - 30) < 5


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_a_long_stream_is_represented_well(metric):
    x = proxies(6000, 8)
    picks = sieve_stream(in_chunks(x, [500] * 12), 40, reservoir=800, metric=metric)
    D = all_distances(x, metric)
    greedy = lazy(make(x, metric), 40, threads=1, ticker=Ticker())
    assert D[picks.positions].min(axis=0).sum() < 1.25 * greedy.nearest.sum()


def test_memory_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    stream = stream_module._Stream(rng.normal(size=(200, 3)), 10, 200, 0.1, "euclidean", 0, 1)
    for _ in range(40):
        stream.read(rng.normal(size=(512, 3)))
    assert len(stream.vectors) == 200
    guesses = math.log(2 * 10) / math.log1p(0.1) + 2
    assert len(stream.sieves.sieves) <= guesses
    assert len(stream.kept) <= 9 * guesses


@pytest.mark.parametrize(
    ("chunks", "options", "code"),
    [
        ([np.zeros((3, 2))], {"k": 4}, "k-range"),
        ([], {"k": 1}, "k-range"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {"k": 1}, "columns-differ"),
        ([np.zeros((3, 2)), np.full((1, 2), np.nan)], {"k": 1}, "not-finite"),
        ([np.zeros((3, 2))], {"k": 1, "metric": "cosine"}, "zero-rows"),
        ([np.zeros((3, 2))], {"k": 1, "metric": "precomputed"}, "stream-metric"),
        ([np.zeros((3, 2))], {"k": 0.5}, "whole-number"),
        ([np.zeros((3, 2))], {"k": 1, "reservoir": 0}, "whole-number"),
        ([np.zeros((3, 2))], {"k": 1, "epsilon": 2}, "epsilon-range"),
    ],
)
def test_bad_streams_are_refused_in_a_sentence(chunks, options, code):
    with refused(code):
        sieve_stream(chunks, **options)


def test_a_stopped_ticker_ends_the_work():
    ticker = Ticker()
    ticker.stopped = True
    with pytest.raises(WorkStopped):
        sieve(make(proxies(500, 5)), 5, epsilon=0.1, rng=np.random.default_rng(0), threads=1, ticker=ticker)
