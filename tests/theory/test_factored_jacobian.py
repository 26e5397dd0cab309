"""Linear layers left as products: the same inner products as from the gradients themselves."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.theory.common import normal, small_net
from torch import nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.models import build_model
from crust.theory.jacobian import Jacobian, products, products_of_change

EVERY = np.arange(5)


def assert_same(jacobian: Jacobian) -> None:
    rows, dense = jacobian.factors.rows(EVERY), jacobian.rows(EVERY)
    torch.testing.assert_close(products(rows, rows), dense @ dense.T, rtol=1e-10, atol=1e-12)
    there = {name: value + 0.01 * normal(*value.shape, seed=7).double() for name, value in jacobian.parameters.items()}
    change = jacobian.rows(EVERY, there) - dense
    found = products_of_change(rows, jacobian.factors.rows(EVERY, there))
    torch.testing.assert_close(found, change @ change.T, rtol=1e-9, atol=1e-12)


class Twice(nn.Module):
    """One layer used twice."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.inner(torch.tanh(self.inner(x))))


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(self.second(torch.tanh(self.first(x))))


class Hidden(nn.Module):
    """A layer whose weight is also used where no hook sees it."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.inner(torch.tanh(F.linear(x, self.inner.weight))))


class Steps(nn.Module):
    """A layer that sees several vectors of an example."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(3, 4), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.inner(x.reshape(-1, 2, 3))).flatten(1))


class Named(nn.Module):
    """Inputs by name."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 3, bias=False)

    def forward(self, left, right):
        return self.a(left) * self.b(right)


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        (small_net(3), {"0", "2"}),
        (small_net(1), {"0", "2"}),
        (nn.Linear(6, 2, bias=False), {""}),
        (Twice(), {"last"}),
        (Tied(), {"last"}),
        (Hidden(), set()),
        (Steps(), {"last"}),
    ],
)
def test_the_products_are_those_of_the_rows(model, layers):
    jacobian = Jacobian(model, normal(5, 6), torch.float64)
    assert set(jacobian.factors.layers) == layers
    assert_same(jacobian)


def test_frozen_parts_have_no_columns():
    model = small_net(3)
    model[0].requires_grad_(False)
    model[2].bias.requires_grad_(False)
    jacobian = Jacobian(model, normal(5, 6), torch.float64)
    assert not jacobian.factors.layers  # one of its two is not trained
    assert_same(jacobian)
    model[2].bias.requires_grad_(True)
    jacobian = Jacobian(model, normal(5, 6), torch.float64)
    assert set(jacobian.factors.layers) == {"2"}
    assert_same(jacobian)


def test_inputs_by_name_and_images():
    named = {"left": normal(5, 6), "right": normal(5, 6, seed=1)}
    jacobian = Jacobian(Named(), named, torch.float64)
    assert set(jacobian.factors.layers) == {"a", "b"}
    assert_same(jacobian)
    jacobian = Jacobian(build_model("resnet8", in_shape=(3, 8, 8), classes=4), normal(5, 3, 8, 8), torch.float64)
    assert set(jacobian.factors.layers) == {"linear"}
    assert_same(jacobian)


@settings(deadline=None)
@given(st.lists(st.integers(1, 7), max_size=3), st.integers(1, 4), st.integers(0, 99))
def test_any_fully_connected_network(hidden, outputs, seed):
    torch.manual_seed(seed)
    sizes = [6, *hidden, outputs]
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.Softplus())]
    jacobian = Jacobian(nn.Sequential(*parts[:-1]), normal(5, 6, seed=seed), torch.float64)
    assert len(jacobian.factors.layers) == len(hidden) + 1
    assert_same(jacobian)


def test_far_fewer_numbers_are_kept():
    jacobian = Jacobian(build_model("mlp", in_shape=(3, 32, 32), classes=10), normal(2, 3, 32, 32))
    assert jacobian.m == 855_050
    assert jacobian.factors.columns < jacobian.m / 200


def test_nothing_is_left_on_the_network():
    model = small_net(3)
    before = model(normal(5, 6))
    Jacobian(model, normal(5, 6)).factors.rows(EVERY)
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(model(normal(5, 6)), before)
