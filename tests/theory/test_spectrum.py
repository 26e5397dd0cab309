"""Singular values of Jacobians: closed forms, finite differences, exact against matrix-free, and bad input."""

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.theory.common import normal, small_net
from torch import nn

from crust.errors import InputError
from crust.models import build_model
from crust.theory import spectrum
from crust.theory.jacobian import Jacobian
from crust.theory.spectrum import lanczos_spectrum


def test_a_linear_network_has_the_singular_values_of_its_data():
    x = normal(12, 5)
    found = spectrum(nn.Linear(5, 1, bias=False), x)
    assert found.method == "exact"
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(x.double().numpy())[1], rtol=1e-12)
    assert found.energy == pytest.approx(float(x.double().square().sum()))


def test_each_output_of_a_linear_network_repeats_them():
    x = normal(12, 5)
    found = spectrum(nn.Linear(5, 3, bias=False), x, vectors=True)
    expected = np.repeat(np.linalg.svd(x.double().numpy())[1], 3)
    np.testing.assert_allclose(found.singular_values, expected, rtol=1e-10)
    assert found.shape == (36, 15)
    np.testing.assert_allclose(found.left.T @ found.left, np.eye(15), atol=1e-10)


def test_blocks_find_values_that_come_several_times():
    x = normal(30, 6)
    found = spectrum(nn.Linear(6, 4, bias=False), x, 9, method="lanczos", tolerance=1e-6)
    expected = np.repeat(np.linalg.svd(x.double().numpy())[1], 4)[:9]
    np.testing.assert_allclose(found.singular_values, expected, rtol=1e-4)


@pytest.mark.parametrize("outputs", [1, 3])
def test_rows_agree_with_finite_differences(outputs):
    model, x = small_net(outputs), normal(4, 6)
    jacobian = Jacobian(model, x, torch.float64)
    rows, here = jacobian.rows(np.arange(4)), jacobian.flat()
    step = 1e-5
    for column in range(0, jacobian.m, 7):
        shift = torch.zeros_like(here)
        shift[column] = step
        up, down = (jacobian.values(jacobian.unflat(here + s * shift), jacobian.inputs) for s in (1, -1))
        torch.testing.assert_close(rows[:, column], ((up - down) / (2 * step)).reshape(-1), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
def test_products_agree_with_rows(outputs):
    jacobian = Jacobian(small_net(outputs), normal(5, 6), torch.float64)
    rows = jacobian.rows(np.arange(5))
    v, u = normal(jacobian.m, 2).double(), normal(5 * outputs, 3).double()
    torch.testing.assert_close(jacobian.times(np.arange(5), v), rows @ v)
    torch.testing.assert_close(jacobian.transposed_times(np.arange(5), u), rows.T @ u)


@pytest.mark.parametrize(("outputs", "by"), [(1, "rows"), (4, "rows"), (1, "products"), (4, "products")])
def test_lanczos_finds_what_the_whole_matrix_has(outputs, by):
    model, x = small_net(outputs, hidden=24), normal(60, 6)
    exact = spectrum(model, x, method="exact")
    found = lanczos_spectrum(Jacobian(model, x), None, 10, True, 1e-4, 0, by)
    np.testing.assert_allclose(found.singular_values, exact.singular_values[:10], rtol=1e-4)
    assert (np.abs(found.singular_values - exact.singular_values[:10]) <= found.errors + 1e-4).all()
    assert found.errors.max() <= 1e-4 * found.singular_values[0]
    rows = Jacobian(model, x, torch.float64).rows(np.arange(60)).numpy()
    held = np.linalg.norm(found.left.T @ rows, axis=1)
    np.testing.assert_allclose(held, found.singular_values, rtol=1e-3)
    assert found.energy == pytest.approx(exact.energy, rel=1e-4 if by == "rows" else 0.9)


@pytest.mark.parametrize(("outputs", "examples"), [(1, 9), (3, 9), (3, 80)])
def test_the_inner_products_have_the_same_values(outputs, examples):
    model, x = small_net(outputs), normal(examples, 6)  # more rows than parameters, and fewer
    exact, found = (spectrum(model, x, method=method, vectors=True) for method in ("exact", "gram"))
    assert found.singular_values.shape == exact.singular_values.shape
    assert (np.abs(found.singular_values - exact.singular_values) <= found.errors + exact.errors).all()
    assert found.errors[0] <= 1e-12 * found.singular_values[0]
    assert found.energy == pytest.approx(exact.energy)
    np.testing.assert_allclose(np.abs((found.left * exact.left).sum(0))[:5], 1, rtol=1e-6)


def test_what_costs_less_is_taken():
    mlp, cnn = (build_model(name, in_shape=(3, 32, 32), classes=10) for name in ("mlp", "small_cnn"))
    assert spectrum(mlp, normal(4, 3, 32, 32), 3).method == "gram"
    assert spectrum(cnn, normal(30, 3, 32, 32), 1, tolerance=0.5).method == "lanczos"
    found = spectrum(mlp, normal(4, 3, 32, 32), 3, memory_limit=2 * 10**8)
    np.testing.assert_allclose(found.singular_values[:3], spectrum(mlp, normal(4, 3, 32, 32), 3, method="lanczos",
                               tolerance=1e-5).singular_values, rtol=1e-4)  # fmt: skip


def test_errors_are_honest_when_there_was_too_little_work():
    model, x = small_net(1, hidden=24), normal(80, 6)
    exact = spectrum(model, x, method="exact").singular_values
    found = lanczos_spectrum(Jacobian(model, x), None, 5, False, 1.0, 0)  # any error will do
    assert found.passes <= 2
    assert found.errors.max() > 1e-3
    for value, error in zip(found.singular_values, found.errors, strict=True):
        assert np.abs(exact - value).min() <= error * 1.001


def test_some_of_the_examples():
    model, x, index = small_net(2), normal(20, 6), np.array([3, 7, 11, 2])
    found = lanczos_spectrum(Jacobian(model, x), index, 4, False, 1e-6, 0)
    rows = Jacobian(model, x, torch.float64).rows(index).numpy()
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(rows)[1][:4], rtol=1e-4)


def test_a_resnet_with_batchnorm_changes_nothing_and_agrees():
    model = build_model("resnet8", in_shape=(1, 8, 8), classes=3).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = normal(16, 1, 8, 8)
    state = torch.get_rng_state()
    found = spectrum(model, x, 5, method="lanczos", tolerance=1e-3)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    exact = spectrum(model, x, method="exact").singular_values
    np.testing.assert_allclose(found.singular_values, exact[:5], rtol=1e-3)


def test_a_network_that_vmap_cannot_take():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x) * (2.0 if x.sum().item() > 0 else 1.0)

    model, x = Counting(), normal(6, 4)
    rows = Jacobian(model, x).rows(np.arange(6)).reshape(6, 2, -1)
    factor = torch.where(x.sum(1) > 0, 2.0, 1.0)
    torch.testing.assert_close(rows[:, 0, :4], x * factor[:, None])


def test_frozen_parameters_are_no_columns():
    model = small_net(1)
    model[0].requires_grad_(False)
    assert spectrum(model, normal(5, 6)).shape == (5, model[2].weight.numel() + 1)


def test_the_same_seed_gives_the_same_bytes():
    model, x = small_net(2), normal(30, 6)
    first, second = (spectrum(model, x, 5, method="lanczos", seed=3).singular_values for _ in range(2))
    assert first.tobytes() == second.tobytes()


def nan_net() -> nn.Module:
    model = small_net(1)
    model[0].weight.data[0, 0] = float("nan")
    return model


@pytest.mark.parametrize(
    ("model", "options", "code"),
    [
        (nn.Flatten(), {}, "no-parameters"),
        (nan_net(), {}, "not-finite"),
        (small_net(1), {"k": 0}, "k-range"),
        (small_net(1), {"method": "lancos"}, "unknown-method"),
        (small_net(1), {"method": "exact", "memory_limit": 1000}, "memory"),
        (small_net(1), {"method": "lanczos", "memory_limit": 1000}, "memory"),
        (small_net(1), {"memory_limit": -1}, "memory-size"),
        (nn.Linear(7, 1), {}, "model-input"),
    ],
)
def test_bad_input_gets_a_sentence(model, options, code):
    with refused(code) as error:
        spectrum(model, normal(8, 6), **options)
    assert "\n" not in str(error.value)


def test_no_examples_and_wrong_outputs():
    with refused("empty"):
        spectrum(small_net(1), torch.zeros(0, 6))
    with refused("not-finite"):
        spectrum(small_net(1), torch.full((2, 6), torch.inf))


def test_cuts():
    found = spectrum(nn.Linear(5, 1, bias=False), torch.diag(torch.tensor([9.0, 8.0, 7.0, 0.1, 0.05])))
    assert (found.rank("gap"), found.rank(4), found.rank(9)) == (2, 4, 5)  # the gap is looked for in the first half
    wide = spectrum(nn.Linear(5, 1, bias=False), torch.diag(torch.tensor([9.0, 0.1, 0.1, 0.1, 0.05])))
    assert wide.rank("gap") == wide.rank(0.9) == 1
    for cut, message in ((0, "rank of 0"), (1.5, "share of the energy"), ("knee", "unknown cut"), (None, "unknown")):
        with pytest.raises(InputError, match=message):
            found.rank(cut)
    part = spectrum(small_net(1), normal(50, 6), 3, method="lanczos")
    for cut in (20, 0.9999):
        with refused("too-few-values"):
            part.rank(cut)
