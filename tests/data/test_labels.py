"""Labels of every kind: what is taken, what is refused, and that the user's own names come back."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from crust.data.labels import check_classes, check_codes, encode_labels, read_labels
from crust.errors import InputError


@pytest.mark.parametrize(
    ("values", "codes", "classes"),
    [
        ([3, 5, 3], [0, 1, 0], [3, 5]),
        ([-1, 1], [0, 1], [-1, 1]),
        ([1.0, 0.0, 2.0], [1, 0, 2], [0, 1, 2]),
        (["b", "a"], [1, 0], ["a", "b"]),
        (np.array([b"b", b"a"]), [1, 0], ["a", "b"]),
        ([True, False], [1, 0], [False, True]),
        (np.array(["x", "y"], dtype=object), [0, 1], ["x", "y"]),
        (np.array([2, 1], dtype=object), [1, 0], [1, 2]),
        (pd.Series(["x", "y"], index=[7, 8]), [0, 1], ["x", "y"]),
        (torch.tensor([1, 0]), [1, 0], [0, 1]),
        (np.array([[1], [0]], dtype=np.uint8), [1, 0], [0, 1]),
    ],
)
def test_labels_that_are_taken(values, codes, classes):
    found, names = encode_labels(values)
    assert found.dtype == np.int64
    assert (found.tolist(), names) == (codes, classes)
    assert [type(name) for name in names] == [type(name) for name in classes]


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2).filter(lambda names: len(set(names)) > 1))
def test_names_come_back(names):
    names = [name.rstrip("\0") or "a" for name in names]  # numpy drops trailing zeros of text
    if len(set(names)) < 2:
        return
    codes, classes = encode_labels(names)
    assert [classes[c] for c in codes] == names
    np.testing.assert_array_equal(encode_labels(names, classes)[0], codes)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 1.5], r"label 1.5 in row 1 .* not a whole number"),
        ([0, np.inf], "not a whole number"),
        ([0, np.nan], "row 1 .* no label"),
        (["a", "", "b"], "row 1 .* no label"),
        (["a", None], "row 1 .* no label"),
        (pd.Series([1, None], dtype="Int64"), "row 1 .* no label"),
        (pd.Series(["a", pd.NA], dtype=object), "row 1 .* no label"),
        ([1, 1, 1], "all of .* are 1: .* two classes"),
        ([], "empty"),
        (np.ones((3, 3)), "multi-label"),
        (np.full((3, 3), 1 / 3), "3 shares"),
        (np.array(["a", 1], dtype=object), "mix text and numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (np.array([{}, {}], dtype=object), "dict"),
    ],
)
def test_labels_that_are_refused(values, words):
    with pytest.raises(InputError, match=words) as caught:
        encode_labels(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        ([2, 0], ["a", "b", "c"], [2, 0]),  # positions
        ([7, 9], [5, 7, 9], [1, 2]),  # values
        (["9", "5"], [5, 7, 9], [2, 0]),  # values written as text
        ([10, 2], ["1", "10", "2"], [1, 2]),  # names written as numbers
        ([True, False], [0, 1], [1, 0]),
        ([1, 0], [False, True], [1, 0]),
    ],
)
def test_labels_of_known_classes(values, classes, codes):
    found, names = encode_labels(values, classes)
    assert found.tolist() == codes
    assert names == classes


@pytest.mark.parametrize(
    ("values", "classes", "words"),
    [
        (["cat", "dgo"], ["cat", "dog"], "'dgo': use one of cat, dog; did you mean 'dog'"),
        ([0, 2], ["cat", "dog"], "label 2 in row 1 .* out of range: labels go from 0 to 1"),
        ([-1, 0], ["cat", "dog"], "label -1 in row 0"),
        ([5, 8], [5, 7], "'8'"),
    ],
)
def test_labels_of_no_known_class(values, classes, words):
    with pytest.raises(InputError, match=words):
        encode_labels(values, classes)


def test_labels_from_files(tmp_path):
    np.savez(tmp_path / "l.npz", worse=np.array([2, 0, 1], np.uint8), text=np.array(["c", "a", "b"]))
    np.save(tmp_path / "l.npy", np.array([2.0, 0.0, 1.0]))
    (tmp_path / "l.csv").write_text("id,human\n1,c\n2,a\n3,b\n")
    pd.DataFrame({"human": ["c", "a", "b"]}).to_parquet(tmp_path / "l.parquet")
    classes = ["a", "b", "c"]
    for spec in ("l.npz:worse", "l.npz:text", "l.npy", "l.csv:human", "l.parquet", "l.parquet:human"):
        assert read_labels(f"{tmp_path}/{spec}", 3, classes).tolist() == [2, 0, 1], spec
    assert read_labels(f"{tmp_path}/l.npz:worse", 3).tolist() == [2, 0, 1]
    assert read_labels(f"{tmp_path}/l.npz:worse", 3, classes, rows=np.array([2])).tolist() == [1]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("l.npz:worse", "worse holds 3 labels, but there are 4 examples"),
        ("l.npz:best", "use one of worse, text"),
        ("l.npz", "several arrays"),
        ("l.csv", r"name one as in l.csv:id; it has id, human"),
        ("l.csv:humans", "did you mean 'human'"),
        ("empty.csv:human", "row 1 .* give every row a label"),
        ("none.npz:worse", "there is no file"),
        ("l.txt", "must end in one of"),
    ],
)
def test_label_files_that_cannot_be_used(tmp_path, spec, words):
    np.savez(tmp_path / "l.npz", worse=np.array([2, 0, 1]), text=np.array(["c", "a", "b"]))
    (tmp_path / "l.csv").write_text("id,human\n1,c\n2,a\n3,b\n4,b\n")
    (tmp_path / "empty.csv").write_text("id,human\n1,1\n2,\n3,0\n4,0\n")
    (tmp_path / "l.txt").write_text("1\n")
    with pytest.raises(InputError, match=words) as caught:
        read_labels(f"{tmp_path}/{spec}", 4, ["a", "b", "c"])
    assert "\n" not in str(caught.value)


def test_text_labels_need_classes(tmp_path):
    np.save(tmp_path / "l.npy", np.array(["c", "a"]))
    with refused("labels-type"):
        read_labels(tmp_path / "l.npy", 2)


def test_a_class_with_one_example_is_said_and_goes_on(caplog):
    with caplog.at_level(logging.WARNING, logger="crust.data"):
        check_classes(np.array([0, 0, 1, 1]), ["a", "b"])
        assert not caplog.records
        check_classes(np.array([0, 0, 1, 2]), ["a", "b", "c"])
    assert "class 'b' and 1 more have a single example" in caplog.text
    with refused("one-class"):
        check_classes(np.array([1, 1]), ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "words"), [([0, 3], "out of range"), ([0], "1 labels for 2"), (["a", "b"], "text"), ([0.5, 1], "whole")]
)
def test_numbers_that_are_no_labels(labels, words):
    with pytest.raises(InputError, match=words):
        check_codes(labels, 2, 3)


def test_one_hot_rows_are_the_places_of_the_ones():
    assert encode_labels(np.eye(3)[[2, 0, 1]])[0].tolist() == [2, 0, 1]
