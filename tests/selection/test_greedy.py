"""Exact greedy, on every path, against the obvious one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.selection.oracle import float32_distances, greedy_oracle
from tests.selection.strategies import points

import crust
from crust.selection.assignment import Picks
from crust.selection.distances import device_distances, group_distances, group_points
from crust.selection.executors import Ticker
from crust.selection.greedy import Greedy, Room
from crust.selection.greedy_torch import greedy_on_device

METRICS = ("euclidean", "sqeuclidean", "cosine")


def with_direction(x: np.ndarray, metric: str) -> np.ndarray:
    """No zero rows where a direction is needed."""
    return x + (x == 0).all(axis=1, keepdims=True) if metric == "cosine" else x


def by_kernels(x, k, metric, *, approximate=True, stored=True, list_bytes=2**30, threads=1) -> Picks:
    distances, _ = group_distances(x, None, metric, approximate=approximate)
    room = Room() if stored else None
    return Greedy(distances, k, room=room, list_bytes=list_bytes, threads=threads, ticker=Ticker()).run()


def on_torch(x, k, metric, limit=2**30) -> Picks:
    distances, _ = device_distances(x, None, metric, torch.device("cpu"), limit)
    return greedy_on_device(distances, k, Ticker())


def assert_same(a: Picks, b: Picks) -> None:
    assert a.order.tolist() == b.order.tolist()
    assert a.gains.tolist() == b.gains.tolist()
    assert a.owner.tolist() == b.owner.tolist()
    assert a.nearest.tobytes() == b.nearest.tobytes()


@settings(max_examples=150, deadline=None)
@given(x=points(), share=st.floats(0.01, 1.0), metric=st.sampled_from(METRICS))
def test_every_pick_is_the_oracles(x, share, metric):
    x = with_direction(x, metric)
    k = max(1, round(share * len(x)))
    found = by_kernels(x, k, metric)
    scaled, _ = group_points(x, None, metric)
    distances = float32_distances(scaled if metric != "cosine" else x, metric)
    order, gains, owner, near = greedy_oracle(distances, k)
    assert found.order.tolist() == order
    np.testing.assert_allclose(found.gains, gains, rtol=1e-9, atol=1e-9 * float(distances.max()))
    assert found.owner.tolist() == owner.tolist()
    np.testing.assert_array_equal(found.nearest, near)


@settings(max_examples=60, deadline=None)
@given(
    x=points(), share=st.floats(0.01, 1.0), metric=st.sampled_from(METRICS), threads=st.sampled_from([1, 2]),
    list_bytes=st.sampled_from([0, 4000, 2**30]), limit=st.sampled_from([1000, 2**30]),
)  # fmt: skip
def test_paths_agree_to_the_last_bit(x, share, metric, threads, list_bytes, limit):
    x = with_direction(x, metric)
    k = max(1, round(share * len(x)))
    reference = by_kernels(x, k, metric)
    for stored in (True, False):
        assert_same(reference, by_kernels(x, k, metric, stored=stored, list_bytes=list_bytes, threads=threads))
    assert_same(reference, on_torch(x, k, metric, limit))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dims", [3, 10, 40])
@pytest.mark.parametrize("kind", ["proxies", "shifted", "lattice"])
def test_approximate_distances_decide_nothing(kind, dims, metric):
    """Groups large enough for the float32 passes: the picks are those of exact distances, and of the oracle."""
    rng = np.random.default_rng(dims)
    x = rng.normal(size=(600, dims))
    if kind == "proxies":
        x = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        x[np.arange(600), rng.integers(0, dims, 600)] -= 1
    elif kind == "shifted":
        x = (x + 1e5).astype(np.float32)
    else:
        x = with_direction(rng.integers(0, 3, (600, dims)).astype(float), metric)
    exact = by_kernels(x, 300, metric, approximate=False)
    for stored in (True, False):
        for list_bytes in (0, 2**30):
            for threads in (1, 2):
                found = by_kernels(x, 300, metric, stored=stored, list_bytes=list_bytes, threads=threads)
                assert_same(exact, found)
    order, *_ = greedy_oracle(float32_distances(x, metric), 60)
    assert exact.order[:60].tolist() == order


def test_bounds_hold():
    """Approximate distances stay within what `limits` allows, and sums of them within the stated errors."""
    rng = np.random.default_rng(0)
    for dims in (2, 24, 25, 300):
        for metric in METRICS:
            x = rng.normal(size=(500, dims)) * rng.exponential(size=(500, 1)) + 3
            distances, _ = group_distances(x, None, metric, approximate=True)
            assert not distances.exact
            rough = distances.tile(np.arange(500), 0, 500, np.empty(500 * 500, np.float32)).astype(float)
            exact = np.array([distances.exact_row(i) for i in range(500)], np.float64)
            limits = distances.limits(exact.astype(np.float32).ravel()).reshape(500, 500)
            assert (rough <= limits).all()
            floor = max(distances.inverse, 1e-300) ** 0.5
            error = distances.relative * rough + distances.shift + distances.inverse / np.maximum(rough, floor)
            assert (np.abs(rough - exact) <= error).all()


@settings(max_examples=60, deadline=None)
@given(x=points(), share=st.floats(0.05, 1.0))
def test_invariants(x, share):
    coreset = crust.select(x, max(1, round(share * len(x))))
    assert coreset.weights.sum() == len(x)
    assert len(set(coreset.indices.tolist())) == len(coreset.indices)
    assert (np.diff(coreset.gains) <= 1e-12 * abs(coreset.gains[:-1])).all()
    assert (coreset.indices[coreset.assignment[coreset.indices]] == coreset.indices).all()


@settings(max_examples=40, deadline=None)
@given(x=points(), seed=st.integers(0, 1000))
def test_permuting_the_input_permutes_the_answer(x, seed):
    k = max(1, len(x) // 2)
    order = np.random.default_rng(seed).permutation(len(x))
    distances = float32_distances(group_points(x, None, "euclidean")[0]).astype(float)
    a, b = crust.select(x, k).indices.tolist(), order[crust.select(x[order], k).indices].tolist()
    nearest = np.full(len(x), distances.max())
    for mine, other in zip(a, b, strict=True):
        gain = np.maximum(nearest[:, None] - distances, 0).sum(axis=0)
        rivals = np.abs(gain - gain[mine]) <= 1e-9 * abs(gain[mine]) + 1e-300
        if rivals.sum() > 1:
            return  # a tie: from here on the answers may differ
        assert mine == other
        nearest = np.minimum(nearest, distances[mine])


def test_mixed_scales_stay_exact():
    """Distances of 1e30 and of 1e-30 in one group: sums change their quantum on the way."""
    x = np.array([[0.0], [1e-30], [3e-30], [7e-30], [1e30], [2e30], [-1e30]])
    distances = float32_distances(x)
    found = by_kernels(x, 6, "euclidean")
    order, _, _owner, near = greedy_oracle(distances, 6)
    # the oracle's own sums lose the small distances beside the large ones, but not once those are gone
    assert set(found.order[:4].tolist()) == set(order[:4])
    assert found.nearest.sum() <= near.sum()
    assert_same(found, on_torch(x, 6, "euclidean"))
