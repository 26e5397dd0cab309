"""Features and matrices of distances: what passes, and what is refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from tests.selection.common import refusal

from crust.selection import input_checks
from crust.selection.input_checks import check_directions, check_features, check_precomputed, is_tensor


@pytest.fixture
def small_pieces(monkeypatch):
    """Three rows of two float64 a piece, tiles of three by three."""
    monkeypatch.setattr(input_checks, "PIECE_BYTES", 48)
    monkeypatch.setattr(input_checks, "TILE", 3)


# ---------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "u1", "i4", "i8", "u8", "?"])
def test_arrays_pass_as_they_are(dtype):
    x = np.ones((4, 3), dtype=dtype)
    assert check_features(x) is x
    assert check_features(x[:, ::2]).base is x
    assert check_features(x.T).base is x


def test_a_memory_map_is_neither_copied_nor_loaded_whole(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.ones((1000, 8), dtype=np.float32))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    sizes = []
    finite = np.isfinite
    monkeypatch.setattr(input_checks, "PIECE_BYTES", 1024)
    monkeypatch.setattr(input_checks.np, "isfinite", lambda piece: (sizes.append(piece.nbytes), finite(piece))[1])
    assert check_features(x) is x
    assert max(sizes) <= 1024
    assert sum(sizes) == x.nbytes


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.bool]
)
def test_tensors_stay_where_they_are(dtype):
    x = torch.ones(4, 3).to(dtype)
    checked = check_features(x)
    assert is_tensor(checked)
    assert checked.dtype == dtype
    assert checked.data_ptr() == x.data_ptr()


def test_a_parameter_loses_its_gradient_only():
    x = torch.nn.Parameter(torch.ones(2, 2))
    checked = check_features(x)
    assert not checked.requires_grad
    assert checked.data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([[1, 2], [3, 4]], "i"),
        ([(1.0, 2), (3, 4)], "f"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}), "f"),
        (pd.DataFrame({"a": [1.5, 2.0], "b": [True, False]}), "f"),
        (pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]}), "f"),
        (np.ma.masked_array([[1.0, 2.0]], mask=False), "f"),
    ],
)
def test_other_tables_become_arrays(features, expected):
    checked = check_features(features)
    assert type(checked) is np.ndarray
    assert checked.ndim == 2
    assert checked.dtype.kind == expected


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros(5), "shape (5,), but it must be 2-D"),
        (np.zeros(5), "reshape(-1, 1)"),
        (torch.zeros(5), "reshape(-1, 1)"),
        (np.zeros((2, 3, 4)), "shape (2, 3, 4), but it must be 2-D"),
        (3.0, "features are a float"),
        (np.zeros((0, 3)), "empty (shape (0, 3))"),
        (np.zeros((3, 0)), "empty (shape (3, 0))"),
        (torch.zeros((0, 3)), "empty (shape (0, 3))"),
        ([], "empty"),
        (np.zeros((2, 2), dtype=complex), "type complex128"),
        (np.zeros((2, 2), dtype=object), "type object"),
        (np.array([["a", "b"]]), "type <U1"),
        (np.zeros((2, 2), dtype="M8[s]"), "type datetime64"),
        (torch.zeros((2, 2), dtype=torch.complex64), "features are complex64"),
        (torch.zeros((2, 2)).to(torch.float8_e4m3fn), "type float8"),
        (torch.eye(2).to_sparse(), "sparse or nested tensor"),
        ([[1, 2], [3]], "rows of different lengths"),
        (pd.DataFrame({"a": [1.0], "city": ["Rome"]}), "column 'city'"),
        (pd.DataFrame({"a": [1.0], "z": [1j]}), "column 'z'"),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "1 row with NaN or infinite values (row 1)"),
        (np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]]), "(row 1)"),
    ],
)
def test_features_refused(features, words):
    message = refusal(check_features, features)
    assert message.startswith("features ")
    assert words in message


def test_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    assert "toarray" in refusal(check_features, sparse.eye(3))


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_not_finite_are_named(convert, dtype, small_pieces):
    x = np.zeros((20, 2), dtype=dtype)
    x[[1, 4, 19], [0, 1, 0]] = np.nan, np.inf, -np.inf
    message = refusal(check_features, convert(x))
    assert "3 rows with NaN or infinite values (rows 1, 4, 19): drop them or fill them in" in message
    x[:, 0] = np.nan
    assert "20 rows with NaN or infinite values (first: 0, 1, 2, 3, 4)" in refusal(check_features, convert(x))


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_rows_without_direction(convert, small_pieces):
    x = np.ones((9, 2))
    x[0, 0] = 0.0
    check_directions(convert(x))
    check_directions(convert(x.astype(np.int64)))
    x[[2, 7]] = 0.0
    message = refusal(check_directions, convert(x))
    assert "2 rows of zeros only (rows 2, 7), which have no direction for metric 'cosine': drop them" in message
    assert "metric 'euclidean'" in message


# ---------------------------------------------------------------------------------------------- precomputed


def some_distances(n=8, dtype=np.float64):
    points = np.random.default_rng(0).normal(size=(n, 2))
    return np.linalg.norm(points[:, None] - points[None], axis=2).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_distances_pass_as_they_are(dtype, small_pieces):
    matrix = some_distances(dtype=dtype)
    assert check_precomputed(matrix) is matrix
    tensor = torch.from_numpy(matrix)
    assert check_precomputed(tensor).data_ptr() == tensor.data_ptr()


def test_more_good_matrices(small_pieces):
    assert check_precomputed([[0]]).shape == (1, 1)
    assert check_precomputed(np.zeros((5, 5), dtype=np.uint8)).dtype == np.uint8
    assert check_precomputed(~np.eye(5, dtype=bool)).dtype == bool
    check_precomputed(torch.from_numpy(some_distances(dtype=np.float32)).bfloat16())
    slightly_off = some_distances()
    slightly_off[1, 6] *= 1 + 9e-7
    check_precomputed(slightly_off)


def test_a_memory_map_of_distances(tmp_path, small_pieces):
    np.save(tmp_path / "d.npy", some_distances())
    matrix = np.load(tmp_path / "d.npy", mmap_mode="r")
    assert check_precomputed(matrix) is matrix


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    ("cells", "value", "words"),
    [
        ([(1, 6), (6, 1)], -0.5, "negative at [1, 6] (-0.5)"),
        ([(6, 1)], -0.5, "negative at [6, 1] (-0.5)"),
        ([(1, 6), (6, 1)], np.nan, "2 rows with NaN or infinite values (rows 1, 6)"),
        ([(6, 1)], np.inf, "1 row with NaN or infinite values (row 6)"),
        ([(4, 4)], 0.25, "is 0.25 at [4, 4], but a point has distance 0 to itself"),
        ([(1, 6)], 9.0, "not symmetric: [1, 6] is 9 but [6, 1] is"),
        ([(6, 1), (1, 7), (3, 4)], 9.0, "not symmetric: [1, 6] is"),
        ([(7, 2), (5, 3)], 9.0, "not symmetric: [2, 7] is"),
    ],
)
def test_matrices_refused(convert, cells, value, words, small_pieces):
    matrix = some_distances()
    for cell in cells:
        matrix[cell] = value
    message = refusal(check_precomputed, convert(matrix))
    assert message.startswith("the precomputed matrix ")
    assert words in message


def test_unsigned_integers_do_not_wrap(small_pieces):
    matrix = np.zeros((4, 4), dtype=np.uint8)
    matrix[0, 3] = 1
    assert "[0, 3] is 1 but [3, 0] is 0" in refusal(check_precomputed, matrix)


def test_a_matrix_must_be_square():
    assert "shape (3, 4), but it must be square" in refusal(check_precomputed, np.zeros((3, 4)))
    assert "2-D" in refusal(check_precomputed, np.zeros(4))
    assert "empty" in refusal(check_precomputed, np.zeros((0, 0)))
    assert "type <U1" in refusal(check_precomputed, np.array([["a"]]))


def test_nothing_heavy_is_imported():
    code = (
        "import sys, numpy; from crust.selection import input_checks\n"
        "input_checks.check_options(device='cpu'); input_checks.check_features([[1.0]])\n"
        "input_checks.check_groups(['a'], 1)\n"
        "assert not {'torch', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
