"""`crust train` on a table of texts, and all that follows: predict, audit, report, review, verify, apply."""

import csv
import shlex

import pandas as pd
import pytest
from tests.cli.common import call, decided, packed, said
from tests.data.test_text import reviews

from crust.runs.data import looks_or_reason
from crust.runs.folder import RunFolder

QUICK = "--method erm --epochs 4 --batch-size 16 --learning-rate 0.01 --set optimizer=adamw"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    texts, labels = reviews(240)
    frame = pd.DataFrame({"sender": range(240), "body": texts, "kind": labels})
    frame.to_csv(folder / "mails.csv", index=False)
    frame[["body"]].head(15).to_csv(folder / "new.csv", index=False)
    words = f"train {folder}/mails.csv --text-column body --label-column kind {QUICK} -q -o {folder}/run"
    assert call(words) == 0
    return folder, texts, labels


def test_new_texts_are_predicted(made, tmp_path):
    folder, _, labels = made
    assert call(f"predict {folder}/run {folder}/new.csv -q -o {tmp_path}/p.csv") == 0
    with (tmp_path / "p.csv").open() as file:
        found = [row["predicted"] for row in csv.DictReader(file)]
    assert found == labels[:15].tolist()


def test_audit_report_and_review_show_the_texts(made, capsys):
    folder, texts, _ = made
    assert call(f"audit {folder}/run") == 0
    assert "the " in capsys.readouterr().out
    assert call(f"report {folder}/run -q") == 0
    assert texts[0] in str(packed(folder / "run" / "report.html")["rows"])
    run = RunFolder(folder / "run")
    looks, _ = looks_or_reason(run, run.audit()[0])
    assert (looks.columns, looks.row(3)) == (["body", "sender"], [texts[3], "3"])


def test_without_the_data_the_beginning_of_each_text_is_shown(made):
    folder, texts, _ = made
    run = RunFolder(folder / "run")
    table = run.audit()[0]
    (folder / "mails.csv").rename(folder / "away.csv")
    looks, reason = looks_or_reason(run, table)
    (folder / "away.csv").rename(folder / "mails.csv")
    assert (looks.columns, looks.row(3), reason) == (["text"], [texts[3]], None)


def test_corrected_labels_go_into_the_table(made, capsys):
    folder, texts, labels = made
    decided(folder / "run", i0="bad" if labels[0] == "good" else "good")
    assert call(f"apply {folder}/run -o {folder}/fixed.csv") == 0
    shown = capsys.readouterr().out
    assert "--text-column body" in shown
    fixed = pd.read_csv(folder / "fixed.csv")
    assert (fixed["kind"] != labels).tolist() == [True] + [False] * 239
    assert fixed["body"].tolist() == texts


def test_verify_trains_on_the_texts_again(made):
    folder, *_ = made
    assert call(f"verify {folder}/run -q") == 0


def test_noise_that_depends_on_the_text_can_be_made(made):
    folder, *_ = made
    words = f"train {folder}/mails.csv --text-column body --label-column kind --noise instance:0.2 {QUICK} -q"
    assert call(f"{words} -o {folder}/noisy") == 0


def test_the_only_column_is_taken_and_it_is_said(made, capsys):
    folder, texts, labels = made
    pd.DataFrame({"words": texts, "label": labels}).to_csv(folder / "plain.csv", index=False)
    assert call(f"train {folder}/plain.csv {QUICK} -o {folder}/plain") == 0
    shown = capsys.readouterr()
    assert "column 'words' of plain.csv holds texts: they are learned from as texts" in shown.err
    assert "erm, text on" in shown.out
    assert call(shlex.join(["train", "--resume", "-o", f"{folder}/plain", "-q"])) == 0


def test_what_cannot_be_is_one_sentence(made, capsys):
    folder, *_ = made
    said(capsys, f"train {folder}/mails.csv --text-column boody --label-column kind", "did you mean 'body'")
    said(capsys, "train digits --text-column body", "digits has no columns")
    said(
        capsys, f"train {folder}/mails.csv --text-column body --label-column kind --model mlp -q", "use the model text"
    )
