"""Decoupling: only what two networks dispute is learnt, and nothing is where they agree."""

import copy

import numpy as np
import pytest
import torch
from tests.methods.pairs import both, cross_entropy_runs, hand_made, outputs, same
from tests.training.common import examples, fit, network, told, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.methods.decoupling import Decoupling, DecouplingSettings, disputed, disputed_loss
from crust.training import loop
from crust.training.run_state import Plan, RunState


def method(**settings) -> Decoupling:
    found = Decoupling(DecouplingSettings(**settings))
    found.begin_run(hand_made()[0])
    return found


def test_who_is_disputed_depends_on_predictions_alone():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(50, 4, generator=generator) for _ in range(2))
    expected = [int(a[i].argmax()) != int(b[i].argmax()) for i in range(50)]
    assert disputed(a, b).tolist() == expected
    assert not disputed(a, a * 3 + 1).any()


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("number", [1, 3, 20])
def test_the_loss_is_a_sum_over_the_disputed_divided_by_no_less_than_a_share_of_the_batch(floor, number):
    generator = torch.Generator().manual_seed(1)
    logits, y = torch.randn(20, 4, generator=generator, dtype=torch.float64), torch.arange(20) % 4
    where = torch.zeros(20, dtype=torch.bool)
    where[torch.randperm(20, generator=generator)[:number]] = True
    by_hand = 0.0
    for i in range(20):
        if where[i]:
            by_hand -= float(torch.log_softmax(logits[i], dim=0)[y[i]])
    assert float(disputed_loss(logits, y, where, floor)) == pytest.approx(by_hand / max(floor * 20, number))


def test_the_gradient_of_the_loss():
    logits = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    y, where = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([True, False, True, False, False, True])
    assert torch.autograd.gradcheck(lambda z: disputed_loss(z, y, where, 0.1), logits)


def test_no_logit_outside_the_disputed_has_a_gradient():
    context, batch = hand_made(epoch=1)
    given = outputs(batch)
    losses = method().losses(given, batch, context)
    where = disputed(given[0].logits, given[1].logits)
    assert 0 < int(where.sum()) < len(where)
    for output, loss in zip(given, losses, strict=True):
        (gradient,) = torch.autograd.grad(loss, output.logits)
        assert torch.equal(gradient.abs().sum(dim=1) > 0, where)


def test_a_wrong_label_changes_the_gradient_but_not_the_choice():
    context, batch = hand_made(epoch=1)
    given = outputs(batch)
    first = method().losses(given, batch, context)
    batch.y = (batch.y + 1) % 3
    second = method().losses(given, batch, context)
    rows = [[torch.autograd.grad(loss, given[0].logits)[0].abs().sum(dim=1) > 0] for loss in (first[0], second[0])]
    assert torch.equal(rows[0][0], rows[1][0])
    assert first[0].item() != second[0].item()


def test_where_all_agree_there_is_no_step():
    context, batch = hand_made(epoch=1)
    given = outputs(batch)
    given[1].logits = given[0].logits * 2
    assert method().losses(given, batch, context) == [None, None]
    assert all(loss is not None for loss in method(warmup=2).losses(given, batch, context))


def test_identical_networks_stay_as_they_are():
    context, _ = hand_made()
    context.networks = [network(norm=False), network(norm=False)]
    before = [copy.deepcopy(each.state_dict()) for each in context.networks]
    state = RunState(Plan(method(warmup=0)))
    lines = []
    loop.train(context, state, fresh=lambda i: network(), record=lambda *found: lines.append(found))
    assert len(lines) == context.settings.epochs
    for each, old in zip(context.networks, before, strict=True):
        assert all(value.equal(old[name]) for name, value in each.state_dict().items())


def test_during_warm_up_it_is_two_networks_trained_by_cross_entropy():
    result = fit("decoupling", warmup=3)
    for mine, alone in zip(both(result), cross_entropy_runs(), strict=True):
        assert same(mine, alone)
    later = fit("decoupling", warmup=2)
    assert not same(both(later)[0], both(result)[0])


def test_the_two_begin_with_weights_of_their_own():
    first, second = (context_network.state_dict() for context_network in both(fit("decoupling", epochs=1)))
    assert not any(value.equal(second[name]) for name, value in first.items())


def test_how_often_an_example_was_disputed_is_remembered_and_survives(tmp_path):
    whole = fit("decoupling", epochs=4)
    fit("decoupling", epochs=4, run_dir=tmp_path, stop_after=2)
    resumed = fit("decoupling", epochs=4, run_dir=tmp_path, resume=True)
    assert weights(resumed) == weights(whole)
    assert told(resumed.history) == told(whole.history)
    rates = whole.recorder.method.opinions()["disputed"]
    assert rates.shape == (81,)
    assert set(np.round(rates * 4, 9)) <= {0, 1, 2, 3, 4}  # four visits each
    assert np.array_equal(resumed.recorder.method.opinions()["disputed"], rates)
    table = whole.audit()
    assert np.array_equal(table["disputed"][~table["is_held_out"]], rates, equal_nan=True)
    shares = whole.history["disputed"]
    assert np.mean(shares) == pytest.approx(rates.mean())


def test_batches_of_one_and_a_class_that_is_absent():
    result = fit("decoupling", data=examples(20), batch_size=1, validation=0)
    assert len(result.history) == 3
    logits, y = torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)
    assert float(disputed_loss(logits, y, torch.tensor([True, False]), 0.1)) == pytest.approx(
        float(F.cross_entropy(logits, y))
    )
