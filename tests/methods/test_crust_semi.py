"""crust-semi: Bayes' rule beside one written out, through whose eyes labels are seen, its cost, and that it resumes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.methods.single import batch_of, hand_made, resumes
from tests.training.common import CLASSES, clouds, examples, fit, network

from crust.methods import METHODS
from crust.methods.crust_semi import SMALLEST, likely_labels
from crust.training.losses import cross_entropy, sce
from crust.training.method import Output
from crust.training.noise_estimation import HeldOutNoise


def made(**settings):
    """The method in the middle of a run with a fifth of the labels wrong, and what both networks have said."""
    kind = METHODS["crust-semi"]
    method, context = kind(kind.Settings(**settings)), hand_made(4, epochs=5)
    method.begin_stage(context)
    generator = torch.Generator().manual_seed(0)
    method.seen = torch.randn(2, context.n, CLASSES, generator=generator).mul(2).softmax(dim=2)
    method.noise = HeldOutNoise(0.2, 100.0, 1.0, False, 0.3)
    context.noise_info = {}
    method.visited, method.rate, method.bound = [], 0.2, 0.0
    return method, context


def outputs_for(batch, seed: int = 4):
    generator = torch.Generator().manual_seed(seed)
    return [Output(torch.randn(len(batch.y), CLASSES, generator=generator).requires_grad_()) for _ in range(2)]


@given(st.integers(0, 1000), st.integers(2, 6), st.floats(0, 0.9))
def test_likely_labels_are_bayes_rule_for_symmetric_noise(seed, classes, rate):
    rng = np.random.default_rng(seed)
    p, y = rng.dirichlet(np.ones(classes), 7), rng.integers(0, classes, 7)
    found = likely_labels(torch.from_numpy(p), torch.from_numpy(y), rate).numpy()
    for i in range(7):
        joint = []
        for true in range(classes):
            told = 1 - rate if true == y[i] else rate / (classes - 1)
            joint.append(max(p[i, true], SMALLEST) * told)
        assert found[i] == pytest.approx(np.array(joint) / sum(joint), abs=1e-5)


@pytest.mark.parametrize("judges", ["other", "both"])
@pytest.mark.parametrize("guesses", [0.0, 0.5, 1.0])
def test_a_label_counts_as_far_as_the_judges_believe_it(judges, guesses):
    method, context = made(judges=judges, guesses=guesses, memory=0.6)
    batch = batch_of(context)
    outputs, before = outputs_for(batch), method.seen.clone()
    losses = method.losses(outputs, batch, context)
    now = [0.6 * before[k][batch.index] + 0.4 * outputs[k].logits.detach().softmax(dim=1) for k in range(2)]
    for k in range(2):
        assert torch.allclose(method.seen[k][batch.index], now[k], atol=1e-6)
        likely = likely_labels(now[1 - k] if judges == "other" else (now[0] + now[1]) / 2, batch.y, 0.2)
        expected = 0.0
        for row, label in enumerate(batch.y.tolist()):
            for c in range(CLASSES):
                weight = likely[row, c] * (1.0 if c == label else guesses)
                expected += weight * cross_entropy(outputs[k].logits[row : row + 1], torch.tensor([c]))
        assert torch.allclose(losses[k], expected / len(batch.y), rtol=1e-4)


def test_without_wrong_labels_it_is_two_plain_trainings():
    method, context = made(guesses=1.0)
    method.rate = 0.0
    batch = batch_of(context)
    outputs = outputs_for(batch)
    for loss, output in zip(method.losses(outputs, batch, context), outputs, strict=True):
        assert torch.allclose(loss, cross_entropy(output.logits, batch.y))
    method.bound = 1.0
    for loss, output in zip(method.losses(outputs, batch, context), outputs, strict=True):
        assert torch.allclose(loss, sce(output.logits, batch.y))


def test_with_no_noise_the_first_network_ends_as_plain_training_does():
    seen = [
        fit(name, model=network(norm=True), **more)
        for name, more in (("erm", {}), ("crust-semi", {"noise_rate": 0.0, "averaged": False}))
    ]
    erm, semi = (result.recorder.context.networks[0].state_dict() for result in seen)
    assert all(torch.allclose(value, semi[name], atol=1e-5) for name, value in erm.items())


def test_labels_are_not_judged_by_networks_that_know_nothing():
    method, context = made(begin=0.4, ramp=0.4)
    rates = []
    for epoch in range(5):
        context.epoch = epoch
        rates.append(method._rate(context))
    assert rates == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])


def test_it_costs_at_most_twice_the_passes_of_plain_training():
    for epochs in (1, 4, 12, 30):
        erm, semi = (fit(name, epochs=epochs).cost for name in ("erm", "crust-semi"))
        assert semi["forward"] + semi["backward"] <= 2 * (erm["forward"] + erm["backward"])


def test_it_believes_right_labels_more_than_wrong_ones():
    x, given_labels, true = clouds(600)
    result = fit("crust-semi", data=examples(600), epochs=20)
    table = result.audit()
    trained_on = table.loc[~table["is_held_out"]]
    wrong = (given_labels != true)[trained_on.index.to_numpy()]
    disbelief = trained_on["disbelief"].to_numpy()
    assert disbelief[wrong].mean() > 0.6 > 0.3 > disbelief[~wrong].mean()
    assert len(x) == 600


@pytest.mark.parametrize("settings", [{}, {"validation": 0}, {"noise_rate": 0.3, "guesses": 1.0, "judges": "both"}])
def test_it_resumes_bit_for_bit(tmp_path, settings):
    resumes(tmp_path, "crust-semi", [1, 3, 5], epochs=6, **settings)


def test_with_nothing_held_out_those_trained_on_say_how_much_is_wrong():
    facts = fit("crust-semi", data=examples(600), epochs=10, validation=0).history["noise_range"]
    assert facts[0] is None
    assert 0.1 < facts[-1]["rate"] < 0.45
    assert facts[-1] == facts[2]  # later they have memorised too much to say
