"""Published epochs in runs of other lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crust.training.epoch_scaling import scaled, stretched


def test_their_own_run_has_their_own_constant():
    for constant, run in ((10, 200), (16, 300), (40, 120)):
        assert scaled(constant, run, run) == constant
        assert stretched(constant, run, run, 50_000, most=1) == constant


@given(epochs=st.integers(1, 500), examples=st.integers(1, 10**6))
def test_they_are_never_nothing_nor_all_of_the_run(epochs, examples):
    assert 1 <= scaled(10, 200, epochs) <= epochs
    assert 1 <= stretched(10, 200, epochs, examples) <= max(1, epochs // 4)


@pytest.mark.parametrize(("examples", "expected"), [(10**6, 1), (50_000, 2), (25_000, 4), (10_000, 10), (1_000, 10)])
def test_shorter_epochs_are_more_of_them_up_to_a_quarter_of_the_run(examples, expected):
    assert stretched(10, 200, 40, examples) == expected


def test_a_least_number():
    assert scaled(10, 200, 3, least=0) == 0
    assert scaled(10, 200, 3, least=2) == 2
