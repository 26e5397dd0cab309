"""Looking at a network: its logits and last layer are found, and nothing in it changes."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.refusals import refused
from torch import nn

from crust._util.torch_modules import check_outputs, evaluating, last_linear, logits_of, training
from crust.errors import InputError

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


class Wrapped(nn.Module):
    """Returns what transformers return: an object with logits among other things."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)  # defined first, called last
        self.body = nn.Linear(6, 8)
        self.side = nn.Linear(8, 3)  # never called

    def forward(self, x):
        return SimpleNamespace(loss=None, logits=self.head(torch.relu(self.body(x))))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 5, 3)
        self.classifier = nn.Conv2d(5, 3, 1)

    def forward(self, x):
        x = self.body(x.reshape(len(x), 1, 2, 3).repeat(1, 1, 2, 1)).mean((2, 3), keepdim=True)
        return self.classifier(x).flatten(1)


@pytest.mark.parametrize(
    "output", [torch.ones(2, 3), SimpleNamespace(logits=torch.ones(2, 3)), {"logits": torch.ones(2, 3)}]
)
def test_logits_are_found(output):
    assert torch.equal(logits_of(output), torch.ones(2, 3))


@pytest.mark.parametrize("output", [(torch.ones(2),), [torch.ones(2)], SimpleNamespace(logits=None), {}, None, 3.0])
def test_other_outputs_are_refused(output):
    with refused("model-output"):
        logits_of(output)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (nn.Linear(6, 3), ""),
        (nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5)), "0"),
        (nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 3)), "2"),
        (nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1), nn.Flatten(0)), "2"),
        (Wrapped(), "head"),
        (Convolutional(), "classifier"),
    ],
)
def test_the_last_layer_is_found(model, name):
    found, layer = last_linear(model, X)
    assert found == name
    assert layer is model.get_submodule(name)


def test_the_last_layer_can_be_named():
    assert last_linear(Wrapped(), X, "side")[0] == "side"
    with pytest.raises(InputError, match="unknown layer 'heed': use one of head, body, side; did you mean 'head'"):
        last_linear(Wrapped(), X, "heed")
    with refused("last-layer"):
        last_linear(nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 3)), X, "1")


@pytest.mark.parametrize("last", [nn.Softmax(1), nn.ReLU(inplace=True), nn.LogSoftmax(1)])
def test_a_layer_whose_output_is_changed_is_not_the_last(last):
    with pytest.raises(
        InputError, match="no linear layer of the model gives its output: name the last layer, one of 0"
    ):
        last_linear(nn.Sequential(nn.Linear(6, 3), last), X)


def test_a_model_without_linear_layers_is_refused():
    with refused("last-layer"):
        last_linear(nn.Flatten(), X)


def test_no_hooks_stay():
    model = Wrapped()
    last_linear(model, X)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_outputs_are_checked():
    check_outputs(Wrapped(), X, 3)
    check_outputs(nn.Linear(6, 1), X, 1)
    check_outputs(nn.Sequential(nn.Linear(6, 1), nn.Flatten(0)), X, 1)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (nn.Linear(6, 4), "the model has 4 outputs, but the data has 3 classes: give the model 3 outputs"),
        (nn.Sequential(nn.Linear(6, 1), nn.Flatten(0)), r"gives an output of shape \(4,\) for 4 examples"),
        (nn.Unflatten(1, (2, 3)), r"gives an output of shape \(4, 2, 3\) for 4 examples: .* logits of shape \(4, 3\)"),
        (nn.Linear(5, 3), r"^the model cannot take an example of shape \(6,\): .*mat1 and mat2 shapes[^\n]*$"),
    ],
)
def test_wrong_outputs_are_refused(model, sentence):
    with pytest.raises(InputError, match=sentence):
        check_outputs(model, X, 3)


def test_flags_and_random_states_come_back():
    class OwnTrain(nn.Sequential):
        def train(self, mode=True):
            raise AssertionError("never called")

    model = OwnTrain(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
    model[2].eval()

    def look():
        with evaluating(model):
            assert not any(module.training for module in model.modules())
            assert not torch.is_grad_enabled()
            draw()
            raise KeyError

    before = draw(), draw()
    rewind(before[0][1])
    with pytest.raises(KeyError):
        look()
    assert draw()[0] == before[1][0]
    assert [module.training for module in model.modules()] == [True, True, True, False]
    assert torch.is_grad_enabled()
    with training(model):
        assert all(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, True, False]


def draw():
    """A number from every global generator, and the states after it."""
    values = torch.rand(1).item(), random.random(), np.random.rand()  # noqa: NPY002
    return values, (torch.get_rng_state(), random.getstate(), np.random.get_state())  # noqa: NPY002


def rewind(states):
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])  # noqa: NPY002
