"""The audit: a doubt in [0, 1] for every example of the training set, in its order, in the user's own words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import clouds, network

from crust import api
from crust.audit import audit_table, estimated_transitions
from crust.audit.scores import doubt
from crust.training.watch import Watch

NAMES = np.array(["ant", "bee", "cow"])


def watched(n: int, looks: int, seed: int):
    """A watch over some random looks, and the labels."""
    rng = np.random.default_rng(seed)
    watch, labels = Watch(n, 3), rng.integers(0, 3, n)
    for _ in range(looks):
        p = rng.dirichlet(np.ones(3), n)
        watch.looks += 1
        watch.probabilities += p
        watch.agreed += p.argmax(axis=1) == labels
        watch.losses += -np.log(p[np.arange(n), labels])
        watch.choose(rng.integers(0, n, n // 2), None)
    return watch, labels


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 999))
def test_doubt_lies_between_0_and_1_and_grows_with_disagreement(n, looks, seed):
    watch, labels = watched(n, looks, seed)
    found = doubt(watch, labels)
    assert (found >= 0).all()
    assert (found <= 1).all()
    watch.agreed[:] = 0
    assert (doubt(watch, labels) >= found).all()


def test_nothing_seen_is_no_doubt_but_none():
    assert np.isnan(doubt(Watch(3, 2), np.zeros(3, np.int64))).all()


def test_the_table_is_in_the_order_of_the_training_set_and_marks_what_was_held_out():
    (watch, labels), (other, held) = watched(6, 3, 0), watched(4, 2, 1)
    index, rest = np.array([9, 0, 2, 3, 7, 5]), np.array([8, 1, 4, 6])
    ids = [f"file {i}" for i in range(10)]
    table = audit_table(watch, labels, index, list(NAMES), held=(other, held, rest), ids=ids)
    assert table["index"].tolist() == list(range(10))
    assert table["id"].tolist() == ids
    assert table["held_out"].tolist() == [i in rest for i in range(10)]
    given_labels = np.empty(10, np.int64)
    given_labels[index], given_labels[rest] = labels, held
    assert table["label"].tolist() == NAMES[given_labels].tolist()
    doubts = np.empty(10)
    doubts[index], doubts[rest] = doubt(watch, labels), doubt(other, held)
    assert table["doubt"].to_numpy() == pytest.approx(doubts)
    assert table["chosen"].isna().tolist() == table["held_out"].tolist()
    inside = table[~table["held_out"]]
    assert inside["chosen"].between(0, 1).all()
    mean = watch.probabilities / watch.looks
    assert inside.set_index("index").loc[9, "suggested"] == NAMES[mean[0].argmax()]
    assert inside.set_index("index").loc[9, "probability"] == pytest.approx(mean[0].max())


def test_a_member_that_is_visited_twice_counts_once_with_all_its_weight():
    watch = Watch(3, 2)
    watch.choose(np.array([0, 0, 2]), np.array([0.5, 0.5, 2.0], np.float32))
    watch.choose(np.array([0]), None)
    assert watch.chosen.tolist() == [2, 0, 1]
    assert watch.weight.tolist() == [2.0, 0.0, 2.0]


def test_a_watch_goes_through_its_state():
    watch, labels = watched(5, 2, 3)
    again = Watch(5, 3)
    again.load(watch.state())
    assert np.array_equal(doubt(again, labels), doubt(watch, labels))


def test_the_audit_of_a_run(tmp_path):
    x, given_labels, true = clouds(300)
    settings = {"method": "crust", "epochs": 14, "batch_size": 16, "learning_rate": 0.05}
    result = api.fit(network(), (x, NAMES[given_labels]), run_dir=tmp_path, **settings)
    table = result.audit()
    assert table["index"].tolist() == list(range(300))
    assert table["label"].tolist() == NAMES[given_labels].tolist()
    assert set(table["suggested"]) <= set(NAMES)
    assert table["doubt"].between(0, 1).all()
    assert np.flatnonzero(table["held_out"]).tolist() == result.held.tolist()
    assert len(result.held) == 30
    wrong = given_labels != true
    doubts = table["doubt"].to_numpy()
    pairs = doubts[wrong][:, None] - doubts[~wrong][None]
    assert (pairs > 0).mean() + 0.5 * (pairs == 0).mean() > 0.85
    assert api.load(tmp_path, network()).audit().equals(table)


def test_without_a_held_out_part_nothing_is_marked():
    x, given_labels, _ = clouds()
    table = api.fit(network(), (x, given_labels), method="erm", epochs=1, validation=0).audit()
    assert not table["held_out"].any()
    assert len(table) == 90


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(2, 5), st.integers(0, 999))
def test_the_estimated_transitions_are_shares_of_the_suggested_class(n, classes, seed):
    rng = np.random.default_rng(seed)
    labels, better = rng.integers(0, classes, (2, n))
    rate, matrix = estimated_transitions(labels, better, classes)
    assert rate == pytest.approx(np.mean(labels != better))
    assert matrix.sum(axis=1) == pytest.approx(1)
    for i in range(classes):
        if (better == i).any():
            assert matrix[i] == pytest.approx([np.mean(labels[better == i] == j) for j in range(classes)])
        else:
            assert matrix[i].tolist() == np.eye(classes)[i].tolist()
