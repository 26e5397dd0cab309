"""The report's page: what it says, that it needs nothing else, and that data cannot become anything but text."""

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest
from tests.audit.samples import HOSTILE, audit
from tests.refusals import refused

from crust.audit import find_label_issues
from crust.data import from_arrays
from crust.errors import InputError
from crust.report import payload
from crust.report.document import page
from crust.report.page import audit_page
from crust.report.previews import Pictures, as_image, numbers_of, picture_bytes, pictures_of, rows_of

CLASSES = ["cat", "dog", "cow"]


def estimate(value):
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def calibration():
    curve = [
        {"threshold": 1 - n / 30, "flagged": n, "precision": estimate(0.8), "recall": estimate(n / 40 + 0.1)}
        for n in range(1, 20)
    ]
    return {
        "version": 2, "cannot_say": None, "level": 0.9,
        "examples": 30, "injected": {"count": 3, "share": 0.1, "seed": 0, "seconds": 1.0},
        "noise_rate": estimate(0.25), "classes": CLASSES, "transitions": {}, "curve": curve, "cut": curve[10],
        "notes": ["<b>keep</b> this in mind"],
    }  # fmt: skip


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def unpack(packed, name, dtype):
    return np.frombuffer(base64.b64decode(packed[name]), dtype)


def test_all_examples_are_there_worst_first():
    table = audit(50, CLASSES, [f"file {i}" for i in range(50)])
    table.loc[3, "label_quality"] = np.nan
    packed = data_of(audit_page(table, CLASSES))
    order = table.sort_values("label_quality")
    assert unpack(packed, "index", "<u4").tolist() == order["index"].tolist()
    assert packed["ids"] == order["id"].tolist()
    names = np.array(CLASSES)
    assert names[unpack(packed, "given", "<u2")].tolist() == order["given_label"].tolist()
    assert names[unpack(packed, "suggested", "<u2")].tolist() == order["predicted_label"].tolist()
    error_score = unpack(packed, "error_score", "<u2")
    np.testing.assert_allclose(error_score[:-1] / packed["scale"], 1 - order["label_quality"].iloc[:-1], atol=1e-4)
    assert error_score[-1] == 65535  # not known
    assert unpack(packed, "held", "u1").tolist() == order["is_held_out"].astype(int).tolist()


def test_it_stands_alone_and_runs_only_its_own_script():
    text = audit_page(audit(), CLASSES, calibration=calibration())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in text.replace("http-equiv", "")
    assert not re.search(r"<[^>]* (on\w+|style|src|href)=(?!\"#)", text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    import hashlib

    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode() in policy


@pytest.mark.parametrize("bad", HOSTILE)
def test_nothing_from_the_data_becomes_markup(bad):
    classes = [bad, "b"]
    table = audit(6, classes, [f"{bad} {i}" for i in range(6)])
    text = audit_page(table, classes, looks=rows_of({bad: [bad] * 6, "x": range(6)}), name=bad, without=bad)
    text.encode("utf-8")
    plain = audit_page(
        audit(6, ["a", "b"], "abcdef"),
        ["a", "b"],
        looks=rows_of({"y": ["z"] * 6, "x": range(6)}),
        name="n",
        without="w",
    )
    # The same elements in the same number, whatever the data says: only numbers and text differ.
    assert sorted(re.findall(r"<[a-z!/]+", text)) == sorted(re.findall(r"<[a-z!/]+", plain))
    packed = data_of(text)
    assert packed["classes"][0] == re.sub(r"[\x00\x1b\ud800]", "\ufffd", bad)
    assert packed["rows"][str(table["index"][0])][0].startswith(packed["classes"][0][:50])


def test_the_summary_says_what_is_known():
    table = audit(40, CLASSES)
    commands = ["crust review 'my runs/one'", "crust audit 'my runs/one' --issues"]
    text = audit_page(table, CLASSES, verify="crust verify 'my runs/one'", next_steps=commands)
    differ = int((table["given_label"] != table["predicted_label"]).sum())
    assert f"{differ} of 40 labels" in text
    assert "All of these are listed as label issues" in text
    assert "crust verify &#39;my runs/one&#39; does it" in text
    assert all(command.replace("'", "&#39;") in text for command in commands)
    assert "What to do next" not in audit_page(table, CLASSES)
    assert "How far to trust it" not in text
    text = audit_page(table, CLASSES, calibration=calibration())
    assert "Estimated noise rate: 25 % (90% interval: 15 to 35 %)." in text
    assert "look at the 11 labels with a label quality of 0.37 or less" in text
    assert "&lt;b&gt;keep&lt;/b&gt; this in mind" in text
    assert text.count("<polyline") == 2
    assert 'class="cut"' in text
    assert (
        "Measured from 3 labels that were made wrong on purpose; the bands are 90\N{NO-BREAK SPACE}% intervals." in text
    )
    text = audit_page(table, CLASSES, calibration={**calibration(), "cut": None, "curve": []})
    assert "No label stands out as wrong." in text


def test_the_matrix_counts_every_pair():
    table = audit(60, CLASSES)
    cells = re.findall(r'data-given="(\d)" data-suggested="(\d)"[^>]*>(\d+)<', audit_page(table, CLASSES))
    expected = table.groupby(["given_label", "predicted_label"]).size()
    assert {(CLASSES[int(a)], CLASSES[int(b)]): int(n) for a, b, n in cells} == expected.to_dict()
    many = [f"class {i}" for i in range(50)]
    table = audit(200, many)
    cells = re.findall(r'data-given="(\d+)" data-suggested="(\d+)"[^>]*>(\d+)<', audit_page(table, many))
    assert len(cells) == 40  # the most frequent pairs, where the matrix is too large
    assert all(a != b for a, b, _ in cells)


def test_classes_that_are_hardly_selected_and_duplicates_are_named():
    table = audit(40, CLASSES)
    table.loc[table["predicted_label"] == "cow", "predicted_label"] = "cat"
    text = audit_page(table, CLASSES)
    assert text.count(">hardly selected<") == 1
    assert "The same example" not in text
    table["duplicate_of"] = -1
    table.loc[5, ["duplicate_of", "given_label"]] = [4, "dog"]
    table.loc[4, "given_label"] = "<i>cat</i>"
    text = audit_page(table, ["<i>cat</i>", *CLASSES])
    assert "2 examples are the same to the last bit as others with another label" in text


def test_pictures_of_the_worst_and_of_what_is_near(monkeypatch):
    monkeypatch.setattr(payload, "PICTURES", 5)
    table = audit(20, CLASSES)
    table["medoids"] = [[(i + 1) % 20, (i + 2) % 20] for i in range(20)]
    asked = []

    def read(index):
        asked.append(index)
        if index == 7:
            raise InputError("image 7 is gone")
        return as_image(np.full((60, 40, 3), index, np.uint8))

    packed = data_of(audit_page(table, CLASSES, looks=Pictures(read)))
    worst = table.sort_values("label_quality")["index"].tolist()[:5]
    near = {medoid for index in worst for medoid in table["medoids"][index]}
    assert set(map(int, packed["pictures"])) == {*worst, *near} == set(asked)
    assert len(asked) == len(set(asked))
    assert all(value.startswith("data:image/webp;base64,") for value in packed["pictures"].values() if value)
    assert [key for key, value in packed["pictures"].items() if value is None] == (["7"] if 7 in asked else [])
    assert [one["index"] for one in packed["evidence"][str(worst[0])]] == table["medoids"][worst[0]]
    assert [CLASSES[one["label"]] for one in packed["evidence"][str(worst[0])]] == [
        table["given_label"][i] for i in table["medoids"][worst[0]]
    ]


def test_the_size_of_the_page_is_bounded(monkeypatch):
    monkeypatch.setattr(payload, "MOST", 40)
    monkeypatch.setattr(payload, "PICTURE_BYTES", 3000)
    monkeypatch.setattr(payload, "TEXT", 3000)
    monkeypatch.setattr(payload, "NAMES", 200)
    table = audit(100, CLASSES, [f"a long name {i:09d}" for i in range(100)])
    packed = payload.pack(table, CLASSES, rows_of({"text": ["x" * 500] * 100}), most=40)
    assert (packed["count"], packed["total"], len(packed["rows"])) == (40, 100, 5)
    assert sum(map(bool, packed["ids"])) == 8  # of 25 bytes each, quotes and all
    noise = np.random.default_rng(0).integers(256, size=(3, 96, 96), dtype=np.uint8)
    packed = payload.pack(table, CLASSES, Pictures(lambda index: as_image(noise)), most=40)
    assert sum(map(len, packed["pictures"].values())) <= 3000
    text = audit_page(table, CLASSES, without="the disk is away")
    assert "since the disk is away" in text


def test_an_audit_of_other_classes_is_refused():
    with pytest.raises(InputError, match=r"row 0 of the column 'given_label' holds '.*', which is no class"):
        audit_page(audit(5, CLASSES), ["a", "b"])


def test_examples_are_shown_as_they_are():
    grey = np.arange(4 * 8 * 8, dtype=np.uint8).reshape(4, 8, 8)
    found = pictures_of(from_arrays(grey, [0, 1, 0, 1])).picture(2)
    assert np.array_equal(np.asarray(found), grey[2])
    assert picture_bytes(found, 96)[1] == "image/png"
    floats = as_image(np.linspace(-1, 1, 3 * 30 * 30).reshape(3, 30, 30))
    assert (floats.size, floats.mode) == ((30, 30), "RGB")
    assert np.asarray(floats).max() == 255
    assert as_image(np.full((5, 5, 4), 9, np.uint8)).mode == "RGB"
    with refused("no-image"):
        as_image(np.zeros((2, 5, 5)))
    rows = rows_of(pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None], "label": [0, 1]}), ["label"])
    assert (rows.columns, rows.row(0), rows.row(1)) == (["a", "b"], ["1.5", "x"], ["", ""])
    assert len(rows_of({"t": ["y" * 100_000]}).row(0)[0]) < 21_000
    assert numbers_of(np.array([[1.0, 2.5]])).row(0) == ["1", "2.5"]


def test_an_audit_without_training_has_a_page():
    rng = np.random.default_rng(0)
    table = find_label_issues(rng.integers(3, size=50), rng.dirichlet(np.ones(3), size=50))
    text = audit_page(table, looks=rows_of({"text": [f"sentence {i}" for i in range(50)]}))
    packed = data_of(text)
    assert (packed["count"], packed["classes"], len(packed["rows"])) == (50, ["0", "1", "2"], 50)
    assert (unpack(packed, "chosen", "<u2") == 65535).all()


def test_a_page_without_script_runs_none():
    assert "script-src 'none'" in page("report/document.html.j2", "a title")
