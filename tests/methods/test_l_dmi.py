"""L_DMI: the determinant loss, what is skipped, and the two trainings."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import clouds, fit

from crust.data import Examples
from crust.methods.l_dmi import batch_size, dmi
from crust.training.losses import log_abs_det, one_hot


def drawn(n: int, classes: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    return z, torch.cat([torch.arange(classes), torch.randint(classes, (n - classes,), generator=generator)])


problems = (st.integers(8, 20), st.integers(2, 5), st.integers(0, 10**6))


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_other_names_for_the_labels_leave_it_unchanged(n, classes, seed):
    z, y = drawn(n, classes, seed)
    order = torch.randperm(classes, generator=torch.Generator().manual_seed(seed))
    assert float(dmi(z, order[y])) == pytest.approx(float(dmi(z, y)), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_noise_only_shifts_it_by_the_determinant_of_its_matrix(n, classes, seed):
    z, y = drawn(n, classes, seed)
    rng = np.random.default_rng(seed)
    T = torch.from_numpy(rng.dirichlet(np.ones(classes), classes) + np.eye(classes))
    T = T / T.sum(1, keepdim=True)
    # U of labels that are distributions: a row of T in place of a single one
    U = one_hot(y, classes).double().T @ z.softmax(1)
    noisy = (one_hot(y, classes).double() @ T).T @ z.softmax(1)
    loss, shifted = -torch.linalg.slogdet(U).logabsdet, -torch.linalg.slogdet(noisy).logabsdet
    assert float(loss) == pytest.approx(float(dmi(z, y)), abs=1e-9)
    assert float(shifted - loss) == pytest.approx(-float(torch.linalg.slogdet(T).logabsdet), abs=1e-8)


@settings(max_examples=10, deadline=None)
@given(*problems)
def test_against_finite_differences(n, classes, seed):
    z, y = drawn(n, classes, seed)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: log_abs_det(z, y), (z,), rtol=1e-2)


def test_a_class_that_is_absent_and_a_network_that_says_the_same_of_all_are_skipped():
    z = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    assert dmi(z, torch.arange(12) % 2) is None
    assert dmi(torch.zeros(12, 3), torch.arange(12) % 3, floor=-18.0) is None
    assert dmi(z, torch.arange(12) % 3, floor=-18.0) is not None


def test_a_hundred_classes_do_not_overflow():
    y = torch.arange(1000) % 100
    found = dmi(10 * one_hot(y, 100), y)
    assert torch.isfinite(found)
    assert float(found) < -100


def test_batches_grow_with_the_classes():
    assert [batch_size(classes) for classes in (2, 10, 25, 26, 100, 1000)] == [256, 256, 256, 512, 1024, 16384]


def test_cross_entropy_first_then_the_determinant_from_its_best_weights():
    result = fit("l-dmi", epochs=4, dmi_learning_rate=1e-3)
    assert result.history["stage"] == ["cross-entropy"] * 4 + ["dmi"] * 4
    assert result.history["learning_rate"][4:] == [1e-3] * 4
    assert result.history["n_selected"][-1] == 81
    assert "skipped" not in result.history.lines[-1]
    assert result.history["loss"][-1] < result.history["loss"][4]  # of the same whole batch


def test_the_beginning_of_the_second_training_may_be_kept():
    plain = fit("l-dmi", epochs=4, stop_after=4)
    result = fit("l-dmi", epochs=4, dmi_learning_rate=10.0)  # which can only spoil it
    if result.recorder.state.best_epoch == 4:
        for name, value in plain.recorder.state.best.items():
            assert value.equal(result.model.state_dict()[name])
    assert max(result.history["val_accuracy"][:4]) <= result.recorder.state.best_score


def test_where_every_batch_lacks_a_class_nothing_changes():
    x, given_labels, _ = clouds(60)
    data = Examples(torch.from_numpy(x), given_labels % 2, [0, 1, 2], "features")  # class 2 never occurs
    one = fit("l-dmi", data=data, epochs=3, stop_after=3)
    result = fit("l-dmi", data=data, epochs=3, validation=0.1, dmi_learning_rate=1.0, clip=100.0)
    assert result.history["skipped"][3:] == [1, 1, 1]
    best = one.recorder.state.best
    trained = result.recorder.context.networks[0].state_dict()
    assert all(value.equal(trained[name]) for name, value in best.items())


def test_without_a_validation_set_the_last_weights_are_kept():
    result = fit("l-dmi", epochs=3, validation=0)
    assert result.recorder.state.best_epoch == 6
