"""What is held out: the right share of every class, and never the last example of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from crust.data.holdout import hold_out


@given(
    counts=st.lists(st.integers(1, 80), min_size=1, max_size=8),
    share=st.floats(0, 0.99),
    seed=st.integers(0, 1000),
)
def test_a_share_of_every_class(counts, share, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    train, held = hold_out(labels, share, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(len(labels)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(held) > 0).all()
    of_class = np.bincount(labels[held], minlength=len(counts))
    for count, found in zip(counts, of_class, strict=True):
        assert found <= count - 1
        assert found == 0 if share * count < 1 - 1e-9 else abs(found - min(share * count, count - 1)) <= 1 + 1e-9


def test_the_total_is_exact_and_the_seed_decides():
    labels = np.arange(1797) % 10
    first, second, third = (hold_out(labels, 500 / 1797, np.random.default_rng(s))[1] for s in (0, 0, 1))
    assert len(first) == 500
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_nothing_held_out():
    train, held = hold_out([0, 1, 1], 0, np.random.default_rng(0))
    assert (train.tolist(), held.tolist()) == ([0, 1, 2], [])
    assert hold_out(np.array([], int), 0.1, np.random.default_rng(0))[0].size == 0


@pytest.mark.parametrize("share", [1, -0.1, 1.5, float("nan"), "some"])
def test_impossible_shares(share):
    with refused("validation-range"):
        hold_out([0, 1], share, np.random.default_rng(0))
