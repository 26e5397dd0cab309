"""A Parquet file that is larger than memory should hold gives what a small one gives."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crust.data import image_folder, load, parquet_columns
from crust.data.mapped_array import MappedArray
from crust.data.parquet_columns import ParquetColumns
from crust.data.table_dataset import load_new_table
from crust.errors import InputError


def table(n: int = 500) -> pa.Table:
    rng = np.random.default_rng(0)
    age = [None if i % 7 == 0 else float(value) for i, value in enumerate(rng.normal(40, 9, n).round(2))]
    towns = rng.choice(["Ulm", "Bonn", "", "Köln"], n).tolist()
    vectors = pa.array(rng.normal(size=(n, 4)).round(3).tolist(), pa.list_(pa.float32(), 4))
    label = rng.choice(["yes", "no"], n).tolist()
    return pa.table({"age": age, "label": label, "town": towns, "vector": vectors, "a.b": rng.integers(0, 9, n)})


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    pq.write_table(table(), path, row_group_size=130)
    monkeypatch.setattr(parquet_columns, "PIECE_ROWS", 33)
    return path


@pytest.mark.parametrize("limit", [None, 200])
def test_it_is_the_table_that_is_read_whole(file, monkeypatch, limit):
    whole = load(file, limit=limit)
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(
        ParquetColumns, "select", lambda *_: pytest.fail("training needs no whole table, whatever is in it")
    )
    found = load(file, limit=limit)
    assert isinstance(found.train.inputs, MappedArray)
    rows = np.arange(len(whole.train))
    assert np.array_equal(found.train.inputs.gather(rows).numpy(), whole.train.inputs.numpy())
    assert np.array_equal(found.train.labels, whole.train.labels)
    assert found.encoding == whole.encoding
    assert (found.total, found.train.fingerprint()) == (whole.total, whole.train.fingerprint())


def test_new_rows_are_read_in_pieces_too(file, monkeypatch):
    encoding = load(file).encoding
    whole = load_new_table(file, encoding)
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 10_000)  # the file is larger, what is made of it too
    found = load_new_table(file, encoding)
    assert np.array_equal(found.inputs.gather(np.arange(500)).numpy(), whole.inputs.numpy())
    assert np.array_equal(found.labels, whole.labels)


def test_what_is_made_of_it_may_fit_in_memory(file, monkeypatch):
    whole = load(file, columns=["age"])
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 5000)
    found = load(file, columns=["age"])
    assert np.array_equal(found.train.inputs.numpy(), whole.train.inputs.numpy())


def test_a_missing_label_is_found_in_its_row(tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    labels = ["yes", "no"] * 50
    labels[77] = None
    pq.write_table(pa.table({"age": np.arange(100.0), "label": labels}), path, row_group_size=20)
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 100)
    with pytest.raises(InputError, match="row 77 of column 'label'"):
        load(path)
