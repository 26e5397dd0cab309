"""`CrustClassifier` where scikit-learn's own users put it: estimator checks, pipelines, searches, pickles."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.refusals import refused
from torch import nn

import crust
from crust import CrustClassifier
from crust.errors import InputError

QUICK = {"epochs": 6, "random_state": 0}


def unequal(estimator):
    """What scikit-learn expects of weights, and its own estimators that draw batches do not hold either."""
    reason = "batches are drawn as without weights, so that a weight of 2 is no second example"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks([CrustClassifier(epochs=10)], expected_failed_checks=unequal)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [CrustClassifier(), CrustClassifier(method="erm", model="mlp", validation=0.1)], expected_failed_checks=unequal
)
def test_scikit_learns_checks_as_it_comes(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    """Three clouds with names, a fifth of the labels wrong: columns, given labels, true labels."""
    x, true = make_blobs(150, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=1.0, random_state=0)
    rng = np.random.default_rng(0)
    given = np.where(rng.random(150) < 0.2, (true + 1) % 3, true)
    names = np.array(["ant", "bee", "cat"])
    return x * [1, 1000] + [0, 1e6], names[given], names[true]  # columns of very different scales


@pytest.fixture(scope="module")
def fitted(blobs):
    return CrustClassifier(epochs=15, random_state=0).fit(blobs[0], blobs[1])


def test_names_probabilities_and_label_quality(blobs, fitted):
    x, given, true = blobs
    assert fitted.classes_.tolist() == ["ant", "bee", "cat"]
    assert fitted.n_features_in_ == 2
    assert fitted.score(x, true) > 0.95
    rows = fitted.predict_proba(x)
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(fitted.classes_[rows.argmax(axis=1)], fitted.predict(x))
    # wherever the neighbours in the batch are others
    np.testing.assert_allclose(np.concatenate([fitted.predict_proba(x[i : i + 1]) for i in range(5)]), rows[:5], 1e-12)
    assert fitted.audit_["given_label"].tolist() == given.tolist()
    assert set(fitted.audit_["predicted_label"]) <= {"ant", "bee", "cat"}
    wrong = given != true
    assert fitted.label_quality_.shape == (150,)
    assert np.quantile(fitted.label_quality_[wrong], 0.9) < np.median(fitted.label_quality_[~wrong])
    assert fitted.label_issues_[wrong].mean() > 0.9
    assert len(fitted.history_) == 15


def test_a_tenth_is_held_out_or_what_is_asked_for(blobs, fitted):
    assert fitted.audit_["is_held_out"].sum() == 15
    whole = CrustClassifier(epochs=1, method="erm", validation=0).fit(*blobs[:2])
    assert not whole.audit_["is_held_out"].any()
    x, y = np.tile(blobs[0], (4, 1)), np.tile(blobs[1], 4)
    more = CrustClassifier(epochs=1, method="erm").fit(x, y)
    assert more.audit_["is_held_out"].sum() == 60
    assert len(more.label_quality_) == 600
    asked = CrustClassifier(epochs=1, method="erm", validation=0.2).fit(*blobs[:2])
    assert asked.audit_["is_held_out"].sum() == 30


def test_pickle_clone_and_seed(blobs, fitted):
    x, y, _ = blobs
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    np.testing.assert_array_equal(again.label_quality_, fitted.label_quality_)
    copy = clone(fitted)
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(x, y).predict_proba(x), fitted.predict_proba(x))
    other = clone(fitted).set_params(random_state=1).fit(x, y)
    assert not np.array_equal(other.predict_proba(x), fitted.predict_proba(x))


def test_pipeline_cross_validation_and_search(blobs):
    x, y, true = blobs
    pipe = make_pipeline(PolynomialFeatures(2), CrustClassifier(**QUICK))
    assert pipe.fit(x, y).score(x, true) > 0.9
    assert cross_val_score(CrustClassifier(**QUICK), x, true, cv=2).min() > 0.9
    grid = {"method": ["erm", "crust"], "settings": [None, {"weight_decay": 0.0}]}
    search = GridSearchCV(CrustClassifier(epochs=3, random_state=0), grid, cv=2, error_score="raise").fit(x, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.predict(x).shape == (150,)


def linear(in_shape, classes):
    return nn.Linear(in_shape[0], classes)


def test_networks_of_ones_own(blobs):
    x, y, true = blobs
    with torch.random.fork_rng():
        torch.manual_seed(0)
        own = nn.Linear(2, 3)
    before = own.weight.detach().clone()
    assert (
        CrustClassifier(own, method="erm", epochs=15, learning_rate=0.02, random_state=0).fit(x, y).score(x, true) > 0.8
    )
    assert torch.equal(own.weight, before)
    made = [CrustClassifier(linear, **QUICK).fit(x, y).predict_proba(x) for _ in range(2)]
    np.testing.assert_array_equal(*made)
    assert made[0].dtype == np.float64
    with refused("bad-model"):
        CrustClassifier(3).fit(x, y)
    with refused("model-classes"):
        CrustClassifier(nn.Linear(2, 2)).fit(x, y)


def test_settings_reach_method_and_experiment(blobs):
    x, y, _ = blobs
    found = CrustClassifier(epochs=3, settings={"fraction": 0.2, "epochs": 2}, random_state=0).fit(x, y)
    assert [line["n_selected"] for line in found.history_] == [135, 27]
    with pytest.raises(InputError, match="did you mean 'fraction'"):
        CrustClassifier(settings={"fractio": 0.2}).fit(x, y)
    with pytest.raises(InputError, match="did you mean 'crust'"):
        CrustClassifier(method="crst").fit(x, y)
    with refused("one-class"):
        CrustClassifier().fit(x, ["ant"] * 150)


def test_images():
    digits = crust.data.load("digits", limit=300)
    x, y = (digits.train.inputs[:, 0] * 15).numpy().astype(np.uint8), digits.train.labels
    found = CrustClassifier("small_cnn", method="erm", **QUICK).fit(x, y)
    assert found.predict_proba(x).shape == (300, 10)
    assert found.score(x, y) > 0.8
    with refused("input-shape"):
        found.predict(x[:, :, 1:])


def test_settings_are_parameters(blobs):
    x, given, _ = blobs
    classifier = CrustClassifier(fraction=0.5, select_after=1, accumulate=2, **QUICK)
    twin = clone(classifier).set_params(fraction=0.75)
    assert (classifier.get_params()["fraction"], twin.get_params()["fraction"]) == (0.5, 0.75)
    assert "fraction=0.75" in repr(twin)
    search = GridSearchCV(CrustClassifier(**QUICK), {"fraction": ["auto", 0.5]}, cv=2).fit(x, given)
    assert [one["fraction"] for one in search.cv_results_["params"]] == ["auto", 0.5]
    assert classifier.fit(x, given).history_[-1]["n_selected"] < twin.fit(x, given).history_[-1]["n_selected"]
    with refused("unknown-setting"):
        CrustClassifier(share=0.5, **QUICK).fit(x, given)
    with pytest.raises(ValueError, match="no_such"):
        CrustClassifier().set_params(no_such=1)


def test_what_an_example_counts(blobs):
    x, given, true = blobs
    right = (given == true).astype(float)
    settings = {"method": "erm", "epochs": 20, "validation": 0.0, "random_state": 0}
    weighed = CrustClassifier(**settings).fit(x, given, sample_weight=right)
    only = CrustClassifier(**settings).fit(x[right > 0], given[right > 0])
    assert weighed.score(x, true) > 0.97
    assert (weighed.predict(x) == only.predict(x)).mean() > 0.97
    with refused("own-loss"):
        CrustClassifier(method="gce", **QUICK).fit(x, given, sample_weight=right)


def test_sparse_matrices_are_arrays(blobs):
    from scipy import sparse

    given = blobs[1]
    counts = np.random.default_rng(0).poisson(0.2, (150, 60)) * 1.0
    counts[np.arange(150), np.unique(given, return_inverse=True)[1]] += 3
    dense = CrustClassifier(**QUICK).fit(counts, given)
    for kind in (sparse.csr_matrix, sparse.coo_array):
        found = CrustClassifier(**QUICK).fit(kind(counts), given)
        assert (found.predict_proba(kind(counts)) == dense.predict_proba(counts)).all()
    large = sparse.csr_matrix((150, 10**8))
    with refused("sparse-size"):
        CrustClassifier(**QUICK).fit(large, given)


def test_columns_with_categories(blobs):
    import pandas as pd

    x, given, true = blobs
    frame = pd.DataFrame({"one": x[:, 0], "kind": pd.Categorical(true), "town": np.where(x[:, 1] > 0, "Ulm", "Bonn")})
    frame.loc[2, "town"] = None
    classifier = make_pipeline(CrustClassifier(**QUICK)).fit(frame, given)
    assert classifier.score(frame, true) > 0.9
    inner = classifier[-1]
    assert (inner.n_features_in_, inner.feature_names_in_.tolist()) == (3, ["one", "kind", "town"])
    assert (pickle.loads(pickle.dumps(inner)).predict(frame) == inner.predict(frame)).all()
    new = frame.head(3).assign(town=["Köln", "Ulm", None])
    assert inner.predict(new).shape == (3,)
    with refused("sklearn-check"):
        inner.predict(frame[["one", "town"]])
    with refused("input-shape"):
        inner.predict(x)
