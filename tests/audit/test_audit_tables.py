"""Tables of label issues from anywhere: as ours, with one list of suspects, and refused in one sentence."""

import numpy as np
import pandas as pd
import pytest
from tests.audit.samples import audit
from tests.refusals import refused

from crust.audit.audit_tables import as_audit, suspects
from crust.runs.audit_source import open_audit
from crust.runs.show_source import looks_of_shown

THEIRS = {
    "is_label_issue": [True, False, False], "label_score": [0.1, 0.9, 0.5], "given_label": [0, 1, 2],
    "predicted_label": [1, 1, 2],
}  # fmt: skip


def test_our_own_table_comes_back_as_it_was():
    table = audit(20, ids=[f"cat/{i}.png" for i in range(20)]).assign(is_label_issue=True, aum=0.5)
    found, classes = as_audit(table)
    assert classes == ["cat", "cow", "dog"]
    pd.testing.assert_frame_equal(found[table.columns.tolist()], table, check_dtype=False)


def test_other_names_other_scales_and_other_places():
    found, classes = as_audit(pd.DataFrame(THEIRS, index=[7, 3, 5]))
    assert (found["index"].tolist(), classes) == ([7, 3, 5], [0, 1, 2])
    assert found["label_quality"].tolist() == [0.1, 0.9, 0.5]
    assert found["is_label_issue"].tolist() == [True, False, False]
    worst = pd.DataFrame({"label": ["01", "1"], "prediction": ["1", "1"], "mistakenness": [0.9, 0.2]})
    found, classes = as_audit(worst)
    assert (found["label_quality"].round(3).tolist(), classes) == ([0.1, 0.8], ["01", "1"])
    assert found["is_label_issue"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"given_label": None}, "missing-column"),
        ({"label_score": None}, "missing-column"),
        ({"label_score": [0.1, 2, 0.3]}, "score-range"),
        ({"label_score": ["a", 0.2, 0.3]}, "score-range"),
        ({"given_label": ["a", None, "b"]}, "missing-label"),
        ({"index": [0, 1, 1]}, "duplicate-example"),
        ({"index": ["a", "b", "c"]}, "index-type"),
        ({"index": [-1, 0, 1]}, "index-type"),
    ],
)
def test_what_is_no_audit_is_refused(change, code):
    columns = {name: values for name, values in {**THEIRS, **change}.items() if values is not None}
    with refused(code):
        as_audit(pd.DataFrame(columns))


def test_an_empty_table_is_refused():
    with refused("empty"):
        as_audit(pd.DataFrame(THEIRS).head(0))


def test_the_cut_of_verify_goes_before_the_issues():
    table = audit(30).assign(is_label_issue=False)
    assert not suspects(table).any()
    chosen = suspects(table, {"cut": {"threshold": 0.5}})
    assert chosen.tolist() == (1 - table["label_quality"] >= 0.5).tolist()


def test_a_table_in_a_file_knows_where_its_things_go(tmp_path):
    audit(20).to_csv(tmp_path / "mine.csv", index=False)
    source = open_audit(tmp_path / "mine.csv")
    assert source.report_path == tmp_path / "mine.report.html"
    assert source.review_path == tmp_path / "mine.review.sqlite"
    assert source.corrected_path(".csv") == tmp_path / "mine.corrected.csv"
    assert source.command("review") == f"crust review {tmp_path}/mine.csv"
    with refused("no-review"):
        source.store()


def test_labels_of_a_file_stay_as_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text("given,predicted,score\n01,1,0.2\n1,1,0.9\n")
    assert open_audit(tmp_path / "a.csv").classes == ["01", "1"]
    (tmp_path / "b.csv").write_text("given,predicted,score\n10,1,0.2\n1,1,0.9\n")
    assert open_audit(tmp_path / "b.csv").classes == [1, 10]


@pytest.mark.parametrize("index", [[0, 1, 2], [2, 0, 1], [1, 2]])
def test_whatever_python_has_can_be_shown(index):
    table = pd.DataFrame({"index": index})
    texts = ["zero", "one", "two"]
    assert looks_of_shown(texts, table).row(2) == ["two"]
    assert looks_of_shown(pd.Series(texts), table).row(1) == ["one"]
    assert looks_of_shown({"t": texts, "n": [1, 2, 3]}, table).row(1) == ["one", "2"]
    assert looks_of_shown(pd.DataFrame({"t": texts}), table).row(0) == ["zero"]
    images = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8)
    assert looks_of_shown(images, table).picture(1).size == (8, 8)
    assert looks_of_shown([(image, 0) for image in images], table).picture(1).size == (8, 8)
    assert looks_of_shown(np.ones((3, 2)), table).row(1) == ["1", "1"]
    with refused("cannot-show"):
        looks_of_shown(7, table)
    with refused("labels-length"):
        looks_of_shown(texts[:2], table)
    if len(index) == 3:
        with refused("labels-length"):
            looks_of_shown([*texts, "three"], table)


def test_a_dataset_of_hugging_face_is_shown():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": ["so good", "so bad"], "n": [1, 2]})
    assert looks_of_shown(data, pd.DataFrame({"index": [0, 1]})).row(1) == ["so bad", "2"]


def test_ids_lead_to_files_below_the_folder_and_nowhere_else(tmp_path):
    from PIL import Image

    (tmp_path / "photos").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "a.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    table = pd.DataFrame({"index": [0, 1], "id": ["a.png", "b.png"]})
    looks = looks_of_shown(tmp_path / "photos", table)
    assert looks.picture(0).size == (8, 8)
    assert looks.missing.startswith("1 of 2 images are no longer in")
    whole = table.assign(id=[str(tmp_path / "photos/a.png"), str(tmp_path / "photos/b.png")])
    assert looks_of_shown(str(tmp_path / "photos"), whole).picture(0).size == (8, 8)
    for bad in ("../secret.png", str(tmp_path / "secret.png")):
        with refused("outside-folder"):
            looks_of_shown(tmp_path / "photos", table.assign(id=[bad, "a.png"]))
    with refused("missing-image"):
        looks_of_shown(tmp_path / "photos", table.assign(id=["x.png", "y.png"]))
    with refused("missing-ids"):
        looks_of_shown(tmp_path / "photos", table[["index"]])
