"""Arrays in .npz files, as images and as features."""

import json

import numpy as np
import pytest
import torch
from tests.refusals import refused

from crust.data import from_arrays, load, load_new
from crust.errors import InputError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 6, 5, 3), dtype=np.uint8)
Y = np.arange(12) % 3


def npz(tmp_path, **arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    return tmp_path / "a.npz"


@pytest.mark.parametrize(
    "names",
    [("x_train", "y_train", "x_test", "y_test"), ("train_images", "train_labels", "test_images", "test_labels")],
)
def test_training_and_test_arrays(tmp_path, names):
    bundle = load(npz(tmp_path, **dict(zip(names, (PIXELS, Y, PIXELS[:3], Y[:3]), strict=True))))
    assert (bundle.train.kind, bundle.train.shape, bundle.train.classes) == ("images", (3, 6, 5), [0, 1, 2])
    assert bundle.train.inputs.dtype == torch.uint8
    np.testing.assert_array_equal(bundle.train.inputs.permute(0, 2, 3, 1), PIXELS)
    assert len(bundle.test) == 3
    assert bundle.test.mean == bundle.train.mean  # of the training images
    np.testing.assert_allclose(bundle.train.mean, PIXELS.mean(axis=(0, 1, 2)) / 255, rtol=1e-5)
    np.testing.assert_allclose(bundle.train.std, PIXELS.std(axis=(0, 1, 2)) / 255, rtol=1e-5)
    assert (bundle.total, bundle.rows.tolist()) == (12, list(range(12)))


def test_one_pair_of_arrays_in_capitals_and_text_labels(tmp_path):
    bundle = load(npz(tmp_path, X=PIXELS[..., 0], Y=np.array(["a", "b", "c"])[Y]))
    assert (bundle.train.shape, bundle.train.classes, bundle.test) == ((1, 6, 5), ["a", "b", "c"], None)


@pytest.mark.parametrize(
    ("x", "shape", "dtype"),
    [
        (PIXELS.transpose(0, 3, 1, 2), (3, 6, 5), torch.uint8),
        (PIXELS.astype(np.int64), (3, 6, 5), torch.uint8),
        (PIXELS / 255, (3, 6, 5), torch.float32),
        (PIXELS.reshape(12, -1), (90,), torch.float32),
        (PIXELS.reshape(12, -1).astype(">f8"), (90,), torch.float32),
        (PIXELS[..., 0] > 99, (1, 6, 5), torch.float32),
    ],
)
def test_forms_of_inputs(x, shape, dtype):
    examples = from_arrays(x, Y)
    assert (examples.shape, examples.inputs.dtype) == (shape, dtype)


def test_floats_keep_their_range_and_are_normalised_by_it():
    examples = from_arrays(PIXELS / 51, Y)
    np.testing.assert_allclose(examples.mean, (PIXELS / 51).mean(axis=(0, 1, 2)), rtol=1e-5)


def test_a_limit_takes_the_first_and_keeps_all_classes(tmp_path):
    path = npz(tmp_path, x=PIXELS, y=[5, 6] + [7] * 10)
    bundle = load(path, limit=2)
    assert (len(bundle.train), bundle.train.classes, bundle.total) == (2, [5, 6, 7], 12)
    np.testing.assert_allclose(bundle.train.mean, PIXELS[:2].mean(axis=(0, 1, 2)) / 255, rtol=1e-5)
    assert len(load(path, limit=99).train) == 12


def test_new_arrays_in_the_form_of_the_old(tmp_path):
    bundle = load(npz(tmp_path, x=PIXELS, y=np.array(["a", "b", "c"])[Y]))
    encoding = json.loads(json.dumps(bundle.encoding))
    path = npz(tmp_path, x=PIXELS[:2])
    new = load_new(path, encoding)
    assert (new.mean, new.labels.tolist(), new.classes) == (bundle.train.mean, [-1, -1], ["a", "b", "c"])
    assert load_new(npz(tmp_path, x=PIXELS[:2], y=["b", "a"]), encoding).labels.tolist() == [1, 0]
    with refused("array-shape"):
        load_new(npz(tmp_path, x=PIXELS[:2, :5]), encoding)
    with refused("unknown-class"):
        load_new(npz(tmp_path, x=PIXELS[:2], y=["b", "d"]), encoding)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": PIXELS}, "holds pictures: save the arrays as x and y"),
        ({"x": PIXELS}, "save the arrays as x and y"),
        ({"x": PIXELS, "y": Y[:5]}, "5 labels in y for 12 examples in x"),
        ({"x": PIXELS, "y": np.zeros(12)}, "all of the labels of a.npz are 0"),
        ({"x": PIXELS, "y": Y + 0.5}, "not a whole number"),
        ({"x": np.full((12, 2), np.nan), "y": Y}, "row 0 .* no numbers"),
        ({"x": np.array(["a"] * 12), "y": Y}, "hold text, not numbers"),
        ({"x": np.array([["a"]] * 12), "y": Y}, "not numbers"),
        ({"x": np.zeros((12, 5, 5, 7)), "y": Y}, "1, 3 or 4 channels"),
        ({"x": PIXELS, "y": np.array([{}] * 12, dtype=object)}, "never unpickled"),
        ({"x_train": PIXELS, "y_train": Y, "x_test": PIXELS[:1], "y_test": [3]}, "'3': use one of 0, 1, 2"),
    ],
)
def test_archives_that_cannot_be_used(tmp_path, arrays, words):
    with pytest.raises(InputError, match=words) as caught:
        load(npz(tmp_path, **arrays))
    assert "\n" not in str(caught.value)


def test_an_archive_that_is_cut_off(tmp_path):
    path = npz(tmp_path, x=PIXELS, y=Y)
    path.write_bytes(path.read_bytes()[:700])
    with refused("bad-file"):
        load(path)


def test_sparse_columns_of_one_kind_keep_their_proportions():
    """TF-IDF: the rarest word must not become the largest number."""
    rng = np.random.default_rng(0)
    words = (rng.random((200, 80)) * (rng.random((200, 80)) < 0.1)).astype(np.float32)
    found = from_arrays(words)
    assert set(found.mean) == {0.0}
    assert len(set(found.std)) == 1
    assert np.isclose(found.std[0], np.sqrt((words**2).mean()), rtol=1e-4)
    money = words.copy()
    money[:, 3] *= 1e4  # a column of another kind
    for others in (money, words[:, :30], words + 1, rng.normal(size=(200, 80)).astype(np.float32)):
        assert len(set(from_arrays(others).std)) > 20
