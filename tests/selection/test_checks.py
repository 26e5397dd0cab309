import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crust.errors import InputError
from crust.selection import checks
from crust.selection.checks import check_directions, check_features, check_precomputed, is_tensor
from crust.selection.group_names import check_groups
from crust.selection.options import ALGORITHMS, METRICS, Options, check_device, check_options, parse_bytes


def refusal(check, *args, **kwargs):
    """The message of the refusal: one sentence, one line."""
    with pytest.raises(InputError) as caught:
        check(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    return message


@pytest.fixture
def small_pieces(monkeypatch):
    """Three rows of two float64 a piece, tiles of three by three."""
    monkeypatch.setattr(checks, "PIECE_BYTES", 48)
    monkeypatch.setattr(checks, "TILE", 3)


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
    monkeypatch.setattr(checks, "PIECE_BYTES", 1024)
    monkeypatch.setattr(checks.np, "isfinite", lambda piece: (sizes.append(piece.nbytes), finite(piece))[1])
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
        (3.0, "shape ()"),
        (np.zeros((0, 3)), "empty (shape (0, 3))"),
        (np.zeros((3, 0)), "empty (shape (3, 0))"),
        (torch.zeros((0, 3)), "empty (shape (0, 3))"),
        ([], "empty"),
        (np.zeros((2, 2), dtype=complex), "type complex128"),
        (np.zeros((2, 2), dtype=object), "type object"),
        (np.array([["a", "b"]]), "type <U1"),
        (np.zeros((2, 2), dtype="M8[s]"), "type datetime64"),
        (torch.zeros((2, 2), dtype=torch.complex64), "type torch.complex64"),
        (torch.zeros((2, 2)).to(torch.float8_e4m3fn), "type torch.float8"),
        (torch.eye(2).to_sparse(), "sparse tensor"),
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


# ---------------------------------------------------------------------------------------------- groups


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
    assert message.startswith("groups ")
    assert words in message


def test_first_five_rows_without_a_name():
    message = refusal(check_groups, [None] * 9, 9)
    assert "9 rows without a name (first: 0, 1, 2, 3, 4)" in message


# ---------------------------------------------------------------------------------------------- options


def test_options_in_one_form():
    options = check_options(
        algorithm="lazy",
        metric="cosine",
        device=torch.device("cpu"),
        threads=np.int64(2),
        memory_limit="1 GB",
        epsilon=np.float32(0.5),
        seed=np.uint8(7),
    )
    assert options == Options("lazy", "cosine", "cpu", 2, 10**9, 0.5, 7)
    assert type(options.threads) is int
    assert type(options.seed) is int


def test_options_left_open():
    options = check_options()
    assert (options.device, options.threads, options.memory_limit) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "gredy"}, "unknown algorithm 'gredy'"),
        ({"algorithm": "gredy"}, "did you mean 'greedy'"),
        ({"algorithm": "gredy"}, ", ".join(ALGORITHMS)),
        ({"metric": "manhattan"}, ", ".join(METRICS)),
        ({"metric": None}, "unknown metric None"),
        ({"threads": 0}, "threads is 0, but it must be a whole number of at least 1"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"memory_limit": 0}, "memory_limit is 0"),
        ({"memory_limit": -5}, "memory_limit is -5"),
        ({"memory_limit": "much"}, "memory_limit is 'much', but it must be a number of bytes above 0"),
        ({"epsilon": 0}, "epsilon is 0, but it must be a number above 0 and below 1"),
        ({"epsilon": 1}, "epsilon is 1"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": "small"}, "epsilon is 'small'"),
        ({"seed": -1}, "seed is -1, but it must be a whole number of at least 0"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": None}, "seed is None"),
        ({"device": "gpu"}, "device 'gpu' is not there: use 'cpu'"),
        ({"device": "meta"}, "device 'meta' is not there"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not there"),
        ({"device": torch.device("cuda", 99)}, "device 'cuda:99' is not there"),
        ({"device": 3.5}, "device 3.5 is not there"),
    ],
)
def test_options_refused(options, words):
    assert words in refusal(check_options, **options)


def test_devices():
    assert check_device(None) is None
    assert check_device("cpu") == "cpu"
    assert check_device("cpu:0") == "cpu:0"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, 1),
        (np.int64(5), 5),
        (2e9, 2 * 10**9),
        ("123", 123),
        ("123 B", 123),
        ("2k", 2000),
        ("2 kB", 2000),
        ("2KiB", 2048),
        ("1.1 GB", 1_100_000_000),
        ("1.5 GiB", 3 * 2**29),
        ("512MiB", 2**29),
        (".5 tib", 2**39),
        (" 3 M ", 3 * 10**6),
    ],
)
def test_parse_bytes(size, expected):
    count = parse_bytes(size)
    assert count == expected
    assert type(count) is int


@pytest.mark.parametrize(
    "size", ["", "GB", "-1 GB", "1 PB", "1e9", "0.1", "1 G B", "٣", 0, -1, float("nan"), float("inf"), True, None]
)
def test_parse_bytes_refuses(size):
    assert "such as '2 GiB'" in refusal(parse_bytes, size)


def test_nothing_heavy_is_imported():
    code = (
        "import sys, numpy; from crust.selection import checks, group_names, options\n"
        "options.check_options(device='cpu'); checks.check_features([[1.0]]); group_names.check_groups(['a'], 1)\n"
        "assert not {'torch', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
