# ruff: noqa: E501 - tables, a case after the other
"""Tables of label issues, files of annotations, and what is shown of examples, as nobody should give them."""

from __future__ import annotations

import decimal
import http.client
import json
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image
from tests.robustness.odd_values import DONE, NAMES, REFUSED, N, X, Y

import crust
from crust import exchange

Case = tuple[Callable[[], object], bool | None]

P = np.eye(2)[Y] * 0.8 + 0.1
P[3], P[8] = [0.1, 0.9], [0.2, 0.8]
WRONG = 3  # an example whose label is an issue


def audit(**columns: Any) -> pd.DataFrame:
    """A right table, with other columns; None leaves one out."""
    found = pd.DataFrame(
        {
            "index": np.arange(N),
            "given_label": NAMES,
            "predicted_label": np.where(np.arange(N) == WRONG, "cat", NAMES),
            "label_quality": np.where(np.arange(N) == WRONG, 0.1, 0.9),
            "predicted_prob": 0.8,
            "is_label_issue": np.arange(N) == WRONG,
        }
    )
    for name, value in columns.items():
        if value is None:
            found = found.drop(columns=name)
        else:
            found[name] = value
    return found


def one(value: Any, column: str, row: int = 7) -> pd.DataFrame:
    """A right table but for one cell."""
    found = audit()
    found[column] = found[column].astype(object)
    found.at[row, column] = value
    return found


def indexed(values: Any) -> pd.DataFrame:
    return audit(index=None).set_axis(values)


TABLES: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "right": (audit, DONE),
    "no index": (lambda: audit(index=None), DONE),
    "no prob": (lambda: audit(predicted_prob=None), DONE),
    "no issue": (lambda: audit(is_label_issue=None), DONE),
    "one row": (lambda: audit().head(1), DONE),
    "rows of a part": (lambda: audit().iloc[::3], DONE),
    "shuffled": (lambda: audit().sample(frac=1, random_state=0), DONE),
    "text index": (lambda: indexed([f"row{i}" for i in range(N)]), DONE),
    "index twice": (lambda: indexed([0] * N), REFUSED),
    "index column twice": (lambda: audit(index=0), REFUSED),
    "negative index": (lambda: audit(index=np.arange(N) - 1), REFUSED),
    "half index": (lambda: audit(index=np.arange(N) / 2), REFUSED),
    "NaN index": (lambda: one(np.nan, "index"), REFUSED),
    "text in index": (lambda: one("a", "index"), REFUSED),
    "huge index": (lambda: audit(index=np.arange(N, dtype=np.uint64) + np.uint64(2**63)), REFUSED),
    "index 1e300": (lambda: audit(index=np.arange(N) * 1e300), REFUSED),
    "index inf": (lambda: audit(index=np.where(np.arange(N) == 3, np.inf, np.arange(N))), REFUSED),
    "bool index": (lambda: audit(index=np.arange(N) % 2 == 0), REFUSED),
    "dates as index": (lambda: indexed(pd.date_range("2020", periods=N)), DONE),
    "multi index": (lambda: indexed(pd.MultiIndex.from_product([[0, 1], range(N // 2)])), DONE),
    "columns of two levels": (
        lambda: audit().set_axis(pd.MultiIndex.from_product([["a"], audit().columns]), axis=1),
        REFUSED,
    ),
    "columns twice": (lambda: pd.concat([audit(), audit()[["given_label"]]], axis=1), REFUSED),
    "score twice": (lambda: pd.concat([audit(), audit()[["label_quality"]]], axis=1), REFUSED),
    "other columns twice": (lambda: pd.concat([audit(), audit(a=1)[["a"]], audit(a=2)[["a"]]], axis=1), REFUSED),
    "numbered columns": (lambda: audit().set_axis(range(6), axis=1), REFUSED),
    "columns of None": (lambda: audit().assign(x=1).rename(columns={"x": None}), DONE),
    "empty": (lambda: audit().head(0), REFUSED),
    "no columns": (lambda: pd.DataFrame(index=range(N)), REFUSED),
    "no quality": (lambda: audit(label_quality=None), REFUSED),
    "quality above one": (lambda: audit(label_quality=2.0), REFUSED),
    "quality negative": (lambda: audit(label_quality=-0.1), REFUSED),
    "quality inf": (lambda: one(np.inf, "label_quality"), REFUSED),
    "quality NaN": (lambda: one(np.nan, "label_quality"), DONE),
    "quality all NaN": (lambda: audit(label_quality=np.nan), DONE),
    "quality text": (lambda: audit(label_quality="good"), REFUSED),
    "quality numbers as text": (lambda: audit(label_quality="0.5"), DONE),
    "quality complex": (lambda: audit(label_quality=0.5 + 1j), REFUSED),
    "quality lists": (lambda: audit(label_quality=[[0.5]] * N), REFUSED),
    "quality bool": (lambda: audit(label_quality=True), DONE),
    "quality dates": (lambda: audit(label_quality=pd.Timestamp("2020")), REFUSED),
    "prob above one": (lambda: audit(predicted_prob=7.0), REFUSED),
    "prob negative": (lambda: audit(predicted_prob=-1.0), REFUSED),
    "prob inf": (lambda: audit(predicted_prob=np.inf), REFUSED),
    "prob text": (lambda: audit(predicted_prob="high"), REFUSED),
    "issue text": (lambda: audit(is_label_issue="maybe"), REFUSED),
    "issue yes": (lambda: audit(is_label_issue="yes"), DONE),
    "issue NaN": (lambda: one(np.nan, "is_label_issue"), REFUSED),
    "issue numbers": (lambda: audit(is_label_issue=7), REFUSED),
    "issue NA": (lambda: audit(is_label_issue=pd.array([pd.NA] * N, dtype="boolean")), REFUSED),
    "label None": (lambda: one(None, "given_label"), REFUSED),
    "label list": (lambda: one(["a"], "given_label"), REFUSED),
    "label dict": (lambda: one({"a": 1}, "given_label"), REFUSED),
    "label bytes": (lambda: one(b"cat", "given_label"), REFUSED),
    "label surrogate": (lambda: one("\ud800", "given_label"), REFUSED),
    "label empty": (lambda: one("", "given_label"), REFUSED),
    "label blank": (lambda: one("  ", "given_label"), REFUSED),
    "label NA": (lambda: one(pd.NA, "predicted_label"), REFUSED),
    "labels mixed": (lambda: one(7, "given_label"), DONE),
    "labels floats": (lambda: audit(given_label=Y + 0.5, predicted_label=Y + 0.5), DONE),
    "labels 1e300": (lambda: audit(given_label=Y * 1e300, predicted_label=Y * 1e300), DONE),
    "labels whole floats": (lambda: audit(given_label=Y * 1.0, predicted_label=Y), DONE),
    "labels bool": (lambda: audit(given_label=Y > 0, predicted_label=Y > 0), DONE),
    "labels 01": (lambda: audit(given_label=[f"0{y}" for y in Y], predicted_label=Y), DONE),
    "labels huge": (lambda: audit(given_label=[10**5000] * N, predicted_label=0), REFUSED),
    "labels 2^64": (lambda: audit(given_label=[2**64 + int(y) for y in Y], predicted_label=0), DONE),
    "labels superscript": (lambda: audit(given_label="²", predicted_label="²"), DONE),
    "labels arabic digits": (lambda: audit(given_label="١", predicted_label="١"), DONE),
    "labels of a thousand letters": (lambda: audit(given_label="x" * 1000), DONE),
    "labels with line breaks": (lambda: audit(given_label="a\nb", predicted_label="a\x1b[2Jb"), DONE),
    "labels html": (lambda: audit(given_label="<script>alert(1)</script>"), DONE),
    "labels categorical": (lambda: audit(given_label=pd.Categorical(NAMES)), DONE),
    "labels dates": (lambda: audit(given_label=pd.Timestamp("2020"), predicted_label=pd.Timestamp("2021")), DONE),
    "labels all one": (lambda: audit(given_label="a", predicted_label="a"), DONE),
    "labels minus": (lambda: audit(given_label="--1", predicted_label="-1"), DONE),
    "ids numbers": (lambda: audit(id=np.arange(N)), DONE),
    "ids twice": (lambda: audit(id="same"), DONE),
    "ids None": (lambda: audit(id=[None] * N), DONE),
    "ids traversal": (lambda: audit(id=[f"../../etc/{i}" for i in range(N)]), DONE),
    "ids nul": (lambda: audit(id=[f"a\0{i}" for i in range(N)]), DONE),
    "ids surrogate": (lambda: audit(id=pd.Series([f"a\ud800{i}" for i in range(N)], dtype=object)), REFUSED),
    "text of numbers": (lambda: audit(text=np.arange(N)), DONE),
    "text of lists": (lambda: audit(text=[[1]] * N), DONE),
    "text surrogate": (lambda: audit(text=pd.Series(["\ud800"] * N, dtype=object)), REFUSED),
    "medoids of others": (lambda: audit(medoids=[[10**9]] * N), DONE),
    "medoids text": (lambda: audit(medoids="x"), REFUSED),
    "medoids of text": (lambda: audit(medoids=[["a"]] * N), REFUSED),
    "medoids None": (lambda: audit(medoids=[None] * N), DONE),
    "duplicate_of beyond": (lambda: audit(duplicate_of=10**6), DONE),
    "duplicate_of text": (lambda: audit(duplicate_of="x"), REFUSED),
    "duplicate_of self": (lambda: audit(duplicate_of=np.arange(N)), DONE),
    "selection_rate text": (lambda: audit(selection_rate="x"), REFUSED),
    "selection_rate above": (lambda: audit(selection_rate=5.0), DONE),
    "is_held_out text": (lambda: audit(is_held_out="x"), REFUSED),
    "mean_loss text": (lambda: audit(mean_loss="x"), REFUSED),
    "aum text": (lambda: audit(aum="x"), REFUSED),
    "series": (lambda: audit()["given_label"], REFUSED),
    "dict": (lambda: audit().to_dict("list"), REFUSED),
    "arrow": (lambda: pa.Table.from_pandas(audit()), REFUSED),
    "records": (lambda: audit().to_dict("records"), REFUSED),
    "array": (lambda: audit().to_numpy(), REFUSED),
    "number": (lambda: 7, REFUSED),
    "None": (lambda: None, REFUSED),
    "bytes": (lambda: b"run", REFUSED),
    "empty name": (lambda: "", REFUSED),
    "nul name": (lambda: "a\0b", REFUSED),
    "long name": (lambda: "a" * 5000, REFUSED),
    "list": (list, REFUSED),
    "arrow columns": (lambda: audit().convert_dtypes(dtype_backend="pyarrow"), DONE),
    "nullable columns": (lambda: audit().convert_dtypes(), DONE),
    "float16": (lambda: audit(label_quality=np.float16(0.5)), DONE),
    "sparse column": (lambda: audit(label_quality=pd.arrays.SparseArray(np.full(N, 0.5))), DONE),
    "decimal column": (lambda: audit(label_quality=decimal.Decimal("0.5")), DONE),
    "a class of its own": (lambda: SimpleNamespace(iloc=3, columns=["a"]), REFUSED),
    "doubt": (lambda: audit(label_quality=None).assign(doubt=0.2), DONE),
    "doubt above one": (lambda: audit(label_quality=None).assign(doubt=2.0), REFUSED),
    "cleanlab": (
        lambda: pd.DataFrame(
            {"is_label_issue": Y > 0, "label_score": 0.5, "given_label": NAMES, "predicted_label": NAMES}
        ),
        DONE,
    ),
}

# Tables of which no label can become a dog.
NO_DOGS = ("one row", "labels floats", "labels 1e300", "labels whole floats", "labels bool", "labels 01", "labels 2^64",
           "labels superscript", "labels arabic digits", "labels with line breaks", "labels dates", "labels all one",
           "labels minus")  # fmt: skip
# What is done with each of them; what only one of them minds is said there.
AUDIT_DOORS: dict[str, tuple[Callable[[Any, Path], object], dict[str, bool | None]]] = {
    "report": (lambda table, folder: report(table, folder), {}),
    "review": (lambda table, folder: review(table, folder), {}),
    "apply": (lambda table, folder: apply(table, folder), dict.fromkeys(NO_DOGS, REFUSED)),
    "to cleanlab": (lambda table, _: exchange.to_cleanlab(table), {}),
    "to label studio": (lambda table, _: json.dumps(exchange.to_label_studio(table)), {}),
    "to argilla": (lambda table, _: json.dumps(exchange.to_argilla(table)), {}),
    "to fiftyone": (
        lambda table, _: json.dumps(exchange.to_fiftyone(with_ids(table))),
        {"ids twice": REFUSED, "ids None": REFUSED},
    ),
}


def with_ids(table: Any) -> Any:
    if not isinstance(table, pd.DataFrame) or "id" in table or table.columns.nlevels > 1:
        return table
    return table.assign(id=[f"{i}.png" for i in range(len(table))])


def report(table: Any, folder: Path, show: Any = None) -> None:
    from crust.runs.audit_source import open_audit

    open_audit(table, show=show).report(folder / "page.html")


def review(table: Any, folder: Path, show: Any = None, **options: Any) -> Any:
    store = folder / f"{secrets.token_hex(4)}.sqlite"
    failed: list[object] = []
    more = {"store": store, "browser": False, "on_start": lambda server: look(server, failed), **options}
    found = crust.review_labels(table, show=show, **more)
    assert not failed, failed
    return found


def look(server: Any, failed: list[object]) -> None:
    """Read the page, its state, and the first examples, as a browser would; then finish. What fails is noted."""
    parts = urlsplit(server.link)

    def ask() -> None:
        try:
            for path in ("", "state", "map", "example/0", "image/0", "image/3", "row/0"):
                asked = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
                asked.request("GET", f"{parts.path}{path}")
                status = asked.getresponse().status
                if status >= 500:
                    failed.append((path, status))
        except OSError as error:
            failed.append(error)
        finally:
            server.finish()

    threading.Thread(target=ask).start()


def apply(table: Any, folder: Path) -> object:
    corrections = pd.DataFrame({"index": [0], "corrected": ["dog"]})
    return crust.apply_corrections(table, corrections, output=folder / "out.csv")


def image(shape: tuple[int, ...], kind: type = np.uint8) -> np.ndarray:
    return np.zeros(shape, kind)


def shows(folder: Path) -> dict[str, tuple[Callable[[], Any], bool | None]]:
    """What may be named to be shown of the examples of a right audit."""
    texts = [f"text {i}" for i in range(N)]
    images = folder / "images"
    images.mkdir()
    for i in range(N):
        Image.fromarray(image((4, 4))).save(images / f"{i}.png")
    np.save(folder / "x.npy", X)
    np.save(folder / "objects.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.save(folder / "images.npy", image((N, 5, 5, 3)))
    (folder / "cut.npy").write_bytes((folder / "images.npy").read_bytes()[:300])
    (folder / "texts.txt").write_text("\n".join(texts))
    (folder / "latin.txt").write_bytes(b"caf\xe9\n" * N)
    (folder / "short.txt").write_text("a\n")
    (folder / "empty.txt").write_text("")
    pd.DataFrame({"a": texts, "b": X[:, 0]}).to_csv(folder / "texts.csv", index=False)
    (folder / "cut.csv").write_text('a,b\n"1,2\n')
    (folder / "empty.csv").write_text("")
    (folder / "bad.parquet").write_bytes(b"PAR1" * 9)
    (folder / "no.png").write_text("no image")
    os.mkfifo(folder / "fifo")
    os.mkfifo(folder / "fifo.txt")
    os.mkfifo(folder / "fifo.csv")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "empty").mkdir()
    files = {
        "texts.txt": DONE, "latin.txt": DONE, "short.txt": REFUSED, "empty.txt": REFUSED, "texts.csv": DONE,
        "texts.csv:a": DONE, "texts.csv:nothing": REFUSED, "texts.csv:": REFUSED, "cut.csv": REFUSED,
        "empty.csv": REFUSED, "bad.parquet": REFUSED, "x.npy": DONE, "images.npy": DONE, "objects.npy": REFUSED,
        "cut.npy": REFUSED, "no.png": REFUSED, "fifo": REFUSED, "fifo.txt": REFUSED, "fifo.csv": REFUSED,
        "loop": REFUSED, "empty": REFUSED, "images": DONE, "nothing": REFUSED, "nothing.csv": REFUSED, "": REFUSED,
        "a" * 3000: REFUSED, "a\0b": REFUSED, "no.png:a": REFUSED, "x.npy:key": REFUSED, ".": REFUSED,
        "\ud800.csv": REFUSED,
    }  # fmt: skip
    found: dict[str, tuple[Callable[[], Any], bool | None]] = {
        f"file {name!r:.30}": (lambda name=name: str(folder / name) if name else "", right)
        for name, right in files.items()
    }
    found["/dev/zero"] = (lambda: "/dev/zero", REFUSED)
    found["/dev/null.csv"] = (lambda: "/dev/null", REFUSED)
    things: dict[str, tuple[Any, bool | None]] = {
        "texts": (texts, DONE), "tuple": (tuple(texts), DONE), "array of text": (np.array(texts), DONE),
        "series": (pd.Series(texts), DONE), "odd series": (pd.Series(texts, index=range(9, N + 9)), DONE),
        "frame": (pd.DataFrame({"a": texts}), DONE), "dict": ({"a": texts}, DONE), "arrow": (pa.table({"a": texts}), DONE),
        "odd dict": ({"a": texts, "b": texts[:3]}, REFUSED), "dict of numbers": ({"a": 3}, REFUSED), "no dict": ({}, REFUSED),
        "empty": ([], REFUSED), "short": (texts[:3], REFUSED), "number": (7, REFUSED), "bytes": (b"abc", REFUSED),
        "set": (set(texts), REFUSED), "generator": ((t for t in texts), REFUSED), "class": (list, REFUSED),
        "list of None": ([None] * N, DONE), "list of lists": ([[1, 2]] * N, DONE), "list of numbers": ([1.5] * N, DONE),
        "mixed": (["a", None, 3, b"x"] * (N // 4), DONE), "surrogates": (["\ud800"] * N, DONE), "nul": (["a\0b"] * N, DONE),
        "html": (["<script>alert(1)</script></script>"] * N, DONE), "long": (["x" * 10**6, *texts[1:]], DONE),
        "features": (X, DONE), "NaN": (X * np.nan, DONE), "inf": (X * np.inf, DONE), "complex": (X * 1j, REFUSED),
        "masked": (np.ma.array(X, mask=X > 0), REFUSED), "images": (image((N, 5, 5, 3)), DONE), "grey": (image((N, 5, 5)), DONE),
        "five channels": (image((N, 5, 5, 7)), REFUSED), "no width": (image((N, 5, 0, 3)), REFUSED),
        "float images": (image((N, 5, 5, 3), np.float32), DONE), "NaN images": (image((N, 5, 5, 3), np.float32) * np.nan, DONE),
        "bool images": (image((N, 5, 5), np.bool_), DONE), "int64 images": (image((N, 5, 5), np.int64) + 10**12, DONE),
        "object array": (np.array([{}] * N), REFUSED), "0-d": (np.float32(3), REFUSED), "flat numbers": (X[:, 0], DONE),
        "four dimensions": (image((N, 2, 2, 2, 2)), REFUSED), "list of images": ([image((4, 4, 3))] * N, DONE),
        "list of odd images": ([image((4, 4, 3))] * 3 + [None] * (N - 3), DONE),
        "paths": ([images / f"{i}.png" for i in range(N)], DONE), "missing paths": ([folder / "nothing.png"] * N, DONE),
        "bad paths": ([folder / "no.png"] * N, DONE), "fifo paths": ([folder / "fifo"] * N, DONE),
        "loop paths": ([folder / "loop"] * N, DONE), "folder paths": ([folder] * N, DONE),
        "closed images": ([Image.open(images / "0.png")] * N, DONE), "pairs": ([(t, 0) for t in texts], DONE),
        "empty pairs": ([()] * N, DONE), "dicts": ([{"a": t} for t in texts], DONE), "odd dicts": ([{"a": "x"}, *([{}] * (N - 1))], DONE),
        "dicts and None": ([{"a": "x"}, *([None] * (N - 1))], DONE), "empty dicts": ([{}] * N, REFUSED),
        "dict of images": ([{"image": image((4, 4, 3))}] * N, DONE), "callable": (lambda i: "a", REFUSED),
        "length that lies": (type("L", (), {"__len__": lambda s: N, "__getitem__": lambda s, i: 1 / 0})(), REFUSED),
        "length that fails": (type("L", (), {"__len__": lambda s: 1 / 0})(), REFUSED),
        "frame of objects": (pd.DataFrame({"a": [object()] * N}), DONE), "empty frame": (pd.DataFrame(index=range(N)), REFUSED),
        "frame twice": (pd.DataFrame(np.zeros((N, 2)), columns=["a", "a"]), REFUSED), "frame levels": (pd.DataFrame(np.zeros((N, 1)), columns=pd.MultiIndex.from_tuples([("a", "b")])), DONE),
        "nested arrow": (pa.table({"a": [[1]] * N, "b": [{"c": 1}] * N}), DONE), "binary arrow": (pa.table({"a": [b"\xff"] * N}), DONE),
        "dates": (pd.DataFrame({"a": pd.date_range("2020", periods=N)}), DONE), "wide": (np.zeros((N, 3000)), DONE),
        "bytes list": ([b"\xff\xfe"] * N, DONE),
    }  # fmt: skip
    return found | {name: (lambda thing=thing: thing, right) for name, (thing, right) in things.items()}


def task(**more: Any) -> dict[str, Any]:
    value = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["dog"]}}
    return {"data": {"crust_index": 4}, "annotations": [{"result": [value], "was_cancelled": False}], **more}


def choice(value: Any) -> dict[str, Any]:
    return task(annotations=[{"result": [{"type": "choices", "from_name": "label", "value": value}]}])


STUDIO: dict[str, tuple[Any, bool | None]] = {
    "right": ([task()], DONE), "flat": ([{"crust_index": 4, "label": "dog"}], DONE), "empty": ([], REFUSED),
    "dict": (task(), REFUSED), "number": (7, REFUSED), "None": (None, REFUSED), "list of numbers": ([1, 2], REFUSED),
    "list of lists": ([[1]], REFUSED), "text": ('[{"data":1}]', REFUSED), "no data": ([{"annotations": []}], REFUSED),
    "data number": ([task(data=7)], REFUSED), "data None": ([task(data=None)], REFUSED), "data list": ([task(data=[])], REFUSED),
    "annotations None": ([task(annotations=None)], REFUSED), "annotations number": ([task(annotations=7)], REFUSED),
    "annotations of numbers": ([task(annotations=[7])], REFUSED), "annotations dict": ([task(annotations={"a": 1})], REFUSED),
    "result None": ([task(annotations=[{"result": None}])], REFUSED), "result number": ([task(annotations=[{"result": 7}])], REFUSED),
    "result of numbers": ([task(annotations=[{"result": [7]}])], REFUSED), "value None": ([choice(None)], REFUSED),
    "value number": ([choice(7)], REFUSED), "choices None": ([choice({"choices": None})], REFUSED),
    "choices text": ([choice({"choices": "dog"})], DONE), "choices number": ([choice({"choices": 7})], REFUSED),
    "choices of lists": ([choice({"choices": [["a"]]})], REFUSED), "choices of None": ([choice({"choices": [None]})], REFUSED),
    "choices of dicts": ([choice({"choices": [{}]})], REFUSED), "two choices": ([choice({"choices": ["a", "b"]})], REFUSED),
    "index text": ([task(data={"crust_index": "a"})], REFUSED), "index list": ([task(data={"crust_index": [1]})], REFUSED),
    "index half": ([task(data={"crust_index": 1.5})], REFUSED), "index negative": ([task(data={"crust_index": -4})], REFUSED),
    "index bool": ([task(data={"crust_index": True})], REFUSED), "index huge": ([task(data={"crust_index": 10**40})], REFUSED),
    "index NaN": ([task(data={"crust_index": float("nan")})], REFUSED), "index beyond": ([task(data={"crust_index": 10**6})], REFUSED),
    "no index": ([task(data={"text": "a"})], REFUSED), "twice": ([task(), task()], REFUSED),
    "one with index, one with id": ([task(), task(data={"crust_id": "7"})], DONE), "id dict": ([task(data={"crust_id": {}})], REFUSED),
    "id number": ([task(data={"crust_id": 7})], REFUSED), "label list": ([{"crust_index": 4, "label": ["dog"]}], DONE),
    "label bool": ([{"crust_index": 4, "label": True}], REFUSED), "label surrogate": ([{"crust_index": 4, "label": "\ud800"}], REFUSED),
    "label empty": ([{"crust_index": 4, "label": ""}], REFUSED), "cancelled text": ([task(annotations=[{"was_cancelled": "no", "result": []}])], REFUSED),
}  # fmt: skip


def record(**more: Any) -> dict[str, Any]:
    usual = {"metadata": {"crust_index": 4}, "fields": {"text": "a"}, "responses": {"label": [{"value": "dog"}]}}
    return {**usual, **more}


ARGILLA: dict[str, tuple[Any, bool | None]] = {
    "right": ([record()], DONE), "no responses": ([record(responses=None)], REFUSED), "responses list": ([record(responses=[1])], REFUSED),
    "responses text": ([record(responses="a")], REFUSED), "answers dict": ([record(responses={"label": {"value": "dog"}})], REFUSED),
    "answers number": ([record(responses={"label": 7})], REFUSED), "answers of numbers": ([record(responses={"label": [7]})], REFUSED),
    "no value": ([record(responses={"label": [{"user_id": "1"}]})], REFUSED), "value list": ([record(responses={"label": [{"value": ["dog"]}]})], DONE),
    "value dict": ([record(responses={"label": [{"value": {"a": 1}}]})], REFUSED), "value number": ([record(responses={"label": [{"value": 1}]})], REFUSED),
    "metadata number": ([record(metadata=7)], REFUSED), "metadata list": ([record(metadata=["a"])], REFUSED), "metadata None": ([record(metadata=None)], REFUSED),
    "id list": ([record(metadata={}, id=[1])], REFUSED), "discarded": ([record(responses={"label": [{"value": "dog", "status": "discarded"}]})], REFUSED),
    "objects": ([SimpleNamespace(to_dict=lambda: record())], DONE), "objects that fail": ([SimpleNamespace(to_dict=lambda: 1 / 0)], REFUSED),
    "objects of nothing": ([SimpleNamespace(to_dict=lambda: None)], REFUSED), "string": ("nothing.json", REFUSED), "None": (None, REFUSED),
    "generator": ((record() for _ in range(2)), REFUSED), "generator that fails": ((1 / 0 for _ in range(2)), REFUSED),
}  # fmt: skip

FIFTYONE: dict[str, tuple[Any, bool | None]] = {
    "right": ({"classes": ["cat", "dog"], "labels": {"0": 1}}, DONE), "no classes": ({"labels": {"a": "dog"}}, REFUSED),
    "classes number": ({"classes": 7, "labels": {"a": 1}}, REFUSED), "classes text": ({"classes": "ab", "labels": {"a": 1}}, REFUSED),
    "classes dict": ({"classes": {"a": 1}, "labels": {"a": 0}}, REFUSED), "labels list": ({"labels": [1]}, REFUSED),
    "label beyond": ({"classes": ["a"], "labels": {"x": 7}}, REFUSED), "label negative": ({"classes": ["a"], "labels": {"x": -1}}, REFUSED),
    "label list": ({"classes": ["a"], "labels": {"x": [0]}}, REFUSED), "label dict": ({"labels": {"x": {"label": {"a": 1}}}}, REFUSED),
    "label bool": ({"classes": ["a", "b"], "labels": {"x": True}}, REFUSED), "label half": ({"classes": ["a"], "labels": {"x": 0.5}}, REFUSED),
    "attributes number": ({"labels": {"x": {"label": "a", "attributes": 7}}}, REFUSED),
    "attributes list": ({"labels": {"x": {"label": "a", "attributes": [1]}}}, REFUSED),
    "index text": ({"labels": {"x": {"label": "a", "attributes": {"crust_index": "a"}}}}, REFUSED),
    "keys numbers": ({"labels": {7: "a"}}, REFUSED), "number": (7, REFUSED), "None": (None, REFUSED), "list": ([], REFUSED),
    "nothing": ({}, REFUSED), "labels empty": ({"labels": {}}, REFUSED), "missing": ("nothing.json", REFUSED), "empty name": ("", REFUSED),
    "nul": ("a\0b", REFUSED), "long": ("a" * 5000, REFUSED),
}  # fmt: skip

CLEANLAB: dict[str, tuple[Callable[[], Any], bool | None]] = {
    "mask": (lambda: exchange.from_cleanlab(np.arange(N) == 3, Y, P), DONE),
    "short mask": (lambda: exchange.from_cleanlab(np.ones(3, bool), Y, P), REFUSED),
    "positions": (lambda: exchange.from_cleanlab([3], Y, P), DONE),
    "no positions": (lambda: exchange.from_cleanlab([], Y, P), DONE),
    "beyond": (lambda: exchange.from_cleanlab([N], Y, P), REFUSED),
    "negative": (lambda: exchange.from_cleanlab([-1], Y, P), REFUSED),
    "half": (lambda: exchange.from_cleanlab([0.5], Y, P), REFUSED),
    "text": (lambda: exchange.from_cleanlab(["a"], Y, P), REFUSED),
    "a text": (lambda: exchange.from_cleanlab("issues", Y, P), REFUSED),
    "number": (lambda: exchange.from_cleanlab(3, Y, P), REFUSED),
    "None": (lambda: exchange.from_cleanlab(None, Y, P), REFUSED),
    "dict": (lambda: exchange.from_cleanlab({"a": 1}, Y, P), REFUSED),
    "nested": (lambda: exchange.from_cleanlab([[1, 2], [3]], Y, P), REFUSED),
    "matrix": (lambda: exchange.from_cleanlab([[1, 2], [3, 4]], Y, P), REFUSED),
    "NaN": (lambda: exchange.from_cleanlab([np.nan], Y, P), REFUSED),
    "huge": (lambda: exchange.from_cleanlab([10**40], Y, P), REFUSED),
    "masked": (lambda: exchange.from_cleanlab(np.ma.array([1, 2], mask=[0, 1]), Y, P), REFUSED),
    "neither": (lambda: exchange.from_cleanlab([1]), REFUSED),
    "lab that fails": (lambda: exchange.from_cleanlab(SimpleNamespace(get_issues=lambda _: 1 / 0)), REFUSED),
    "lab of nothing": (lambda: exchange.from_cleanlab(SimpleNamespace(get_issues=lambda _: None)), REFUSED),
    "to, other classes": (lambda: exchange.to_cleanlab(audit(), ["x"]), REFUSED),
    "to, classes number": (lambda: exchange.to_cleanlab(audit(), 7), REFUSED),
    "to, classes twice": (lambda: exchange.to_cleanlab(audit(), ["cat", "cat", "dog"]), REFUSED),
    "config kind": (lambda: exchange.label_studio_config(["a"], "audio"), REFUSED),
    "config number": (lambda: exchange.label_studio_config(7), REFUSED),
    "config none": (lambda: exchange.label_studio_config([]), REFUSED),
    "prefix": (lambda: exchange.to_label_studio(audit(id="a.png"), image_prefix=None), DONE),
}

ANNOTATIONS: dict[str, tuple[str | bytes, bool | None]] = {
    "empty": ("", REFUSED), "null": ("null", REFUSED), "number": ("7", REFUSED), "list": ("[]", REFUSED),
    "deep": ("[" * 100000, REFUSED), "deep dict": ('{"labels":' * 5000, REFUSED), "latin": (b"[{\"a\": \"caf\xe9\"}]", REFUSED),
    "bom": ("\ufeff[]", REFUSED), "nan": ('[{"data": {"crust_index": NaN}, "annotations": []}]', REFUSED),
    "lines": ('{"a": 1}\n{"a": 2}\n', REFUSED), "huge number": ('[{"crust_index": ' + "9" * 5000 + ', "label": "a"}]', REFUSED),
    "surrogate": ('[{"crust_index": 4, "label": "\\ud800"}]', REFUSED), "twice": ('{"labels": {"a": 1}, "labels": {}}', REFUSED),
    "classes twice": ('{"classes": ["a", "a"], "labels": {"0": 1}}', REFUSED), "cut": ('[{"data": {', REFUSED), "zip": (b"PK\x03\x04", REFUSED),
    "second is no object": ('[{"crust_index": 1, "label": "dog"}, 7]', REFUSED), "list of lists": ("[[]]", REFUSED),
    "unknown class": ('[{"crust_index": 1, "label": "horse"}]', REFUSED), "right": ('[{"crust_index": 1, "label": "cat"}]', DONE),
    "html": ("<html></html>", REFUSED), "text": ("dog", REFUSED), "crlf": ('[{"crust_index": 1,\r\n"label": "cat"}]', DONE),
}  # fmt: skip

REVIEW_OPTIONS: dict[str, tuple[dict[str, Any], bool | None]] = {
    "store number": ({"store": 7}, REFUSED), "store empty": ({"store": ""}, REFUSED), "store nul": ({"store": "a\0b"}, REFUSED),
    "store folder": ({"store": "."}, REFUSED), "store nowhere": ({"store": "nothing/a.sqlite"}, REFUSED),
    "store device": ({"store": "/dev/null"}, REFUSED), "store long": ({"store": "a" * 300}, REFUSED), "store bytes": ({"store": b"a"}, REFUSED),
    "store memory": ({"store": ":memory:"}, None), "store uri": ({"store": "file:a?mode=memory"}, None),
    "who number": ({"who": 7}, REFUSED), "who empty": ({"who": ""}, REFUSED), "who blank": ({"who": " \t"}, REFUSED),
    "who long": ({"who": "x" * 101}, REFUSED), "who escape": ({"who": "a\x1b[2J"}, REFUSED), "who surrogate": ({"who": "\ud800"}, REFUSED),
    "who bytes": ({"who": b"a"}, REFUSED), "port text": ({"port": "a"}, REFUSED), "port negative": ({"port": -1}, REFUSED),
    "port huge": ({"port": 70000}, REFUSED), "port half": ({"port": 1.5}, REFUSED), "port None": ({"port": None}, REFUSED),
    "port bool": ({"port": True}, REFUSED), "on_start number": ({"on_start": 7}, REFUSED), "browser text": ({"browser": "no"}, REFUSED),
}  # fmt: skip


def cases(folder: Path) -> dict[str, Case]:
    """All of them: what is called, and whether that is right."""
    found: dict[str, Case] = {}
    for name, (make, usual) in TABLES.items():
        for door, (use, others) in AUDIT_DOORS.items():
            right = others.get(name, usual)
            found[f"{door}: {name}"] = (lambda use=use, make=make: use(make(), folder), right)
    right_table = audit(id=[f"{i}.png" for i in range(N)])
    for name, (make, right) in shows(folder).items():
        found[f"show in a report: {name}"] = (lambda make=make: report(right_table, folder, make()), right)
        found[f"show in a review: {name}"] = (lambda make=make: review(right_table, folder, make()), right)
    readers: dict[str, tuple[Callable[[Any], Any], dict[str, tuple[Any, bool | None]]]] = {
        "label studio": (exchange.from_label_studio, STUDIO),
        "argilla": (exchange.from_argilla, ARGILLA),
        "fiftyone": (exchange.from_fiftyone, FIFTYONE),
    }
    for tool, (read, sources) in readers.items():
        for name, (source, right) in sources.items():
            found[f"from {tool}: {name}"] = (
                lambda read=read, source=source: crust.apply_corrections(
                    right_table, read(source), output=folder / "o.csv"
                ),
                right,
            )
    for name, (call, right) in CLEANLAB.items():
        found[f"cleanlab: {name}"] = (call, right)
    for name, (content, right) in ANNOTATIONS.items():
        path = folder / f"annotations-{name}.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found[f"annotations: {name}"] = (
            lambda path=path: crust.apply_corrections(right_table, path, output=folder / "o.csv"),
            right,
        )
    for name, (options, right) in REVIEW_OPTIONS.items():
        found[f"review, {name}"] = (lambda options=options: review(right_table, folder, **options), right)
    return found
