"""Groups of many kinds, their names, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.selection.common import refusal

from crust.selection.input_checks import check_groups


@pytest.mark.parametrize(
    ("groups", "names", "codes", "kind"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1], "U"),
        (("b", "a", "b"), ["a", "b"], [1, 0, 1], "U"),
        (np.array(["b", "a", "b"]), ["a", "b"], [1, 0, 1], "U"),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"], [1, 0, 1], "U"),
        (np.array([b"b", b"a", b"b"]), ["a", "b"], [1, 0, 1], "U"),
        ([b"b", b"a", b"b"], ["a", "b"], [1, 0, 1], "U"),
        (pd.Series(["b", "a", "b"], index=[7, 8, 9]), ["a", "b"], [1, 0, 1], "U"),
        (pd.Categorical(["b", "a", "b"], categories=["b", "a"]), ["a", "b"], [1, 0, 1], "U"),
        (["", "é", ""], ["", "é"], [0, 1, 0], "U"),
        (["10", "9", "-1"], ["-1", "10", "9"], [1, 2, 0], "U"),
        ([3, -5, 3], [-5, 3], [1, 0, 1], "i"),
        ([np.int64(3), np.int8(-5), 3], [-5, 3], [1, 0, 1], "i"),
        ([torch.tensor(3), torch.tensor(-5), torch.tensor(3)], [-5, 3], [1, 0, 1], "i"),
        (np.array([3, -5, 3], dtype=np.int16), [-5, 3], [1, 0, 1], "i"),
        (np.array([3, -5, 3], dtype=">i4"), [-5, 3], [1, 0, 1], "i"),
        (np.array([3, 5, 3], dtype=np.uint64), [3, 5], [0, 1, 0], "u"),
        (torch.tensor([3, -5, 3]), [-5, 3], [1, 0, 1], "i"),
        (pd.Series([3, -5, 3]), [-5, 3], [1, 0, 1], "i"),
        (pd.array([3, -5, 3], dtype="Int64"), [-5, 3], [1, 0, 1], "i"),
        (range(3), [0, 1, 2], [0, 1, 2], "i"),
        ([True, False, True], [False, True], [1, 0, 1], "b"),
        (torch.tensor([True, True, True]), [True], [0, 0, 0], "b"),
        ([3.0, -5.0, 3], [-5, 3], [1, 0, 1], "i"),
        (np.array([3, -5, 3], dtype=np.float16), [-5, 3], [1, 0, 1], "i"),
        (torch.tensor([3, -5, 3], dtype=torch.bfloat16), [-5, 3], [1, 0, 1], "i"),
    ],
)
def test_groups_of_many_kinds(groups, names, codes, kind):
    found_names, found_codes = check_groups(groups, 3)
    assert found_names.tolist() == names
    assert found_names.dtype.kind == kind
    assert found_codes.tolist() == codes
    assert found_names.dtype.isnative
    assert found_codes.dtype == np.int64


def test_no_groups():
    assert check_groups(None, 3) is None


@given(st.lists(st.one_of(st.text(max_size=4)), min_size=1) | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_names_and_codes_give_the_groups_back(groups):
    names, codes = check_groups(groups, len(groups))
    # a numpy string cannot end in NUL
    expected = [g.rstrip("\0") if isinstance(g, str) else g for g in groups]
    assert names[codes].tolist() == expected
    assert names.tolist() == sorted(names.tolist())


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["a", "b"], "groups has 2 names, but features has 3 rows"),
        (np.zeros(4, dtype=int), "groups has 4 names, but features has 3 rows"),
        (["a"], "groups has 1 name, but"),
        (np.zeros((3, 1), dtype=int), "shape (3, 1), but it must be 1-D"),
        (torch.zeros((3, 3)), "shape (3, 3), but it must be 1-D"),
        (pd.DataFrame({"a": [1, 2, 3]}), "shape (3, 1), but it must be 1-D"),
        ([[1], [2], [3]], "nested"),
        ([(1, 2), (1, 2), (3, 4)], "nested"),
        ("abc", "groups is a str"),
        (7, "groups is a int"),
        (iter("abc"), "groups is a str"),
        ({"a", "b", "c"}, "groups is a set"),
        (["a", None, "b"], "1 row without a name (row 1)"),
        (["a", float("nan"), None], "2 rows without a name (rows 1, 2): drop them or give them a group"),
        ([1.0, float("nan"), 2.0], "1 row without a name (row 1): drop it or give it a group"),
        (np.array([1.0, np.nan, 2.0]), "(row 1)"),
        (torch.tensor([1.0, float("nan"), 2.0]), "(row 1)"),
        (pd.Series(["a", None, "b"]), "(row 1)"),
        (pd.array([1, None, 2], dtype="Int64"), "(row 1)"),
        (pd.Categorical(["a", None, "b"]), "(row 1)"),
        (np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), "(row 1)"),
        ([1.0, 2.5, 3.5], "the value 2.5 in row 1"),
        (np.array([1.0, 2.0, np.inf]), "the value inf in row 2"),
        ([1.0, 2.0, 1e300], "the value 1e+300 in row 2"),
        (["a", 1, "b"], "names of type int, str"),
        ([True, 2, False], "names of type bool, int"),
        ([1, 2, 2**63], "more than 64 bits"),
        ([1j, 2j, 3j], "names of type complex"),
        (np.array([1j, 2j, 3j]), "type complex128"),
        (np.zeros(3, dtype="M8[s]"), "type datetime64"),
        ([b"\xff", b"a", b"b"], "not UTF-8"),
    ],
)
def test_groups_refused(groups, words):
    message = refusal(check_groups, groups, 3)
    assert "groups " in message
    assert words in message


def test_first_five_rows_without_a_name():
    message = refusal(check_groups, [None] * 9, 9)
    assert "9 rows without a name (first: 0, 1, 2, 3, 4)" in message
