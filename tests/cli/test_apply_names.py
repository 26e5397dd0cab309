"""Corrections round and round: class names that look like numbers, and files that are read stay."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.common import FAST, call, decided, said
from tests.cli.image_runs import folder_run, images, run_of

from crust.corrections.corrected_labels import read_corrections
from crust.data import read_labels, table_io
from crust.errors import InputError
from crust.runs.folder import RunFolder


def after(out, word):
    """The command that stands behind a word, as `call` takes it."""
    return shlex.split(re.search(rf"{word}: crust ([^;\n]*)", out)[1])


# --- names that look like something else


NAMES = [("01", "02", "03"), ("false", "true"), ("EU", "NA"), ("1e1", "2e1"), ("null", "x"), ("1", "10", "2")]


@pytest.mark.parametrize("classes", NAMES, ids="-".join)
def test_classes_of_any_name_go_round(tmp_path, monkeypatch, capsys, classes):
    """Train on wrong labels, review, export, apply, and train on what was written, by the printed command."""
    monkeypatch.chdir(tmp_path)
    images(tmp_path / "images", classes)
    assert call(f"train images --noise symmetric:0.2 {FAST} -o run") == 0
    table, names = RunFolder("run").audit()
    assert names == list(classes)
    # what is corrected is of the last class only: nothing else in the file says what kind of names these are
    rows = table.index[table["given_label"] != classes[-1]][:3].tolist()
    decided("run", **{f"e{row}": classes[-1] for row in rows})
    assert call("review run --export c.csv -q") == 0
    assert call("apply run c.csv -o by-table.csv -q") == 0
    assert call("apply run") == 0
    told = after(capsys.readouterr().out, "next")
    assert Path("by-table.csv").read_bytes() == Path("run/corrected.csv").read_bytes()
    assert call([*told, *FAST.split(), "-o", "again"]) == 0
    expected = table["given_label"].tolist()
    for row in rows:
        expected[row] = classes[-1]
    assert RunFolder("again").audit()[0]["given_label"].tolist() == expected


@pytest.mark.parametrize("classes", NAMES, ids="-".join)
def test_label_files_are_read_by_name(tmp_path, classes):
    path = tmp_path / "labels.csv"
    for used in (list(classes), [classes[0]], [classes[-1], classes[-1]]):
        codes = [classes.index(name) for name in used]
        path.write_text("index,label\n" + "".join(f"{i},{name}\n" for i, name in enumerate(used)))
        assert read_labels(path, len(used), classes).tolist() == codes
        assert read_labels(f"{path}:label", len(used), classes).tolist() == codes
        path.write_text("id,label\n" + "".join(f"0{i},{name}\n" for i, name in enumerate(used)))
        assert read_labels(path, len(used), classes, None, [f"0{i}" for i in range(len(used))]).tolist() == codes


def test_numbers_are_no_positions_where_they_may_be_names(tmp_path):
    path, classes = tmp_path / "labels.csv", ["01", "02", "03"]
    path.write_text("index,label\n0,1\n1,2\n")
    with pytest.raises(InputError, match=r"unknown class in row 0 of labels.csv '1': use one of 01, 02, 03"):
        read_labels(path, 2, classes)
    with pytest.raises(InputError, match=r"labels.csv:label holds 1, which is no class, nor taken for a position"):
        read_labels(f"{path}:label", 2, classes)
    np.save(tmp_path / "labels.npy", np.array([1, 2]))
    with pytest.raises(InputError, match=r"labels.npy holds 1, which is no class"):
        read_labels(tmp_path / "labels.npy", 2, classes)
    # where no name is a number, they are
    assert read_labels(path, 2, ["cat", "dog", "cow"]).tolist() == [1, 2]
    assert read_labels(f"{path}:label", 2, ["cat", "dog", "cow"]).tolist() == [1, 2]
    assert read_labels(tmp_path / "labels.npy", 2, ["cat", "dog", "cow"]).tolist() == [1, 2]
    # and names that tables have made decimal numbers of are still known
    path.write_text("index,label\n0,1.0\n1,2.0\n")
    assert read_labels(path, 2, ["1", "2"]).tolist() == [0, 1]
    assert read_labels(f"{path}:label", 2, ["1", "2"]).tolist() == [0, 1]
    pd.DataFrame({"index": [0, 1], "label": [1, 2]}).to_parquet(tmp_path / "labels.parquet")
    assert read_labels(tmp_path / "labels.parquet", 2, ["1", "2"]).tolist() == [0, 1]


def test_columns_are_text_where_that_is_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n01,01\nNA,NA\n,\n")
    found = table_io.read_table_file(tmp_path / "a.csv", ["b", "not there"]).to_pydict()
    assert found == {"a": [1, None, None], "b": ["01", "NA", ""]}


def test_new_rows_are_looked_up_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kinds = ["01", "02", "other"] * 10
    pd.DataFrame({"x": range(30), "label": kinds}).to_csv("t.csv", index=False)
    assert call(f"train t.csv {FAST} -o run") == 0
    pd.DataFrame({"x": range(2), "label": ["01", "02"]}).to_csv("new.csv", index=False)
    assert call("predict run new.csv -o p.csv -q") == 0
    assert pd.read_csv("p.csv", dtype=str)["label"].tolist() == ["01", "02"]


def test_columns_of_probabilities_are_found_by_name(tmp_path, monkeypatch):
    """With the columns true and false, a label true is not column 1."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"true": [0.9, 0.1, 0.8], "false": [0.1, 0.9, 0.2]}).to_csv("p.csv", index=False)
    Path("l.csv").write_text("label\ntrue\nfalse\ntrue\n")
    assert call("audit --probs p.csv --labels l.csv -o a.csv -q") == 0
    assert (pd.read_csv("a.csv")["label_quality"] > 0.5).all()


def test_true_is_no_index(tmp_path):
    audit = pd.DataFrame({"index": [0, 1], "given_label": ["cat", "dog"]})
    (tmp_path / "a.csv").write_text("index,corrected\ntrue,cat\n")
    with pytest.raises(InputError, match=r"row 0 of a.csv names the example True, which the audit does not have"):
        read_corrections(tmp_path / "a.csv", audit, ["cat", "dog"])
    (tmp_path / "a.csv").write_text("index,corrected\ninf,cat\n")
    with pytest.raises(InputError, match=r"row 0 of a.csv names the example inf"):
        read_corrections(tmp_path / "a.csv", audit, ["cat", "dog"])
    (tmp_path / "b.csv").write_text("index,label\ntrue,cat\nfalse,dog\n")
    with pytest.raises(InputError, match=r"the column index of b.csv holds true and false: give positions from 0"):
        read_labels(tmp_path / "b.csv", 2, ["cat", "dog"])


# --- what is read is not written over


def test_no_command_writes_over_what_it_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.full((4, 2), 0.5))
    Path("lt.csv").write_text("label,x\n0,1\n1,2\n0,3\n1,4\n")
    folder_run(tmp_path)
    Path("corr.csv").write_text("index,corrected\n0,dog\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for words in (
        "audit --probs p.npy --labels lt.csv:label -o lt.csv",
        "apply run corr.csv -o corr.csv",
        "apply run corr.csv -o ./corr.csv --move",
        "audit run -o run/audit.parquet",
    ):
        said(capsys, words, r"(-o|output) .* would overwrite what is read: write to another file")
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    Path("a:b.csv").write_text("label\n0\n1\n0\n1\n")  # a colon in a name that is one is no key
    assert call("audit --probs p.npy --labels a:b.csv -o a.csv -q") == 0


def test_labels_and_noise_of_the_run_are_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("x,y\n1,cat\n2,dog\n")
    Path("corr.csv").write_text("index,corrected\n0,dog\n")
    for name, options in {
        "human.csv": {"labels": f"{tmp_path}/human.csv:worse"},
        "true.csv": {"true_labels": f"{tmp_path}/true.csv:label", "labels": "x.npy"},
        "m.csv": {"noise": f"matrix:{tmp_path}/m.csv"},
    }.items():
        run_of(tmp_path / f"run-{name}", ["a", "b"], ["cat", "dog"], tmp_path / "t.csv", ["cat", "dog"], **options)
        said(capsys, f"apply run-{name} corr.csv -o {name}", "would overwrite what is read")
