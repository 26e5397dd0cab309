"""The public function: inputs of all kinds, groups, memory, progress, peers."""

import contextlib
import logging
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.selection.oracle import float32_distances, greedy_oracle

import crust


def proxies(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = np.exp(2 * rng.normal(size=(n, d)))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(n), rng.integers(0, d, n)] -= 1
    return p.astype(np.float32)


def same(a: crust.Coreset, b: crust.Coreset) -> bool:
    fields = ("indices", "weights", "assignment", "gains", "distances")
    return a.objective == b.objective and all(np.array_equal(getattr(a, f), getattr(b, f)) for f in fields)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_number_types(dtype):
    x = (np.random.default_rng(0).normal(size=(30, 3)) * 3).astype(dtype)
    order, *_ = greedy_oracle(float32_distances(x), 9)
    assert crust.select(x, 9).indices.tolist() == order


def test_layouts_and_containers(tmp_path):
    x = proxies(60, 4)
    expected = crust.select(x, 0.3)
    np.save(tmp_path / "x.npy", x)
    memory_map = np.load(tmp_path / "x.npy", mmap_mode="r")
    strided = np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3]
    for form in (
        memory_map,
        strided,
        np.asfortranarray(x),
        torch.from_numpy(x),
        torch.from_numpy(x).double(),
        x.tolist(),
    ):
        assert same(crust.select(form, 0.3), expected)
    assert same(crust.select(torch.from_numpy(x), 0.3, device="cpu"), expected)


def test_groups_are_selected_apart_and_put_together_by_name():
    x, names = proxies(90, 4), np.array(["b", "a", "c"] * 30)
    coreset = crust.select(x, 0.2, groups=names)
    assert coreset.groups.tolist() == ["a"] * 6 + ["b"] * 6 + ["c"] * 6
    for name in "abc":
        rows = np.flatnonzero(names == name)
        alone = crust.select(x[rows], 6)
        mine = coreset.indices[coreset.groups == name]
        assert mine.tolist() == rows[alone.indices].tolist()
        assert set(coreset.assignment[rows].tolist()) == set(np.flatnonzero(coreset.groups == name).tolist())
    assert coreset.objective == pytest.approx(coreset.distances.astype(float).sum(), rel=1e-12)


@pytest.mark.parametrize("names", [[-3, 5, -3, 5, 0], ["x", "", "x", "y", "ß"], [True, False, True, True, False]])
def test_group_names_of_any_kind(names):
    x = np.arange(5.0)[:, None]
    coreset = crust.select(x, 5, groups=names)
    assert sorted(coreset.groups.tolist()) == sorted(names)
    assert coreset.weights.tolist() == [1] * 5


def test_groups_without_a_medoid_go_to_the_nearest_one():
    x = np.array([[0.0], [0.1], [10.0], [10.1], [10.2], [0.3]])
    coreset = crust.select(x, 2, groups=[0, 0, 1, 1, 1, 2])
    assert coreset.groups.tolist() == [0, 1]
    assert coreset.indices[coreset.assignment].tolist() == [0, 0, 3, 3, 3, 0]
    assert coreset.weights.sum() == 6
    assert coreset.objective == pytest.approx(0.1 + 0.2 + 0.3, rel=1e-6)


def test_many_small_groups():
    n = 12_000
    x = proxies(n, 3)
    codes = np.random.default_rng(1).integers(0, 10_000, n)
    coreset = crust.select(x, 11_000, groups=codes)
    assert len(coreset.indices) == 11_000
    assert coreset.weights.sum() == n
    assert set(codes[coreset.indices]) == set(codes)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (2, 2), (50, 50)])
def test_smallest_and_largest_budgets(n, k):
    coreset = crust.select(proxies(n, 3), k)
    assert len(coreset.indices) == k
    if k == n:
        assert coreset.objective == 0.0
        assert coreset.weights.tolist() == [1] * n


def test_many_dimensions():
    x = proxies(450, 4096)
    order, *_ = greedy_oracle(float32_distances(x), 8)
    assert crust.select(x, 8).indices.tolist() == order


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-30, 1e-200, 1e30, 1e150])
def test_scale_changes_nothing(metric, scale):
    x = proxies(80, 3).astype(np.float64)
    small, big = crust.select(x, 20, metric=metric), crust.select(x * scale, 20, metric=metric)
    assert small.indices.tolist() == big.indices.tolist()
    power = {"euclidean": 1, "sqeuclidean": 2, "cosine": 0}[metric]
    if abs(np.log10(scale) * power) < 300:
        assert big.objective == pytest.approx(small.objective * scale**power, rel=1e-5)


def test_squares_out_of_range():
    with refused("too-large"):
        crust.select(proxies(20, 3).astype(np.float64) * 1e200, 3, metric="sqeuclidean")
    assert len(crust.select(proxies(20, 3).astype(np.float64) * 1e-315, 3)) == 3


def test_precomputed(tmp_path):
    x = proxies(70, 4)
    matrix = float32_distances(x)
    expected = crust.select(x, 20)
    np.save(tmp_path / "d.npy", matrix)
    for form in (
        matrix,
        matrix.astype(np.float64),
        np.load(tmp_path / "d.npy", mmap_mode="r"),
        torch.from_numpy(matrix),
    ):
        assert same(crust.select(form, 20, metric="precomputed"), expected)
    names = np.arange(70) % 3
    assert same(crust.select(matrix, 20, metric="precomputed", groups=names), crust.select(x, 20, groups=names))
    # a matrix that is symmetric only nearly: its upper half counts, on every path
    rough = matrix * (1 + 3e-7 * np.tri(70, dtype=np.float32))
    np.fill_diagonal(rough, 0)
    small = crust.select(rough, 20, metric="precomputed", memory_limit="8.1 MiB")
    assert same(small, crust.select(rough, 20, metric="precomputed"))


@pytest.mark.parametrize("d", [3, 64])
def test_memory_and_threads_change_nothing(d):
    x, names = proxies(3000, d), np.arange(3000) % 4
    expected = crust.select(x, 0.3, groups=names, threads=1)
    for limit in ("10MiB", "40MiB", "1GiB"):
        for threads in (1, 2, 3):
            assert same(crust.select(x, 0.3, groups=names, threads=threads, memory_limit=limit), expected)


@pytest.mark.filterwarnings("ignore")  # their own
def test_lists_of_peers_agree():
    """apricot and submodlib, independent of us, find nothing better."""
    apricot, submodlib = pytest.importorskip("apricot"), pytest.importorskip("submodlib")
    x = proxies(300, 10)
    distances = float32_distances(x)
    near = distances.max() - distances
    ours = crust.select(x, 60)
    theirs = apricot.FacilityLocationSelection(60, metric="precomputed", optimizer="naive").fit(near).ranking
    function = submodlib.FacilityLocationFunction(n=300, mode="dense", sijs=near, separate_rep=False)
    with contextlib.redirect_stdout(None):
        picks = function.maximize(budget=60, optimizer="NaiveGreedy", show_progress=False)
    for medoids in (theirs, [i for i, _ in picks]):
        assert ours.objective <= distances[:, medoids].min(axis=1).astype(float).sum() * (1 + 1e-6)
    assert ours.indices[:20].tolist() == theirs[:20].tolist() == [i for i, _ in picks][:20]


def test_golden_answers():
    """Stored once: a change of the answer is a change of the contract."""
    with np.load(Path(__file__).parent / "golden.npz") as golden:
        for d in (2, 10, 40):
            coreset = crust.select(proxies(500, d, seed=d), 0.2)
            assert coreset.indices.tolist() == golden[f"indices{d}"].tolist()
            assert coreset.weights.tolist() == golden[f"weights{d}"].tolist()
            assert coreset.objective == float(golden[f"objective{d}"])


def test_says_what_it_does_before_it_starts(caplog):
    with caplog.at_level(logging.INFO, logger="crust"):
        crust.select(proxies(40, 3), 4)
    assert "greedy" in caplog.text
    assert "at most" in caplog.text


def test_estimate():
    small, large = crust.estimate_cost(5_000, 10, 0.5), crust.estimate_cost(50_000, 10, 0.5)
    assert large.seconds > 10 * small.seconds
    assert large.memory > small.memory
    assert "recomputed" in large.path
    assert "stored" in crust.estimate_cost(5_000, 100, 0.5).path
    assert "recomputed" in crust.estimate_cost(5_000, 100, 0.5, memory_limit="60MiB").path
    assert crust.estimate_cost(1000, 5, 10, [500, 500]).path == crust.estimate_cost(1000, 5, 10, 2).path
    for algorithm in ("lazy", "stochastic", "sieve", "greedi", "central", "random"):
        assert crust.estimate_cost(2000, 5, 0.1, algorithm=algorithm).seconds > 0


def test_a_limit_that_cannot_be_met():
    with refused("memory-limit"):
        crust.select(proxies(50, 3), 5, memory_limit=100)


def test_unknown_engine():
    with refused("unknown-engine"):
        crust.select(proxies(50, 3), 5, algorithm="greedi", engine="lokal")


def test_ctrl_c_stops_all_threads():
    code = (
        "import numpy as np, crust, threading, _thread\n"
        "x = np.random.default_rng(0).normal(size=(60_000, 10))\n"
        "crust.select(x[:1000], 10)\n"
        "timer = threading.Timer(1.0, _thread.interrupt_main)\ntimer.start()\n"
        "try:\n    crust.select(x, 0.5, threads=2)\n"
        "except KeyboardInterrupt:\n    timer.join()\n    print('stopped', threading.active_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["stopped", "1"], done.stderr
    assert threading.active_count() >= 1
