"""To other tools and back: with their own objects where they are installed, else with files in their layout."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.audit.samples import audit
from tests.refusals import refused

from crust import exchange
from crust.audit.audit_tables import as_audit
from crust.corrections.corrected_labels import read_corrections
from crust.report.previews import Pictures, rows_of

CLASSES = ["cat", "cow", "dog"]


@pytest.fixture
def table():
    return audit(30, CLASSES, [f"{i % 3}/image {i}.png" for i in range(30)]).assign(is_label_issue=True)


def worst(table):
    return table.sort_values(["label_quality", "index"])["index"].tolist()


# --- cleanlab


@pytest.fixture(scope="module")
def problem():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    x, y = load_iris(return_X_y=True)
    given = y.copy()
    given[::10] = (given[::10] + 1) % 3
    return x, given, cross_val_predict(LogisticRegression(max_iter=1000), x, given, method="predict_proba")


def test_what_cleanlab_finds_is_an_audit(problem):
    filtering = pytest.importorskip("cleanlab.filter")
    _, given, probs = problem
    mask = filtering.find_label_issues(given, probs, n_jobs=1)
    table = exchange.from_cleanlab(mask, given, probs)
    assert np.array_equal(table["is_label_issue"], mask)
    ranked = filtering.find_label_issues(given, probs, return_indices_ranked_by="self_confidence", n_jobs=1)
    assert np.array_equal(exchange.from_cleanlab(ranked, given, probs)["is_label_issue"], mask)
    with refused("labels-length"):
        exchange.from_cleanlab(mask[:9], given, probs)
    with refused("options-missing"):
        exchange.from_cleanlab(mask)
    with refused("unknown-example"):
        exchange.from_cleanlab([999], given, probs)


@pytest.mark.filterwarnings("ignore")
def test_a_datalab_and_a_cleanlearning(problem):
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    from sklearn.linear_model import LogisticRegression

    x, given, probs = problem
    names = np.array(["setosa", "versicolor", "virginica"])[given]
    lab = cleanlab.Datalab({"x": x[:, 0].tolist(), "y": names.tolist()}, label_name="y")
    lab.find_issues(pred_probs=probs, issue_types={"label": {}})
    table = exchange.from_cleanlab(lab)
    assert table["given_label"].tolist() == names.tolist()
    assert np.array_equal(table["is_label_issue"], lab.get_issues("label")["is_label_issue"])
    # and ours into theirs: those that we list are left out of its training
    ours = exchange.to_cleanlab(table)
    learner = cleanlab.classification.CleanLearning(LogisticRegression(max_iter=1000))
    learner.fit(x, given, label_issues=ours)
    assert learner.get_label_issues()["is_label_issue"].sum() == table["is_label_issue"].sum()
    again, classes = as_audit(learner.get_label_issues())
    assert again["given_label"].tolist() == given.tolist()
    assert classes == [0, 1, 2]


# --- Label Studio


def annotated(tasks, labels, **more):
    """As Label Studio exports them: by the number of the task, its annotations."""
    done = []
    for number, task in enumerate(tasks):
        result = [
            {"value": {"choices": [name]}, "id": "a1", "from_name": "label", "to_name": "text", "type": "choices",
             "origin": "manual"} for name in labels(task)
        ]  # fmt: skip
        annotation = {"id": number, "completed_by": 1, "result": result, "was_cancelled": False, "ground_truth": False,
                      "created_at": "2026-01-01T00:00:00.000000Z", "lead_time": 2.5, **more}  # fmt: skip
        done.append({"id": 100 + number, "data": task["data"], "annotations": [annotation], "drafts": [],
                     "predictions": [], "meta": {}, "project": 1, "inner_id": number + 1})  # fmt: skip
    return done


def test_label_studio_there_and_back(table, tmp_path):
    texts = rows_of({"text": [f"text {i}" for i in range(30)]})
    path = tmp_path / "tasks.json"
    exchange.write_for("label-studio", table, path, looks=texts)
    tasks = json.loads(path.read_text())
    assert [task["data"]["crust_index"] for task in tasks] == worst(table)
    assert all(task["data"]["text"] == f"text {task['data']['crust_index']}" for task in tasks)
    done = annotated(tasks[:4], lambda task: ["dog"])
    done[1]["annotations"][0]["was_cancelled"] = True
    done[2]["annotations"].append(annotated(tasks[2:3], lambda task: ["cat"])[0]["annotations"][0])  # they do not agree
    path.write_text(json.dumps(done))
    first, _, _, fourth = worst(table)[:4]
    assert read_corrections(path, table, CLASSES) == {first: 2, fourth: 2}
    flat = [{**task["data"], "id": 1, "label": "cow", "annotator": 1, "lead_time": 1.0} for task in tasks[:2]]
    path.write_text(json.dumps(flat))  # JSON-MIN
    assert read_corrections(path, table, CLASSES) == dict.fromkeys(worst(table)[:2], 1)
    path.write_text(json.dumps(annotated(tasks[:1], lambda task: ["horse"])))
    with refused("unknown-class"):
        read_corrections(path, table, CLASSES)


def test_images_and_rows_in_label_studio(table, tmp_path):
    files = {i: tmp_path / name for i, name in enumerate(table["id"])}
    task = exchange.to_label_studio(table, Pictures(lambda index: None, files=files))[0]
    name = table["id"][worst(table)[0]]
    assert task["data"]["image"] == f"/data/local-files/?d={name.replace(' ', '%20')}"
    rows = rows_of({"age": list(range(30)), "town": ["Ulm"] * 30})
    task = exchange.to_label_studio(table, rows)[0]
    assert task["data"]["row"] == {"age": str(worst(table)[0]), "town": "Ulm"}
    assert task["predictions"][0]["result"][0]["to_name"] == "row"


# --- Argilla


def test_argilla_there_and_back(table, tmp_path):
    argilla = pytest.importorskip("argilla")
    texts = rows_of({"text": [f"text {i}" for i in range(30)]})
    records = [argilla.Record.from_dict(one) for one in exchange.to_argilla(table, texts)]
    assert records[0].fields["text"] == f"text {worst(table)[0]}"
    assert records[0].suggestions["label"].value == table["predicted_label"][worst(table)[0]]
    user = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
    for record in records[:3]:
        record.responses.add(argilla.Response("label", "cow", user_id=user))
    expected = dict.fromkeys(worst(table)[:3], 1)
    assert exchange.from_argilla(records).set_index("index")["corrected"].to_dict() == dict.fromkeys(expected, "cow")
    path = tmp_path / "records.json"
    path.write_text(json.dumps([record.to_dict() for record in records]))
    assert read_corrections(path, table, CLASSES) == expected


# --- FiftyOne: its database is not at hand, so files in the layout of its FiftyOneImageClassificationDataset


def test_fiftyone_there_and_back(table, tmp_path):
    path = tmp_path / "labels.json"
    exchange.write_for("fiftyone", table, path)
    found = json.loads(path.read_text())
    assert found["classes"] == CLASSES
    assert set(found["labels"]) == {name.removesuffix(".png") for name in table["id"]}
    one = found["labels"]["1/image 1"]
    assert (one["label"], one["attributes"]["crust_index"]) == (table["given_label"][1], 1)
    # exported again, with labels as numbers and without attributes, as FiftyOne does by default
    numbers = {name: CLASSES.index(one["label"]) for name, one in found["labels"].items()}
    numbers["1/image 1"] = other = (CLASSES.index(table["given_label"][1]) + 1) % 3
    path.write_text(json.dumps({"classes": CLASSES, "labels": numbers}))
    assert read_corrections(path, table, CLASSES)[1] == other
    assert len(exchange.from_fiftyone(tmp_path)) == 30
    with refused("missing-ids"):
        exchange.to_fiftyone(table.drop(columns="id"))


# --- what is no annotation


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no json", "file-type"), ("7", "file-type"), ("[]", "file-type"), ("{}", "file-type"), ("[7]", "file-type"),
        ('[{"data": {"text": "a"}, "annotations": [{"result": [{"type": "choices", "value": {"choices": ["x"]}}]}]}]',
         "unknown-example"),
        ('{"labels": {"no such image": "cat"}}', "unknown-example"),
        ('[{"annotations": [{"result": [{"type": "choices", "value": {"choices": ["cat"]}}]}], "crust_index": 9999}]',
         "unknown-example"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(table, tmp_path, text, code):
    (tmp_path / "a.json").write_text(text)
    with refused(code):
        read_corrections(tmp_path / "a.json", table, CLASSES)


def test_csv_goes_round(table, tmp_path):
    table.to_csv(tmp_path / "a.csv", index=False)
    found, classes = as_audit(pd.read_csv(tmp_path / "a.csv"))
    assert classes == CLASSES
    assert found["label_quality"].tolist() == table["label_quality"].tolist()
