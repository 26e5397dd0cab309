"""The audit without training: what cleanlab takes, in the same table, and one sentence for what is wrong."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from tests.refusals import refused

import crust
from crust import noise
from crust.audit import audit_table
from crust.audit.judged_by_features import _linear, _neighbours, from_features
from crust.audit.training_dynamics import Watch
from crust.errors import InputError

P = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
Y = [0, 1, 2, 1]


def test_lists_arrays_and_pandas_give_the_same():
    first = crust.find_label_issues(Y, P)
    for labels in (np.array(Y), np.array(Y, np.uint8), np.array(Y, float), pd.Series(Y, index=[4, 5, 6, 7])):
        for probs in (P.tolist(), P, pd.DataFrame(P), P.astype(np.float32)):
            again = crust.find_label_issues(labels, probs)
            assert again["predicted_label"].tolist() == first["predicted_label"].tolist()
            assert np.allclose(again["label_quality"], first["label_quality"], atol=1e-6)
    assert first["label_quality"].idxmin() == 3
    assert first["given_label"].tolist() == Y


def test_text_labels_are_columns_in_sorted_order_or_by_name():
    names = np.array(["ant", "bee", "cow"])
    sorted_order = crust.find_label_issues(names[Y], P)
    assert sorted_order["predicted_label"].tolist() == ["ant", "bee", "cow", "ant"]
    by_name = crust.find_label_issues(names[Y].tolist(), pd.DataFrame(P[:, ::-1], columns=names[::-1]))
    assert by_name["predicted_label"].tolist() == sorted_order["predicted_label"].tolist()
    assert np.allclose(by_name["label_quality"], sorted_order["label_quality"])


def test_a_class_that_nobody_was_given_can_be_suggested():
    """All of its labels may be wrong; and no row is left without probabilities."""
    table = crust.find_label_issues([0, 1, 1, 1], [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9], [0, 0, 1]])
    assert table["predicted_label"].tolist() == [0, 1, 2, 2]
    assert table["predicted_prob"].min() > 0.5
    assert table["label_quality"][3] == 0.0
    same = crust.find_label_issues([0, 0, 0, 0], [[0.9, 0.1], [0.1, 0.9], [0.05, 0.95], [0, 1]])
    assert same["predicted_label"].tolist() == [0, 1, 1, 1]


def test_names_of_columns_that_are_not_those_of_the_labels_are_refused():
    probs = pd.DataFrame(P, columns=["dog", "cat", "cow"])
    sentence = r"label 'Cat' in row 1 is no column of the probabilities, which are dog, cat, cow: name the columns"
    with pytest.raises(InputError, match=sentence):
        crust.find_label_issues(["dog", "Cat", "cow", "Cat"], probs)
    found = crust.find_label_issues(["dog", "cat", "cow", "cat"], probs)
    assert found["predicted_label"].tolist() == ["dog", "cat", "cow", "dog"]


@pytest.mark.parametrize("what", ["pred_probs", "features"])
@pytest.mark.parametrize("labels", [[[0], [0, 1], [2], []], [[0], [1], [2], [1]], pd.Series([[0], (1,), [2], [1]])])
def test_several_labels_an_example_are_refused(what, labels):
    with refused("labels-shape"):
        crust.find_label_issues(labels, **{what: P})


def test_what_is_no_text_and_no_real_number_is_refused():
    with pytest.raises(InputError, match=r"row 2 of the labels holds b'\\xff', which is not UTF-8"):
        crust.find_label_issues([b"a", b"b", b"\xff", b"a"], features=P)
    with refused("not-numbers"):
        crust.find_label_issues(Y, P + 0j)


def test_the_table_has_the_columns_of_a_run():
    watch = Watch(3, 2)
    watch.looks, watch.trust, watch.probabilities[:] = 1, 1.0, 0.5
    ours = crust.find_label_issues(Y, P)
    assert list(audit_table(watch, np.array([0, 1, 1]), np.arange(3), ["a", "b"]).columns) == list(ours.columns)
    assert ours["selection_rate"].isna().all()


@pytest.mark.parametrize("kind", ["symmetric:0.2", "symmetric:0.5", "pair-flip:0.3"])
def test_features_find_the_wrong_digits(kind):
    x, true = load_digits(return_X_y=True)
    labels = noise.make_noisy_labels(true, kind, 10, 0).labels
    error_score = 1 - crust.find_label_issues(labels, features=x)["label_quality"].to_numpy()
    wrong = labels != true
    order = np.argsort(np.argsort(error_score))
    auroc = (order[wrong].mean() - (wrong.sum() - 1) / 2) / (~wrong).sum()
    assert auroc > 0.96


@settings(max_examples=15, deadline=None)
@given(st.integers(5, 40), st.integers(2, 4), st.integers(0, 999))
def test_nobody_is_judged_by_their_own_label(n, classes, seed):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(size=(n, 3)), rng.integers(0, classes, n)
    other = labels.copy()
    other[0] = (labels[0] + 1) % classes
    near, far = (_neighbours(x.astype(np.float32), y, classes)[0] for y in (labels, other))
    assert np.abs(near - far).max() <= 1 / n  # only the one vote that is spread as all labels are
    slow = _without_first(x, labels, classes)
    assert from_features(x, labels, classes).sum(axis=1) == pytest.approx(1)
    assert _linear_answer(x, labels, classes) == pytest.approx(slow, abs=1e-3)


def _without_first(x, labels, classes, penalty=0.1):
    """The ridge regression of all others, the slow way."""
    z = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    rest, y = z[1:], np.eye(classes)[labels[1:]]
    weights = np.linalg.solve(rest.T @ rest + penalty * len(x) * np.eye(4), rest.T @ y)
    return z[0] @ weights


def _linear_answer(x, labels, classes):
    """The same from the closed form: the logarithms of the probabilities are the answers, up to scale and shift."""
    p = _linear(x.astype(np.float32), labels, classes)[0]
    slow = _without_first(x, labels, classes)
    logs = np.log(p) - np.log(p).mean()
    centred = slow - slow.mean()
    sharp = (logs @ centred) / max(centred @ centred, 1e-12)
    return logs / max(sharp, 1e-12) + slow.mean()


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        (Y, {}, "neither pred_probs nor features are given: give one of them"),
        (Y, {"pred_probs": P, "features": P}, "pred_probs and features are both given"),
        (Y, {"pred_probs": P[:3]}, "there are 4 labels for 3 rows of probabilities"),
        (Y, {"features": P[:3]}, "there are 4 labels for 3 rows of the features"),
        (Y, {"pred_probs": P * 1.2}, "row 0 of the probabilities holds 1.08, which is above one"),
        (Y, {"pred_probs": P * 0.8}, "row 0 of the probabilities sums to 0.8, not to one"),
        (Y, {"pred_probs": P - 0.2}, "row 0 of the probabilities holds -0.1, which is negative"),
        (Y, {"pred_probs": np.where(P == 0.7, np.nan, P)}, "row 1, column 1 of the probabilities holds nan"),
        (Y, {"features": np.where(P == 0.7, np.inf, P)}, "row 1, column 1 of the features holds inf"),
        (Y, {"pred_probs": P[:, 0]}, r"the probabilities have shape \(4,\)"),
        (Y, {"pred_probs": P[:, :1]}, "the probabilities have one column"),
        (Y, {"pred_probs": np.empty((0, 3))}, "the probabilities are empty"),
        (Y, {"pred_probs": [["a", "b"]] * 4}, "the probabilities hold text, not numbers"),
        ([0, 1, 2, 7], {"pred_probs": P}, "unknown class in row 3 of the labels '7'"),
        ([0, 1, None, 1], {"pred_probs": P}, "row 2 of the labels has no label"),
        ([0, 1, 0.5, 1], {"pred_probs": P}, "label 0.5 in row 2 of the labels is not a whole number"),
        (["a", "b", "a", "b"], {"pred_probs": P}, "the labels name 2 classes, but there are 3 columns"),
        ([1, 1, 1, 1], {"features": P}, "all of the labels are 1"),
    ],
)
def test_wrong_input_gets_one_sentence(labels, given, message):
    with pytest.raises(InputError, match=message):
        crust.find_label_issues(labels, **given)
