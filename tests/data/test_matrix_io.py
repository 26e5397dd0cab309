"""Vectors and group names from files, and one sentence for every file that cannot be used."""

import contextlib
import pickle
import struct

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file
from tests.refusals import refused

from crust.data.matrix_io import read_column, read_matrix, split_spec
from crust.errors import InputError

POINTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
TABLE = pa.table({"id": ["a", "b", "c", "d"], "x": [0.5, 1.5, 2.5, 3.5], "y": [1, 2, 3, 4], "label": [3, 3, -1, -1]})


class Explosive:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def write_csv(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_npy_is_memory_mapped(tmp_path):
    np.save(tmp_path / "f.npy", POINTS)
    found = read_matrix(tmp_path / "f.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, POINTS)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "bool", ">f4"])
def test_npy_of_any_number(tmp_path, dtype):
    np.save(tmp_path / "f.npy", np.asfortranarray(POINTS.astype(dtype)))
    np.testing.assert_array_equal(read_matrix(tmp_path / "f.npy"), POINTS.astype(dtype))


def test_npz_needs_a_key_only_for_several(tmp_path):
    np.savez(tmp_path / "one.npz", POINTS)
    np.testing.assert_array_equal(read_matrix(tmp_path / "one.npz"), POINTS)
    np.savez_compressed(tmp_path / "two.npz", train=POINTS, test=POINTS[:1])
    np.testing.assert_array_equal(read_matrix(f"{tmp_path}/two.npz:test"), POINTS[:1])
    with pytest.raises(InputError, match=r"two.npz:train; it has train, test$"):
        read_matrix(tmp_path / "two.npz")
    with pytest.raises(InputError, match=r"did you mean 'train'"):
        read_matrix(f"{tmp_path}/two.npz:trian")


@pytest.mark.parametrize("odd", ["", "x"])  # a key of another length moves the data to another alignment
def test_safetensors(tmp_path, odd):
    save_file({"f" + odd: POINTS, "half": POINTS.astype(np.float16)}, tmp_path / "f.safetensors")
    found = read_matrix(f"{tmp_path}/f.safetensors:f{odd}")
    assert found.flags.aligned
    np.testing.assert_array_equal(found, POINTS)
    np.testing.assert_array_equal(read_matrix(f"{tmp_path}/f.safetensors:half"), POINTS)


def test_safetensors_of_bfloat16(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_tensors

    save_tensors({"f": torch.from_numpy(POINTS).bfloat16()}, tmp_path / "f.safetensors")
    np.testing.assert_array_equal(read_matrix(tmp_path / "f.safetensors"), POINTS)


def test_parquet_takes_numeric_columns(tmp_path, caplog):
    pa.parquet.write_table(TABLE, tmp_path / "f.parquet")
    with caplog.at_level("INFO", logger="crust"):
        found = read_matrix(tmp_path / "f.parquet", skip=["label"])
    np.testing.assert_array_equal(found, [[0.5, 1], [1.5, 2], [2.5, 3], [3.5, 4]])
    assert "left out: id, label" in caplog.text
    np.testing.assert_array_equal(read_matrix(tmp_path / "f.parquet", ["y", "x"])[0], [1, 0.5])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 3)])
def test_parquet_with_a_column_of_lists(tmp_path, kind):
    pa.parquet.write_table(pa.table({"v": pa.array(POINTS.tolist(), kind)}), tmp_path / "f.parquet", row_group_size=2)
    found = read_matrix(tmp_path / "f.parquet")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, POINTS)


def test_parquet_with_gaps_has_nan(tmp_path):
    pa.parquet.write_table(pa.table({"x": [1.0, None], "n": [1, None]}), tmp_path / "f.parquet")
    np.testing.assert_array_equal(read_matrix(tmp_path / "f.parquet"), [[1, 1], [np.nan, np.nan]])


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2\n3,4.5\n",
        "1,2\n3,4.5\n",
        "x;y\r\n1;2\r\n3;4.5\r\n",
        "\ufeffx,y\n1,2\n3,4.5\n",
        ",x,y\n0,1,2\n1,3,4.5\n",
    ],
    ids=["header", "no header", "semicolons", "byte order mark", "pandas index"],
)
def test_csv(tmp_path, text):
    np.testing.assert_array_equal(read_matrix(write_csv(tmp_path / "f.csv", text)), [[1, 2], [3, 4.5]])


def test_csv_header_of_counted_columns(tmp_path):
    path = write_csv(tmp_path / "f.csv", "0,1,2\n5,6,7\n")
    np.testing.assert_array_equal(read_matrix(path), [[5, 6, 7]])
    with refused("ambiguous-header"):
        read_matrix(write_csv(tmp_path / "g.csv", "0,1\n5,6\n"))


def test_tsv(tmp_path):
    np.testing.assert_array_equal(read_matrix(write_csv(tmp_path / "f.tsv", "x\ty\n1\t2\n")), [[1, 2]])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([3, -1, 3], dtype=np.int16), [3, -1, 3]),
        (np.array([[3], [-1]]), [3, -1]),
        (np.array([3.0, -1.0]), [3, -1]),
        (np.array([True, False]), [1, 0]),
        (np.array(["cat", "dog"]), ["cat", "dog"]),
        (np.array([b"cat", b"dog"]), ["cat", "dog"]),
    ],
)
def test_groups_from_npy(tmp_path, values, expected):
    np.save(tmp_path / "g.npy", values)
    assert read_column(tmp_path / "g.npy").tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["b", "a"]), ["b", "a"]),
        (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        (pa.array([2, -7], pa.int8()), [2, -7]),
        (pa.array([True, False]), [1, 0]),
        (pa.array([1.0, 2.0]), [1, 2]),
    ],
)
def test_groups_from_parquet(tmp_path, values, expected):
    pa.parquet.write_table(pa.table({"g": values, "other": [1, 2]}), tmp_path / "g.parquet")
    assert read_column(tmp_path / "g.parquet", "g").tolist() == expected


def test_groups_from_csv(tmp_path):
    assert read_column(write_csv(tmp_path / "g.csv", "g\nNA\nb\n")).tolist() == ["NA", "b"]
    assert read_column(write_csv(tmp_path / "h.csv", "x,g\n0.5,7\n0.1,-2\n"), "g").tolist() == [7, -2]


def test_spec():
    assert split_spec("a/f.npz:x:y") == split_spec("a/f.npz:x:y")
    assert split_spec("f.safetensors:w")[1] == "w"
    assert split_spec("f.npz:")[1] is None
    assert split_spec("C:/f.npy")[1] is None


def broken_files(folder):
    """Files that cannot be used, each with a part of the sentence it must give."""
    np.save(folder / "flat.npy", POINTS[0])
    yield "flat.npy", r"flat.npy has shape \(3,\): give a two-dimensional"
    np.save(folder / "none.npy", POINTS[:0])
    yield "none.npy", r"none.npy is empty, shape \(0, 3\)"
    np.save(folder / "text.npy", np.array([["a"]]))
    yield "text.npy", "not numbers"
    np.save(folder / "objects.npy", np.array([[Explosive()]]), allow_pickle=True)
    yield "objects.npy", "never unpickled"
    (folder / "pickle.npy").write_bytes(pickle.dumps(Explosive()))
    yield "pickle.npy", "truncated or not a .npy file"
    np.savez(folder / "objects.npz", a=np.array([[Explosive()]]))
    yield "objects.npz", "never unpickled"
    np.savez(folder / "nothing.npz")
    yield "nothing.npz", "holds no arrays"
    (folder / "empty.csv").touch()
    yield "empty.csv", "is an empty file"
    write_csv(folder / "head.csv", "x,y\n")
    yield "head.csv", "has no rows"
    write_csv(folder / "words.csv", "x,y\na,b\n")
    yield "words.csv", "has no numeric column"
    write_csv(folder / "typo.csv", "x,y\n" + "1,2\n" * 20 + "1,2o\n")
    yield "typo.csv", "column 'y' of typo.csv is nearly numeric: row 20 holds '2o'"
    write_csv(folder / "ragged.csv", "x,y\n1,2\n3\n")
    yield "ragged.csv", "truncated or not a .csv file"
    (folder / "latin.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    yield "latin.csv", "truncated or not a .csv file"
    write_csv(folder / "twice.csv", "x,x\n1,2\n")
    yield "twice.csv", "two columns named 'x'"
    pa.parquet.write_table(pa.table({"v": [[1.0], [1.0, 2.0]]}), folder / "ragged.parquet")
    yield "ragged.parquet", "lists of different lengths"
    (folder / "huge.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    yield "huge.safetensors", "truncated or not a .safetensors file"
    write_csv(folder / "notes.txt", "1")
    yield "notes.txt", r"must end in one of \.npy, "
    (folder / "folder.npy").mkdir()
    yield "folder.npy", "is a folder"
    yield "missing.npy", "there is no file"


def test_a_file_that_cannot_be_used_gives_one_sentence(tmp_path):
    for name, part in broken_files(tmp_path):
        with pytest.raises(InputError, match=part) as caught:
            read_matrix(tmp_path / name)
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)


def good_files(folder):
    np.save(folder / "f.npy", np.ones((50, 20)))
    np.savez(folder / "f.npz", np.ones((50, 20)))
    save_file({"f": np.ones((50, 20))}, folder / "f.safetensors")
    pa.parquet.write_table(pa.table({"x": np.arange(500.0)}), folder / "f.parquet")
    return [folder / name for name in ("f.npy", "f.npz", "f.safetensors", "f.parquet")]


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_truncated_file_gives_one_sentence(tmp_path, share):
    for path in good_files(tmp_path):
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(InputError, match=f"cannot read .*{path.name}: truncated or not a {path.suffix} file"):
            read_matrix(path)


def test_a_file_with_noise_inside_never_gives_another_error(tmp_path):
    rng = np.random.default_rng(0)
    for path in good_files(tmp_path):
        content = np.frombuffer(path.read_bytes(), np.uint8)
        for _ in range(30):
            noisy = content.copy()
            noisy[rng.integers(len(noisy), size=3)] = rng.integers(256, size=3)
            noisy[rng.integers(min(100, len(noisy)))] = rng.integers(256)
            path.write_bytes(noisy.tobytes())
            with contextlib.suppress(InputError):
                assert read_matrix(path).ndim == 2


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        (["x", "z"], "unknown column of f.parquet 'z': use one of id, x, y, label"),
        (["id"], "column 'id' of f.parquet is not numeric: row 0 holds 'a'"),
    ],
)
def test_wrong_columns(tmp_path, columns, part):
    pa.parquet.write_table(TABLE, tmp_path / "f.parquet")
    with pytest.raises(InputError, match=part):
        read_matrix(tmp_path / "f.parquet", columns)


def test_columns_only_of_tables(tmp_path):
    np.save(tmp_path / "f.npy", POINTS)
    with refused("no-columns"):
        read_matrix(tmp_path / "f.npy", ["x"])
    with refused("no-columns"):
        read_column(tmp_path / "f.npy", "x")


def test_wrong_groups(tmp_path):
    np.save(tmp_path / "two.npy", POINTS)
    np.save(tmp_path / "half.npy", np.array([1.0, 0.5]))
    np.save(tmp_path / "nan.npy", np.array([np.nan]))
    np.save(tmp_path / "none.npy", np.array([], dtype=int))
    np.save(tmp_path / "complex.npy", np.array([1j]))
    write_csv(tmp_path / "wide.csv", "a,b\n1,2\n")
    write_csv(tmp_path / "gap.csv", "a,b\n1,2\n,3\n")
    for name, column, part in [
        ("two.npy", None, r"shape \(4, 3\)"),
        ("half.npy", None, "group 0.5 in row 1"),
        ("nan.npy", None, "group nan in row 0"),
        ("none.npy", None, "is empty"),
        ("complex.npy", None, "whole numbers or text"),
        ("wide.csv", None, "has 2 columns: name one with --group-column; it has a, b"),
        ("wide.csv", "c", "unknown column of wide.csv 'c'"),
        ("gap.csv", "a", "row 1 of column 'a' of gap.csv is empty"),
    ]:
        with pytest.raises(InputError, match=part):
            read_column(tmp_path / name, column)
