"""A coreset that finds its own size, against slow and obvious versions of its rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crust.gradients import GradientPass
from crust.training.coreset_rules import SizedCoreset, pass_due
from crust.training.noise_estimation import HeldOutNoise, held_out_noise


def seen(probabilities: np.ndarray, labels: np.ndarray) -> GradientPass:
    p = probabilities.astype(np.float32)
    own = p[np.arange(len(p)), labels]
    return GradientPass(np.arange(len(p)), p.argmax(1), -np.log(own), own, own, p, labels=labels)


def drawn(n: int, classes: int, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, given labels, true labels: the network knows nearly everything."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    logits = rng.normal(size=(n, classes)) + 4.0 * np.eye(classes)[truth]
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.where(rng.random(n) < rate, (truth + rng.integers(1, classes, n)) % classes, truth)
    return p, labels, truth


def members_by_hand(p: np.ndarray, labels: np.ndarray, noise: HeldOutNoise) -> set[int]:
    """Who agrees, and of every label the most central share that is surely right; the most central where too many."""
    n, predictions = len(p), p.argmax(1)
    proxies = p.astype(np.float64) - np.eye(p.shape[1])[labels]
    far = {}
    for i in range(n):
        group = [j for j in range(n) if predictions[j] == predictions[i] and j != i]
        far[i] = sum(np.linalg.norm(proxies[i] - proxies[j]) for j in group) / max(1, len(group))
    chosen = {i for i in range(n) if predictions[i] == labels[i]}
    for label in set(labels.tolist()):
        of_label = sorted((i for i in range(n) if labels[i] == label), key=lambda i: far[i])
        chosen |= set(of_label[: int((1 - noise.disagreement) * len(of_label))])  # at least these
    wanted = round(n * (1 - noise.rate))
    chosen |= set(sorted(set(range(n)) - chosen, key=lambda i: far[i])[: max(0, wanted - len(chosen))])
    most = int(n * (1 - noise.low))
    return set(sorted(chosen, key=lambda i: far[i])[:most])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.sampled_from([0.0, 0.2, 0.5]), st.integers(2, 4))
def test_members_are_chosen_as_the_rule_says(seed, rate, classes):
    p, labels, _ = drawn(80, classes, rate, seed)
    coreset = SizedCoreset(80, memory=0.0)
    coreset.average = p.astype(np.float32)
    coreset.noise = held_out_noise(p, labels)
    coreset.choose(labels, grouping="prediction", selection="central")
    by_hand = members_by_hand(coreset.average, labels, coreset.noise)
    mine = set(np.flatnonzero(coreset.member).tolist())
    # Budgets of labels are rounded so that they add up to the whole: a member a label may differ.
    assert len(mine ^ by_hand) <= 2 * classes


def test_wrong_labels_are_left_out_and_clean_data_stays_whole():
    for rate in (0.0, 0.2, 0.5):
        p, labels, truth = drawn(2000, 5, rate, 1)
        held, held_labels, _ = drawn(500, 5, rate, 2)
        coreset = SizedCoreset(2000, memory=0.5)
        for _ in range(3):
            coreset.look(seen(p, labels), labels, seen(held, held_labels), held_labels, None)
        assert coreset.ready(epoch=12, epochs=40, steps=20, select_after=12)
        coreset.choose(labels, grouping="prediction", selection="central")
        assert coreset.noise.low <= rate + 0.02
        assert coreset.noise.rate == pytest.approx(rate, abs=0.06)
        assert (labels == truth)[coreset.member].mean() > 0.97
        assert coreset.member.mean() > 0.9 * (1 - rate)


def test_nothing_is_left_out_before_labels_are_memorised():
    p, labels, _ = drawn(400, 3, 0.3, 1)
    held, held_labels, _ = drawn(200, 3, 0.3, 2)
    coreset = SizedCoreset(400, memory=0.5)
    coreset.look(seen(p, labels), labels, seen(held, held_labels), held_labels, None)
    assert not coreset.ready(epoch=2, epochs=40, steps=200, select_after=None)
    memorised = 0.9 * np.eye(3)[labels] + 0.1 / 3
    coreset.look(seen(memorised, labels), labels, seen(held, held_labels), held_labels, None)
    assert coreset.ready(epoch=3, epochs=40, steps=200, select_after=None)


def test_small_sets_select_when_half_of_the_run_is_over():
    coreset = SizedCoreset(10, memory=0.5)
    coreset.memorised, coreset.held = True, np.zeros((1, 2))
    ready = [coreset.ready(epoch, epochs=6, steps=5, select_after=None) for epoch in range(6)]
    assert ready == [False] * 3 + [True] * 3
    assert coreset.ready(epoch=2, epochs=40, steps=100, select_after=None)


def test_a_late_pass_that_knows_less_changes_no_end_of_the_range():
    p, labels, _ = drawn(500, 4, 0.2, 3)
    sure, blind = held_out_noise(p, labels), held_out_noise(np.random.default_rng(0).random((500, 4)), labels)
    assert blind.rate > sure.rate
    assert sure.least(blind).rate == sure.rate
    assert blind.least(sure) == sure


@given(st.integers(20, 300))
def test_passes_cost_little_beside_plain_training(epochs):
    """The passes that no audit asks for are at most a tenth of plain training."""
    audit = {e for e in range(epochs) if (e + 1) % max(1, epochs // 10) == 0 or e + 1 == epochs}
    extra = sum(pass_due(epoch, epochs, None) and epoch - 1 not in audit for epoch in range(epochs))
    plain = 2 * epochs + len(audit)
    assert extra <= 0.1 * plain


def test_the_state_is_all_there_is():
    p, labels, _ = drawn(100, 3, 0.3, 5)
    first, second = SizedCoreset(100, 0.5), SizedCoreset(100, 0.5)
    first.look(seen(p, labels), labels, None, None, None)
    assert first.ready(9, 10, 5, None)
    first.choose(labels, grouping="prediction", selection="central")
    second.load(first.state())
    for one in (first, second):
        one.look(seen(p[::-1], labels), labels, None, None, None)
        one.choose(labels, grouping="prediction", selection="central")
    assert np.array_equal(first.member, second.member)
    assert (first.worth, first.bound, first.noise) == (second.worth, second.bound, second.noise)
