"""D2L: the dimensionality of features, when it turns, and what happens then."""

import math

import numpy as np
import pytest
import torch
from tests.methods.single import batch_of, hand_made, logits_for, resumes, same_as_erm
from tests.training.common import fit, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.methods.d2l import D2L, D2LSettings, label_weight, lid, mixed_loss, rises, symmetric_loss


def method(**settings) -> D2L:
    return D2L(D2LSettings(**settings))


def ball(d: int, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


def lid_by_hand(x: np.ndarray, k: int) -> list[float]:
    found = []
    for i in range(len(x)):
        near = sorted(np.linalg.norm(x[i] - x[j]) for j in range(len(x)) if j != i)[:k]
        found.append(-k / sum(math.log(r / near[-1] + 1e-8) for r in near))
    return found


# ------------------------------------------------------------ the dimensionality


@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_a_ball_has_its_dimension(d):
    x = ball(d, 2000)
    inner = np.linalg.norm(x, axis=1) < 0.7 ** (1 / d)  # at the rim neighbours are missing
    found = lid(np.pad(x, ((0, 0), (0, 3))), 20)[inner].mean()  # three dimensions more in which nothing happens
    assert 0.8 * d < found < 1.25 * d


@pytest.mark.parametrize("scale", [1e-3, 7.0, 1e4])
def test_scale_and_place_do_not_matter(scale):
    x = ball(3, 128)
    assert lid(scale * x + 5 * scale, 20) == pytest.approx(lid(x, 20), rel=1e-6)


@pytest.mark.parametrize("k", [2, 5, 20, 39])
def test_it_is_what_the_formula_says(k):
    x = ball(3, 40)
    assert lid(x, k) == pytest.approx(lid_by_hand(x, k), rel=1e-9)


def test_copies_and_too_few_points_have_none():
    x = np.concatenate([np.zeros((6, 2)), [[1.0, 0.0], [0.0, 2.0]]])
    found = lid(x, 3)
    assert np.isnan(found[:6]).all()
    assert not np.isinf(found).any()
    assert np.isfinite(lid(ball(2, 10), 50)).all()  # fewer neighbours than asked for
    assert np.isnan(lid(ball(2, 2), 20)).all()
    assert lid(np.empty((0, 2)), 20).tolist() == []


def test_the_features_that_are_measured_are_those_of_the_network():
    found, one = hand_made(), method(examples=48, group=16, neighbours=5)
    value = one._measure(found)
    some = found.rng("lid").permutation(60)[:48]
    with torch.no_grad():
        features = found.networks[0].eval()[:-1](found.train.inputs[some]).numpy()
    by_hand = np.concatenate([lid_by_hand(features[i : i + 16].astype(np.float64), 5) for i in (0, 16, 32)])
    assert value == pytest.approx(by_hand.mean(), rel=1e-5)
    assert found.cost.forward == 48


def test_a_measurement_that_fails_repeats_the_last_one():
    found, one = hand_made(), method()
    with torch.no_grad():
        for parameter in found.networks[0].parameters():
            parameter.zero_()  # all features are alike
    assert math.isnan(one._measure(found))
    one.lids = [3.0]
    assert one._measure(found) == 3.0


# ------------------------------------------------------------ the turn


@pytest.mark.parametrize("value", [0.1, 1 / 3, 4.7, 1e6])
def test_a_constant_history_never_turns(value):
    assert not any(rises([value] * n, 5, least=0.0 if value == 4.7 else 0.01) for n in range(40))


def test_a_turn_is_two_deviations_above_the_window_before():
    past = [5.0, 6.0, 5.0, 6.0, 5.5]
    mean, spread = np.mean(past), np.std(past)
    assert rises([*past, mean + 2.01 * spread], 5)
    assert not rises([*past, mean + 1.99 * spread], 5)
    assert rises([99.0, *past, mean + 2.01 * spread], 5)  # older ones do not count
    assert not rises([*past[1:], 99.0], 5)  # the window is not full
    assert not rises([5.0] * 5 + [5.04], 5)  # less than one in a hundred
    assert rises([5.0] * 5 + [5.06], 5)
    assert not rises([math.nan] * 5 + [5.0], 5)


@pytest.mark.parametrize(
    ("epochs", "initial", "first"), [(120, "auto", 45), (40, "auto", 15), (6, "auto", 5), (40, 0, 5), (40, 3, 8)]
)
def test_nothing_is_checked_before_the_first_epochs_and_a_window(epochs, initial, first):
    one = method(initial=initial)
    found = []
    for epoch in range(epochs):
        one.lids.append(2.0**epoch)  # rises all the time
        if one._turns(len(one.lids), epochs):
            found.append(epoch)
    assert found == list(range(first, epochs))


def test_trust_is_what_the_formula_says():
    assert label_weight([2.0, 4.0], 10, 40) == pytest.approx(math.exp(-0.25 * 2))
    assert label_weight([2.0, 4.0, 1.0], 20, 40) == pytest.approx(math.exp(-0.5 * 0.5))  # below all before it
    assert label_weight([math.nan, 2.0, 2.0], 40, 40) == pytest.approx(math.exp(-1))
    assert label_weight([2.0], 5, 40) == label_weight([math.nan, math.nan], 5, 40) == 1.0


# ------------------------------------------------------------ the losses


def test_full_trust_is_cross_entropy():
    z, y = torch.randn(9, 4), torch.arange(9) % 4
    assert torch.allclose(mixed_loss(z, y, 1.0), F.cross_entropy(z, y), rtol=1e-6)
    assert torch.allclose(mixed_loss(z, y, 0.0), F.cross_entropy(z, z.argmax(1)), rtol=1e-6)
    both = 0.3 * F.cross_entropy(z, y) + 0.7 * F.cross_entropy(z, z.argmax(1))
    assert torch.allclose(mixed_loss(z, y, 0.3), both, rtol=1e-5)


@pytest.mark.parametrize("loss", [lambda z, y: mixed_loss(z, y, 0.4), lambda z, y: symmetric_loss(z, y, 0.1, 1.0)])
def test_the_losses_by_finite_differences(loss):
    z = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0, 1, 2, 3, 0, 1])
    assert torch.autograd.gradcheck(lambda z: loss(z, y), z)


def test_the_symmetric_loss_turns_label_and_prediction_around():
    z, y = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0])
    p, label = z.softmax(1), F.one_hot(y, 4).double()
    reverse = -(p * label.clamp(min=1e-4).log()).sum(1).mean()
    assert symmetric_loss(z, y, 0.0, 1.0).item() == pytest.approx(reverse.item(), rel=1e-9)
    assert symmetric_loss(z, y, 2.0, 0.0).item() == pytest.approx(2 * F.cross_entropy(z, y).item(), rel=1e-9)


# ------------------------------------------------------------ runs


def test_a_run_that_does_not_turn_is_plain_training():
    assert same_as_erm("d2l", initial=9)


class Forced(D2L):
    """Turns when it is told to."""

    at = 3

    def _turns(self, measured, epochs):
        return measured == self.at + 1


@pytest.mark.parametrize("rollback", [True, False])
def test_the_turn_goes_back_one_epoch(rollback):
    one, found = Forced(D2LSettings(initial=0, window=2, rollback=rollback)), hand_made()
    begun = []
    for epoch in range(5):
        found.epoch = epoch
        selection = one.begin_epoch(found)
        begun.append({name: value.clone() for name, value in found.networks[0].state_dict().items()})
        assert selection.facts["turned"] == (None if epoch < 3 else 3)
        assert ("rolled_back" in selection.facts) == (rollback and epoch == 3)
        with torch.no_grad():
            for parameter in found.networks[0].parameters():
                parameter.add_(0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(epoch)))
    same = [all(begun[2][name].equal(value) for name, value in later.items()) for later in begun]
    assert same == [False, False, True, rollback, False]
    assert one.previous is None  # nothing to go back to any more
    assert one.alpha == pytest.approx(label_weight(one.lids, 4, 3))


def test_after_the_turn_labels_and_predictions_are_mixed():
    found, one = hand_made(2), method()
    batch = batch_of(found)
    outputs = logits_for(batch)
    (before,) = one.losses(outputs, batch, found)
    assert before.equal(F.cross_entropy(outputs[0].logits, batch.y, reduction="none").mean())
    one.turned, one.alpha = 2, 0.5
    assert one.losses(outputs, batch, found)[0].equal(mixed_loss(outputs[0].logits, batch.y, 0.5))
    (sce,) = method(before="sce").losses(outputs, batch, found)
    assert sce.equal(symmetric_loss(outputs[0].logits, batch.y, 0.1, 1.0))


def turning(monkeypatch):
    """Let a run turn at its fourth epoch."""
    monkeypatch.setattr(D2L, "_turns", lambda self, measured, epochs: measured == 4)


@pytest.mark.parametrize("stops", [[3], [2, 4, 5]])
def test_it_resumes_to_the_byte_before_at_and_after_the_turn(tmp_path, monkeypatch, stops):
    turning(monkeypatch)
    resumes(tmp_path, "d2l", stops, epochs=6, initial=0, window=2)
    assert fit("d2l", epochs=6, initial=0, window=2).history["turned"] == [None, None, None, 3, 3, 3]


def test_the_history_says_what_was_measured():
    result = fit("d2l", epochs=3)
    assert all(value > 0 for value in result.history["lid"])
    assert result.history["alpha"] == [1.0] * 3
    again = fit("d2l", epochs=3)
    assert again.history["lid"] == result.history["lid"]
    assert weights(again) == weights(result)
    assert fit("d2l", epochs=3, seed=1).history["lid"] != result.history["lid"]
