"""`crust audit | report | review | apply` on tables, features and probabilities; and the chain of their next steps."""

import io
import re
import signal
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.audit.samples import audit
from tests.cli.common import call, packed, said
from tests.cli.test_review import Server, handmade

import crust
from crust.exchange import read_annotations
from crust.review import Change
from crust.runs.audit_source import open_audit


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=60)
    given = np.where(np.arange(60) % 10 == 0, (true + 1) % 3, true)
    np.save("f.npy", np.eye(3)[true] * 5 + rng.normal(size=(60, 3)))
    np.save("l.npy", given)
    np.save("p.npy", np.eye(3)[true] * 0.7 + 0.1)
    Path("texts.csv").write_text("body,label\n" + "".join(f'"text {i}, so",{given[i]}\n' for i in range(60)))
    audit(60, ids=[f"cat/{i}.png" for i in range(60)]).to_csv("mine.csv", index=False)
    return given


def decided(source, *changes):
    store = source.store(new=True)
    store.decide([Change(*one) for one in changes], who="first")
    store.close()


def nexts(text):
    return re.findall(r"crust \w+[^,\n]*?(?=,? or |, crust|\n|$)", text.split("next: ")[-1])


def test_the_chain_from_features(here, capsys):
    assert call("audit --features f.npy --labels l.npy --top 3") == 0
    out = capsys.readouterr().out
    assert nexts(out) == [
        "crust report --features f.npy --labels l.npy",
        "crust review --features f.npy --labels l.npy",
    ]
    assert call("report --features f.npy --labels l.npy --show texts.csv:body") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "next: crust review --features f.npy --labels l.npy --show texts.csv:body"
    found = packed("f.report.html")
    assert found["columns"] == ["body"]
    assert found["rows"]["7"] == ["text 7, so"]
    assert len(found["evidence"]["0"]) == 3
    assert found["xy"] is not None
    assert Path("f.map.npz").is_file()
    source = open_audit(features="f.npy", labels="l.npy")
    decided(source, (0, 0, "relabel", 2), (10, 0, "keep"), (20, 0, "exclude", None, "unreadable", "look again"))
    assert call("review --features f.npy --labels l.npy --export d.csv") == 0
    out = capsys.readouterr().out
    assert "3 decisions, 1 of them new labels, 1 excluded, written to: d.csv" in out
    assert "next: crust apply --features f.npy --labels l.npy --corrections d.csv" in out
    assert call("apply --features f.npy --labels l.npy") == 0
    out = capsys.readouterr().out
    assert "1 of 60 labels changed, 1 example left out, written to: f.corrected.npy" in out
    new = here.copy()
    new[0] = 2
    assert np.load("f.corrected.npy").tolist() == np.delete(new, 20).tolist()
    assert call("apply --features f.npy --labels l.npy --corrections d.csv -o again.npy -q") == 0
    assert Path("again.npy").read_bytes() == Path("f.corrected.npy").read_bytes()
    assert call("apply --features f.npy --labels texts.csv:label --corrections d.csv -q") == 0
    lines = Path("f.corrected.csv").read_text().splitlines()
    assert len(lines) == 60
    assert lines[1] == '"text 0, so",2'


def test_a_table_of_cleanlab(here, capsys):
    columns = {"is_label_issue": [True, False], "label_score": [0.1, 0.8], "given_label": ["a", "b"]}
    pd.DataFrame({**columns, "predicted_label": ["b", "b"]}).to_parquet("lab.parquet")
    assert call("audit lab.parquet") == 0
    out = capsys.readouterr().out
    assert "1 of 2 labels are label issues" in out
    assert nexts(out) == ["crust report lab.parquet", "crust review lab.parquet"]
    Path("two.txt").write_text("one\ntwo\n")
    assert call("report lab.parquet --show two.txt") == 0
    assert capsys.readouterr().out.splitlines() == [
        "look at: lab.report.html",
        "next: crust review lab.parquet --show two.txt",
    ]
    decided(open_audit("lab.parquet"), (0, 0, "relabel", 1))
    assert call("apply lab.parquet") == 0
    assert "1 of 2 labels changed, written to: lab.corrected.csv" in capsys.readouterr().out
    assert Path("lab.corrected.csv").read_text() == "index,label\n0,b\n1,b\n"
    Path("data.csv").write_text("x,kind\n1,a\n2,b\n")
    assert call("apply lab.parquet --data data.csv --label-column kind") == 0
    assert "next: crust train lab.corrected.csv --label-column kind" in capsys.readouterr().out
    assert Path("lab.corrected.csv").read_text() == "x,kind\n1,b\n2,b\n"


def test_a_table_with_numbers_shown_has_a_map_and_evidence(here, capsys):
    assert call("audit --features f.npy --labels l.npy -o theirs.csv -q") == 0
    assert call("report theirs.csv -q") == 0
    assert packed("theirs.report.html")["xy"] is None
    assert call("report theirs.csv --show f.npy -q") == 0
    found = packed("theirs.report.html")
    assert found["xy"] is not None
    table = pd.read_csv("theirs.csv", index_col="index")
    wrong = table.index[table["is_label_issue"]]
    assert len(wrong)
    for index in wrong:  # the features tell the classes apart, so that what is near has the predicted label
        near = [found["classes"][one["label"]] for one in found["evidence"][str(index)]]
        assert near == [str(table["predicted_label"][index])] * 3
    assert "the numbers that are shown" in Path("theirs.report.html").read_text()
    Path("digits.csv").write_text("index,corrected\n0,1\n")
    np.savez("data.npz", x=np.load("f.npy"), y=np.load("l.npy"))
    assert call("apply theirs.csv digits.csv --data data.npz") == 0
    assert capsys.readouterr().out.endswith("next: crust train theirs.corrected.npz\n")


def test_labels_that_are_numbers_are_not_taken_for_other_columns(here, capsys):
    columns = dict(zip("123", np.load("p.npy").T, strict=True))
    pd.DataFrame(columns).to_parquet("shifted.parquet")
    said(capsys, "audit --probs shifted.parquet --labels l.npy", "the columns of the probabilities are called 1, 2, 3")


def test_just_the_list(here, capsys):
    assert call("audit mine.csv --issues -o issues.csv --top 2") == 0
    out = capsys.readouterr().out
    table = pd.read_csv("mine.csv")
    wrong = table[table["given_label"] != table["predicted_label"]].sort_values(["label_quality", "index"])
    assert pd.read_csv("issues.csv")["index"].tolist() == wrong["index"].tolist()
    assert f"all {len(wrong)} label issues, worst first: issues.csv" in out
    for tool, count in (("label-studio", len(wrong)), ("argilla", len(wrong)), ("fiftyone", 2)):
        assert call(f"audit mine.csv --issues --to {tool} -o {tool}.json -q") == 0
        assert len(pd.read_json(f"{tool}.json", typ="series")) == count
    assert len(read_annotations("fiftyone.json")) == len(wrong)
    said(capsys, "audit mine.csv --to excel -o a.csv", "unknown tool 'excel'")
    said(capsys, "audit mine.csv --to argilla", "name it with -o")
    said(capsys, "audit mine.csv --to argilla -o a.csv", "the name must end in .json")
    said(capsys, "audit mine.csv -o mine.csv", "would overwrite what is read")


def test_counts_agree_on_page_and_terminal_and_names_are_whole(here, capsys):
    name = f"folder with a very long name indeed/{'x' * 150}.png"
    table = pd.read_csv("mine.csv").assign(id=[f"{i} {name}" for i in range(60)])
    table.to_csv("mine.csv", index=False)
    assert call("audit mine.csv --top 5") == 0
    out = capsys.readouterr().out
    assert out.count(name) == 5
    listed = int((table["given_label"] != table["predicted_label"]).sum())
    assert f"{listed} of 60 labels are label issues" in out
    counts = table.groupby(["given_label", "predicted_label"]).size()
    row = next(line for line in out.splitlines() if re.match(r" *cat +\d", line))
    assert [int(n) for n in row.split()[1:4]] == [counts["cat", other] for other in ("cat", "cow", "dog")]
    assert call("report mine.csv -q") == 0
    text = Path("mine.report.html").read_text()
    assert f"<dd>{listed}</dd>" in text
    assert f'data-given="0" data-suggested="1" aria-label="{counts["cat", "cow"]} given cat, predicted cow"' in text


def test_bad_input_is_one_sentence(here, capsys):
    said(capsys, "audit texts.csv", r"texts.csv has no column predicted_label \(it has body, label\)")
    said(capsys, "review nowhere.csv", "there is no table nowhere.csv")
    said(capsys, "report f.npy", "is no table of label issues: give a file ending in .csv")
    said(capsys, "report mine.csv --show here", "there is no file here: check the path")
    Path("photos").mkdir()
    said(capsys, "report mine.csv --show photos", "none of the 60 names leads to an image below photos")
    said(capsys, "report mine.csv --show texts.csv:subject", "texts.csv has no column 'subject'")
    pd.DataFrame({"cat": [0.5] * 60, "dog": [0.5] * 60}).to_csv("other.csv", index=False)
    said(capsys, "report --probs other.csv --labels l.npy", "(class|label)")
    said(capsys, "apply mine.csv", "mine has no review yet: begin one with crust review mine.csv")
    decided(open_audit("mine.csv"), (0, 0, "keep"))
    table = pd.read_csv("mine.csv")
    table.loc[5, "given_label"] = next(c for c in ("cat", "dog") if c != table["given_label"][5])
    table.to_csv("mine.csv", index=False)
    said(capsys, "apply mine.csv", "is the review of another audit, or of labels that have changed since")
    said(capsys, "review mine.csv --no-open", "is the review of another audit, or of labels that have changed since")


def test_images_of_a_table_are_moved(here, capsys):
    table = pd.DataFrame(
        {"file": ["cat/a.png", "cat/b.png", "dog/c.png"], "label": ["cat", "cat", "dog"], "score": [0.1, 0.2, 0.9],
         "suggested_label": ["dog", "cat", "dog"]}
    )  # fmt: skip
    table.to_csv("t.csv", index=False)
    for name in table["file"]:
        Path("photos", name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(Path("photos", name))
    decided(open_audit("t.csv"), (0, 0, "relabel", 1), (1, 0, "exclude", None, "unreadable"))
    assert call("apply t.csv --show photos --move") == 0
    assert "2 files moved, as listed in t.moves.csv" in capsys.readouterr().out
    there = sorted(str(path.relative_to("photos")) for path in Path("photos").rglob("*.png"))
    assert there == [".excluded/cat/b.png", "dog/a.png", "dog/c.png"]
    assert call("apply t.csv --show photos --move-back") == 0
    assert sorted(str(path.relative_to("photos")) for path in Path("photos").rglob("*.png")) == table["file"].tolist()


def test_a_review_of_a_table_ends_from_the_page_or_the_terminal(here, tmp_path):
    server = Server(tmp_path / "mine.csv", "--as", "first")
    assert server.ask("data")["next"] == [f"crust apply {tmp_path}/mine.csv"]
    assert server.ask("map")["xy"] is None
    server.ask(
        "decide", {"changes": [[3, 0, "exclude", None, "no class fits", "a note"], [4, 0, None, None, None, "b"]]}
    )
    server.ask("finish", {})
    out, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0, err
    assert "1 decided, 0 of them new labels" in out
    assert f"next: crust apply {tmp_path}/mine.csv" in out
    server = Server(tmp_path / "mine.csv")
    state = {one["example"]: one for one in server.ask("state")["decisions"]}
    assert (state[3]["reason"], state[3]["note"], state[4]["kind"], state[4]["note"]) == (
        "no class fits", "a note", None, "b",
    )  # fmt: skip
    code, _, err = server.end(signal.SIGINT)
    assert code == 0
    assert "Traceback" not in err


def test_a_run_has_its_map_and_chain(tmp_path, capsys):
    run = handmade(tmp_path / "run", audit(50).assign(is_label_issue=True))
    np.save(run / "probabilities.npy", np.random.default_rng(0).dirichlet(np.ones(3), size=50))
    assert call(f"audit {run} --top 1") == 0
    names = [one.split()[1] for one in nexts(capsys.readouterr().out)]
    assert names == ["report", "verify", "review"]
    assert call(f"report {run} -q") == 0
    assert packed(run / "report.html")["xy"]
    before = (run / "map.npz").read_bytes()
    assert call(f"report {run} -q -o {tmp_path}/again.html") == 0
    assert (run / "map.npz").read_bytes() == before
    (run / "map.npz").write_bytes(b"broken")
    assert call(f"report {run} -q") == 0
    assert (run / "map.npz").read_bytes() == before


def test_from_python(here, tmp_path):
    table = crust.find_label_issues(here, pred_probs=np.load("p.npy"))

    def work(server):
        server.store.decide([Change(0, 0, "relabel", 2), Change(10, 0, "exclude", None, "unreadable")], who="first")
        server.finish()

    place = tmp_path / "mine.sqlite"
    with redirect_stdout(io.StringIO()) as shown:
        found = crust.review_labels(
            table, show=[f"text {i}" for i in range(60)], store=place, browser=False, who="first", on_start=work
        )
    assert shown.getvalue().startswith("open: http://127.0.0.1:")
    assert found[["index", "decision"]].values.tolist() == [[0, "relabel"], [10, "exclude"]]
    done = crust.apply_corrections(table, found, output="new.csv")
    assert (done.changed, done.excluded) == (1, 1)
    new = pd.read_csv("new.csv")
    assert new["label"][0] == 2
    assert new["exclude"].tolist() == [i == 10 for i in range(60)]


def test_a_result_is_reported_and_reviewed(here, tmp_path):
    x, y = np.load("f.npy").astype(np.float32), here
    result = crust.fit("mlp", (x, y), method="erm", epochs=1, batch_size=32, progress=False)
    page = result.report(tmp_path / "page.html", show={"x": x[:, 0].tolist(), "y": ["a"] * 60})
    assert packed(page)["columns"] == ["x", "y"]
    assert packed(page)["xy"]
    with redirect_stdout(io.StringIO()):
        found = result.review(
            show=x, store=tmp_path / "r.sqlite", browser=False, on_start=lambda server: server.finish()
        )
    assert len(found) == 0
    kept = crust.fit("mlp", (x, y), method="erm", epochs=1, batch_size=32, progress=False, run_dir=tmp_path / "run")
    assert kept.report() == tmp_path / "run" / "report.html"
