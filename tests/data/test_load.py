"""Data by name and by path, and the sentences for what is neither."""

import json

import numpy as np
import pytest
from tests.refusals import refused

from crust.data import batches, load, load_new
from crust.errors import InputError


def test_digits_are_always_the_same():
    first, second = load("digits"), load("digits")
    assert (len(first.train), len(first.test), first.train.shape) == (1297, 500, (1, 8, 8))
    assert first.train.fingerprint() == second.train.fingerprint()
    assert first.train.labels[:12].tolist() == [0, 2, 3, 4, 7, 8, 0, 1, 3, 8, 0, 1]
    assert first.train.inputs.max() == 255
    assert not first.train.mirror
    counts = np.bincount(first.test.labels)
    assert counts.min() >= 48
    assert counts.max() <= 51
    x, _ = next(batches(first.train, None, 2000))
    assert abs(float(x.mean())) < 1e-5
    assert abs(float(x.std()) - 1) < 1e-3


def test_digits_come_from_both_parts_of_the_original():
    from sklearn.datasets import load_digits

    bundle = load("digits")
    both = np.concatenate([bundle.train.inputs.numpy(), bundle.test.inputs.numpy()]).reshape(1797, 64)
    original = np.round(load_digits().data * 255 / 16).astype(np.uint8)
    assert sorted(map(bytes, both)) == sorted(map(bytes, original))


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        ("digit", {}, "no file or folder digit: check the path, or use one of digits, cifar10, cifar100"),
        ("digits", {"limit": 0}, "the limit is 0"),
        ("digits", {"limit": 1.5}, "the limit is 1.5"),
        ("digits", {"label_column": "y"}, "digits has no columns"),
        ("digits", {"test": "nowhere.npz"}, "no file or folder nowhere.npz"),
    ],
)
def test_what_cannot_be_loaded(spec, options, words):
    with pytest.raises(InputError, match=words):
        load(spec, **options)


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with refused("file-type"):
        load(tmp_path / "a.txt")
    (tmp_path / "a.csv").write_text("x,label\n1,0\n2,1\n")
    with refused("other-data"):
        load_new(tmp_path / "a.csv", load("digits").encoding)
    with refused("other-data"):
        load_new("digits", load(tmp_path / "a.csv").encoding)


def test_the_encoding_is_plain():
    encoding = load("digits").encoding
    again = json.loads(json.dumps(encoding))
    assert len(load_new("digits", again)) == 500
