"""Pickles of plain arrays are read; anything that would run is refused."""

import array
import collections
import pickle

import numpy as np
import pytest
from tests.refusals import refused

from crust.data.safe_pickle import read_pickle
from crust.errors import InputError


class Explosive:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


# What Python 2 and numpy 1 wrote: protocol 2, byte strings, numpy.core.
PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05"
    b"U\x01bq\x06\x87q\x07Rq\x08(K\x01K\x02K\x02\x86q\tcnumpy\ndtype\nq\nU\x02u1q\x0bK\x00K\x01\x87q\x0cRq\r"
    b"(K\x03U\x01|q\x0eNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x04\x01\x02\x03\xfftbU\x06labelsq\x0f"
    b"]q\x10(K\x06K\x09eu."
)


def written(tmp_path, content, protocol=pickle.HIGHEST_PROTOCOL):
    path = tmp_path / "batch"
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
    return path


def test_what_python_2_wrote(tmp_path):
    found = read_pickle(written(tmp_path, PYTHON_2))
    np.testing.assert_array_equal(found[b"data"], np.array([[1, 2], [3, 255]], np.uint8))
    assert found[b"data"].dtype == np.uint8
    assert found[b"labels"] == [6, 9]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["u1", "i8", ">i4", "f4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_protocol(tmp_path, protocol, dtype, order):
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
    content = {b"data": values, "labels": [1, np.int64(2)], "names": [b"a", "b"], "empty": values[:0]}
    found = read_pickle(written(tmp_path, content, protocol))
    np.testing.assert_array_equal(found[b"data"], values)
    assert found[b"data"].dtype == values.dtype
    assert found["labels"] == [1, 2]
    assert found["names"] == [b"a", "b"]
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize(
    "content",
    [
        {"data": Explosive()},
        b"cos\nsystem\n(S'echo'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        collections.OrderedDict(a=1),
        np.array([Explosive()], dtype=object),
        np.array([("a", 1)], dtype=[("x", "U1"), ("y", "i4")]),
        array.array("b", [1]),
        {1, 2, complex(1, 1)},
    ],
)
def test_anything_else_is_refused_and_nothing_runs(tmp_path, content):
    with pytest.raises(InputError) as caught:
        read_pickle(written(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_the_sentence_names_the_file_and_what_it_asks_for(tmp_path):
    with refused("pickled-objects"):
        read_pickle(written(tmp_path, b"cos\nsystem\n(S'echo'\ntR."))


@pytest.mark.parametrize("size", [0, 1, 10, 60, len(PYTHON_2) - 1])
def test_truncated_files(tmp_path, size):
    with refused("bad-file"):
        read_pickle(written(tmp_path, PYTHON_2[:size]))
    with refused("cannot-read"):
        read_pickle(tmp_path)
