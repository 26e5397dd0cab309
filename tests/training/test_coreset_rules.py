"""From proxies to the rows of an epoch: who is chosen, with what weight, and with whom it is mixed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crust.selection import Coreset
from crust.training import coreset_rules


def problem(n: int, seed: int):
    rng = np.random.default_rng(seed)
    proxies = rng.integers(-8, 9, (n, 2)).astype(np.float32)
    losses = rng.integers(0, 9, n).astype(np.float32)
    return proxies, rng.integers(0, 3, n), losses, rng.integers(0, 4, n)


def budgets(groups, k):
    """Units one after the other to the group that lacks most of its share; one for each group first."""
    names, sizes = np.unique(groups, return_counts=True)
    found = np.zeros(len(names), int)
    for g in np.argsort(-sizes, kind="stable")[:k]:
        found[g] = 1
    while found.sum() < k:
        # whole numbers, so that ties are ties
        lack = np.where(found < sizes, k * sizes - found * len(groups), np.iinfo(int).min)
        found[lack.argmax()] += 1
    return dict(zip(names.tolist(), found.tolist(), strict=True))


@pytest.mark.parametrize("grouping", ["prediction", "label", "none"])
@pytest.mark.parametrize("rule", ["greedy", "central", "small-loss", "random"])
def test_every_rule_in_every_grouping_gives_a_whole_coreset(rule, grouping):
    proxies, predictions, losses, labels = problem(60, 1)
    coreset = coreset_rules.choose(proxies, predictions, losses, labels, 0.4, grouping=grouping, selection=rule, seed=3)
    groups = {"prediction": predictions, "label": labels, "none": np.zeros(60, int)}[grouping]
    assert len(coreset.indices) == len(set(coreset.indices.tolist())) == 24
    assert coreset.weights.sum() == 60
    assert np.array_equal(np.bincount(coreset.assignment, minlength=24), coreset.weights)
    assert np.array_equal(groups[coreset.indices[coreset.assignment]], groups)  # a cluster lies in one group
    assert np.array_equal(coreset.assignment[coreset.indices], np.arange(24))  # a medoid is in its own cluster
    taken = dict(zip(*np.unique(groups[coreset.indices], return_counts=True), strict=True))
    assert {int(g): int(c) for g, c in taken.items()} == budgets(groups, 24)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(0, 1000), st.floats(0.05, 1.0))
def test_the_smallest_losses_of_each_group_are_chosen(n, seed, share):
    proxies, predictions, losses, labels = problem(n, seed)
    coreset = coreset_rules.choose(
        proxies, predictions, losses, labels, share, grouping="prediction", selection="small-loss", seed=0
    )
    k = max(1, round(share * n))
    expected = set()
    for group, count in budgets(predictions, k).items():
        members = [i for i in range(n) if predictions[i] == group]
        expected |= set(sorted(members, key=lambda i: (losses[i], i))[:count])
    assert set(coreset.indices.tolist()) == expected
    assert coreset.weights.sum() == n
    assert len(coreset.weights) == k


def test_most_central_is_the_smallest_sum_of_distances():
    proxies, predictions, losses, labels = problem(40, 5)
    found = coreset_rules.choose(
        proxies, predictions, losses, labels, 0.3, grouping="label", selection="central", seed=0
    )
    for group, count in budgets(labels, 12).items():
        members = np.flatnonzero(labels == group)
        sums = np.linalg.norm(proxies[members, None] - proxies[None, members], axis=2).sum(axis=1)
        chosen = found.indices[labels[found.indices] == group]
        assert len(chosen) == count
        assert np.sort(sums)[:count] == pytest.approx(np.sort(sums[np.isin(members, chosen)]), abs=1e-4)


def test_random_follows_the_seed():
    parts = problem(40, 5)
    one, again, other = (
        coreset_rules.choose(*parts, 0.3, grouping="none", selection="random", seed=seed).indices for seed in (1, 1, 2)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(np.sort(one), np.sort(other))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.integers(0, 999))
def test_partners_come_from_the_own_cluster_and_are_others_unless_it_is_alone(n, k, each, seed):
    k = min(k, n)
    rng = np.random.default_rng(seed)
    indices = rng.choice(n, k, replace=False)
    assignment = rng.integers(0, k, n)
    assignment[indices] = np.arange(k)
    weights = np.bincount(assignment, minlength=k)
    coreset = Coreset(indices, weights, assignment, np.zeros(k), 0.0, np.zeros(n, np.float32))
    partners = coreset_rules.cluster_partners(coreset, rng, each)
    assert partners.shape == (k, each)
    for j in range(k):
        for partner in partners[j]:
            assert assignment[partner] == j
            assert (partner == indices[j]) == (weights[j] == 1)


def test_every_member_of_a_cluster_is_drawn_alike():
    coreset = Coreset([2], [5], [0] * 5, [0.0], 0.0, np.zeros(5, np.float32))
    drawn = coreset_rules.cluster_partners(coreset, np.random.default_rng(0), 4000)[0]
    counts = np.bincount(drawn, minlength=5)
    assert counts[2] == 0
    assert counts[[0, 1, 3, 4]] == pytest.approx(1000, abs=120)


def test_partners_by_label_share_it():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 50)
    indices, pool = rng.permutation(50)[:20], np.flatnonzero(labels != 2)
    partners = coreset_rules.label_partners(indices, pool, labels, rng)
    assert np.array_equal(labels[partners], labels[indices])
    inside = labels[indices] != 2
    assert np.isin(partners[inside], pool).all()
    assert np.array_equal(partners[~inside], indices[~inside])  # nobody to mix with: itself


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 3))
def test_weights_have_mean_one_and_keep_their_ratios(sizes, each):
    k, n = len(sizes), sum(sizes)
    assignment = np.repeat(np.arange(k), sizes)
    indices = np.cumsum(sizes) - sizes
    coreset = Coreset(indices, sizes, assignment, np.zeros(k), 0.0, np.zeros(n, np.float32))
    partners = np.repeat(coreset.indices[:, None], each, axis=1)
    selection = coreset_rules.as_selection(coreset, "cluster", partners)
    assert selection.weights.mean() == pytest.approx(1, rel=1e-5)
    assert selection.weights / selection.weights[0] == pytest.approx(np.repeat(sizes, each) / sizes[0], rel=1e-5)
    assert np.array_equal(selection.indices, np.repeat(indices, each))
    assert np.array_equal(selection.partners, selection.indices)
    plain = coreset_rules.as_selection(coreset, "none", None)
    assert plain.weights is None
    assert plain.partners is None
    assert np.array_equal(plain.indices, indices)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1), st.sampled_from(["central", "small-loss"]))
def test_with_a_budget_by_label_every_label_has_its_share_of_the_best(seed, share, rule):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    labels, losses, groups = rng.integers(0, 4, n), rng.random(n), rng.integers(0, 3, n)
    proxies = rng.random((n, 3))
    given = {"grouping": "prediction", "selection": rule, "seed": 0}
    found = coreset_rules.choose(proxies, groups, losses, labels, share, **given, budget="label")
    k = max(1, round(share * n))
    assert len(found.indices) == len(set(found.indices.tolist())) == k
    ranks = losses
    if rule == "central":  # the share of its own group that has a smaller sum of distances, ties to the lower index
        far = np.linalg.norm(proxies[:, None] - proxies[None], axis=2).astype(np.float32).astype(np.float64)
        ranks = np.empty(n)
        for group in np.unique(groups):
            mine = np.flatnonzero(groups == group)
            sums = far[np.ix_(mine, mine)].sum(axis=1)
            ranks[mine[np.argsort(sums, kind="stable")]] = np.arange(len(mine)) / len(mine)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        chosen = np.intersect1d(own, found.indices)
        if k >= len(np.unique(labels)):
            assert abs(len(chosen) - k * len(own) / n) < len(np.unique(labels))
            assert len(chosen) >= 1
        left = np.setdiff1d(own, chosen)
        assert not len(left) or not len(chosen) or ranks[chosen].max() <= ranks[left].min()
    assert found.weights.sum() == n
    assert (found.assignment[found.indices] == np.arange(k)).all()


def test_underrepresented_labels_are_named():
    labels = np.repeat([0, 1, 2], 20)
    assert coreset_rules.underrepresented(np.arange(0, 60, 2), labels) == []
    assert coreset_rules.underrepresented(np.arange(0, 42), labels) == [2]
    assert coreset_rules.underrepresented(np.arange(40), np.where(labels == 2, 5, labels)) == [
        5
    ]  # labels 2 to 4 have no examples


def test_every_member_is_a_partner_equally_often():
    indices = np.array([4, 8, 15, 16])
    found = coreset_rules.any_partners(indices, np.random.default_rng(0), 3)
    assert found.shape == (4, 3)
    assert (np.sort(found, axis=0) == indices[:, None]).all()
