"""DivideMix: the split, the targets and the losses against obvious versions, and what happens at the edges."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.pairs import both, cross_entropy_runs, hand_made, same
from tests.training.common import clouds, examples, fit, fit_seen, network, told, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.errors import InputError
from crust.methods.dividemix import (
    DivideMix,
    DivideMixSettings,
    augmented,
    away_from_uniform,
    divided_loss,
    negative_entropy,
    refined_targets,
    sharpen,
    unlabelled_weight,
)
from crust.training.gaussian_mixture import clean_probability
from crust.training.method import Batch, Known, Output

KNOWN = {"noise_rate": 0.3}  # so that nothing has to be estimated


def method(**own) -> DivideMix:
    return DivideMix(DivideMixSettings(**own))


def distributions(rows: int, classes: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(torch.randn(rows, classes, generator=generator, dtype=torch.float64), dim=1)


# ------------------------------------------------------------ targets


@settings(deadline=None)
@given(st.integers(0, 1000), st.floats(0.05, 1.0))
def test_sharpening_keeps_the_order_and_the_sum(seed, temperature):
    p = distributions(5, seed=seed)
    found = sharpen(p, temperature)
    assert torch.allclose(found.sum(dim=1), torch.ones(5, dtype=torch.float64))
    assert torch.equal(found.argmax(dim=1), p.argmax(dim=1))
    assert bool((found.max(dim=1).values >= p.max(dim=1).values - 1e-12).all())
    slow = p ** (1 / temperature)
    assert torch.allclose(found, slow / slow.sum(dim=1, keepdim=True))


def test_sharpening_at_its_ends():
    p = distributions(4)
    assert torch.allclose(sharpen(p, 1.0), p)
    assert torch.allclose(sharpen(p, 1e-3), F.one_hot(p.argmax(dim=1), 3).double())
    sure = torch.eye(3)
    assert torch.equal(sharpen(sure, 0.5), sure)  # zeros are no trouble


def test_targets_of_the_labelled_are_refined_and_of_the_others_guessed():
    own, other = distributions(6, seed=1), distributions(6, seed=2)
    mean = (own + other) / 2
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    trust = torch.tensor([1.0, 0.8, 0.6, 0.0, 0.4, 0.9], dtype=torch.float64)
    labelled = torch.tensor([True, True, True, True, False, False])
    found = refined_targets(y, trust, labelled, own, mean, 0.5)
    for i in range(6):
        row = mean[i]
        if labelled[i]:
            row = trust[i] * F.one_hot(y[i], 3) + (1 - trust[i]) * own[i]
        assert torch.allclose(found[i], row**2 / (row**2).sum())
    assert torch.allclose(found[0], torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))  # full trust: the label
    changed = refined_targets((y + 1) % 3, 1 - trust, labelled, own, mean, 0.5)
    assert torch.equal(changed[4:], found[4:])  # no label is seen where it does not count


# ------------------------------------------------------------ losses


@pytest.mark.parametrize("number", [0, 1, 4, 8])
def test_the_loss_in_its_own_words(number):
    generator = torch.Generator().manual_seed(3)
    z, t = torch.randn(8, 3, generator=generator, dtype=torch.float64), distributions(8, seed=4)
    labelled = torch.arange(8) < number
    p, share = torch.softmax(z, dim=1), number / 8
    supervised = sum(-(t[i] * p[i].log()).sum() for i in range(number)) / max(1, number)
    unsupervised = sum(((p[i] - t[i]) ** 2).mean() for i in range(number, 8)) / max(1, 8 - number)
    mean = p.mean(dim=0)
    pull = sum(1 / 3 * float(torch.log((1 / 3) / mean[c])) for c in range(3))
    expected = float(supervised) + 25 * float(unsupervised) + pull
    assert float(divided_loss(z, t, labelled, share, 25.0)) == pytest.approx(expected)


@pytest.mark.parametrize("number", [0, 2, 5])
def test_the_gradient_of_the_loss(number):
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64).requires_grad_()
    t, labelled = distributions(5, seed=6), torch.arange(5) < number
    assert torch.autograd.gradcheck(lambda x: divided_loss(x, t, labelled, 0.4, 25.0), z)
    assert torch.autograd.gradcheck(negative_entropy, z)
    assert torch.autograd.gradcheck(lambda x: away_from_uniform(F.log_softmax(x, dim=1)), z)


def test_a_part_that_is_small_by_chance_counts_as_little_as_it_is():
    z, t = torch.randn(100, 3, generator=torch.Generator().manual_seed(7)), distributions(100).float()
    one = torch.arange(100) == 7
    alone = divided_loss(z, t, one, 0.5, 0.0) - away_from_uniform(F.log_softmax(z, dim=1))
    assert float(alone) == pytest.approx(float(-(t[7] * F.log_softmax(z[7], dim=0)).sum()) / 50, rel=1e-4)


def test_the_pull_is_zero_at_uniform_predictions_and_positive_elsewhere():
    assert float(away_from_uniform(torch.full((4, 5), 0.2).log())) == pytest.approx(0, abs=1e-6)
    spread = torch.eye(3).clamp_min(1e-6)  # sure, but of every class equally often
    assert float(away_from_uniform((spread / spread.sum(dim=1, keepdim=True)).log())) == pytest.approx(0, abs=1e-5)
    assert float(away_from_uniform(F.log_softmax(torch.tensor([[200.0, 0.0, 0.0]] * 4), dim=1))) > 100  # and finite


# ------------------------------------------------------------ the split


def test_each_network_learns_the_labels_that_the_other_trusts():
    context, _ = hand_made(epoch=1)
    found = method(**KNOWN)
    selection = found.begin_epoch(context)
    for k in range(2):
        seen = context.evaluate_train_set(network=1 - k)
        assert np.array_equal(found.labelled[k], clean_probability(seen.losses) > 0.5)
    assert not np.array_equal(found.labelled[0], found.labelled[1])
    assert len(selection.indices) == context.n
    assert np.array_equal(selection.weights, found.labelled.mean(axis=0).astype(np.float32))
    assert selection.facts["labelled"] == [float(part.mean()) for part in found.labelled]


def test_where_nobody_is_clean_everyone_is_labelled():
    found = method(threshold=0.5)
    assert found._divide(np.full(4, 0.3)).tolist() == [True] * 4
    assert found._divide(np.array([0.3, 0.6])).tolist() == [False, True]


def test_where_all_losses_are_alike_nobody_is_without_a_label():
    context, batch = hand_made(epoch=1)
    for each in context.networks:
        torch.nn.init.zeros_(each[-1].weight)
        torch.nn.init.zeros_(each[-1].bias)
    found = method(**KNOWN, lambda_u=25.0)
    found.begin_epoch(context)
    assert found.labelled.all()
    mixed = found.prepare(batch, context)
    losses = found.losses([_output(each, mixed.x) for each in context.networks], mixed, context)
    assert all(bool(torch.isfinite(loss)) for loss in losses)


def test_a_batch_with_nobody_labelled_and_one_with_nobody_else():
    for flag in (False, True):
        context, batch = hand_made(epoch=2)
        found = method(**KNOWN, lambda_u=25.0)
        found.begin_epoch(context)
        found.labelled[:, batch.index] = flag
        mixed = found.prepare(batch, context)
        losses = found.losses([_output(each, mixed.x) for each in context.networks], mixed, context)
        assert all(bool(torch.isfinite(loss)) and float(loss.detach()) > 0 for loss in losses)


def test_swapping_the_networks_swaps_the_losses():
    answers = []
    for order in (1, -1):
        context, batch = hand_made(epoch=2)
        context.networks = context.networks[::order]
        found = method(**KNOWN, lambda_u=25.0)
        found.begin_epoch(context)
        mixed = found.prepare(batch, context)
        losses = found.losses([_output(each, mixed.x) for each in context.networks], mixed, context)
        answers.append([loss.item() for loss in losses][::order])
    assert answers[0] == pytest.approx(answers[1])
    assert answers[0][0] != pytest.approx(answers[0][1])


def _output(each, x):
    return Output(each.train()(x))


# ------------------------------------------------------------ mixing


def test_inputs_and_targets_are_mixed_alike_and_lean_to_their_own_side():
    context, batch = hand_made(epoch=1)
    found = method(**KNOWN)
    found.begin_epoch(context)
    before, y = batch.x.clone(), batch.y.clone()
    mixed = found.prepare(batch, context)
    rng = context.rng("mix", step=True)
    other, share = rng.permutation(16), rng.beta(4, 4)
    share = max(share, 1 - share)
    assert torch.allclose(mixed.x, share * before + (1 - share) * before[other])
    with torch.no_grad():
        own = [torch.softmax(each(before), dim=1) for each in context.networks]
    for k in range(2):
        trust = torch.from_numpy(found.trust[1 - k][batch.index]).float()
        labelled = torch.from_numpy(found.labelled[k][batch.index])
        plain = refined_targets(y, trust, labelled, own[k], (own[0] + own[1]) / 2, 0.5)
        assert torch.allclose(mixed.extra["targets"][k], share * plain + (1 - share) * plain[other], atol=1e-6)
        assert torch.equal(mixed.extra["labelled"][k], labelled)


def test_guesses_carry_no_gradient_are_counted_and_let_batchnorm_see_them():
    context, batch = hand_made(epoch=1, norm=True)
    found = method(**KNOWN)
    found.begin_epoch(context)
    before = [each[1].running_mean.clone() for each in context.networks]
    spent = context.cost.mine[0]
    for each in context.networks:
        each.train()
    mixed = found.prepare(batch, context)
    assert not any(target.requires_grad for target in mixed.extra["targets"])
    assert context.cost.mine[0] - spent == 2 * 16
    assert not any(each[1].running_mean.equal(old) for each, old in zip(context.networks, before, strict=True))


def images(n: int = 40):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, 8, 8, 3)).astype(np.uint8), np.arange(n) % 3


def test_two_views_where_the_data_is_augmented_and_resumed_to_the_same_bytes(tmp_path):
    settings = {"method": "dividemix", "epochs": 3, "batch_size": 16, "validation": 0, "warmup": 1, **KNOWN}

    def run(augment=True, **more):
        return fit_seen("small_cnn", images(), augment=augment, **settings, **more)

    whole = run()
    run(run_dir=tmp_path, stop_after=2)
    resumed = run(run_dir=tmp_path, resume=True)
    assert weights(resumed) == weights(whole)
    assert [same(*pair) for pair in zip(both(resumed), both(whole), strict=True)] == [True, True]
    assert told(resumed.history) == told(whole.history)
    plain = run(augment=False)
    spent = [[line["passes"]["backward"] for line in result.history] for result in (whole, plain)]
    assert np.diff(spent[0]).tolist() == [2 * 2 * 40] * 2  # two networks, two views
    assert np.diff(spent[1]).tolist() == [2 * 40] * 2


def test_a_set_that_augments_by_itself_has_two_views_too():
    context, _ = hand_made()
    assert not augmented(context)
    context.augment = True
    assert not augmented(context)  # features stay as they are
    context.plain = examples(60, 1)
    assert augmented(context)


def test_inputs_that_cannot_be_mixed_get_a_sentence():
    context, batch = hand_made(epoch=1)
    found = method(**KNOWN)
    found.begin_epoch(context)
    for x in (batch.x.long(), {"ids": batch.x}):
        with pytest.raises(InputError, match="cannot be mixed, and dividemix needs that"):
            found.prepare(Batch(x, batch.y, batch.index, batch.rows), context)


# ------------------------------------------------------------ constants


@pytest.mark.parametrize(("epochs", "warmup", "ramp"), [(300, 75, 150), (3, 1, 1)])
def test_constants_follow_the_length_of_the_run_and_of_its_epochs(epochs, warmup, ramp):
    context, _ = hand_made(epochs=epochs)  # 60 examples: a quarter of the run, and half of it
    found = method()
    found.begin_epoch(context)
    assert found.warmup == warmup
    context.epoch = warmup + ramp
    assert found._ramped(context) == 1
    context.epoch -= 1
    assert found._ramped(context) == pytest.approx(1 - 1 / ramp)


@pytest.mark.parametrize(("rate", "classes", "expected"), [(0.2, 10, 0), (0.5, 10, 25), (0.8, 10, 25), (0.5, 100, 150)])
def test_the_weight_of_the_unlabelled_follows_the_noise_rate(rate, classes, expected):
    context, _ = hand_made(rate=rate)
    context.classes = classes
    assert unlabelled_weight("auto", context) == expected
    assert unlabelled_weight(7.0, context) == 7.0
    context.noise_info["noise_rate"] = Known(rate, "true")
    assert unlabelled_weight("auto", context) == expected


def test_the_weight_ramps_from_nothing_to_all():
    context, _ = hand_made(epochs=20)
    found = method(ramp=4, warmup=2)
    found.begin_epoch(context)
    seen = []
    for context.epoch in range(2, 8):
        for context.step in range(4):  # 60 examples in batches of 16
            seen.append(found._ramped(context))
    assert seen[0] == 0
    assert seen[8] == 0.5
    assert seen[16:] == [1.0] * 8
    assert (np.diff(seen) >= 0).all()


def test_a_negative_weight_gets_a_sentence():
    with pytest.raises(InputError, match="setting lambda_u is -1"):
        fit("dividemix", lambda_u=-1.0, **KNOWN)


# ------------------------------------------------------------ whole runs


def test_during_warm_up_it_is_two_networks_trained_by_cross_entropy():
    result = fit("dividemix", warmup=3, **KNOWN)
    for mine, alone in zip(both(result), cross_entropy_runs(), strict=True):
        assert same(mine, alone)
    careful = fit("dividemix", warmup=3, confidence_penalty=True, **KNOWN)
    assert not same(both(careful)[0], both(result)[0])


def test_it_learns_and_finds_the_wrong_labels():
    x, given_labels, true = clouds(300)
    result = fit("dividemix", data=(x, given_labels), true_labels=true, epochs=8, validation=0, lambda_u=25.0, **KNOWN)
    assert (both(result)[0].eval()(result.recorder.context.train.inputs).argmax(1).numpy() == true).mean() > 0.85
    error_scores = result.audit()["mixture"].to_numpy()
    wrong = given_labels != true
    assert error_scores[wrong].mean() > 0.7
    assert error_scores[~wrong].mean() < 0.3
    lines = [line for line in result.history if "labelled" in line]
    assert len(lines) == 6
    assert lines[-1]["clean_fraction_weighted"] > 0.9  # purity of what is labelled


def test_a_run_that_is_stopped_after_warm_up_or_later_goes_on_as_if_it_was_not(tmp_path):
    settings = {"epochs": 5, "warmup": 2, "model": network(norm=True, dropout=0.2), **KNOWN}
    whole = fit("dividemix", **settings)
    for moment in (2, 4):
        fit("dividemix", **settings, run_dir=tmp_path / str(moment), stop_after=moment)
        resumed = fit("dividemix", **settings, run_dir=tmp_path / str(moment), resume=True)
        assert [same(*pair) for pair in zip(both(resumed), both(whole), strict=True)] == [True, True]
        assert told(resumed.history) == told(whole.history)
        found, expected = (run.recorder.method.opinions()["mixture"] for run in (resumed, whole))
        assert np.array_equal(found, expected)


def test_batches_of_one():
    result = fit("dividemix", data=examples(20), batch_size=1, validation=0, warmup=1, **KNOWN)
    assert all(np.isfinite(line["loss"]) for line in result.history)


def test_who_gives_the_weight_pays_for_no_estimate():
    assert not [line for line in fit("dividemix", lambda_u=25.0).history.lines if "estimate" in line["stage"]]
    assert [line for line in fit("dividemix").history.lines if "estimate" in line["stage"]]
