"""Gradient proxies: equal to autograd's, in the order of the dataset, and nothing in the network changes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.gradients.common import C, N, X, Y, autograd, batches, everything, network
from tests.refusals import refused
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from crust.errors import InputError
from crust.gradients import KINDS, proxies


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["resnet8", "small_cnn", "mlp"])
def test_proxies_are_the_gradients_of_autograd(kind, name):
    model = network(name)
    expected = autograd(model, kind)
    found = proxies(model, batches(), Y, kind=kind)
    assert found.proxies.dtype == np.float32
    np.testing.assert_allclose(found.proxies, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_predictions_losses_and_certainty_come_from_the_same_pass():
    model = network().eval()
    with torch.no_grad():
        logits = model(X)
    p = logits.softmax(1).numpy()
    found = proxies(model, batches(), Y, probabilities=True)
    assert found.predictions.dtype == found.index.dtype == np.int64
    assert found.predictions.tolist() == p.argmax(1).tolist()
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)
    np.testing.assert_allclose(found.losses, cross_entropy(logits, torch.from_numpy(Y), reduction="none"), rtol=1e-4)
    np.testing.assert_allclose(found.confidence, p[np.arange(N), Y], atol=1e-6)
    others = np.where(np.arange(C) == Y[:, None], -1, p).max(1)
    np.testing.assert_allclose(found.margins, p[np.arange(N), Y] - others, atol=1e-6)
    assert ((found.margins > 0) == (found.predictions == Y)).all()
    assert all(getattr(found, name).dtype == np.float32 for name in ("losses", "confidence", "margins"))
    assert proxies(model, batches(), Y).probabilities is None


def test_one_forward_pass_over_the_data():
    model, seen = network(), []
    model.register_forward_pre_hook(lambda _module, args: seen.append(len(args[0])))
    proxies(model, batches(10), Y)
    assert seen == [10, 10, 3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [1, C])
def test_squared_loss(kind, classes):
    model = network("mlp", classes)
    labels = np.random.default_rng(1).choice([-1.0, 1.0, 0.25], N) if classes == 1 else Y
    expected = autograd(model, kind, "squared", labels)
    found = proxies(model, batches(), labels, kind=kind, loss="squared")
    np.testing.assert_allclose(found.proxies, expected, rtol=1e-4, atol=1e-5)
    outputs = model(X).detach().numpy()
    if classes == 1:
        np.testing.assert_allclose(found.predictions, outputs[:, 0], atol=1e-6)
        np.testing.assert_allclose(found.losses, (outputs[:, 0] - labels) ** 2 / 2, rtol=1e-4, atol=1e-6)
    else:
        assert found.predictions.tolist() == outputs.argmax(1).tolist()
    assert np.isnan(found.confidence).all()
    assert np.isnan(found.margins).all()


def test_a_scalar_output_may_have_no_dimension_of_its_own():
    model = nn.Sequential(*network("mlp", 1), nn.Flatten(0))
    labels = np.sign(np.random.default_rng(1).normal(size=N))
    for kind in KINDS:
        expected = proxies(model[:-1], batches(), labels, kind=kind, loss="squared").proxies
        found = proxies(model, batches(), labels, kind=kind, loss="squared").proxies
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_in_the_order_of_the_dataset(kind):
    model = network()
    expected = proxies(model, batches(1), Y, kind=kind)
    order = np.random.default_rng(2).permutation(N)
    for size in (2, 7, 100):
        found = proxies(model, batches(size, order), Y, kind=kind)
        assert found.index.tolist() == list(range(N))
        np.testing.assert_allclose(found.proxies, expected.proxies, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-3, atol=1e-5)
        assert found.predictions.tolist() == expected.predictions.tolist()


def test_loaders_of_tensors():
    data = TensorDataset(X, torch.arange(N))
    model = network()
    expected = proxies(model, batches(), Y).proxies
    before = torch.get_rng_state()
    found = proxies(model, DataLoader(data, 6), Y)  # draws a seed from the global generator
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_allclose(found.proxies, expected, rtol=1e-3, atol=1e-5)
    shuffled = DataLoader(data, 6, shuffle=True)
    pairs = (pair for pair in shuffled)  # inputs and positions
    np.testing.assert_allclose(proxies(model, pairs, Y).proxies, expected, rtol=1e-3, atol=1e-5)
    with pytest.raises(InputError, match="does not go through its dataset in order"):
        proxies(model, shuffled, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_the_network_changes(kind):
    class Random(nn.Module):
        def forward(self, x):
            return x + 0 * torch.rand_like(x)  # draws in eval mode too

    model = nn.Sequential(Random(), nn.Dropout(0.5), *network("small_cnn"))
    model(X).sum().backward()  # gradients that must stay
    model[3].eval()
    model[2].weight.requires_grad_(False)
    before = everything(model)
    proxies(model, batches(), Y, kind=kind)
    assert everything(model) == before
    with pytest.raises(InputError, match="a batch has the position 23"):
        proxies(model, [*batches(), (X[:1], [N])], Y, kind=kind)
    assert everything(model) == before


def test_frozen_parameters_have_no_gradient():
    model = network("mlp")
    model[1].requires_grad_(False)
    found = proxies(model, batches(), Y, kind="exact").proxies
    np.testing.assert_allclose(found, autograd_trained(model), rtol=1e-4, atol=1e-6)
    model.requires_grad_(False)
    with refused("no-parameters"):
        proxies(model, batches(), Y, kind="exact")


def autograd_trained(model):
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for x, y in zip(X, Y, strict=True):
        gradients = torch.autograd.grad(cross_entropy(model(x[None]), torch.tensor([y])), trained)
        rows.append(torch.cat([g.flatten() for g in gradients]).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["logits", "features"])
def test_train_mode_is_that_of_the_published_code(kind):
    model, twin = network().eval(), network()
    found = proxies(model, batches(8), Y, kind=kind, train_mode=True)
    assert not model.training
    with torch.no_grad():
        logits = torch.cat([twin(x) for x, _ in batches(8)])
    expected = logits.softmax(1) - torch.eye(C)[Y]
    expected = expected @ twin.linear.weight.detach() if kind == "features" else expected
    np.testing.assert_allclose(found.proxies, expected, rtol=1e-4, atol=1e-5)
    for name, value in twin.state_dict().items():  # the statistics moved as in training
        torch.testing.assert_close(model.state_dict()[name], value)
    assert not torch.equal(model.norm.running_mean, network().norm.running_mean)
    with refused("exact-train-mode"):
        proxies(model, batches(), Y, kind="exact", train_mode=True)


class ByName(nn.Module):
    """Inputs by name and an output with logits, as in transformers; the head acts on every token."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 6)
        self.score = nn.Linear(6, C, bias=False)

    def forward(self, pixels, mask):
        tokens = self.score(torch.tanh(self.body(pixels * mask[:, None, None])))
        return SimpleNamespace(loss=None, logits=tokens[:, -1])


def test_inputs_by_name_and_outputs_with_logits():
    torch.manual_seed(0)
    model, x = ByName(), {"pixels": X[:, 0], "mask": torch.ones(N)}
    found = proxies(model, [(x, np.arange(N))], Y)
    with torch.no_grad():
        p = model(**x).logits.softmax(1).numpy()
    np.testing.assert_allclose(found.proxies, p - np.eye(C)[Y], atol=1e-6)
    with pytest.raises(InputError, match="no linear layer of the model gives its output: name the last layer"):
        proxies(model, [(x, np.arange(N))], Y, kind="features")
    features = proxies(model, [(x, np.arange(N))], Y, kind="features", layer="score").proxies
    np.testing.assert_allclose(features, found.proxies @ model.score.weight.detach().numpy(), atol=1e-6)
    with pytest.raises(InputError, match="the layer 'body' has 6 outputs, but the model has 4: name its last layer"):
        proxies(model, [(x, np.arange(N))], Y, kind="features", layer="body")
    exact = proxies(model, [(x, np.arange(N))], Y, kind="exact").proxies
    tokens = torch.tanh(model.body(X[:, 0]))[:, -1].detach().numpy()
    head = found.proxies[:, :, None] * tokens[:, None, :]  # the gradient of the last layer is an outer product
    np.testing.assert_allclose(exact[:, -6 * C :], head.reshape(N, -1), rtol=1e-4, atol=1e-6)


def test_exact_gradients_are_computed_in_pieces(monkeypatch):
    model = network("mlp")
    expected = proxies(model, batches(), Y, kind="exact").proxies
    monkeypatch.setattr("crust.gradients.per_example.NUMBERS_AT_ONCE", 3 * expected.shape[1])
    np.testing.assert_allclose(proxies(model, batches(10), Y, kind="exact").proxies, expected, rtol=1e-4, atol=1e-6)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=10**6))
    with pytest.raises(InputError, match=r"exact gradients of 23 examples over 83460 parameters take 0\.0 GB"):
        proxies(model, batches(), Y, kind="exact")


def test_a_model_that_decides_by_its_data_has_no_exact_gradients():
    class Deciding(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, C)

        def forward(self, x):
            return self.head(x.flatten(1)) * (1 if x.sum() > 0 else 2)

    with pytest.raises(InputError, match=r"cannot be computed for many examples at once .*: use the proxy"):
        proxies(Deciding(), batches(), Y, kind="exact")


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision_keeps_float32_rows(kind):
    model = network("mlp")
    exact = proxies(model, batches(), Y, kind=kind).proxies
    found = proxies(model, batches(), Y, kind=kind, autocast=torch.bfloat16)
    assert found.proxies.dtype == found.losses.dtype == np.float32
    assert np.linalg.norm(found.proxies - exact) < 0.1 * np.linalg.norm(exact)
    if kind == "logits":  # sums of p - y that bfloat16 would not give
        np.testing.assert_allclose(found.proxies.sum(1), 0, atol=1e-6)
