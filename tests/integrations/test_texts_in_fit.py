"""`fit` with what users of `datasets` and transformers have: tokenised sets, collators, pretrained folders."""

import numpy as np
import pandas as pd
import pytest
from tests.integrations.texts import CLASSES, auroc, bert, collator, dataset
from tests.refusals import refused
from tokenizers.pre_tokenizers import Whitespace
from torch.utils.data import DataLoader
from typer.testing import CliRunner

import crust

FAST = {"epochs": 4, "batch_size": 16, "optimizer": "adamw", "learning_rate": 3e-3, "progress": False}


@pytest.fixture(scope="module")
def problem():
    return dataset(160)


@pytest.fixture(scope="module")
def collated(problem):
    return crust.fit(bert(), problem[0], label_column="label", collate_fn=collator(), show="text", **FAST)


def test_a_dataset_as_it_is_with_a_collator(problem, collated, tmp_path):
    rows, given, true = problem
    assert collated.classes == CLASSES
    table = collated.audit()
    assert table["text"].tolist() == rows["text"]
    assert auroc(table, given != true) > 0.6
    said = collated.predict(rows)
    assert (said == np.array(CLASSES)[given]).mean() > 0.45
    assert (collated.predict(rows.remove_columns(["label", "text"])) == said).all()
    assert (collated.predict(DataLoader(rows, 9, collate_fn=collator())) == said).all()
    assert rows["text"][0] in collated.report(tmp_path / "report.html").read_text()


def test_without_one_it_is_filled_up_as_the_collator_does(problem, collated):
    rows = problem[0]
    for given in (rows, rows.with_format("torch"), DataLoader(rows, 8, collate_fn=collator())):
        found = crust.fit(bert(), given, **FAST)
        assert found.classes == CLASSES
        assert (found.probabilities() == collated.probabilities()).all()


def test_a_run_goes_on_with_the_same_dataset_only(problem, tmp_path):
    rows = problem[0]
    options = {**FAST, "collate_fn": collator(), "run_dir": tmp_path}
    crust.fit(bert(), rows, stop_after=2, **options)
    with refused("changed-settings"):
        crust.fit(bert(), rows.select(range(159, -1, -1)), resume=True, **options)
    found = crust.fit(bert(), rows, resume=True, **options)
    assert len(found.history) == 4
    again = crust.load(tmp_path, bert(), collate_fn=collator())
    assert (again.predict_proba(rows) == found.predict_proba(rows)).all()


def test_texts_beside_tokens_are_read_by_networks_for_texts(problem):
    rows = problem[0]
    found = crust.fit("text", rows, **{**FAST, "learning_rate": 0.01})
    assert found.classes == CLASSES
    assert (found.predict(rows) == found.predict(rows["text"])).all()


@pytest.mark.parametrize(
    ("code", "model", "change", "options"),
    [
        ("label-column", bert, lambda rows: rows.remove_columns("label"), {}),
        ("label-column", bert, lambda rows: rows, {"label_column": "kind"}),
        ("cannot-mix", bert, lambda rows: rows, {"method": "crust-half"}),
        ("dataset-fields", bert, lambda rows: rows.select_columns(["label"]).add_column("a", rows["text"])
         .add_column("b", rows["text"]), {}),
        ("not-a-dataset", bert, lambda rows: rows.to_iterable_dataset(), {}),
        ("bad-collate", bert, lambda rows: rows, {"collate_fn": lambda items: items[0]["nothing"]}),
    ],
)  # fmt: skip
def test_refusals(problem, code, model, change, options):
    with refused(code):
        crust.fit(model(), change(problem[0]), **{**FAST, **options})


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A folder as `save_pretrained` writes it."""
    folder = tmp_path_factory.mktemp("bert")
    bert().save_pretrained(folder)
    tokenizer = collator().tokenizer
    tokenizer.backend_tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save_pretrained(folder)
    return folder


def test_a_pretrained_folder_trains_on_texts(problem, pretrained, tmp_path):
    rows, given, _ = problem
    options = {**FAST, "schedule": "linear"}
    found = crust.fit(f"hf:{pretrained}", rows.select_columns(["text", "label"]), run_dir=tmp_path, **options)
    assert found.config["model"] == f"hf:{pretrained}"
    assert found.audit()["text"].tolist() == rows["text"]
    by_lists = crust.fit(str(pretrained), (rows["text"], given), **options)
    assert (by_lists.probabilities() == found.probabilities()).all()
    again = crust.load(tmp_path)
    assert (again.predict_proba(rows["text"]) == found.predict_proba(rows)).all()
    plain = crust.fit(f"hf:{pretrained}", rows.select_columns(["text", "label"]), epochs=1, progress=False)
    how = plain.config["experiment"]
    assert (how["optimizer"], how["learning_rate"], how["schedule"]) == ("adamw", 5e-5, "linear")


def test_from_the_command_line(problem, pretrained, tmp_path, monkeypatch):
    from crust.cli.app import app

    monkeypatch.chdir(tmp_path)
    problem[0].to_pandas()[["text", "label"]].to_csv("mails.csv", index=False)
    words = ["train", "mails.csv", "--model", str(pretrained), "--epochs", "2", "-o", "run", "--quiet"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["predict", "run", "mails.csv", "-o", "said.csv", "--quiet"])
    assert done.exit_code == 0, done.output
    texts = problem[0]["text"]
    assert len(pd.read_csv("said.csv")) == len(texts)
    done = CliRunner().invoke(app, ["report", "run", "-o", "page.html"])
    assert done.exit_code == 0, done.output
    assert texts[0] in (tmp_path / "page.html").read_text()


def test_a_name_that_is_none(problem):
    with refused("download"):
        crust.fit("hf:/nowhere/at-all", problem[0].select_columns(["text", "label"]), **FAST)
