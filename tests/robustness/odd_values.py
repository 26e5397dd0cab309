"""Labels and numbers as nobody should give them, and some that only look odd. Each is made when it is asked for."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import mmap
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N) % 2
NAMES = np.array(["cat", "dog"])[Y]


def with_one(value: Any, row: int = 7) -> np.ndarray:
    found = Y.astype(object)
    found[row] = value
    return found


def cell(value: Any, kind: type = np.float32) -> np.ndarray:
    found = X.astype(kind)
    found[7, 1] = value
    return found


def on_disk(values: np.ndarray) -> np.memmap:
    path = Path(tempfile.mkdtemp()) / "values.npy"
    np.save(path, values)
    return np.load(path, mmap_mode="r")


def read_only(values: np.ndarray) -> np.ndarray:
    found = values.copy()
    found.flags.writeable = False
    return found


def quantized(*shape: int) -> torch.Tensor:
    return quietly(lambda: torch.quantize_per_tensor(torch.zeros(shape), 1.0, 0, torch.quint8))


def nested(*sizes: int) -> torch.Tensor:
    return quietly(lambda: torch.nested.nested_tensor([torch.zeros(size) for size in sizes]))


def quietly(make: Any) -> Any:
    """Without what torch says of its own prototypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


class Broken:
    """A sequence that breaks when it is read."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, row: int) -> Any:
        raise RuntimeError("the disk is gone")


class Lies(list):
    """Says that it is longer than it is."""

    def __len__(self) -> int:
        return N + 3


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


DONE, REFUSED = True, False

# What it is: (a function that makes it, whether it is right).
LABELS: dict[str, tuple[Any, bool]] = {
    "tuple": (lambda: tuple(Y.tolist()), DONE),
    "list of names": (lambda: NAMES.tolist(), DONE),
    "bytes": (lambda: NAMES.astype("S"), DONE),
    "list of bytes": (lambda: [name.encode() for name in NAMES], DONE),
    "booleans": (lambda: Y.astype(bool), DONE),
    "uint8": (lambda: Y.astype(np.uint8), DONE),
    "big endian": (lambda: Y.astype(">i4"), DONE),
    "whole floats": (lambda: Y.astype(np.float32), DONE),
    "half floats": (lambda: Y.astype(np.float16), DONE),
    "longdouble": (lambda: Y.astype(np.longdouble), DONE),
    "negative strides": (lambda: Y[::-1], DONE),
    "read-only": (lambda: read_only(Y), DONE),
    "memory map": (lambda: on_disk(Y), DONE),
    "fortran column": (lambda: np.asfortranarray(Y[:, None])[:, 0], DONE),
    "series": (lambda: pd.Series(Y, index=np.arange(N) + 100), DONE),
    "categorical": (lambda: pd.Series(pd.Categorical(NAMES)), DONE),
    "pandas string": (lambda: pd.Series(NAMES, dtype="string"), DONE),
    "pandas Int64": (lambda: pd.Series(Y, dtype="Int64"), DONE),
    "arrow strings": (lambda: pd.Series(NAMES, dtype="string[pyarrow]"), DONE),
    "tensor": (lambda: torch.from_numpy(Y), DONE),
    "tensor with grad": (lambda: torch.tensor(Y, dtype=torch.float32, requires_grad=True), DONE),
    "bfloat16": (lambda: torch.tensor(Y, dtype=torch.bfloat16), DONE),
    "list of tensors": (lambda: [torch.tensor(y) for y in Y], DONE),
    "array.array": (lambda: array.array("i", Y.tolist()), DONE),
    "range": (lambda: range(N), DONE),  # as many classes as examples
    "deque": (lambda: collections.deque(Y.tolist()), DONE),
    "unmasked masked array": (lambda: np.ma.array(Y), DONE),
    "emoji": (lambda: np.array(["🐈", "🐕‍🦺"])[Y], DONE),
    "combining characters": (lambda: np.array(["e\u0301", "\u00e9"])[Y], DONE),
    "right to left": (lambda: np.array(["\u202eabc", "abc"])[Y], DONE),
    "names of a thousand characters": (lambda: np.array(["a" * 1000, "b" * 1000])[Y], DONE),
    "line breaks": (lambda: np.array(["a\nb", "a\rb"])[Y], DONE),
    "nul inside": (lambda: ["a\0b" if y else "c" for y in Y], DONE),
    "none at all": (lambda: np.zeros(0, int), REFUSED),
    "empty list": (list, REFUSED),
    "scalar": (lambda: 3, REFUSED),
    "numpy scalar": (lambda: np.int64(3), REFUSED),
    "zero dimensions": (lambda: np.array(3), REFUSED),
    "scalar tensor": (lambda: torch.tensor(3), REFUSED),
    "text": (lambda: "cat", REFUSED),
    "text as long as the data": (lambda: "ab" * (N // 2), REFUSED),
    "bytes as long as the data": (lambda: b"ab" * (N // 2), REFUSED),
    "bytearray": (lambda: bytearray(b"ab" * (N // 2)), REFUSED),
    "dict": (lambda: dict(enumerate(Y.tolist())), REFUSED),
    "set": (lambda: set(Y.tolist()), REFUSED),
    "generator": (lambda: (y for y in Y), REFUSED),
    "iterator": (lambda: iter(Y.tolist()), REFUSED),
    "function": (lambda: len, REFUSED),
    "object": (lambda: object(), REFUSED),
    "class": (lambda: int, REFUSED),
    "data frame": (lambda: pd.DataFrame({"a": Y, "b": Y}), REFUSED),
    "too few": (lambda: Y[:-1], REFUSED),
    "too many": (lambda: np.append(Y, 1), REFUSED),
    "two columns": (lambda: np.stack([Y, Y], 1), REFUSED),
    "one-hot": (lambda: np.eye(2)[Y], REFUSED),
    "three dimensions": (lambda: Y.reshape(-1, 2, 2), REFUSED),
    "ragged": (lambda: [[1], [1, 2]] * (N // 2), REFUSED),
    "lists in an object array": (lambda: with_one([1, 2]), REFUSED),
    "a dict among them": (lambda: with_one({}), REFUSED),
    "a set among them": (lambda: with_one({1}), REFUSED),
    "an array among them": (lambda: with_one(np.arange(2)), REFUSED),
    "a function among them": (lambda: with_one(len), REFUSED),
    "a Path among them": (lambda: with_one(Path("a")), REFUSED),
    "itself among them": (circle, REFUSED),
    "half": (lambda: np.where(np.arange(N) == 7, 0.5, Y), REFUSED),
    "NaN": (lambda: np.where(np.arange(N) == 7, np.nan, Y), REFUSED),
    "infinite": (lambda: np.where(np.arange(N) == 7, -np.inf, Y), REFUSED),
    "1e300": (lambda: np.where(np.arange(N) == 7, 1e300, Y), REFUSED),
    "2^63 as float": (lambda: np.where(np.arange(N) == 7, 2.0**63, Y), REFUSED),
    "2^64 - 1": (lambda: np.where(np.arange(N) == 7, np.uint64(2**64 - 1), Y.astype(np.uint64)), REFUSED),
    "2^64 - 1 in a list": (lambda: [2**64 - 1 if i == 7 else int(y) for i, y in enumerate(Y)], REFUSED),
    "10^40": (lambda: with_one(10**40), REFUSED),
    "10^5000": (lambda: with_one(10**5000), REFUSED),
    "None": (lambda: with_one(None), REFUSED),
    "pandas NA": (lambda: pd.Series(Y, dtype="Int64").where(np.arange(N) != 7), REFUSED),
    "NaT": (lambda: with_one(pd.NaT), REFUSED),
    "missing category": (lambda: pd.Series(pd.Categorical(["cat", None] * (N // 2))), REFUSED),
    "mixed": (lambda: with_one("cat"), REFUSED),
    "empty text": (lambda: np.where(np.arange(N) == 7, "", NAMES), REFUSED),
    "blank text": (lambda: np.where(np.arange(N) == 7, " \t", NAMES), REFUSED),
    "Latin-1": (lambda: np.array([b"cat", b"caf\xe9"])[Y], REFUSED),
    "lone surrogate": (lambda: np.array(["cat", "\ud800"])[Y], REFUSED),
    "lone surrogate among objects": (lambda: np.array(["cat", "\udfff"], object)[Y], REFUSED),
    "masked": (lambda: np.ma.array(Y, mask=np.arange(N) == 7), REFUSED),
    "all masked": (lambda: np.ma.array(Y, mask=True), REFUSED),
    "masked text": (lambda: np.ma.array(NAMES, mask=np.arange(N) == 7), REFUSED),
    "complex": (lambda: Y.astype(complex), REFUSED),
    "complex tensor": (lambda: torch.from_numpy(Y).to(torch.complex64), REFUSED),
    "dates": (lambda: np.array(["2020-01-01", "2021-01-01"], "M8[D]")[Y], REFUSED),
    "durations": (lambda: Y.astype("m8[s]"), REFUSED),
    "datetime objects": (lambda: [datetime.date(2020, 1, 1 + int(y)) for y in Y], REFUSED),
    "decimals": (lambda: [decimal.Decimal(int(y)) for y in Y], REFUSED),
    "fractions": (lambda: [fractions.Fraction(int(y), 3) for y in Y], REFUSED),
    "structured": (lambda: np.zeros(N, [("a", int), ("b", int)]), REFUSED),
    "raw bytes": (lambda: np.zeros(N, "V3"), REFUSED),
    "sparse tensor": (lambda: torch.from_numpy(Y).to_sparse(), REFUSED),
    "meta tensor": (lambda: torch.empty(N, device="meta"), REFUSED),
    "quantized tensor": (lambda: quantized(N), REFUSED),
    "nested tensor": (lambda: nested(1, 2), REFUSED),
    "breaks when read": (Broken, REFUSED),
    "says another length": (lambda: Lies(Y.tolist()), REFUSED),
    "mmap": (lambda: mmap.mmap(-1, N), REFUSED),
}  # fmt: skip

NUMBERS: dict[str, tuple[Any, bool]] = {
    "lists": (lambda: X.tolist(), DONE),
    "tuple of tuples": (lambda: tuple(map(tuple, X.tolist())), DONE),
    "float64": (lambda: X.astype(np.float64), DONE),
    "float16": (lambda: X.astype(np.float16), DONE),
    "longdouble": (lambda: X.astype(np.longdouble), DONE),
    "int8": (lambda: (X * 9).astype(np.int8), DONE),
    "uint64": (lambda: np.abs(X * 9).astype(np.uint64), DONE),
    "booleans": (lambda: X > 0, DONE),
    "big endian": (lambda: X.astype(">f4"), DONE),
    "fortran": (lambda: np.asfortranarray(X), DONE),
    "negative strides": (lambda: X[::-1, ::-1], DONE),
    "every second row": (lambda: np.repeat(X, 2, axis=0)[::2], DONE),
    "broadcast": (lambda: np.broadcast_to(X[:, :1], (N, 3)), DONE),
    "read-only": (lambda: read_only(X), DONE),
    "memory map": (lambda: on_disk(X), DONE),
    "frame": (lambda: pd.DataFrame(X, columns=list("abc")), DONE),
    "frame of nullable columns": (lambda: pd.DataFrame(X).astype("Float64"), DONE),
    "frame of booleans and numbers": (lambda: pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0}), DONE),
    "tensor": (lambda: torch.from_numpy(X), DONE),
    "tensor with grad": (lambda: torch.from_numpy(X).requires_grad_(), DONE),
    "bfloat16": (lambda: torch.from_numpy(X).bfloat16(), DONE),
    "half tensor": (lambda: torch.from_numpy(X).half(), DONE),
    "transposed tensor": (lambda: torch.from_numpy(X.T.copy()).T, DONE),
    "unmasked masked array": (lambda: np.ma.array(X), DONE),
    "matrix": (lambda: np.asarray(X).view(np.matrix), DONE),
    "constant column": (lambda: np.c_[X, np.ones(N, np.float32)], DONE),
    "nothing but zeros": (lambda: np.zeros((N, 3)), DONE),
    "denormal": (lambda: X * 1e-40, DONE),
    "one column": (lambda: X[:, :1], DONE),
    "1e30": (lambda: cell(1e30), DONE),
    "no columns": (lambda: np.zeros((N, 0)), REFUSED),
    "no rows": (lambda: np.zeros((0, 3)), REFUSED),
    "empty list": (list, REFUSED),
    "one dimension": (lambda: X[:, 0], REFUSED),
    "zero dimensions": (lambda: np.array(1.0), REFUSED),
    "number": (lambda: 1.0, REFUSED),
    "text": (lambda: "1,2,3", REFUSED),
    "bytes": (lambda: b"123", REFUSED),
    "dict": (lambda: {"a": X[:, 0]}, REFUSED),
    "set": (lambda: {1, 2}, REFUSED),
    "generator": (lambda: (row for row in X), REFUSED),
    "function": (lambda: len, REFUSED),
    "object": (object, REFUSED),
    "ragged": (lambda: [[1, 2]] * (N - 1) + [[1]], REFUSED),
    "deeply ragged": (lambda: [[[1], 2]] * N, REFUSED),
    "itself": (circle, REFUSED),
    "five dimensions": (lambda: np.zeros((N, 1, 2, 1, 3)), REFUSED),
    "text numbers": (lambda: X.astype(str), REFUSED),
    "bytes numbers": (lambda: X.astype("S8"), REFUSED),
    "objects": (lambda: np.full((N, 3), None), REFUSED),
    "an object among numbers": (lambda: cell(None, object), REFUSED),
    "text among numbers": (lambda: cell("a", object), REFUSED),
    "a list among numbers": (lambda: [[1, [2], 3]] * N, REFUSED),
    "NaN": (lambda: cell(np.nan), REFUSED),
    "infinite": (lambda: cell(-np.inf), REFUSED),
    "all NaN": (lambda: np.full((N, 3), np.nan), REFUSED),
    "NaN in half": (lambda: cell(np.nan, np.float16), REFUSED),
    "masked": (lambda: np.ma.array(X, mask=X[7, 1] == X), REFUSED),
    "complex": (lambda: X.astype(complex), REFUSED),
    "complex tensor": (lambda: torch.from_numpy(X).to(torch.complex64), REFUSED),
    "dates": (lambda: X.astype("M8[s]"), REFUSED),
    "durations": (lambda: X.astype("m8[s]"), REFUSED),
    "structured": (lambda: np.zeros((N, 3), [("a", float)]), REFUSED),
    "raw bytes": (lambda: np.zeros((N, 3), "V3"), REFUSED),
    "sparse tensor": (lambda: torch.from_numpy(X).to_sparse(), REFUSED),
    "meta tensor": (lambda: torch.empty(N, 3, device="meta"), REFUSED),
    "quantized tensor": (lambda: quantized(N, 3), REFUSED),
    "nested tensor": (lambda: nested(3, 2), REFUSED),
    "NaN in a tensor": (lambda: torch.from_numpy(cell(np.nan)), REFUSED),
    "infinite half tensor": (lambda: torch.from_numpy(cell(np.inf)).half(), REFUSED),
    "scipy csr": (lambda: __import__("scipy.sparse").sparse.csr_matrix(X), REFUSED),
    "scipy coo array": (lambda: __import__("scipy.sparse").sparse.coo_array(X), REFUSED),
    "frame with text": (lambda: pd.DataFrame({"a": X[:, 0], "b": NAMES}), REFUSED),
    "frame with a gap": (lambda: pd.DataFrame(cell(np.nan)), REFUSED),
    "frame with dates": (lambda: pd.DataFrame({"a": X[:, 0], "b": pd.Timestamp("2020")}), REFUSED),
    "frame without rows": (lambda: pd.DataFrame({"a": []}), REFUSED),
    "series": (lambda: pd.Series(X[:, 0]), REFUSED),
    "decimals": (lambda: [[decimal.Decimal("NaN")] * 3] * N, REFUSED),
    "breaks when read": (Broken, REFUSED),
}  # fmt: skip
