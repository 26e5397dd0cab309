"""Tables: numbers, categories and what is missing; fitted on the training rows, the same for new ones."""

import datetime
import json
import logging

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

from crust.data import load, load_new
from crust.data.table_dataset import MAX_CATEGORIES, TableEncoder
from crust.errors import InputError

CSV = """age,town,member,label
20,Ulm,true,good
,Bonn,false,bad
40,,true,good
60,Ulm,true,bad
"""


def write(tmp_path, text=CSV, name="a.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def encoder(bundle):
    return TableEncoder(bundle.encoding["columns"])


def columns(bundle, examples=None):
    """The features by name."""
    found = (examples or bundle.train).inputs.numpy()
    return {name: [round(v, 4) for v in found[:, i].tolist()] for i, name in enumerate(encoder(bundle).features)}


def test_a_table_of_everything(tmp_path):
    bundle = load(write(tmp_path))
    assert (bundle.train.kind, bundle.train.classes, bundle.train.labels.tolist()) == (
        "features",
        ["bad", "good"],
        [1, 0, 1, 0],
    )
    found = columns(bundle)
    ages = np.array([20, 40, 40, 60])  # the median is 40
    np.testing.assert_allclose(found["age"], (ages - 40) / ages.std(), atol=1e-4)
    assert found["age is missing"] == [0, 1, 0, 0]
    assert found["town=Ulm"] == [1, 0, 0, 1]
    assert found["town=Bonn"] == [0, 1, 0, 0]
    assert found["town is missing"] == [0, 0, 1, 0]
    assert set(found) == {"age", "age is missing", "town=Bonn", "town=Ulm", "town is missing", "member"}


def test_parquet_gives_the_same(tmp_path):
    path = write(tmp_path)
    frame = pd.read_csv(path)
    frame["town"] = frame["town"].astype("category")
    frame.to_parquet(tmp_path / "a.parquet")
    one, other = load(path), load(tmp_path / "a.parquet")
    np.testing.assert_array_equal(one.train.inputs, other.train.inputs)
    assert one.train.classes == other.train.classes


def test_new_rows_are_encoded_as_the_old(tmp_path):
    bundle = load(write(tmp_path))
    encoding = json.loads(json.dumps(bundle.encoding))
    np.testing.assert_array_equal(load_new(write(tmp_path), encoding).inputs, bundle.train.inputs)
    new = load_new(write(tmp_path, "member,town,age\nfalse,Rom,\ntrue,,80\n", "b.csv"), encoding)
    found = columns(bundle, new)
    assert found["age is missing"] == [1, 0]
    assert (found["town=Ulm"], found["town=Bonn"], found["town is missing"]) == ([0, 0], [0, 0], [0, 1])  # Rom: unknown
    assert new.labels.tolist() == [-1, -1]
    known = load_new(write(tmp_path, "member,town,age,label\ntrue,Ulm,1,good\ntrue,Ulm,1,\n", "b.csv"), encoding)
    assert known.labels.tolist() == [1, -1]


def test_a_test_set_of_its_own(tmp_path):
    test = write(tmp_path, CSV.replace("60", "99"), "b.csv")
    bundle = load(write(tmp_path), test=test)
    assert len(bundle.test) == 4
    assert bundle.test.inputs[3, 0] > bundle.train.inputs[3, 0]  # on the scale of the training rows
    with refused("missing-label"):
        load(write(tmp_path), test=write(tmp_path, "age,town,member\n1,Ulm,true\n", "b.csv"))


def test_what_was_not_missing_in_training_may_be_missing_later(tmp_path):
    bundle = load(write(tmp_path, "a,b,label\n1,x,0\n2,y,1\n3,x,1\n"))
    new = load_new(write(tmp_path, "a,b\n,\n,x\n", "b.csv"), bundle.encoding)
    assert columns(bundle, new) == {"a": [0, 0], "b=x": [0, 1], "b=y": [0, 0]}


def test_columns_that_come_in_another_type(tmp_path):
    bundle = load(write(tmp_path, "code,label\nA,0\n3,1\n4,1\n7,0\nB,1\nC,0\n"))
    new = load_new(write(tmp_path, "code\n3\n\n7\n", "b.csv"), bundle.encoding)
    assert columns(bundle, new)["code=3"][0] == 1
    numbers = load(write(tmp_path))
    with pytest.raises(InputError, match=r"'age' of b\.csv is not numeric: row 0 holds 'old'"):
        load_new(write(tmp_path, CSV.replace("20,", "old,"), "b.csv"), numbers.encoding)
    with pytest.raises(InputError, match=r"unknown column of b\.csv 'age'"):
        load_new(write(tmp_path, "town,member\nUlm,true\n", "b.csv"), numbers.encoding)


def test_the_label_column_and_the_columns_can_be_named(tmp_path):
    bundle = load(write(tmp_path), label_column="member", columns=["age"])
    assert bundle.train.classes == [False, True]
    assert encoder(bundle).features == ["age", "age is missing"]
    assert bundle.encoding["label_column"] == "member"


def test_lists_and_dates(tmp_path):
    frame = pd.DataFrame(
        {
            "embedding": [[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]],
            "day": [datetime.date(2020, 1, d) for d in (1, 2, 3)],
            "at": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "label": [0, 1, 1],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet")
    bundle = load(tmp_path / "a.parquet")
    found = columns(bundle)
    third = round(float(np.sqrt(1.5)), 4)
    assert found["embedding[0]"] == found["day"] == [-third, 0, third]
    assert found["embedding[1]"] == [0, 0, 0]
    assert found["at is missing"] == [0, 1, 0]
    frame["embedding"] = [[1.0], [2.0], [3.0]]
    frame.to_parquet(tmp_path / "b.parquet")
    with refused("list-length"):
        load_new(tmp_path / "b.parquet", bundle.encoding)


def test_names_of_rows_and_empty_columns_are_left_out(tmp_path, caplog):
    n = 3 * MAX_CATEGORIES
    frame = pd.DataFrame(
        {"id": [f"row{i}" for i in range(n)], "none": [None] * n, "x": range(n), "label": [0, 1] * (n // 2)}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    with caplog.at_level(logging.WARNING, logger="crust.data"):
        bundle = load(tmp_path / "a.csv")
    assert encoder(bundle).features == ["x"]
    assert "'id' of a.csv has a value of its own in most rows" in caplog.text
    assert "'none' of a.csv is empty" in caplog.text


def test_only_the_most_frequent_categories_get_a_feature(tmp_path):
    values = [f"v{i}" for i in range(MAX_CATEGORIES + 20)] * 3 + ["often"] * 9
    pd.DataFrame({"c": values, "label": np.arange(len(values)) % 2}).to_csv(tmp_path / "a.csv", index=False)
    features = encoder(load(tmp_path / "a.csv")).features
    assert len(features) == MAX_CATEGORIES
    assert "c=often" in features


def test_a_limit_fits_on_the_first_rows_only(tmp_path):
    bundle = load(write(tmp_path), limit=2)
    assert (len(bundle.train), bundle.total, bundle.rows.tolist()) == (2, 4, [0, 1])
    assert encoder(bundle).columns[0]["median"] == 20


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b\n1,2\n", {}, "no column 'label': say which .* label_column .* it has a, b"),
        (CSV, {"label_column": "labels"}, "did you mean 'label'"),
        (CSV, {"columns": ["aeg"]}, "did you mean 'age'"),
        ("label\n0\n1\n", {}, "no column besides the labels"),
        ("a,label\n1,x\n2,x\n", {}, "two classes"),
        ("a,label\n1,0\n2,\n3,1\n", {}, "row 1 .* give every row a label"),
        ("a,label\n1,x\n2,\n3,y\n", {}, "row 1 .* has no label"),
        ("a,label\n1,0.5\n2,1\n", {}, "not a whole number"),
        ("a,label\ninf,0\n2,1\n", {}, "'a' of a.csv is infinite in row 0"),
        ("a,label\n" + "1,0\n2,1\n" * 20 + "x3,1\n", {}, "nearly numeric: row 40 holds 'x3'"),
        ("a,label\n,0\n,1\n", {}, "no column to learn from"),
        ("a,a,label\n1,2,0\n", {}, "two columns named 'a'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, options, words):
    with pytest.raises(InputError, match=words) as caught:
        load(write(tmp_path, text), **options)
    assert "\n" not in str(caught.value)


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    pd.read_csv(write(tmp_path)).to_csv(tmp_path / "b.csv")
    assert columns(load(tmp_path / "b.csv")) == columns(load(write(tmp_path)))
