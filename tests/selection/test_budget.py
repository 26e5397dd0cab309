import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from crust.errors import InputError
from crust.selection.budget import resolve_k, split_budget


def naive_split(k, sizes, min_per_group=1):
    """The rule as the design states it, one unit at a time."""
    n = sum(sizes)
    budget = [0] * len(sizes)
    largest_first = sorted(range(len(sizes)), key=lambda g: (-sizes[g], g))
    for _ in range(min_per_group):
        for g in largest_first:
            if sum(budget) < k and budget[g] < sizes[g]:
                budget[g] += 1
    while sum(budget) < k:
        room = [g for g in range(len(sizes)) if budget[g] < sizes[g]]
        best = max(room, key=lambda g: (k * sizes[g] - budget[g] * n, -g))
        budget[best] += 1
    return budget


@st.composite
def budgets(draw):
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
    return draw(st.integers(0, sum(sizes))), sizes, draw(st.integers(0, 5))


@given(budgets())
def test_split_equals_handing_out_one_by_one(case):
    k, sizes, least = case
    assert split_budget(k, sizes, least).tolist() == naive_split(k, sizes, least)


@given(budgets())
def test_split_keeps_its_promises(case):
    k, sizes, least = case
    budget = split_budget(k, sizes, least)
    assert budget.dtype == np.int64
    assert budget.sum() == k
    assert np.all(budget >= 0)
    assert np.all(budget <= sizes)
    filled = np.count_nonzero(sizes)
    if least >= 1 and k >= filled:
        assert np.count_nonzero(budget) == filled


@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(0, 10**7))
def test_split_with_python_integers_equals_int64(sizes, scale):
    # sizes of thousands of millions take the big-integer road; proportions in whole units are known exactly
    big = [s * 2**31 for s in sizes]
    k = sum(sizes) * scale
    assert split_budget(k, big, 0).tolist() == [s * scale for s in sizes]


@pytest.mark.parametrize(
    ("k", "sizes", "least", "expected"),
    [
        (1, [5], 1, [1]),
        (5, [5], 1, [5]),
        (0, [5, 5], 1, [0, 0]),
        (3, [5, 5], 1, [2, 1]),  # a tie goes to the lower position
        (3, [5, 5, 5], 2, [1, 1, 1]),  # short: nobody has two before everybody has one
        (4, [5, 6, 5], 2, [1, 2, 1]),
        (2, [1, 1, 9], 1, [1, 0, 1]),
        (10, [100, 1, 1], 0, [10, 0, 0]),
        (10, [100, 1, 1], 1, [8, 1, 1]),
        (0, [], 1, []),
    ],
)
def test_split_examples(k, sizes, least, expected):
    assert split_budget(k, sizes, least).tolist() == expected


def test_split_accepts_numpy_sizes_and_does_not_change_them():
    sizes = np.array([3, 3], dtype=np.int32)
    assert split_budget(np.int64(4), sizes, np.int64(1)).tolist() == [2, 2]
    assert sizes.tolist() == [3, 3]


def test_split_is_fast_for_many_groups():
    sizes = np.random.default_rng(0).integers(0, 200, 10_000)
    begin = time.perf_counter()
    assert split_budget(500_000, sizes).sum() == 500_000
    assert time.perf_counter() - begin < 1


@pytest.mark.parametrize(("k", "least", "code"), [(11, 1, "k-range"), (-1, 1, "k-range"), (3, -1, "whole-number")])
def test_split_refuses(k, least, code):
    with refused(code):
        split_budget(k, [4, 6], least)


def test_split_refuses_minimum_that_is_not_whole():
    with refused("whole-number"):
        split_budget(3, [4, 6], 0.5)


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (1, 10, 1),
        (10, 10, 10),
        (np.int32(3), 10, 3),
        (np.uint8(3), 10, 3),
        (0.5, 10, 5),
        (np.float32(0.5), 10, 5),
        (np.float64(0.25), 8, 2),
        (1.0, 7, 7),
        (1, 1, 1),
        (1e-12, 7, 1),
        (0.999999, 3, 3),
    ],
)
def test_resolve_k(k, n, expected):
    count = resolve_k(k, n)
    assert count == expected
    assert type(count) is int


@pytest.mark.parametrize(
    ("k", "code"),
    [
        (0, "k-range"),
        (-3, "k-range"),
        (11, "k-range"),
        (np.int64(11), "k-range"),
        (0.0, "k-range"),
        (-0.5, "k-range"),
        (1.5, "k-range"),
        (np.float32(2.5), "k-range"),
        (float("nan"), "k-range"),
        (float("inf"), "k-range"),
        (True, "k-range"),
        (np.False_, "k-range"),
        ("0.1", "k-range"),
        (None, "k-range"),
        (1j, "k-range"),
    ],
)
def test_resolve_k_refuses(k, code):
    with refused(code) as caught:
        resolve_k(k, 10)
    message = str(caught.value)
    assert "a count from 1 to 10 or a share above 0 and up to 1.0" in message
    assert not message.endswith(".")
    assert "\n" not in message


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_min=True))
def test_a_share_always_gives_a_valid_count(n, share):
    assert 1 <= resolve_k(share, n) <= n


def test_one_point_in_the_singular():
    with pytest.raises(InputError, match="there is only 1 point: give the count 1 or"):
        resolve_k(2, 1)
