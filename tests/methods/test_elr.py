"""ELR: targets that remember, and a loss that holds the network to them."""

import numpy as np
import pytest
import torch
from tests.methods.single import auroc, batch_of, hand_made, logits_for, resumes, same_as_erm
from tests.training.common import CLASSES, clouds, fit
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.errors import InputError
from crust.methods.elr import Elr, ElrSettings, averaged, elr_loss, published

PLAIN = {"noise_type": "symmetric"}


def method(**settings) -> Elr:
    return Elr(ElrSettings(**settings))


def test_without_strength_it_is_cross_entropy():
    z, y, t = torch.randn(7, 5), torch.arange(7) % 5, torch.rand(7, 5) / 5
    assert elr_loss(z, y, t, 0.0).equal(F.cross_entropy(z, y, reduction="none").mean())
    assert same_as_erm("elr", strength=0.0, memory=0.7, **PLAIN)


@pytest.mark.parametrize("strength", [0.0, 1.0, 7.0])
def test_the_loss_by_finite_differences(strength):
    generator = torch.Generator().manual_seed(0)
    z = (2 * torch.randn(6, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    t = torch.rand(6, 4, generator=generator, dtype=torch.float64).softmax(1)
    y = torch.tensor([0, 1, 2, 3, 0, 1])
    assert torch.autograd.gradcheck(lambda z: elr_loss(z, y, t, strength), z)


def test_the_gradient_is_the_one_of_the_paper():
    """p - y + strength * p_c / (1 - <p, t>) * (<p, t> - t_c), example by example."""
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    y, t = torch.tensor([0, 1, 2, 0, 1]), torch.rand(5, 3, dtype=torch.float64).softmax(1)
    (found,) = torch.autograd.grad(elr_loss(z, y, t, 3.0), z)
    p = z.detach().softmax(1)
    inner = (p * t).sum(1, keepdim=True)
    expected = (p - F.one_hot(y, 3) + 3.0 * p / (1 - inner) * (inner - t)) / 5
    assert found.numpy() == pytest.approx(expected.numpy(), abs=1e-12)


def test_an_example_that_was_known_well_resists_its_label():
    z = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True)
    t = torch.tensor([[0.98, 0.01, 0.01]])
    (plain,) = torch.autograd.grad(F.cross_entropy(z, torch.tensor([1])), z)
    (held,) = torch.autograd.grad(elr_loss(z, torch.tensor([1]), t, 3.0), z)
    assert plain[0, 0] > 0 > held[0, 0]  # cross-entropy forgets class 0, elr goes on with it


def test_sure_predictions_have_a_finite_loss():
    z = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    t = averaged(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), z, 0.7)
    loss = elr_loss(z, torch.tensor([1, 1]), t, 3.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_targets_are_averages_that_forget():
    found, one = hand_made(), method(strength=3.0, memory=0.6)
    one.begin_stage(found)
    batch = batch_of(found)
    expected = np.zeros((16, CLASSES))
    for epoch in range(3):
        found.epoch = epoch
        selection = one.begin_epoch(found)
        assert selection.indices.tolist() == list(range(60))
        outputs = logits_for(batch, seed=epoch)
        (loss,) = one.losses(outputs, batch, found)
        p = np.clip(outputs[0].logits.detach().softmax(1).numpy(), 1e-4, 1 - 1e-4)
        expected = 0.6 * expected + 0.4 * p / p.sum(axis=1, keepdims=True)
        assert one.targets[batch.index].numpy() == pytest.approx(expected, abs=1e-6)
        inner = (p * expected).sum(axis=1)
        ce = F.cross_entropy(outputs[0].logits, batch.y).item()
        assert loss.item() == pytest.approx(ce + 3 * np.log(1 - inner).mean(), abs=1e-5)
    others = np.setdiff1d(np.arange(60), batch.index)
    assert not one.targets[others].any()
    assert not one.targets.requires_grad
    error_scores = one.opinions()["target"]
    assert np.isnan(error_scores[others]).all()
    given = expected[np.arange(16), batch.y.numpy()] / expected.sum(axis=1)
    assert error_scores[batch.index] == pytest.approx(1 - given, abs=1e-5)


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ({}, "symmetric", (3.0, 0.7)),
        ({}, "asymmetric", (1.0, 0.9)),
        ({"memory": 0.5}, "asymmetric", (1.0, 0.5)),
        ({"strength": 2}, "symmetric", (2.0, 0.7)),
    ],
)
def test_strength_and_memory_by_the_type_of_the_noise(given, kind, expected):
    found, one = hand_made(knowledge={"noise_type": kind}), method(**given)
    one.begin_stage(found)
    facts = one.begin_epoch(found).facts
    assert (facts["strength"], facts["memory"]) == (one.strength, one.memory) == expected
    assert published("asymmetric", 100) == (7.0, 0.9)


def test_the_type_is_not_estimated_where_it_does_not_matter():
    given = fit("elr", strength=1.0, memory=0.5)
    assert given.history["stage"] == ["train"] * 3
    assert given.config["noise_info"] == {}
    estimated = fit("elr", memory=0.5)
    assert estimated.history["stage"][0] == "estimate 1"
    assert estimated.config["noise_info"]["noise_type"]["source"] == "estimated"


@pytest.mark.parametrize(
    ("name", "value"), [("strength", -1), ("memory", 1.0), ("memory", "much"), ("noise_type", "x")]
)
def test_impossible_settings_get_a_sentence(name, value):
    with pytest.raises(InputError, match=f"setting {name}"):
        fit("elr", **{name: value})


def test_it_resumes_to_the_byte(tmp_path):
    resumes(tmp_path, "elr", [2, 3], epochs=4, **PLAIN)


def test_targets_find_the_wrong_labels():
    result = fit("elr", epochs=12, validation=0, **PLAIN)
    _, given, true = clouds()
    assert auroc(result.recorder.method.opinions()["target"], given != true) > 0.9
