"""The audit: a label quality in [0, 1] for every example of the training set, in its order, in the user's own words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import clouds, fit_seen, network

import crust
from crust.audit import audit_table, estimate_noise_matrix
from crust.audit.label_quality import balanced, class_factors, issues, label_quality, on_one_scale
from crust.audit.supporting_examples import nearest_medoids
from crust.audit.training_dynamics import Watch, trust

NAMES = np.array(["ant", "bee", "cow"])


def watched(n: int, looks: int, seed: int):
    """A watch over some random looks, and the labels."""
    rng = np.random.default_rng(seed)
    watch, labels = Watch(n, 3), rng.integers(0, 3, n)
    for number in range(looks):
        p = rng.dirichlet(np.ones(3), n)
        watch.looks += 1
        watch.trust += number + 1
        watch.probabilities += (number + 1) * p
        watch.agreed += p.argmax(axis=1) == labels
        watch.losses += -np.log(p[np.arange(n), labels])
        watch.choose(rng.integers(0, n, n // 2), None)
    return watch, labels


def judged(watch, labels, factors=None):
    """What the table must be made from: averaged probabilities, with the classes balanced."""
    mean = watch.probabilities / watch.trust
    weighed = mean * (class_factors(mean, labels) if factors is None else factors)
    return weighed / weighed.sum(axis=1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 999))
def test_label_quality_ranks_as_the_log_margin_and_is_below_half_where_another_label_is_likelier(n, looks, seed):
    watch, labels = watched(n, looks, seed)
    p = balanced(watch.mean(), class_factors(watch.mean(), labels))
    found = label_quality(p, labels)
    assert ((found >= 0) & (found <= 1)).all()
    rivals = [max(row[c] for c in range(3) if c != label) for row, label in zip(p, labels, strict=True)]
    margins = np.log(p[np.arange(n), labels]) - np.log(rivals)
    assert 1 / (1 + np.exp(-margins)) == pytest.approx(found, abs=1e-9)
    assert ((found < 0.5) == (p.argmax(axis=1) != labels)).all()


def test_of_many_examples_label_quality_is_the_same(monkeypatch):
    p, labels = np.random.default_rng(0).dirichlet(np.ones(4), 50), np.arange(50) % 4
    whole = label_quality(p, labels)
    monkeypatch.setattr("crust.audit.label_quality.ROWS", 7)
    assert np.array_equal(label_quality(p, labels), whole)
    assert label_quality(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 0])).tolist() == [0.0, 1.0]


def test_a_class_that_the_network_neglects_is_helped():
    mean = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.6, 0.4]])
    labels = np.array([0, 1, 0, 1])
    p = balanced(mean, class_factors(mean, labels))
    assert p.argmax(axis=1).tolist() == labels.tolist()
    assert mean.argmax(axis=1).tolist() != labels.tolist()


def test_nothing_seen_is_no_quality_but_none():
    table = audit_table(Watch(3, 2), np.array([0, 1, 1]), np.arange(3), ["a", "b"])
    assert table["label_quality"].isna().all()
    assert not table["is_label_issue"].any()


def test_examples_that_were_held_out_are_as_often_doubted_as_those_trained_on():
    rng = np.random.default_rng(0)
    trained, held = rng.beta(20, 1, 900), rng.beta(2, 2, 100)  # what is trained on is agreed with
    found = on_one_scale(trained, held)
    doubted = np.sort(np.concatenate([trained, found]))[100]
    assert (trained <= doubted).mean() == pytest.approx((found <= doubted).mean(), abs=0.02)
    assert (np.argsort(found, kind="stable") == np.argsort(held, kind="stable")).all()
    assert np.array_equal(on_one_scale(np.array([np.nan]), held), held)
    assert len(on_one_scale(trained, held[:0])) == 0


def test_label_issues_are_the_worst_by_two_parts_noise_rate_and_one_part_disagreement():
    rng = np.random.default_rng(0)
    quality, given, predicted = rng.random(200), rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    for rate in (0.0, 0.13, 1.0):
        found = issues(quality, given, predicted, rate)
        assert found.sum() == round((400 * rate + (given != predicted).sum()) / 3)
        assert quality[found].max() <= quality[~found].min()
    assert issues(quality, given, given, 0.0).sum() == 0
    assert np.array_equal(issues(quality, given, predicted, None), given != predicted)


def test_late_looks_count_more_unless_the_labels_are_memorised():
    assert trust(0.2, 0.5, 0.5) < trust(0.9, 0.5, 0.5)
    assert trust(0.9, 0.9, 0.4) < trust(0.2, 0.5, 0.5) * 3
    assert trust(0.9, 0.5, 0.6) == trust(0.9, 0.5, 0.5)
    assert trust(1.0, 1.0, 0.0) > 0


def test_the_nearest_medoids_are_those_of_a_plain_search():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 20)
    medoids = np.sort(rng.choice(50, 12, replace=False))
    found = nearest_medoids([first, second], medoids, np.ones(50, int))
    for part, rows in zip((first, second), found, strict=True):
        far = ((np.sqrt(part)[:, None] - np.sqrt(first[medoids])[None]) ** 2).sum(axis=2)
        if part is first:
            far[medoids, np.arange(12)] = np.inf
        assert rows.tolist() == medoids[np.argsort(far, axis=1, kind="stable")[:, :3]].tolist()
    few = nearest_medoids([first], medoids, np.arange(50), most=2)[0]
    assert set(few.ravel()) == set(medoids[-2:])
    assert few.shape == (50, 1)


def test_the_table_is_in_the_order_of_the_training_set_and_marks_what_was_held_out():
    (watch, labels), (other, held) = watched(6, 3, 0), watched(4, 2, 1)
    index, rest = np.array([9, 0, 2, 3, 7, 5]), np.array([8, 1, 4, 6])
    ids = [f"file {i}" for i in range(10)]
    table = audit_table(watch, labels, index, list(NAMES), held=(other, held, rest), ids=ids)
    assert table["index"].tolist() == list(range(10))
    assert table["id"].tolist() == ids
    assert table["is_held_out"].tolist() == [i in rest for i in range(10)]
    given_labels = np.empty(10, np.int64)
    given_labels[index], given_labels[rest] = labels, held
    assert table["given_label"].tolist() == NAMES[given_labels].tolist()
    quality, factors = np.empty(10), class_factors(watch.probabilities / watch.trust, labels)
    quality[index] = label_quality(judged(watch, labels), labels)
    quality[rest] = on_one_scale(quality[index], label_quality(judged(other, held, factors), held))
    assert table["label_quality"].to_numpy() == pytest.approx(quality)
    assert (np.argsort(quality[rest]) == np.argsort(label_quality(judged(other, held, factors), held))).all()
    assert table["selection_rate"].isna().tolist() == table["is_held_out"].tolist()
    inside = table[~table["is_held_out"]]
    assert inside["selection_rate"].between(0, 1).all()
    mean = judged(watch, labels)
    assert inside.set_index("index").loc[9, "predicted_label"] == NAMES[mean[0].argmax()]
    assert inside.set_index("index").loc[9, "predicted_prob"] == pytest.approx(mean[0].max())
    for row in table.to_dict("records"):
        assert set(row["medoids"]) <= set(index[watch.last]) - {row["index"]}
        assert row["medoid_labels"] == [NAMES[given_labels[i]] for i in row["medoids"]]


def test_a_member_that_is_visited_twice_counts_once_with_all_its_weight():
    watch = Watch(3, 2)
    watch.choose(np.array([0, 0, 2]), np.array([0.5, 0.5, 2.0], np.float32))
    watch.choose(np.array([0]), None)
    assert watch.chosen.tolist() == [2, 0, 1]
    assert watch.weight.tolist() == [2.0, 0.0, 2.0]


def test_a_watch_goes_through_its_state():
    watch = watched(5, 2, 3)[0]
    again = Watch(5, 3)
    again.load(watch.state())
    assert np.array_equal(again.mean(), watch.mean())
    assert np.array_equal(again.last, watch.last)
    old = {name: value for name, value in watch.state().items() if name not in ("trust", "last")}
    before = Watch(5, 3)
    before.load(old)  # a checkpoint of before: all looks counted the same
    assert np.array_equal(before.mean(), watch.probabilities / watch.looks)


def test_the_audit_of_a_run(tmp_path):
    x, given_labels, true = clouds(300)
    settings = {"method": "crust", "epochs": 14, "batch_size": 16, "learning_rate": 0.05}
    result = fit_seen(network(), (x, NAMES[given_labels]), run_dir=tmp_path, **settings)
    table = result.audit()
    assert table["index"].tolist() == list(range(300))
    assert table["given_label"].tolist() == NAMES[given_labels].tolist()
    assert set(table["predicted_label"]) <= set(NAMES)
    assert table["label_quality"].between(0, 1).all()
    assert np.flatnonzero(table["is_held_out"]).tolist() == result.data.held.tolist()
    assert len(result.data.held) == 30
    wrong = given_labels != true
    quality = table["label_quality"].to_numpy()
    pairs = quality[~wrong][:, None] - quality[wrong][None]
    assert (pairs > 0).mean() + 0.5 * (pairs == 0).mean() > 0.85
    assert crust.load(tmp_path, network()).audit().equals(table)


def test_without_a_held_out_part_nothing_is_marked():
    x, given_labels, _ = clouds()
    table = crust.fit(network(), (x, given_labels), method="erm", epochs=1, validation=0).audit()
    assert not table["is_held_out"].any()
    assert len(table) == 90


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(2, 5), st.integers(0, 999))
def test_the_estimate_noise_matrix_are_shares_of_the_suggested_class(n, classes, seed):
    rng = np.random.default_rng(seed)
    labels, better = rng.integers(0, classes, (2, n))
    rate, matrix = estimate_noise_matrix(labels, better, classes)
    assert rate == pytest.approx(np.mean(labels != better))
    assert matrix.sum(axis=1) == pytest.approx(1)
    for i in range(classes):
        if (better == i).any():
            assert matrix[i] == pytest.approx([np.mean(labels[better == i] == j) for j in range(classes)])
        else:
            assert matrix[i].tolist() == np.eye(classes)[i].tolist()
