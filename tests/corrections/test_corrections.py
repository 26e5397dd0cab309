"""Corrected labels: only they change, in every form that data comes in; and moves that lose no file."""

import csv
import os
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused

from crust.corrections.corrected_labels import corrected_labels, decisions_table, read_corrections
from crust.corrections.move_image_files import Move, any_done, do_moves, plan_moves, read_moves, write_moves
from crust.corrections.tables_and_arrays import apply_to_npz, apply_to_table, labels_file, records
from crust.data import read_labels
from crust.errors import InputError
from crust.review import Decision

CLASSES = ["cat", "dog"]


def audit_of(labels, ids=None):
    found = pd.DataFrame({"index": range(len(labels)), "given_label": pd.Series(labels, dtype=object)})
    if ids is not None:
        found["id"] = ids
    return found


# --- CSV


CELL = st.text(st.characters(codec="utf-8", exclude_characters="\x00\ufeff"), max_size=8)


@settings(max_examples=200)
@given(st.lists(st.lists(CELL, min_size=2, max_size=3), min_size=1, max_size=6), st.sampled_from(",;\t"), st.booleans())
def test_cells_are_found_where_csv_finds_them(rows, delimiter, quote):
    """Against Python's own reader, on what its writer makes of any text."""
    from io import StringIO

    buffer = StringIO()
    quoting = csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL
    csv.writer(buffer, delimiter=delimiter, quoting=quoting).writerows(rows)
    text = buffer.getvalue()
    found = [[text[a:b] for a, b in cells] for cells in records(text, delimiter)]
    plain = [[c[1:-1].replace('""', '"') if c.startswith('"') else c for c in cells] for cells in found]
    assert plain == rows


def test_every_other_byte_of_a_csv_stays(tmp_path):
    old = (
        b'\xef\xbb\xbfname;"label";note\r\n'
        b'"a;1";cat;" kept ""so"" "\r\n'
        b"\r\n"
        b'b;"dog";1,50\r\n'
        b"c;cat;two\tthree\r\n"
        b'"d\nd";dog;'
    )
    (tmp_path / "old.csv").write_bytes(old)
    labels = audit_of(["cat", "dog", "cat", "dog"])
    apply_to_table(tmp_path / "old.csv", tmp_path / "new.csv", "label", {0: 1, 3: 0}, labels, CLASSES)
    # A label is written as the file writes it: the first dog has quotes, the first cat has none.
    assert (tmp_path / "new.csv").read_bytes() == old.replace(b'"a;1";cat', b'"a;1";"dog"').replace(
        b'd";dog', b'd";cat'
    )
    assert (tmp_path / "old.csv").read_bytes() == old


@pytest.mark.parametrize(
    ("text", "classes", "labels", "expected"),
    [
        ("x,label\n1,0\n2,1\n", [0, 1], [0, 1], "x,label\n1,1\n2,1\n"),
        ("x,label\n1,0.0\n2,1.0\n", [0, 1], [0, 1], "x,label\n1,1.0\n2,1.0\n"),
        ("x,label\n1,False\n2,True\n", [False, True], [False, True], "x,label\n1,True\n2,True\n"),
        ("x\tlabel\n1\tä\n2\t<b>\n", ["<b>", "ä"], ["ä", "<b>"], None),
    ],
)
def test_labels_keep_their_form(tmp_path, text, classes, labels, expected):
    (tmp_path / "old.csv").write_text(text)
    wanted = {0: 0 if expected is None else 1}
    apply_to_table(tmp_path / "old.csv", tmp_path / "new.csv", "label", wanted, audit_of(labels), classes)
    assert (tmp_path / "new.csv").read_text() == (expected or "x\tlabel\n1\t<b>\n2\t<b>\n")


def test_data_that_has_changed_is_refused(tmp_path):
    (tmp_path / "old.csv").write_text("x,label\n1,cat\n2,dog\n")
    with pytest.raises(InputError, match=r"row 1 of old.csv is labelled 'dog', but was 'cat' in the run"):
        apply_to_table(tmp_path / "old.csv", tmp_path / "new.csv", "label", {0: 1}, audit_of(["cat", "cat"]), CLASSES)
    with refused("other-data"):
        apply_to_table(
            tmp_path / "old.csv", tmp_path / "new.csv", "label", {0: 1}, audit_of(["cat", "dog", "cat"]), CLASSES
        )
    assert not (tmp_path / "new.csv").exists()


# --- Parquet and npz


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()])
def test_parquet_keeps_its_schema(tmp_path, kind):
    frame = pd.DataFrame(
        {"x": np.float32([1, 2, 3]), "label": ["cat", "dog", "cat"], "when": pd.Timestamp("2026-01-01")}
    )
    table = pa.Table.from_pandas(frame)
    table = table.set_column(1, pa.field("label", kind, metadata={"a": "b"}), table.column("label").cast(kind))
    pyarrow.parquet.write_table(table, tmp_path / "old.parquet", compression="zstd", row_group_size=2)
    labels = audit_of(["cat", "dog", "cat"])
    apply_to_table(tmp_path / "old.parquet", tmp_path / "new.parquet", "label", {2: 1}, labels, CLASSES)
    old, new = (pyarrow.parquet.ParquetFile(tmp_path / f"{name}.parquet") for name in ("old", "new"))
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    assert new.metadata.num_row_groups == old.metadata.num_row_groups == 2
    assert new.metadata.row_group(0).column(0).compression == "ZSTD"
    assert new.read().column("label").to_pylist() == ["cat", "dog", "dog"]
    assert new.read().drop_columns(["label"]).equals(old.read().drop_columns(["label"]))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "labels", [np.array([5, 9, 5], np.uint8), np.array(["a", "bb", "a"]), np.array([[0], [1], [0]])]
)
def test_npz_keeps_its_other_arrays(tmp_path, save, labels):
    rng = np.random.default_rng(0)
    save(tmp_path / "old.npz", X_train=rng.normal(size=(3, 2)), y_train=labels, more=np.arange(4), x_test=np.zeros(0))
    classes = np.unique(labels).tolist()
    given = audit_of(labels.reshape(-1).tolist())
    apply_to_npz(tmp_path / "old.npz", tmp_path / "new.npz", {0: 1}, given, classes)
    with np.load(tmp_path / "old.npz") as old, np.load(tmp_path / "new.npz") as new:
        assert new.files == old.files
        for name in ("X_train", "more", "x_test"):
            assert new[name].tobytes() == old[name].tobytes()
        assert new["y_train"].dtype == labels.dtype
        assert new["y_train"].shape == labels.shape
        assert new["y_train"].reshape(-1).tolist() == [classes[1], classes[1], classes[0]]
    with zipfile.ZipFile(tmp_path / "old.npz") as old, zipfile.ZipFile(tmp_path / "new.npz") as new:
        assert [one.compress_type for one in new.infolist()] == [one.compress_type for one in old.infolist()]


# --- a labels file


def test_a_labels_file_is_read_again(tmp_path):
    table = labels_file(audit_of(["cat", "dog", "cat"]), {0: 1}, CLASSES, by_id=False)
    table.sample(frac=1, random_state=1).to_csv(tmp_path / "labels.csv", index=False)
    assert read_labels(tmp_path / "labels.csv", 3, CLASSES).tolist() == [1, 1, 0]
    assert read_labels(tmp_path / "labels.csv", 3, CLASSES, np.array([2, 0])).tolist() == [0, 1]
    by_id = labels_file(audit_of(["cat", "dog"], ["x/1", "x/2"]), {0: 1}, CLASSES, by_id=True)
    by_id.to_parquet(tmp_path / "labels.parquet")
    assert read_labels(tmp_path / "labels.parquet", 2, CLASSES, None, ["x/2", "x/1"]).tolist() == [1, 1]
    with pytest.raises(InputError, match=r"labels.parquet has no label for the example 'x/3'"):
        read_labels(tmp_path / "labels.parquet", 2, CLASSES, None, ["x/3"])
    with refused("missing-ids"):
        read_labels(tmp_path / "labels.parquet", 2, CLASSES)
    with refused("missing-label"):
        read_labels(tmp_path / "labels.csv", 4, CLASSES)
    (tmp_path / "twice.csv").write_text("index,label\n0,cat\n0,dog\n1,cat\n")
    with refused("duplicate-example"):
        read_labels(tmp_path / "twice.csv", 2, CLASSES)


# --- corrections


def test_decisions_become_corrections(tmp_path):
    table = audit_of(["cat", "dog", "cat", "dog"], ["a", "b", "c", "d"])
    made = [
        Decision(0, 1, "relabel", 1, "first", "2026-01-01T00:00:00Z"),
        Decision(1, 1, "keep", None, "first", "2026-01-01T00:00:00Z"),
        Decision(2, 1, "skip", None, "second", "2026-01-01T00:00:00Z"),
        Decision(3, 2, None, None, "second", "2026-01-01T00:00:00Z"),
    ]
    found = decisions_table(made, table, CLASSES)
    assert found["corrected"].tolist() == ["dog", "dog", None]
    assert found["decision"].tolist() == ["relabel", "keep", "skip"]
    for name, write in (("a.csv", found.to_csv), ("a.parquet", found.to_parquet)):
        write(tmp_path / name, index=False)
        read = read_corrections(tmp_path / name, table, CLASSES)
        assert read == {0: 1, 1: 1}
        assert corrected_labels(read, table, CLASSES) == ({0: 1}, [])


def test_what_is_excluded_is_left_out(tmp_path):
    table = audit_of(["cat", "dog", "cat", "dog"])
    made = [
        Decision(0, 1, "relabel", 1, "first", ""),
        Decision(2, 1, "exclude", None, "first", "", "unreadable", 'see, the "lens"'),
    ]
    found = decisions_table(made, table, CLASSES)
    assert found[["reason", "note"]].values.tolist() == [[None, None], ["unreadable", 'see, the "lens"']]
    found.to_csv(tmp_path / "a.csv", index=False)
    for source in (found, tmp_path / "a.csv"):
        read = read_corrections(source, table, CLASSES)
        assert read == {0: 1, 2: None}
    changes, left_out = corrected_labels(read, table, CLASSES)
    assert (changes, left_out) == ({0: 1}, [2])
    text = 'x,label\r\n"1",cat\r\n2,dog\r\n3,cat\r\n4,dog'
    (tmp_path / "t.csv").write_bytes(text.encode())
    apply_to_table(tmp_path / "t.csv", tmp_path / "new.csv", "label", changes, table, CLASSES, left_out)
    assert (tmp_path / "new.csv").read_bytes().decode() == 'x,label\r\n"1",dog\r\n2,dog\r\n4,dog'
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    apply_to_table(tmp_path / "t.parquet", tmp_path / "new.parquet", "label", changes, table, CLASSES, [2, 3])
    assert pd.read_parquet(tmp_path / "new.parquet").values.tolist() == [[1, "dog"], [2, "dog"]]
    np.savez(
        tmp_path / "t.npz", x=np.arange(8).reshape(4, 2), y=np.array(["cat", "dog", "cat", "dog"]), other=np.ones(3)
    )
    apply_to_npz(tmp_path / "t.npz", tmp_path / "new.npz", changes, table, CLASSES, left_out)
    with np.load(tmp_path / "new.npz") as new:
        assert new["x"].tolist() == [[0, 1], [2, 3], [6, 7]]
        assert (new["y"].tolist(), len(new["other"])) == (["dog", "dog", "dog"], 3)


def test_numbers_beside_empty_cells_stay_numbers(tmp_path):
    table = audit_of([0, 1, 0])
    found = decisions_table(
        [Decision(0, 1, "relabel", 1, "a", ""), Decision(2, 1, "skip", None, "a", "")], table, [0, 1]
    )
    found.to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame({"index": [0.0, 2.0], "corrected": [1.0, None]}).to_parquet(tmp_path / "a.parquet")
    assert read_corrections(tmp_path / "a.csv", table, [0, 1]) == {0: 1}
    assert read_corrections(tmp_path / "a.parquet", table, [0, 1]) == {0: 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("index,corrected\n9,cat\n", "row 0 of a.csv names the example 9, which the audit does not have"),
        ("index,corrected\nx,cat\n", "row 0 of a.csv names the example 'x'"),
        ("index,corrected\n0,cow\n", "unknown class in row 0 of a.csv 'cow': use one of cat, dog"),
        ("index,corrected\n0,cat\n0,dog\n", "row 1 of a.csv corrects example 0 a second time"),
        ("id,corrected\nz,cat\n", "row 0 of a.csv names 'z', which the audit does not have"),
        ("index,id,corrected\n0,b,cat\n", "names example 0 and 'b', which is example 1"),
        ("name,corrected\n0,cat\n", "a.csv has the columns name, corrected: corrections need index"),
        ("index,predicted_label\n0,cat\n", "to take every label as it is predicted, call that column corrected"),
        ("index,corrected\n", "a.csv has no rows"),
    ],
)
def test_wrong_corrections_get_a_sentence(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_corrections(tmp_path / "a.csv", audit_of(["cat", "dog"], ["a", "b"]), CLASSES)


def test_ids_need_ids(tmp_path):
    (tmp_path / "a.csv").write_text("id,corrected\na,cat\n")
    with refused("unknown-example"):
        read_corrections(tmp_path / "a.csv", audit_of(["cat", "dog"]), CLASSES)
    with refused("file-type"):
        read_corrections("a.txt", audit_of(["cat", "dog"]), CLASSES)


# --- moves


@pytest.fixture
def root(tmp_path):
    found = tmp_path / "images"
    for name in ("cat/a.jpg", "cat/deep/b.jpg", "dog/a.jpg", "dog/a-2.jpg", "cat/c.jpg"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(name)
    return found


def files(root):
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def plan(root):
    ids = ["cat/a.jpg", "cat/c.jpg", "cat/deep/b.jpg", "dog/a-2.jpg", "dog/a.jpg"]
    table = audit_of([name.partition("/")[0] for name in ids], ids)
    return plan_moves(root, table, {0: 1, 2: 1, 4: 0}, CLASSES)


def test_moves_go_there_and_back(root, tmp_path):
    before, moves = files(root), plan(root)
    assert [(one.old, one.new) for one in moves] == [
        ("cat/a.jpg", "dog/a-3.jpg"), ("cat/deep/b.jpg", "dog/deep/b.jpg"), ("dog/a.jpg", "cat/a-2.jpg"),
    ]  # fmt: skip
    write_moves(moves, tmp_path / "moves.csv")
    assert read_moves(tmp_path / "moves.csv") == moves
    assert not any_done(root, moves)
    assert do_moves(root, moves) == (3, 0)
    after = files(root)
    assert sorted(after.values()) == sorted(before.values())
    assert after["dog/a-3.jpg"] == "cat/a.jpg"
    assert do_moves(root, moves) == (0, 3)
    assert do_moves(root, [one.back() for one in moves]) == (3, 0)
    assert files(root) == before


def test_moves_go_on_after_a_stop_at_any_point(root):
    before, moves = files(root), plan(root)

    class Stop(Exception):
        pass

    def stop(done):
        raise Stop

    for _ in moves:
        with pytest.raises(Stop):
            do_moves(root, moves, stop)
    assert do_moves(root, moves) == (0, 3)
    assert sorted(files(root).values()) == sorted(before.values())


def test_a_kill_between_link_and_unlink_is_finished(root):
    moves = plan(root)
    os.link(root / "cat/a.jpg", root / "dog/a-3.jpg")
    assert do_moves(root, moves) == (3, 0)
    assert not (root / "cat/a.jpg").exists()
    assert (root / "dog/a-3.jpg").read_text() == "cat/a.jpg"


def test_no_file_is_written_over(root):
    moves = plan(root)
    (root / "dog/deep").mkdir()
    (root / "dog/deep/b.jpg").write_text("somebody else's")
    before = files(root)
    with refused("file-exists"):
        do_moves(root, moves)
    assert files(root) == before
    with refused("missing-file"):
        do_moves(root, [Move(0, "cat/z.jpg", "dog/z.jpg")])


def test_without_links_a_name_is_taken_first(root, monkeypatch):
    def refuse(*args, **options):
        raise OSError(95, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    before, moves = files(root), plan(root)
    assert do_moves(root, moves) == (3, 0)
    assert sorted(files(root).values()) == sorted(before.values())


@pytest.mark.parametrize("name", ["../cat/a.jpg", "/etc/passwd", "cat/../../a.jpg", "a.jpg", "", "cat\\a.jpg"])
def test_a_list_from_elsewhere_stays_in_the_folder(tmp_path, name):
    with (tmp_path / "moves.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["index", "from", "to"], [0, "cat/a.jpg", name]])
    with refused("outside-folder"):
        read_moves(tmp_path / "moves.csv")


def test_no_list_and_no_image(tmp_path, root):
    with refused("missing-file"):
        read_moves(tmp_path / "moves.csv")
    (tmp_path / "moves.csv").write_text("a,b\n1,2\n")
    with refused("bad-moves"):
        read_moves(tmp_path / "moves.csv")
    table = audit_of(["cat"], ["cat/gone.jpg"])
    with refused("missing-file"):
        plan_moves(root, table, {0: 1}, CLASSES)
