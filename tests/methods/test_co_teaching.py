"""Co-teaching: who is kept, who teaches whom, and what is left when nobody is forgotten."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.pairs import both, cross_entropy_runs, hand_made, outputs, same
from tests.training.common import clouds, examples, fit, told, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.methods.co_teaching import CoTeaching, CoTeachingSettings, exchanged, forget_rate, kept
from crust.training.method import Output


def method(forget: float = 0.0, **settings) -> CoTeaching:
    found = CoTeaching(CoTeachingSettings(**settings))
    found.begin_run(hand_made()[0])
    found.forget = forget
    return found


# ------------------------------------------------------------ how many


@given(epoch=st.integers(0, 50), rate=st.floats(0, 0.99), ramp=st.integers(1, 20), power=st.sampled_from([0.5, 1, 2]))
def test_the_forget_rate_of_the_paper(epoch, rate, ramp, power):
    found = forget_rate(epoch, rate, ramp, power)
    assert found == pytest.approx(rate * min(epoch**power / ramp, 1.0))
    assert 0 <= found <= rate
    assert found <= forget_rate(epoch + 1, rate, ramp, power)
    assert forget_rate(0, rate, ramp, power) == 0


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ramp", [1, 2, 10])
def test_the_forget_rate_of_the_published_code(ramp, power):
    expected = np.full(30, 0.4)
    expected[:ramp] = np.linspace(0, 0.4**power, ramp)
    assert [forget_rate(e, 0.4, ramp, power, released=True) for e in range(30)] == pytest.approx(expected)


@given(length=st.integers(1, 300), hundredths=st.integers(0, 99))
def test_what_is_kept_is_rounded_down_and_never_nothing(length, hundredths):
    exact = (1 - Fraction(hundredths, 100)) * length
    assert kept(length, hundredths / 100) == max(1, exact.numerator // exact.denominator)


def test_the_ramp_is_as_long_as_published_in_epochs_of_their_length():
    for n, epochs, ramp in ((50_000, 200, 10), (50_000, 40, 2), (25_000, 40, 4), (60, 40, 10), (60, 3, 1)):
        context, _ = hand_made(rate=0.4, epochs=epochs)
        context.n = n
        found = []
        for context.epoch in range(min(epochs, ramp + 2)):
            found.append(method().begin_epoch(context).facts["forget_rate"])
        assert found == pytest.approx([0.4 * min(e / ramp, 1) for e in range(len(found))])


# ------------------------------------------------------------ who


def test_each_gets_the_smallest_losses_of_the_other():
    generator = torch.Generator().manual_seed(0)
    losses = tuple(torch.rand(20, generator=generator) for _ in range(2))
    for n in (1, 7, 20):
        chosen = exchanged(losses, n)
        for which, teacher in zip(chosen, losses[::-1], strict=True):
            slow = sorted(range(20), key=lambda i: float(teacher[i]))[:n]
            assert which.tolist() == sorted(slow)


def test_no_gradient_goes_to_what_the_other_did_not_choose():
    context, batch = hand_made()
    found = outputs(batch)
    per_example = [F.cross_entropy(output.logits, batch.y, reduction="none").detach() for output in found]
    losses = method(0.5).losses(found, batch, context)
    for k in range(2):
        gradient, other = torch.autograd.grad(
            losses[k], [found[k].logits, found[1 - k].logits], allow_unused=True, retain_graph=True
        )
        assert other is None
        by_other = per_example[1 - k].argsort()[:8]
        assert set(gradient.abs().sum(dim=1).nonzero().flatten().tolist()) == set(by_other.tolist())
        assert losses[k].item() == pytest.approx(float(per_example[k][by_other].mean()))


def test_swapping_the_networks_swaps_the_losses():
    context, batch = hand_made()
    first, second = outputs(batch)
    one, two = method(0.5).losses([first, second], batch, context)
    assert [loss.item() for loss in method(0.5).losses([second, first], batch, context)] == [two.item(), one.item()]
    assert one.item() != two.item()


def test_the_gradient_of_a_loss():
    context, batch = hand_made()
    generator = torch.Generator().manual_seed(5)
    first, second = (torch.randn(16, 3, generator=generator, dtype=torch.float64) for _ in range(2))

    def loss(z):
        return method(0.4).losses([Output(z), Output(second)], batch, context)[0]

    assert torch.autograd.gradcheck(loss, first.requires_grad_())


def test_the_published_code_divides_twice():
    context, batch = hand_made()
    found = outputs(batch)
    once, twice = (method(0.5, mean_twice=flag).losses(found, batch, context) for flag in (False, True))
    assert [loss.item() for loss in twice] == pytest.approx([loss.item() / 8 for loss in once])


# ------------------------------------------------------------ whole runs


def test_without_forgetting_it_is_two_runs_of_cross_entropy():
    result = fit("co-teaching", noise_rate=0.0)
    for mine, alone in zip(both(result), cross_entropy_runs(), strict=True):
        assert same(mine, alone)
    assert not same(both(fit("co-teaching", noise_rate=0.3))[0], both(result)[0])


def test_who_is_left_out_is_remembered_and_survives(tmp_path):
    settings = {"noise_rate": 0.3, "epochs": 4}
    whole = fit("co-teaching", **settings)
    fit("co-teaching", **settings, run_dir=tmp_path, stop_after=2)
    resumed = fit("co-teaching", **settings, run_dir=tmp_path, resume=True)
    assert weights(resumed) == weights(whole)
    assert told(resumed.history) == told(whole.history)
    assert [same(*pair) for pair in zip(both(resumed), both(whole), strict=True)] == [True, True]
    rates = whole.recorder.method.opinions()["dropped"]
    assert np.array_equal(resumed.recorder.method.opinions()["dropped"], rates)
    table = whole.audit()
    assert np.array_equal(table["dropped"][~table["is_held_out"]], rates, equal_nan=True)
    assert whole.history["forget_rate"] == pytest.approx([0.0, 0.3, 0.3, 0.3])
    assert set(np.round(rates * 6, 9)) <= set(range(7))  # two networks, three epochs that forget
    assert rates.mean() == pytest.approx(0.3, abs=0.05)


def test_wrong_labels_are_left_out_more_often():
    x, given_labels, true = clouds(300)
    result = fit("co-teaching", data=(x, given_labels), noise_rate=0.3, epochs=8, validation=0)
    rates = result.recorder.method.opinions()["dropped"]
    wrong = given_labels != true
    assert rates[wrong].mean() > 0.6
    assert rates[~wrong].mean() < 0.2


def test_the_estimate_is_used_and_told():
    result = fit("co-teaching", epochs=3)
    line = [line for line in result.history if line["counts"]][-1]
    known = result.recorder.context.noise_info["noise_rate"]
    assert known.source == "estimated"
    assert line["forget_rate"] == pytest.approx(known.value)


def test_batches_of_one_keep_their_one():
    result = fit("co-teaching", data=examples(20), batch_size=1, noise_rate=0.5, validation=0)
    assert all(np.isfinite(line["loss"]) for line in result.history)
