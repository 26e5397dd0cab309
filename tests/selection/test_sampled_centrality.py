"""Centrality from a sample: within its bound of the exact one, near its choice, and the same however it is computed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.selection.common import proxies
from tests.selection.oracle import float32_distances

import crust
from crust.selection.sampled_centrality import error_bounds, sampled_means

METRICS = ["euclidean", "sqeuclidean", "cosine"]


def shaped(kind: str, n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    if kind == "far clusters":
        x = 0.01 * x + 50 * (rng.random((n, 1)) < 0.1)
    if kind == "heavy tails":
        x = x / rng.random((n, 1)) ** 2
    if kind == "duplicates":
        x = x[rng.integers(0, 5, n)]
    return x * 10.0 ** rng.integers(-12, 12)  # squares stay within float32


@settings(deadline=None, max_examples=25)
@given(
    kind=st.sampled_from(["normal", "far clusters", "heavy tails", "duplicates"]),
    metric=st.sampled_from(METRICS),
    d=st.sampled_from([1, 2, 7, 30]),
    sample=st.sampled_from([8, 64, 256]),
    seed=st.integers(0, 99),
)
def test_it_is_within_its_bound(kind, metric, d, sample, seed):
    x = shaped(kind, 900, d, seed)
    exact = float32_distances(x, metric).astype(np.float64).sum(axis=1) / 899
    means, bounds = sampled_means(x, None, metric, sample, seed=seed, bounds=True)
    # what the exact one is rounded to: float32 distances of points far from zero
    assert (np.abs(means - exact) <= bounds + 1e-6 * exact + 1e-6 * np.abs(x).max() * (metric == "euclidean")).all()


def test_the_bound_narrows_as_the_sample_grows():
    x = proxies(4000, 10)
    exact = float32_distances(x).astype(np.float64).sum(axis=1) / 3999
    found = [sampled_means(x, None, "euclidean", sample, bounds=True) for sample in (64, 1024)]
    errors = [np.abs(means - exact).max() for means, _ in found]
    assert errors[1] < errors[0] / 2
    assert found[1][1].mean() < found[0][1].mean() / 3
    draws = np.random.default_rng(0).random((2000, 128))  # the bound of error_bounds itself, on plain means
    off = np.abs(draws.mean(axis=1) - 0.5)
    assert (off <= error_bounds(draws.var(axis=1), np.ones(2000), 128)).all()


def test_the_choice_is_nearly_that_of_all_distances():
    x = proxies(20_000, 10).astype(np.float32)
    groups = np.arange(20_000) % 2
    exact, sampled = crust.centrality(x, groups), crust.centrality(x, groups, sample=1024)
    for name in (0, 1):
        mine = np.flatnonzero(groups == name)
        chosen = [set(mine[np.argsort(far[mine], kind="stable")[:5000]].tolist()) for far in (exact, sampled)]
        assert len(chosen[0] & chosen[1]) >= 4950  # where many lie at the cut


@pytest.mark.parametrize("metric", METRICS)
def test_threads_types_and_company_change_no_bit(metric):
    torch = pytest.importorskip("torch")
    x = (proxies(3000, 12) + 0.001).astype(np.float32)
    how = {"metric": metric, "sample": 64}
    means = crust.centrality(x, **how, threads=1)
    assert means.tobytes() == crust.centrality(x, **how, threads=3).tobytes()
    assert means.tobytes() == crust.centrality(torch.from_numpy(x), **how).tobytes()
    two = np.concatenate([x[:700], x, x[700:900]])  # as one group among others, and its rows apart
    groups = np.concatenate([np.zeros(700), np.ones(3000), np.full(200, 2)]).astype(int)
    assert means.tobytes() == crust.centrality(two, groups, **how)[700:3700].tobytes()
    assert metric != "euclidean" or means.tobytes() != crust.centrality(x, **how, seed=1).tobytes()


@pytest.mark.parametrize("d", [1, 10, 33])
def test_on_a_device_every_bit_is_that_of_the_kernel(d, monkeypatch):
    torch = pytest.importorskip("torch")
    x = (proxies(3000, d + 1)[:, :d] * 3).astype(np.float32)
    plain = sampled_means(x, None, "euclidean", 64, bounds=True)
    monkeypatch.setattr("crust.selection.sampled_centrality.DEVICE_PAIRS", 10_000)
    there = sampled_means(x, None, "euclidean", 64, bounds=True, device=torch.device("cpu"))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(plain, there, strict=True))


def test_small_groups_are_exact_and_a_given_matrix_is_read_whole():
    x = proxies(128, 4)
    assert crust.centrality(x, sample=64).tobytes() == crust.centrality(x).tobytes()
    matrix = float32_distances(x)
    how = {"metric": "precomputed"}
    assert crust.centrality(matrix, sample=8, **how).tobytes() == crust.centrality(matrix, **how).tobytes()


def test_points_without_a_distance_are_all_central():
    assert crust.centrality(np.full((200, 3), 7.5), sample=8).tolist() == [0.0] * 200


def test_a_sample_is_a_number_of_points():
    with refused("whole-number"):
        crust.centrality(np.ones((3, 2)), sample=0)
