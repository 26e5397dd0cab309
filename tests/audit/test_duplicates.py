"""Duplicates: those of a plain comparison of all with all, whatever the inputs are."""

import numpy as np
import pytest
import torch

from crust.audit import duplicates as found_by
from crust.data import from_texts


def plain(rows: list[bytes], index: list[int]) -> dict[int, int]:
    first: dict[bytes, int] = {}
    for row, position in sorted(zip(rows, index, strict=True), key=lambda pair: pair[1]):
        first.setdefault(row, position)
    pairs = ((position, first[row]) for row, position in zip(rows, index, strict=True))
    return {position: other for position, other in pairs if position != other}


@pytest.mark.parametrize("kind", ["f4", "f2", "u1", "?"])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 2, 5), (16,)])
def test_they_are_those_of_a_plain_comparison(kind, shape, monkeypatch):
    from crust.audit import duplicates as function

    monkeypatch.setitem(function.__globals__, "AT_ONCE", 50)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (80, *shape)).astype(kind)
    x[40:] = x[rng.integers(0, 40, 40)]
    order = rng.permutation(80)
    parts = [(torch.from_numpy(x[:50]), order[:50]), (x[50:], order[50:])]
    assert found_by(parts) == plain([row.tobytes() for row in x], order.tolist())


def test_zeros_of_both_signs_differ_and_images_may_lie_pixel_by_pixel():
    assert found_by([(np.array([[0.0], [-0.0]]), np.arange(2))]) == {}
    images = torch.zeros(3, 2, 4, 4).to(memory_format=torch.channels_last)
    images[1, 0, 1, 2] = 1
    assert found_by([(images, np.arange(3))]) == {2: 0}


def test_texts_and_none_at_all():
    inputs = from_texts(["so good", "so bad", "so good"], [0, 1, 0]).inputs
    assert found_by([(inputs, np.arange(3))]) == {2: 0}
    assert found_by([]) == {}
    assert found_by([(np.empty((0, 3)), np.arange(0))]) == {}
