"""The comparison with cleanlab at the smallest scale: every training once, judged from what it leaves, and a page."""

import numpy as np
import pytest
from benchmarks import audit

from crust.experiments import find, read


def test_all_trainings_once_then_scores_and_a_page(tmp_path, monkeypatch):
    pytest.importorskip("cleanlab", reason="cleanlab comes with the extra bench")
    monkeypatch.setattr(audit, "LABELS", {"symmetric:0.2": "symmetric 0.2"})
    results, folder, judged = tmp_path / "r.jsonl", tmp_path / "runs", tmp_path / "judged.json"
    todo = audit.jobs("smoke")
    assert len(todo) == 7
    said = []
    with audit.claim(folder / audit.key(todo[0])):  # another process has it
        assert audit.run_one(results, folder, todo=todo[:1], say=said.append) is False
    while audit.run_one(results, folder, todo=todo, say=said.append):
        pass
    assert [text.split()[0] for text in said] == ["begin", "end"] * 7
    assert all(find(read(results), spec) is not None for spec in todo)
    rows = [np.load(folder / audit.key(spec) / "out_of_sample.npz")["rows"] for spec in todo if "fold" in spec]
    assert sorted(np.concatenate(rows)) == list(range(400))
    audit.score(results, folder, scale="smoke", judged=judged, say=said.append)
    audit.score(results, folder, scale="smoke", judged=judged, say=said.append)
    entries = {entry["judge"]: entry for entry in audit.entries_of(judged)}
    assert set(entries) == set(audit.JUDGES)
    assert len(audit.entries_of(judged)) == 4
    assert all(entry["auroc"] > 0.9 for entry in entries.values())
    assert 4 * entries["crust"]["passes"] <= entries["self-confidence"]["passes"]
    text = audit.page(list(entries.values()), "smoke")
    assert f"{entries['crust']['auroc']:.3f}" in text
    assert audit.page([]).count("–") > 20  # what is missing is shown as missing


def test_folds_share_out_every_label():
    labels = np.repeat(np.arange(4), [50, 30, 15, 5])
    folds = audit.fold_of(labels, 5, 0)
    counts = np.array([np.bincount(folds[labels == label], minlength=5) for label in range(4)])
    assert counts.max(axis=1).tolist() == counts.min(axis=1).tolist() == [10, 6, 3, 1]
    assert not np.array_equal(folds, audit.fold_of(labels, 5, 1))
