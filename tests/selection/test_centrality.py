"""The mean distance to one's group: against a slow sum, and in the order of the selection of everybody."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.selection.common import proxies
from tests.selection.oracle import float32_distances
from tests.selection.strategies import points

import crust

METRICS = ["euclidean", "sqeuclidean", "cosine"]
hypothesis = settings(deadline=None, max_examples=50)


def centrality_oracle(x: np.ndarray, groups: np.ndarray, metric: str) -> np.ndarray:
    """The mean of each row of all distances of the group, itself left out."""
    means = np.zeros(len(x))
    for name in np.unique(groups):
        index = np.flatnonzero(groups == name)
        distances = float32_distances(x[index], metric).astype(np.float64)
        means[index] = distances.sum(axis=1) / max(1, len(index) - 1)
    return means


def order_of(means: np.ndarray, groups: np.ndarray) -> list[int]:
    """Group after group, the most central first, ties to the lowest index."""
    return np.lexsort((np.arange(len(means)), means, groups)).tolist()


@hypothesis
@given(x=points(), count=st.integers(1, 4), seed=st.integers(0, 99))
def test_it_is_the_mean_distance_and_the_order_of_the_selection(x, count, seed):
    groups = np.random.default_rng(seed).integers(0, count, len(x))
    means = crust.centrality(x, groups)
    assert means == pytest.approx(centrality_oracle(x, groups, "euclidean"), rel=1e-6, abs=0)
    everybody = crust.select(x, len(x), groups=groups, algorithm="central")
    assert order_of(means, groups) == everybody.indices.tolist()


@settings(deadline=None, max_examples=10)
@given(
    metric=st.sampled_from(METRICS),
    d=st.sampled_from([3, 40]),
    duplicates=st.booleans(),
    count=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_large_groups_are_settled_the_same_way_on_any_number_of_threads(metric, d, duplicates, count, seed):
    rng = np.random.default_rng(seed)
    x = proxies(1500, d) + 0.001
    if duplicates:
        x = x[rng.integers(0, 500, 1500)]  # equal sums, in threes
    groups = rng.integers(0, count, 1500)
    means = crust.centrality(x, groups, metric=metric, threads=1)
    assert means == pytest.approx(centrality_oracle(x, groups, metric), rel=1e-5)
    assert means.tobytes() == crust.centrality(x, groups, metric=metric, threads=3).tobytes()
    everybody = crust.select(x, 1500, groups=groups, metric=metric, algorithm="central")
    assert order_of(means, groups) == everybody.indices.tolist()


def test_a_matrix_of_distances_and_a_tensor():
    torch = pytest.importorskip("torch")
    x, groups = proxies(90, 4), np.arange(90) % 3
    means = crust.centrality(x, groups)
    assert crust.centrality(torch.tensor(x), groups).tolist() == means.tolist()
    assert crust.centrality(float32_distances(x), groups, metric="precomputed") == pytest.approx(means)


def test_one_point_has_nobody_to_be_far_from():
    assert crust.centrality(np.ones((1, 2))).tolist() == [0.0]
    assert crust.centrality(np.ones((3, 2)), ["a", "b", "b"]).tolist() == [0.0, 0.0, 0.0]


def test_what_cannot_be_used_is_refused():
    with refused("not-finite"):
        crust.centrality(np.array([[1.0], [np.nan]]))
    with refused("unknown-metric"):
        crust.centrality(np.ones((2, 2)), metric="cosin")
    with refused("memory-limit"):
        crust.centrality(np.ones((500, 2)), memory_limit=1000)


def test_no_matrix_of_all_distances_is_held():
    import tracemalloc

    x = proxies(6000, 4)
    crust.centrality(x[:1000], threads=1)  # what is compiled and imported does not count
    tracemalloc.start()
    try:
        crust.centrality(x, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6000 * 6000 / 4  # bytes: a sixteenth of the matrix in float32
