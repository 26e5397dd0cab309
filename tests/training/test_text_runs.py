"""Runs on texts and token ids from Python: every way in, every method, resumed, opened again, audited."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from tests.data.test_text import HOSTILE, reviews
from tests.refusals import refused
from torch import nn

import crust
from crust.data import from_texts

QUICK = {"epochs": 2, "optimizer": "adamw", "learning_rate": 0.01, "batch_size": 16}


class Embedder(nn.Module):
    """A network of the user's own for ids of one length."""

    def __init__(self, rows=50, classes=2):
        super().__init__()
        self.table, self.linear = nn.Embedding(rows, 4), nn.Linear(4, classes)

    def forward(self, x):
        assert not x.is_floating_point()
        return self.linear(self.table(x).mean(1))


def wrong(labels, seed=1):
    """A fifth of the labels are the other one."""
    flip = np.random.default_rng(seed).random(len(labels)) < 0.2
    return np.where(flip, np.where(labels == "good", "bad", "good"), labels)


def test_texts_are_learned_in_five_epochs_and_wrong_labels_found():
    texts, labels = reviews(400)
    given = wrong(labels)
    more, truth = reviews(100, seed=7)
    result = crust.fit("text", (texts, given), method="erm", test_set=(more, truth), **QUICK | {"epochs": 5})
    assert result.history["test_accuracy"][-1] > 0.9
    assert (result.predict(more) == truth).mean() > 0.9
    table = result.audit()
    quality = table["label_quality"].to_numpy()
    assert quality[given != labels].mean() < quality[given == labels].mean() - 0.3
    assert table["text"].tolist() == texts


@pytest.mark.parametrize("method", ["crust", "crust-released", "co-teaching", "incv", "elr", "d2l"])
def test_methods_of_every_kind_take_texts(method):
    texts, labels = reviews(80)
    result = crust.fit("text", (texts, labels), method=method, **QUICK)
    assert len(result.audit()) == 80


def test_mixing_refuses_tokens():
    texts, labels = reviews(40)
    for method in ("mixup", "dividemix"):
        with pytest.raises(crust.InputError, match="cannot be mixed"):
            crust.fit("text", (texts, labels), method=method, **QUICK)


@pytest.mark.parametrize("proxy", ["logits", "features"])
def test_texts_are_selected_by_both_proxies(proxy):
    texts, labels = reviews(80)
    options = {"method": "crust-half", "mixup": "none", "select_after": 1, "proxy": proxy}
    result = crust.fit("text", (texts, labels), **options, **QUICK)
    assert result.history["n_selected"][-1] < 72


def test_a_run_that_is_resumed_ends_with_the_same_bytes(tmp_path):
    texts, labels = reviews(80)
    options = {"method": "crust", **QUICK, "epochs": 3}
    whole = crust.fit("text", (texts, labels), **options)
    crust.fit("text", (texts, labels), run_dir=tmp_path, stop_after=2, **options)
    again = crust.fit("text", (texts, labels), run_dir=tmp_path, resume=True, **options)
    assert all(a.equal(b) for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True))
    assert crust.load(tmp_path).predict_proba(HOSTILE).tolist() == whole.predict_proba(HOSTILE).tolist()
    with refused("missing-text"):
        whole.predict(["so good", None])


def test_hostile_texts_are_trained_on():
    result = crust.fit("text", (HOSTILE * 4, ["a", "b", "b"] * 12), method="erm", **QUICK)
    assert np.isfinite(result.predict_proba(HOSTILE)).all()
    assert result.audit()["text"].str.len().max() <= 281


def test_every_way_to_give_texts_means_the_same():
    texts, labels = reviews(40)
    pairs = list(zip(texts, labels.tolist(), strict=True))
    ways = [
        {"train_set": (pd.Series(texts, index=range(5, 45)), pd.Series(labels))},
        {"train_set": (np.array(texts), labels)},
        {"train_set": texts, "labels": labels},
        {"train_set": pairs},
        {"train_set": torch.utils.data.Subset(pairs, range(40))},
        {"train_set": from_texts(texts, labels)},
    ]
    found = [crust.fit("text", method="erm", **QUICK, **way).predict_proba(texts[:3]).tolist() for way in ways]
    assert all(each == found[0] for each in found)


def test_whole_numbers_are_ids_for_networks_that_embed_and_numbers_for_others():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    x = rng.integers(0, 20, (60, 5)) + 25 * y[:, None]
    for data in (
        (x, y),
        (torch.from_numpy(x), y),
        torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)),
    ):
        for model in (Embedder(), lambda: Embedder(), "text"):
            result = crust.fit(model, data, method="erm", test_set=data, **QUICK | {"epochs": 6, "learning_rate": 0.05})
            assert result.history["test_accuracy"][-1] > 0.8
            assert (result.predict(x) == y).mean() > 0.8
    assert crust.fit("mlp", (x, y), method="erm", **QUICK).predict(x).shape == (60,)
    ragged = [row[: 1 + i % 5].tolist() for i, row in enumerate(x)]
    assert len(crust.fit("text", (ragged, y), method="erm", **QUICK).predict(ragged)) == 60


def test_what_does_not_fit_together_is_refused():
    texts, labels = reviews(40)
    with refused("model-for-tokens"):
        crust.fit("mlp", (texts, labels), **QUICK)
    with refused("model-for-tokens"):
        crust.fit("text", (np.ones((40, 3)), labels), **QUICK)
    with refused("token-id-range"):
        crust.fit("text", ([[1], [2]] * 20, labels), test_set=([[1], [9]], labels[:2]), **QUICK)
    with refused("other-data"):
        crust.fit("mlp", (np.random.default_rng(0).random((40, 3)), labels), method="erm", **QUICK).predict(texts)


def test_the_estimator_takes_texts():
    texts, labels = reviews(300)
    given = wrong(labels)
    estimator = crust.CrustClassifier(method="erm", epochs=5, learning_rate=0.01, random_state=0)
    for kind in (list, np.array, pd.Series):
        found = clone(estimator).fit(kind(texts), given)
        assert found.score(kind(texts), labels) > 0.85
        assert np.isfinite(found.predict_proba(kind(["", "!", *texts[:3]]))).all()
        assert not hasattr(found, "n_features_in_")
    with refused("other-data"):
        found.predict(np.ones((3, 2)))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clone(estimator).fit(texts, given[1:])
