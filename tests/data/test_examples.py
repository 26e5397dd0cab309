"""Examples: their rows, their labels, and a fingerprint that notices any change."""

import numpy as np
import pytest
import torch
from tests.refusals import refused

from crust.data import Examples, from_arrays, from_dataset
from crust.errors import InputError


def images(n=6):
    pixels = np.random.default_rng(0).integers(0, 256, (n, 4, 4, 3), dtype=np.uint8)
    return from_arrays(pixels, np.array(["cat", "dog"])[np.arange(n) % 2])


def test_rows_keep_everything_together():
    examples = images()
    examples.ids = [f"{i}.png" for i in range(6)]
    some = examples.subset([4, 1])
    assert torch.equal(some.inputs, examples.inputs[[4, 1]])
    assert some.inputs.is_contiguous(memory_format=torch.channels_last)
    assert (some.labels.tolist(), some.ids, some.mean) == ([0, 1], ["4.png", "1.png"], examples.mean)
    first = examples.subset(np.arange(3))
    assert first.inputs.data_ptr() == examples.inputs.data_ptr()  # a first part is not copied
    assert len(examples.subset([])) == 0
    for wrong in ([6], [-1], [[0]]):
        with refused("index-range"):
            examples.subset(wrong)


def test_other_labels():
    examples = images()
    other = examples.with_labels([1, 1, 0, 0, 1, 0])
    assert other.labels.tolist() == [1, 1, 0, 0, 1, 0]
    assert other.inputs is examples.inputs
    assert examples.labels.tolist() == [0, 1, 0, 1, 0, 1]
    for wrong, words in (([0] * 5, "5 labels for 6"), ([0, 1, 2, 0, 0, 0], "out of range"), ([0.5] * 6, "whole")):
        with pytest.raises(InputError, match=words):
            examples.with_labels(wrong)


def test_names_of_labels():
    assert images().decode([1, 0, -1]) == ["dog", "cat", None]


def test_as_many_labels_as_inputs():
    with refused("labels-length"):
        Examples(torch.zeros(3, 1), np.array([0, 1]), [0, 1], "features")


def test_the_fingerprint_notices_any_change():
    examples = images()
    known = {examples.fingerprint()}
    assert images().fingerprint() in known
    changed = [examples.with_labels([1, 1, 0, 1, 0, 1]), examples.subset([1, 0, 2, 3, 4, 5]), images(8)]
    pixel = images()
    pixel.inputs[3, 1, 2, 2] += 1
    names = images()
    names.classes = ["cat", "cow"]
    scale = images()
    scale.mean = (0.0, 0.0, 0.0)
    for other in (*changed, pixel, names, scale):
        assert other.fingerprint() not in known
        known.add(other.fingerprint())


def test_the_fingerprint_is_of_the_content_not_the_layout():
    examples = images()
    other = images()
    other.inputs = other.inputs.contiguous()
    assert other.inputs.stride() != examples.inputs.stride()
    assert other.fingerprint() == examples.fingerprint()


def test_the_fingerprint_of_a_dataset():
    items = [(torch.zeros(2), i % 2) for i in range(6)]
    examples = from_dataset(items)
    assert examples.fingerprint() == from_dataset(list(items)).fingerprint()
    assert examples.fingerprint() != examples.subset([0, 1, 2, 3]).fingerprint()
    assert examples.subset([0, 1, 4]).fingerprint() != examples.subset([0, 3, 4]).fingerprint()
