"""Files of every format that crust reads, as nobody should give them, and some that only look odd.

Each is made by a function of the path that it shall have; beside it stands whether it is right as training data.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.robustness.odd_values import DONE, NAMES, REFUSED, N, X, Y

Maker = Callable[[Path], object]


class Gun:
    """Would leave a file behind if it were unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


def text(content: str | bytes) -> Maker:
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    return lambda path: path.write_bytes(raw)


def rows(
    label: Callable[[int], str] = lambda i: NAMES[i],
    a: Callable[[int], str] = lambda i: f"{X[i, 0]:.3f}",
    head: str = "a,b,label",
    sep: str = ",",
    n: int = N,
    end: str = "\n",
) -> str:
    lines = [head.replace(",", sep)] if head else []
    return end.join([*lines, *(sep.join([a(i), f"{X[i, 1]:.3f}", label(i)]) for i in range(n))]) + end


def odd(value: str, row: int = 7) -> Callable[[int], str]:
    return lambda i: value if i == row else NAMES[i]


def odd_number(value: str) -> Callable[[int], str]:
    return lambda i: value if i == 7 else f"{X[i, 0]:.3f}"


CSV: dict[str, tuple[Maker, bool]] = {
    "right": (text(rows()), DONE),
    "semicolons": (text(rows(sep=";")), DONE),
    "tabs": (text(rows(sep="\t")), DONE),
    "byte order mark": (text("\ufeff" + rows()), DONE),
    "CRLF": (text(rows(end="\r\n")), DONE),
    "quoted": (text(rows(label=lambda i: f'"{NAMES[i]}"')), DONE),
    "a line break in quotes": (text(rows(label=lambda i: f'"{NAMES[i]}\nx"')), DONE),
    "no newline at the end": (text(rows().rstrip()), DONE),
    "emoji": (text(rows(label=lambda i: "🐈" if Y[i] else "🐕")), DONE),
    "numbers as labels": (text(rows(label=lambda i: str(Y[i]))), DONE),
    "booleans as labels": (text(rows(label=lambda i: str(bool(Y[i])).lower())), DONE),
    "whole floats as labels": (text(rows(label=lambda i: f"{Y[i]}.0")), DONE),
    "formulas": (text(rows(label=lambda i: "=1+1" if Y[i] else '@SUM("a")'.replace('"', '""').join('""'))), DONE),
    "a gap in a number": (text(rows(a=odd_number(""))), DONE),
    "01 and 1": (text(rows(label=lambda i: "01" if i % 4 == 0 else "1" if Y[i] else "0")), REFUSED),
    "a header with blanks": (text(rows(head=" a , b ,label")), DONE),
    "a column of one value": (text(rows(a=lambda i: "3")), DONE),
    "1e300": (text(rows(a=odd_number("1e300"))), REFUSED),
    "empty": (text(""), REFUSED),
    "one newline": (text("\n"), REFUSED),
    "blank lines": (text("\n" * 50), REFUSED),
    "header only": (text("a,b,label\n"), REFUSED),
    "one row": (text(rows(n=1)), REFUSED),
    "one class": (text(rows(label=lambda i: "cat")), REFUSED),
    "as many classes as rows": (text(rows(label=lambda i: f"name {i}")), DONE),
    "no label column": (text(rows(head="a,b,kind")), REFUSED),
    "no header": (text(rows(head="")), REFUSED),
    "columns twice": (text(rows(head="a,a,label")), REFUSED),
    "label twice": (text(rows(head="a,label,label")), REFUSED),
    "labels alone": (text("label\n" + "cat\ndog\n" * 20), REFUSED),
    "an empty label": (text(rows(label=odd(""))), REFUSED),
    "a blank label": (text(rows(label=odd("  "))), REFUSED),
    "mixed labels": (text(rows(label=lambda i: "cat" if i == 7 else f"{Y[i]}")), DONE),
    "half a label": (text(rows(label=lambda i: "0.5" if i == 7 else f"{Y[i]}")), REFUSED),
    "huge label": (text(rows(label=lambda i: "1e300" if i == 7 else f"{Y[i]}")), REFUSED),
    "2^64 as label": (text(rows(label=lambda i: str(2**64) if i == 7 else f"{Y[i]}")), REFUSED),
    "labels that are fractions": (text(rows(label=lambda i: f"{X[i, 2]}")), REFUSED),
    "Latin-1": (text(rows().encode().replace(b"cat", b"caf\xe9")), REFUSED),
    "UTF-16": (text(rows().encode("utf-16")), REFUSED),
    "nul bytes": (text(rows().replace("cat", "c\0t")), DONE),
    "binary": (text(bytes(range(256)) * 20), REFUSED),
    "ragged": (text(rows() + "1,2\n"), REFUSED),
    "too long a row": (text(rows() + "1,2,cat,4,5\n"), REFUSED),
    "an open quote": (text(rows(label=odd('"cat'))), REFUSED),
    "a quote inside": (text(rows(label=odd('c"at'))), DONE),
    "decimal commas": (text(rows(sep=";", a=lambda i: f"{X[i, 0]:.3f}".replace(".", ","))), REFUSED),
    "a text among numbers": (text(rows(a=odd_number("unknown"))), REFUSED),
    "NaN": (text(rows(a=odd_number("nan"))), DONE),
    "infinite": (text(rows(a=odd_number("inf"))), REFUSED),
    "thousands": (text(rows(a=lambda i: f'"1,{i:03}"')), REFUSED),
    "JSON": (text(json.dumps([{"a": 1, "label": "cat"}] * 9)), REFUSED),
    "HTML": (text("<html><body><table><tr><td>1</td></tr></table></body></html>\n"), REFUSED),
    "a zip": (lambda path: zipfile.ZipFile(path, "w").close(), REFUSED),
    "a column name of 5,000 characters": (text(rows(head=f"{'a' * 5000},b,label")), DONE),
    "a cell of a million characters": (text(rows(label=odd("x" * 1_000_000))), DONE),
    "names with escapes": (text(rows(label=lambda i: "\x1b[31mcat" if Y[i] else "dog")), DONE),
    "a label column of surrogates": (text(rows().encode().replace(b"cat", b"\xed\xa0\x80")), REFUSED),
    "500 columns": (
        text(
            ",".join([*(f"c{i}" for i in range(500)), "label"])
            + "\n"
            + "\n".join(",".join(["1"] * 500 + [NAMES[i]]) for i in range(N))
            + "\n"
        ),
        DONE,
    ),
}


def table(**columns: Any) -> Maker:
    return lambda path: pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], **columns}), path)


def arrow(name: str, values: list[Any], kind: Any = None) -> Maker:
    return lambda path: pq.write_table(
        pa.table({"a": X[:, 0], "label": NAMES.tolist(), name: pa.array(values, kind)}), path
    )


def cut(make: Maker, keep: Callable[[bytes], bytes]) -> Maker:
    def made(path: Path) -> None:
        make(path)
        path.write_bytes(keep(path.read_bytes()))

    return made


def flipped(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes(b ^ 255 for b in raw[middle : middle + 40]) + raw[middle + 40 :]


def half(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


right_parquet = table(label=NAMES.tolist())
PARQUET: dict[str, tuple[Maker, bool]] = {
    "right": (right_parquet, DONE),
    "dictionary": (arrow("label", pa.array(NAMES.tolist()).dictionary_encode().to_pylist(), None), DONE),
    "integers": (table(label=Y), DONE),
    "booleans": (table(label=Y.astype(bool)), DONE),
    "large strings": (arrow("label", NAMES.tolist(), pa.large_string()), DONE),
    "decimals": (arrow("c", [1] * N, pa.decimal128(5, 2)), DONE),
    "dates as a column": (arrow("c", [0] * N, pa.date32()), DONE),
    "half floats": (arrow("c", np.ones(N, np.float16), pa.float16()), DONE),
    "nulls in a column": (arrow("c", [None, 1.0] * (N // 2)), DONE),
    "a null column": (arrow("c", [None] * N), DONE),
    "cut": (cut(right_parquet, half), REFUSED),
    "flipped": (cut(right_parquet, flipped), REFUSED),
    "without its end": (cut(right_parquet, lambda raw: raw[:-4]), REFUSED),
    "empty": (text(b""), REFUSED),
    "a CSV": (text(rows()), REFUSED),
    "magic only": (text(b"PAR1PAR1"), REFUSED),
    "no rows": (
        lambda path: pq.write_table(
            pa.table({"a": pa.array([], pa.float64()), "label": pa.array([], pa.string())}), path
        ),
        REFUSED,
    ),
    "no columns": (lambda path: pq.write_table(pa.table({}), path), REFUSED),
    "null labels": (arrow("label", [None] * N), REFUSED),
    "a null label": (arrow("label", [None, *NAMES.tolist()[1:]]), REFUSED),
    "binary labels": (arrow("label", [b"\xff\xfe", b"b"] * (N // 2)), REFUSED),
    "list labels": (arrow("label", [[1], [2]] * (N // 2)), REFUSED),
    "struct labels": (arrow("label", [{"a": 1}, {"a": 2}] * (N // 2)), REFUSED),
    "date labels": (arrow("label", [0, 1] * (N // 2), pa.date32()), DONE),
    "float labels": (table(label=X[:, 2]), REFUSED),
    "NaN labels": (table(label=np.where(Y, np.nan, 0)), REFUSED),
    "binary column": (arrow("c", [b"\xff"] * N), REFUSED),
    "list column": (arrow("c", [[1.0, 2.0]] * N), DONE),
    "struct column": (arrow("c", [{"x": 1.0}] * N), REFUSED),
    "map column": (arrow("c", [[("x", 1)]] * N, pa.map_(pa.string(), pa.int64())), REFUSED),
    "duration column": (arrow("c", [1] * N, pa.duration("s")), DONE),
    "infinite": (arrow("c", [float("inf")] * N), REFUSED),
    "1e300": (arrow("c", [1e300, 0.0] * (N // 2)), REFUSED),
    "2^64 - 1 labels": (arrow("label", [2**64 - 1, 0] * (N // 2), pa.uint64()), REFUSED),
}


def npz(**arrays: Any) -> Maker:
    return lambda path: np.savez(path, **arrays)


def objects(path: Path) -> None:
    np.savez(path, x=X, y=np.array([Gun()] * N, dtype=object))


def member(name: str, raw: bytes, **others: Any) -> Maker:
    def made(path: Path) -> None:
        np.savez(path, **others)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, raw)

    return made


def npy_bytes(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def header(text: str, body: bytes = b"", version: int = 1) -> bytes:
    raw = text.encode("latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(raw))
    return b"\x93NUMPY" + bytes([version, 0]) + size + raw + body


right_npz = npz(x=X, y=Y)
NPZ: dict[str, tuple[Maker, bool]] = {
    "right": (right_npz, DONE),
    "names": (npz(x=X, y=NAMES), DONE),
    "train and test": (npz(x_train=X, y_train=Y, x_test=X, y_test=Y), DONE),
    "capitals": (npz(X=X, Y=Y), DONE),
    "compressed": (lambda path: np.savez_compressed(path, x=X, y=Y), DONE),
    "images": (npz(x=np.zeros((N, 8, 8), np.uint8), y=Y), DONE),
    "tiny images": (npz(x=np.zeros((N, 6, 6), np.uint8), y=Y), REFUSED),
    "float64": (npz(x=X.astype(float), y=Y.astype(float)), DONE),
    "big endian": (npz(x=X.astype(">f8"), y=Y.astype(">i2")), DONE),
    "fortran": (npz(x=np.asfortranarray(X), y=Y), DONE),
    "labels as a column": (npz(x=X, y=Y[:, None]), DONE),
    "bytes as labels": (npz(x=X, y=NAMES.astype("S")), DONE),
    "empty": (text(b""), REFUSED),
    "cut": (cut(right_npz, half), REFUSED),
    "flipped": (cut(npz(x=np.zeros((N, 99)), y=Y), flipped), REFUSED),
    "a text": (text("x,y\n1,2\n"), REFUSED),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps(Gun())), REFUSED),
    "an npy": (lambda path: path.write_bytes(npy_bytes(X)), REFUSED),
    "an empty zip": (lambda path: zipfile.ZipFile(path, "w").close(), REFUSED),
    "other names": (npz(data=X, target=Y), REFUSED),
    "x only": (npz(x=X), REFUSED),
    "y only": (npz(y=Y), REFUSED),
    "pickled labels": (objects, REFUSED),
    "a member that is text": (member("y.npy", b"text", x=X), REFUSED),
    "a member that is cut": (member("y.npy", npy_bytes(Y)[:90], x=X), REFUSED),
    "a member with an evil header": (member("y.npy", header("__import__('os').mkdir('evil')\n"), x=X), REFUSED),
    "a member of a huge shape": (
        member("y.npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }\n"), x=X),
        REFUSED,
    ),
    "a member of negative shape": (
        member("y.npy", header("{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }\n"), x=X),
        REFUSED,
    ),
    "a member outside": (member("../y.npy", npy_bytes(Y), x=X), REFUSED),
    "other lengths": (npz(x=X, y=Y[:9]), REFUSED),
    "no rows": (npz(x=X[:0], y=Y[:0]), REFUSED),
    "one row": (npz(x=X[:1], y=Y[:1]), REFUSED),
    "one class": (npz(x=X, y=np.zeros(N, int)), REFUSED),
    "scalars": (npz(x=np.float64(3), y=np.int64(3)), REFUSED),
    "NaN": (npz(x=np.full((N, 3), np.nan), y=Y), REFUSED),
    "1e300": (npz(x=X.astype(float) * 1e300, y=Y), REFUSED),
    "complex": (npz(x=X.astype(complex), y=Y), REFUSED),
    "text": (npz(x=X.astype(str), y=Y), REFUSED),
    "dates": (npz(x=X.astype("M8[s]"), y=Y), REFUSED),
    "structured": (npz(x=np.zeros((N, 3), [("a", float)]), y=Y), REFUSED),
    "five dimensions": (npz(x=np.zeros((N, 1, 2, 3, 4)), y=Y), REFUSED),
    "seven channels": (npz(x=np.zeros((N, 5, 5, 7), np.uint8), y=Y), REFUSED),
    "one-hot labels": (npz(x=X, y=np.eye(2)[Y]), DONE),
    "huge labels": (npz(x=X, y=np.where(Y, 1e300, 0)), REFUSED),
    "2^64 - 1": (npz(x=X, y=np.where(Y, np.uint64(2**64 - 1), np.uint64(0))), REFUSED),
    "Latin-1 labels": (npz(x=X, y=np.array([b"cat", b"caf\xe9"])[Y]), REFUSED),
    "surrogates": (npz(x=X, y=np.array(["cat", "\ud800"])[Y]), REFUSED),
    "complex labels": (npz(x=X, y=Y.astype(complex)), REFUSED),
    "date labels": (npz(x=X, y=Y.astype("M8[D]")), REFUSED),
    "test of another width": (npz(x_train=X, y_train=Y, x_test=X[:, :2], y_test=Y), REFUSED),
    "test of other classes": (npz(x_train=X, y_train=Y, x_test=X, y_test=Y + 5), REFUSED),
}


def safetensors(**arrays: Any) -> Maker:
    from safetensors.numpy import save_file

    return lambda path: save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, path)


def st_header(entry: Any, body: bytes = b"") -> Maker:
    raw = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
    return text(struct.pack("<Q", len(raw)) + raw + body)


# Vectors to select from, with the names that their files have.
VECTORS: dict[str, tuple[Maker, bool]] = {
    "right.npy": (lambda path: np.save(path, X), DONE),
    "int8.npy": (lambda path: np.save(path, (X * 9).astype(np.int8)), DONE),
    "big-endian.npy": (lambda path: np.save(path, X.astype(">f8")), DONE),
    "fortran.npy": (lambda path: np.save(path, np.asfortranarray(X)), DONE),
    "version2.npy": (
        text(header("{'descr': '<f4', 'fortran_order': False, 'shape': (40, 3), }\n", X.tobytes(), 2)),
        DONE,
    ),
    "one.npz": (npz(x=X), DONE),
    "right.csv": (text("a,b\n" + "1,2\n3,4\n5,6\n7,8\n9,1\n"), DONE),
    "right.safetensors": (safetensors(x=X), DONE),
    "right.parquet": (lambda path: pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path), DONE),
    "lists.parquet": (lambda path: pq.write_table(pa.table({"a": X.tolist()}), path), DONE),
    "objects.npy": (lambda path: np.save(path, np.array([[Gun()]], dtype=object), allow_pickle=True), REFUSED),
    "pickle.npy": (lambda path: path.write_bytes(pickle.dumps(Gun())), REFUSED),
    "cut.npy": (cut(lambda path: np.save(path, X), half), REFUSED),
    "magic.npy": (text(b"\x93NUMPY"), REFUSED),
    "text.npy": (text("1,2,3"), REFUSED),
    "version9.npy": (text(b"\x93NUMPY\x09\x00" + b"\0" * 99), REFUSED),
    "evil.npy": (text(header("__import__('os').mkdir('evil')\n")), REFUSED),
    "overflow.npy": (
        text(header("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n")),
        REFUSED,
    ),
    "longer.npy": (text(header("{'descr': '<f8', 'fortran_order': False, 'shape': (999, 4), }\n", b"\0" * 9)), REFUSED),
    "negative.npy": (
        text(header("{'descr': '<f8', 'fortran_order': False, 'shape': (-9, 4), }\n", b"\0" * 99)),
        REFUSED,
    ),
    "flat.npy": (lambda path: np.save(path, X[:, 0]), REFUSED),
    "three.npy": (lambda path: np.save(path, X[None]), REFUSED),
    "scalar.npy": (lambda path: np.save(path, 3.0), REFUSED),
    "empty.npy": (lambda path: np.save(path, X[:0]), REFUSED),
    "nan.npy": (lambda path: np.save(path, np.where(X > 1, np.nan, X)), REFUSED),
    "complex.npy": (lambda path: np.save(path, X.astype(complex)), REFUSED),
    "words.npy": (lambda path: np.save(path, X.astype(str)), REFUSED),
    "dates.npy": (lambda path: np.save(path, X.astype("M8[s]")), REFUSED),
    "longdouble.npy": (lambda path: np.save(path, X.astype(np.longdouble)), REFUSED),
    "structured.npy": (lambda path: np.save(path, np.zeros((9, 3), [("a", float)])), REFUSED),
    "none.npy": (text(b""), REFUSED),
    "several.npz": (npz(a=X, b=X), REFUSED),
    "cut.safetensors": (cut(safetensors(x=X), half), REFUSED),
    "none.safetensors": (text(b""), REFUSED),
    "short.safetensors": (text(b"\x01"), REFUSED),
    "huge.safetensors": (text(struct.pack("<Q", 2**60)), REFUSED),
    "list.safetensors": (st_header([1, 2]), REFUSED),
    "deep.safetensors": (st_header(b"[" * 50_000), REFUSED),
    "outside.safetensors": (
        st_header({"x": {"dtype": "F32", "shape": [9, 9], "data_offsets": [0, 10**9]}}, b"\0" * 8),
        REFUSED,
    ),
    "type.safetensors": (
        st_header({"x": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}}, b"\0" * 4),
        REFUSED,
    ),
    "negative.safetensors": (
        st_header({"x": {"dtype": "F32", "shape": [-1, 2], "data_offsets": [0, 8]}}, b"\0" * 8),
        REFUSED,
    ),
    "empty.safetensors": (safetensors(), REFUSED),
    "words.csv": (text("a,b\nx,y\nz,w\n"), REFUSED),
    "nan.csv": (text("a,b\n1,\n2,3\n"), REFUSED),
    "ragged.csv": (text("a,b\n1,2\n3\n"), REFUSED),
    "infinite.csv": (text("a,b\n1,inf\n3,4\n"), REFUSED),
    "ambiguous.csv": (text("0,1\n1,2\n3,4\n"), REFUSED),
    "quote.csv": (text('a,b\n1,"2\n3,4\n'), REFUSED),
    "ragged-lists.parquet": (lambda path: pq.write_table(pa.table({"a": [[1.0], [1.0, 2.0]]}), path), REFUSED),
    "binary.parquet": (lambda path: pq.write_table(pa.table({"a": [b"\xff"]}), path), REFUSED),
    "deep-lists.parquet": (lambda path: pq.write_table(pa.table({"a": [[[1.0]], [[2.0]]]}), path), REFUSED),
    "structs.parquet": (lambda path: pq.write_table(pa.table({"a": [{"x": 1.0}]}), path), REFUSED),
    "file.txt": (text("1 2 3\n"), REFUSED),
    "file": (text("1 2 3\n"), REFUSED),
    "model.pt": (lambda path: path.write_bytes(pickle.dumps(Gun())), REFUSED),
    "table.xlsx": (text(b"PK\x03\x04"), REFUSED),
}

# One label or group a row.
LABEL_FILES: dict[str, tuple[Maker, bool]] = {
    "right.npy": (lambda path: np.save(path, Y), DONE),
    "column.npy": (lambda path: np.save(path, Y[:, None]), DONE),
    "right.csv": (text("label\n" + "".join(f"{y}\n" for y in Y)), DONE),
    "indexed.csv": (text("index,label\n" + "".join(f"{i},{y}\n" for i, y in enumerate(Y))), DONE),
    "right.npz": (npz(y=Y), DONE),
    "right.safetensors": (safetensors(y=Y), DONE),
    "short.npy": (lambda path: np.save(path, Y[:9]), REFUSED),
    "long.npy": (lambda path: np.save(path, np.arange(99) % 2), REFUSED),
    "two.npy": (lambda path: np.save(path, np.stack([Y, Y], 1)), REFUSED),
    "halves.npy": (lambda path: np.save(path, Y + 0.5), REFUSED),
    "huge.npy": (lambda path: np.save(path, np.where(Y, 1e300, 0)), REFUSED),
    "nan.npy": (lambda path: np.save(path, np.where(Y, np.nan, 0)), REFUSED),
    "complex.npy": (lambda path: np.save(path, Y.astype(complex)), REFUSED),
    "latin.npy": (lambda path: np.save(path, np.array([b"a", b"\xe9"])[Y]), REFUSED),
    "surrogate.npy": (lambda path: np.save(path, np.array(["a", "\ud800"])[Y]), REFUSED),
    "dates.npy": (lambda path: np.save(path, Y.astype("M8[D]")), REFUSED),
    "objects.npy": (lambda path: np.save(path, np.array([Gun()] * N, dtype=object), allow_pickle=True), REFUSED),
    "cut.npy": (cut(lambda path: np.save(path, Y), half), REFUSED),
    "several.npz": (npz(a=Y, b=Y), REFUSED),
    "gap.csv": (text("label\n" + "".join(f"{'' if i == 7 else y}\n" for i, y in enumerate(Y))), REFUSED),
    "twice.csv": (text("index,label\n" + "".join(f"{0},{y}\n" for y in Y)), REFUSED),
    "outside.csv": (text("index,label\n" + "".join(f"{i + 5},{y}\n" for i, y in enumerate(Y))), REFUSED),
    "words.csv": (text("index,label\n" + "".join(f"x{i},{y}\n" for i, y in enumerate(Y))), REFUSED),
    "quote.csv": (text('label\n"a\n' + "b\n" * 39), REFUSED),
    "empty.csv": (text(""), REFUSED),
    "binary.parquet": (lambda path: pq.write_table(pa.table({"label": [b"\xff"] * N}), path), REFUSED),
    "lists.parquet": (lambda path: pq.write_table(pa.table({"label": [[1]] * N}), path), REFUSED),
    "structs.parquet": (lambda path: pq.write_table(pa.table({"label": [{"a": 1}] * N}), path), REFUSED),
    "labels.txt": (text("0\n1\n" * 20), REFUSED),
}

DEEP = "[" * 3000 + "]" * 3000
RECIPES: dict[str, tuple[Maker, bool]] = {
    name: (text(content), right)
    for name, (content, right) in {
        "right": ("method: erm\nepochs: 1\n", DONE),
        "with data": ("data: right.npz\nepochs: 1\nmethod: erm\n", DONE),
        "empty": ("", REFUSED),
        "a word": ("erm", REFUSED),
        "a list": ("- erm\n", REFUSED),
        "a number": ("3", REFUSED),
        "deep": (f"a: {DEEP}", REFUSED),
        "deep maps": ("a: " + "{a: " * 3000 + "1" + "}" * 3000, REFUSED),
        "a tab": ("a:\n\t- b\n", REFUSED),
        "an open bracket": ("a: [1, 2", REFUSED),
        "two documents": ("a: 1\n---\nb: 2\n", REFUSED),
        "a date": ("epochs: 2020-01-01\n", REFUSED),
        "no date": ("epochs: 2020-99-99\n", REFUSED),
        "an integer of 5,000 digits": (f"epochs: {'9' * 5000}\n", REFUSED),
        "python": ("a: !!python/object/apply:os.mkdir [evil]\n", REFUSED),
        "an anchor of itself": ("a: &a [*a]\n", REFUSED),
        "an unknown anchor": ("a: *b\n", REFUSED),
        "laughs": (
            "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
            REFUSED,
        ),
        "data 7": ("data: 7\n", REFUSED),
        "data a list": ("data: [digits]\n", REFUSED),
        "data a map": ("data: {a: 1}\n", REFUSED),
        "labels 3": ("labels: 3\n", REFUSED),
        "trackers 3": ("trackers: 3\n", REFUSED),
        "trackers a word": ("trackers: tensorboard\n", REFUSED),
        "data_dir 5": ("data_dir: 5\n", REFUSED),
        "augment maybe": ("augment: maybe\n", REFUSED),
        "skip_broken maybe": ("skip_broken: maybe\n", REFUSED),
        "noise 0.5": ("noise: 0.5\n", REFUSED),
        "limit many": ("limit: many\n", REFUSED),
        "limit -1": ("limit: -1\n", REFUSED),
        "epochs a text": ("epochs: many\n", REFUSED),
        "epochs true": ("epochs: true\n", REFUSED),
        "epochs a list": ("epochs: [1]\n", REFUSED),
        "epochs 1.5": ("epochs: 1.5\n", REFUSED),
        "rate nan": ("learning_rate: .nan\n", REFUSED),
        "unknown": ("nothing_like_it: 3\n", REFUSED),
        "unknown method": ("method: nothing\n", REFUSED),
        "method 3": ("method: 3\n", REFUSED),
        "a key that is a list": ("? [a, b]\n: 3\n", REFUSED),
        "a key that is null": ("null: 3\n", REFUSED),
        "model 3": ("model: 3\n", REFUSED),
        "seed a text": ("seed: abc\n", REFUSED),
        "seed -1": ("seed: -1\n", REFUSED),
        "validation 2": ("validation: 2\n", REFUSED),
        "an escape": ('method: "\\x1b[31m"\n', REFUSED),
        "nul": ('data: "a\\0b"\n', DONE),
        "Latin-1": (b"method: caf\xe9\n", REFUSED),
        "binary": (bytes(range(256)), REFUSED),
        "JSON": ('{"method": "erm", "epochs": 1}', DONE),
        "image_size 10^6": ("image_size: 1000000\n", DONE),
    }.items()
}

GRIDS: dict[str, str] = {
    "empty": "",
    "a word": "erm",
    "a list": "- erm",
    "deep": f"data: {DEEP}",
    "unknown": "nothing: 3",
    "data 7": "data: 7",
    "method 3": "method: 3\ndata: digits\n",
    "labels list": "data: digits\nlabels: [3]\n",
    "epochs text": "data: digits\nepochs: many\n",
    "seeds text": "data: digits\nseeds: many\n",
    "scale": "scale: huge\n",
    "no data": "data: nothing.csv\nlabels: given\n",
    "python": "a: !!python/object/apply:os.mkdir [evil]\n",
    "open": "data: [digits",
    "date": "data: digits\nepochs: 2020-99-99\n",
    "huge seed": f"data: digits\nseed: {10**30}\n",
    "nan": "data: digits\nlearning_rate: .nan\n",
    "nul": 'data: "a\\0b"\n',
    "bool": "data: digits\naugment: maybe\n",
    "negative": "data: digits\nlimit: -1\n",
    "noise": "data: digits\nlabels: symmetric:7\n",
    "model": "data: digits\nmodel: nothing\n",
    "many": "data: digits\nseeds: 1000000000\n",
    "validation": "data: digits\nvalidation: 7\n",
}

RESULT_LINES: dict[str, str] = {
    "empty": "",
    "no JSON": "nothing\n",
    "a list": "[1, 2]\n",
    "deep": f"{DEEP}\n",
    "a number": "3\n",
    "half": '{"key": "a", \n',
    "an empty object": "{}\n",
    "nulls": "null\n" * 5,
    "no spec": '{"key": "a", "accuracy": {}}\n',
    "infinite": '{"key": Infinity}\n',
}

CORRECTIONS: dict[str, tuple[str, bool]] = {
    "right": ("index,corrected\n0,dog\n1,cat\n", DONE),
    "by label": ("index,label\n0,dog\n", DONE),
    "kept": ("index,corrected\n0,dog\n1,dog\n", DONE),
    "empty": ("", REFUSED),
    "no rows": ("index,corrected\n", REFUSED),
    "no columns": ("a,b\n1,2\n", REFUSED),
    "unknown class": ("index,corrected\n0,cow\n", REFUSED),
    "unknown row": ("index,corrected\n99,dog\n", REFUSED),
    "negative": ("index,corrected\n-1,dog\n", REFUSED),
    "huge": (f"index,corrected\n{10**30},dog\n", REFUSED),
    "words": ("index,corrected\nx,dog\n", REFUSED),
    "twice": ("index,corrected\n0,dog\n0,cat\n", REFUSED),
    "half": ("index,corrected\n0.5,dog\n", REFUSED),
    "nothing changes": ("index,corrected\n0,cat\n", REFUSED),
    "quote": ('index,corrected\n0,"dog\n', REFUSED),
    "gap": ("index,corrected\n,dog\n", REFUSED),
    "nan": ("index,corrected\nnan,dog\n", REFUSED),
}
