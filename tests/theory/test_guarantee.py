"""The theorem: where its premises hold its prediction comes true, where they do not it need not."""

import math

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.theory.common import clusters, normal, small_net
from torch import nn

from crust.models import build_model
from crust.theory import guarantee
from crust.theory.descent import descend, margin_of
from crust.theory.guarantee import step_count, step_size
from crust.theory.jacobian import Jacobian
from crust.theory.smoothness import secants, smoothness


def wide_net(outputs: int = 1) -> nn.Sequential:
    """One hidden layer, fixed outputs of half +1/√k and half -1/√k, as in the appendix's setting; smooth."""
    model = small_net(outputs, hidden=200)
    with torch.no_grad():
        model[2].weight[:] = torch.where(torch.arange(200) % 2 == 0, 1.0, -1.0) / math.sqrt(200)
        model[2].bias.zero_()
    model[2].requires_grad_(False)
    return model


def run(wrong_each: int, wrong_in: tuple[int, ...], model: nn.Module | None = None, **options):
    data = clusters(wrong_each, wrong_in=wrong_in)
    return guarantee(
        model or wide_net(),
        data.x,
        data.y,
        data.members,
        true_labels=data.truth,
        clusters=data.cluster[data.members],
        **options,
    )


def test_where_the_premises_hold_all_true_labels_are_learned():
    """One of six members of a cluster has a wrong label, and gets its true one all the same."""
    found = run(2, (0,), max_steps=20_000)
    assert found.holds, found.table().to_string()
    assert found.margin == 2
    assert found.noise == 1 / 24
    assert found.precision == pytest.approx(2 / 6)
    outcome = found.outcome
    assert outcome.complete
    assert outcome.all_right
    assert outcome.right_of_wrong == 1
    assert outcome.as_promised
    assert outcome.largest_error <= 2 * found.precision
    assert outcome.moved <= 4 * found.residual / found.alpha
    assert outcome.smoothness <= found.smoothness * 1.5


def test_with_too_many_wrong_labels_it_does_not_come_true():
    """Four of six members of one cluster are wrong. Overall the noise is below δ/8: it has to be so in each cluster."""
    found = run(8, (0,), max_steps=1500)
    assert not found.holds
    by_name = {premise.name: premise for premise in found.premises}
    assert by_name["ρ < δ/8, noise in the coreset"].holds
    assert by_name["ρ < δ/8 in every main cluster, by weight"].factor == pytest.approx(4 / 6 / 0.25)
    assert not found.outcome.all_right
    assert found.outcome.right == 18 / 24  # the whole cluster has learned the label of its majority
    assert found.outcome.right_of_wrong == 0


def test_everything_in_closed_form_for_a_linear_network():
    x = torch.diag(torch.tensor([2.0, 1.0])).repeat_interleave(3, 0)
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    truth = np.repeat([1.0, -1.0], 3)
    found = guarantee(model, x, truth, np.arange(6), true_labels=truth, clusters=np.repeat([0, 1], 3))
    # singular values √3·2 and √3·1, weights of 1
    assert found.alpha == pytest.approx(math.sqrt(3))
    assert found.beta == pytest.approx(2 * math.sqrt(3))
    assert found.smoothness == 0
    assert found.residual == pytest.approx(math.sqrt(6))
    assert found.learning_rate == pytest.approx(1 / 24)
    assert found.precision == 0.25
    assert found.steps == math.ceil(5 / (3 / 24) * math.log(math.sqrt(6) / 0.25))
    # descent on least squares: each coordinate shrinks by 1 - η σ²
    left = (1 - 3 / 24) ** found.steps
    assert found.outcome.largest_error == pytest.approx(left, rel=1e-6)
    assert found.outcome.moved == pytest.approx(math.hypot(0.5, 1.0), rel=1e-3)
    assert found.outcome.as_promised
    assert found.holds
    epsilon = next(premise for premise in found.premises if premise.name.startswith("ε"))
    assert epsilon.value == pytest.approx(0, abs=1e-9)
    assert epsilon.bound == pytest.approx(2 / (16 * math.sqrt(6) * found.steps / 24 * math.sqrt(6) * found.beta))


def test_the_smoothness_of_a_quadratic_function_is_found():
    """f(w) = (w·a)²: its Jacobian changes by 2 a aᵀ, so L is 2‖a‖², times the root of the weight."""

    class Square(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.tensor([0.3, -0.2, 0.5]))

        def forward(self, x):
            return (x @ self.w).square()[:, None]

    a = torch.tensor([[1.0, 2.0, 2.0]])
    jacobian = Jacobian(Square(), a, torch.float64)
    found = smoothness(jacobian, np.array([0]), np.array([4.0]), torch.ones(3).double())
    assert found == pytest.approx(2 * 2 * 9, rel=1e-6)


def test_secants_see_the_kinks_of_relu():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU())
    model[0].weight.data.fill_(0.001)
    jacobian = Jacobian(model, torch.ones(1, 1), torch.float64)
    here = jacobian.flat()
    found = secants(jacobian, np.array([0]), torch.ones(1).double(), here, [here - 0.01, here])
    assert found == pytest.approx([100, 0])


def test_softmax_networks_are_told_what_carries_over():
    x, labels = normal(20, 6), np.arange(20) % 3
    model = small_net(3)
    before = [value.clone() for value in model.parameters()]
    found = guarantee(model, x, labels, np.arange(0, 20, 2), true_labels=labels, max_steps=50)
    assert any("squared loss" in note for note in found.notes)
    assert any("For any loss" in note for note in found.notes)
    assert found.outcome.steps == min(50, found.steps)
    assert found.margin == 1
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    squared = guarantee(model, x, labels, np.arange(0, 20, 2), true_labels=labels, loss="squared", max_steps=0)
    assert squared.outcome is None
    assert squared.notes == [note for note in found.notes if "one-hot" in note]
    assert set(squared.table().columns) >= {"premise", "value", "at most", "holds", "factor"}


def test_a_resnet_and_its_members_that_do_not_fit_into_memory_at_once():
    model, x = build_model("resnet8", in_shape=(1, 8, 8), classes=3), normal(10, 1, 8, 8)
    labels = np.arange(10) % 3
    found = guarantee(model, x, labels, np.arange(5), true_labels=labels, max_steps=2)
    assert 0 < found.smoothness < math.inf
    assert found.outcome.steps == 2
    whole, short = Jacobian(model, x, torch.float64), Jacobian(model, x, torch.float64, int(4 * 2 * 3 * 78e3 * 8))
    here = whole.flat()
    some, fewer = (secants(one, np.arange(5), torch.ones(5).double(), here, [here + 0.01])[0] for one in (whole, short))
    assert 0 < fewer < some


def test_clusters_that_the_network_cannot_tell_apart_have_an_alpha_of_zero():
    x = torch.ones(4, 2)
    truth = np.array([1.0, 1.0, -1.0, -1.0])
    found = guarantee(nn.Linear(2, 1), x, truth, np.arange(4), true_labels=truth, clusters=[0, 0, 1, 1], max_steps=5)
    assert found.alpha == 0
    assert found.steps == math.inf
    assert not found.holds
    assert any("α is 0" in note for note in found.notes)
    assert not found.outcome.all_right


def test_descent_that_blows_up_says_so():
    jacobian = Jacobian(nn.Linear(1, 1, bias=False), torch.ones(1, 1), torch.float64)
    one = np.ones((1, 1))
    path = descend(jacobian, np.array([0]), np.ones(1), -one, one, "squared", 100.0, 500, 2.0)
    assert path.diverged
    assert path.steps < 500


def test_step_size_and_count_are_those_of_the_corollary():
    assert step_size(2.0, 4.0, 0.5, 3.0) == 1 / 32
    assert step_size(2.0, 4.0, 16.0, 3.0) == 1 / 32 * 8 / 48
    assert step_count(0.1, 2.0, 5.0, 5.0) == 1
    assert step_count(0.1, 2.0, 5.0, 0.5) == math.ceil(5 / 0.4 * math.log(10))
    with refused("zero-jacobian"):
        step_size(0.0, 0.0, 1.0, 1.0)


def test_margins():
    assert margin_of(np.array([[0.0], [0.25], [1.0]])) == 0.25
    assert margin_of(np.array([[0.0], [0.0]])) == math.inf


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"true_labels": None}, "missing-true-labels"),
        ({"coreset": None}, "missing-coreset"),
        ({"coreset": np.arange(9)}, "coreset-members"),
        ({"max_steps": -1}, "max-steps"),
    ],
)
def test_bad_input_gets_a_sentence(options, code):
    arguments = {"coreset": [1, 2, 3], "true_labels": np.arange(8) % 3, **options}
    with refused(code):
        guarantee(small_net(3), normal(8, 6), np.arange(8) % 3, **arguments)
