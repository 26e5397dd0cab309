"""The comparison with cleanlab at the smallest scale: every training once, judged from what it leaves, and a page."""

import numpy as np
import pytest
from benchmarks import audit, audit_cuts
from results.audit_page import JUDGES, audit_page, calibrated, compared

from crust.experiments import find, read_results


def test_all_trainings_once_then_scores_and_a_page(tmp_path, monkeypatch):
    pytest.importorskip("cleanlab", reason="cleanlab comes with the extra bench")
    monkeypatch.setattr(audit, "LABELS", {"symmetric:0.2": "symmetric 0.2"})
    results, folder, judged = tmp_path / "r.jsonl", tmp_path / "runs", tmp_path / "judged.json"
    todo = audit.jobs("smoke")
    assert len(todo) == 13
    said = []
    with audit.claim(folder / audit.key(todo[0])):  # another process has it
        assert audit.run_one(results, folder, todo=todo[:1], say=said.append) is False
    while audit.run_one(results, folder, todo=todo, say=said.append):
        pass
    assert [text.split()[0] for text in said] == ["begin", "end"] * 13
    assert all(find(read_results(results), spec) is not None for spec in todo)
    rows = [np.load(folder / audit.key(spec) / "out_of_sample.npz")["rows"] for spec in todo if "fold" in spec]
    assert sorted(np.concatenate(rows)) == sorted([*range(400)] * 2)
    audit.score(results, folder, scale="smoke", judged=judged, say=said.append)
    audit.score(results, folder, scale="smoke", judged=judged, say=said.append)
    entries = {entry["judge"]: entry for entry in compared(judged)}
    assert set(entries) == set(JUDGES)
    assert len(compared(judged)) == 6
    assert all(entry["auroc"] > 0.9 for name, entry in entries.items() if name != "short")
    assert 0.6 < entries["short"]["auroc"] < entries["self-confidence"]["auroc"]  # one epoch is too few here
    assert 4 * entries["crust-half"]["passes"] <= entries["self-confidence"]["passes"]
    assert 3 * entries["crust"]["passes"] <= entries["self-confidence"]["passes"]
    cuts = tmp_path / "cuts.json"
    assert audit_cuts.cuts(["symmetric:0.2"], folder, scale="smoke", file=cuts, say=said.append) is True
    assert audit_cuts.cuts(["symmetric:0.2"], folder, scale="smoke", file=cuts, say=said.append) is False  # it is there
    (found,) = calibrated(cuts).values()
    assert found["noise_rate"]["true"] == pytest.approx(entries["crust-half"]["wrong"], abs=1e-4)
    assert found["precision"]["true"] > 0.7
    text = audit_page(list(entries.values()), calibrated(cuts), "smoke")
    assert f"{entries['crust']['auroc']:.3f}" in text
    assert f"{found['recall']['true']:.2f}: {found['recall']['value']:.2f} (" in text
    assert audit_page([], {}).count("–") > 20  # what is missing is shown as missing


def test_folds_share_out_every_label():
    labels = np.repeat(np.arange(4), [50, 30, 15, 5])
    folds = audit.fold_of(labels, 5, 0)
    counts = np.array([np.bincount(folds[labels == label], minlength=5) for label in range(4)])
    assert counts.max(axis=1).tolist() == counts.min(axis=1).tolist() == [10, 6, 3, 1]
    assert not np.array_equal(folds, audit.fold_of(labels, 5, 1))
