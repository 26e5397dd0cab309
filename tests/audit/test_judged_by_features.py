"""A second opinion from the inputs: where it is asked, and that it helps a run that has memorised its labels."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import crust
from crust.audit import judged_by_features
from crust.audit.judged_by_features import from_features, input_columns, with_second_opinion
from crust.audit.label_quality import label_quality
from crust.data import from_texts


def test_columns_are_on_one_scale_whatever_the_inputs_are(monkeypatch):
    x = np.random.default_rng(0).normal(3, [1, 10, 0], (40, 3)).astype(np.float32)
    found = input_columns([(torch.from_numpy(x[:30]), "features"), (x[30:], "features")])
    assert found.shape == (40, 3)
    assert found.mean(axis=0) == pytest.approx(0, abs=1e-5)
    assert found.std(axis=0) == pytest.approx([1, 1, 0], abs=1e-5)
    assert input_columns([(torch.zeros(4, 1, 8, 8), "images")]).shape == (4, 64)
    assert input_columns([(torch.zeros(4, 3, 32, 32), "images")]) is None
    assert input_columns([([1, 2], "dataset")]) is None
    monkeypatch.setattr(judged_by_features, "MOST", 100)
    assert input_columns([(x, "features")]) is None


def test_texts_are_their_words():
    texts = ["cheap pills now", "pills cheap", "the meeting is at noon", "at noon the meeting", "cheap cheap"]
    tokens = from_texts(texts, [0, 0, 1, 1, 0]).inputs
    found = input_columns([(tokens, "tokens")])
    like = found @ found.T
    assert np.diag(like) == pytest.approx(1, abs=1e-5)
    assert like[2, 3] > 0.5 > 0.1 > like[0, 2]


def test_who_knows_nothing_changes_no_order():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    labels = np.arange(50) % 3
    both = with_second_opinion(p, np.full((50, 3), 1 / 3))
    assert (np.argsort(label_quality(both, labels)) == np.argsort(label_quality(p, labels))).all()
    assert both.sum(axis=1) == pytest.approx(1)
    assert with_second_opinion(p, None) is p


def test_it_finds_what_a_run_has_memorised(monkeypatch):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 240)
    x = (true[:, None] + rng.normal(size=(240, 6))).astype(np.float32)
    given = np.where(rng.random(240) < 0.25, (true + 1) % 3, true)
    wrong = given != true

    def audited():
        result = crust.fit("mlp", (x, given), method="erm", epochs=40, validation=0, batch_size=16, progress=False)
        return roc_auc_score(wrong, 1 - result.audit().sort_values("index")["label_quality"])

    asked = audited()
    monkeypatch.setattr(judged_by_features, "MOST", 0)
    assert asked > audited() + 0.01
    p = from_features((x - x.mean(axis=0)) / x.std(axis=0), given, 3)
    assert roc_auc_score(wrong, 1 - label_quality(p, given)) > 0.8
