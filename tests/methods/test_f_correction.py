"""Forward correction: the loss, and the two trainings around the matrix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.common import CLASSES, fit, told, weights
from torch.nn import functional as F  # noqa: N812 - its usual name

from crust.errors import InputError
from crust.methods.f_correction import FCorrection, FCorrectionSettings, adjusted
from crust.training.losses import corrected_nll, cross_entropy


def drawn(n: int, classes: int, seed: int):
    """Logits, labels and a transition matrix in float64."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    T = torch.rand(classes, classes, generator=generator, dtype=torch.float64) + 2 * torch.eye(classes)
    return z, torch.randint(classes, (n,), generator=generator), T / T.sum(1, keepdim=True)


problems = (st.integers(1, 8), st.integers(2, 6), st.integers(0, 10**6))


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_without_noise_it_is_cross_entropy(n, classes, seed):
    z, y, _ = drawn(n, classes, seed)
    assert torch.allclose(corrected_nll(z, torch.eye(classes), y), cross_entropy(z, y))


@settings(max_examples=25, deadline=None)
@given(*problems)
def test_the_names_of_classes_do_not_matter(n, classes, seed):
    z, y, T = drawn(n, classes, seed)
    order = torch.randperm(classes, generator=torch.Generator().manual_seed(seed))
    place = torch.argsort(order)
    assert torch.allclose(corrected_nll(z[:, order], T[order][:, order], place[y]), corrected_nll(z, T, y))


@settings(max_examples=10, deadline=None)
@given(*problems)
def test_against_finite_differences(n, classes, seed):
    z, y, T = drawn(n, classes, seed)
    z.requires_grad_()
    T.requires_grad_()
    weight = torch.rand(n, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z, T: corrected_nll(z, T, y, weight), (z, T))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_the_truth_is_a_minimum_where_labels_come_through_the_noise(classes, seed):
    z, _, T = drawn(1, classes, seed)
    z.requires_grad_()
    noisy = (z.detach().softmax(1) @ T)[0]  # how often each label is given
    every = torch.arange(classes)
    loss = corrected_nll(z.expand(classes, -1), T, every, noisy) * classes
    (gradient,) = torch.autograd.grad(loss, z)
    assert gradient.abs().max() < 1e-9


def test_what_has_no_probability_stays_finite():
    z = torch.tensor([[50.0, -50.0]], requires_grad=True)
    loss = corrected_nll(z, torch.eye(2), torch.tensor([1]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_the_score_is_the_corrected_loss():
    method = FCorrection(FCorrectionSettings())
    z, y, T = drawn(9, 4, 0)
    method.T = T.numpy()
    expected = -float(corrected_nll(z, T, y))
    assert method.score(z.softmax(1).numpy(), y.numpy()) == pytest.approx(expected)


def test_the_knobs_of_the_published_code():
    T = np.array([[0.98, 0.02, 0.0], [0.3, 0.4, 0.3], [0.0, 0.0, 1.0]])
    assert np.array_equal(adjusted(T, 0.0, 0.0), T)
    assert np.array_equal(adjusted(T, 0.0, 1.0), np.eye(3))
    assert np.array_equal(adjusted(T, 0.1, 0.0)[0], [1, 0, 0])
    assert adjusted(T, 0.5, 0.3).sum(axis=1) == pytest.approx(1.0)


def test_two_trainings_the_second_from_the_first_weights_of_the_run():
    result = fit("f-correction", epochs=4)
    assert result.history["stage"] == ["estimate"] * 4 + ["corrected"] * 4
    assert result.history["counts"] == [False] * 4 + [True] * 4
    method = result.recorder.method
    assert method.T.shape == (CLASSES, CLASSES)
    assert method.T.sum(axis=1) == pytest.approx(1.0)
    shown = [line.get("diagonal") for line in result.history.lines]
    assert shown == [None] * 4 + [pytest.approx(method.T.diagonal().mean())] * 4
    losses = [line["val_loss"] for line in result.history.lines[:4]]
    scores = [line["score"] for line in result.history.lines[4:]]
    best = max(range(4), key=lambda i: (scores[i], i))
    assert result.recorder.state.best_epoch == 5 + best
    assert len(losses) == 4
    # the first line of both trainings starts from the same weights: the same data, nearly the same first loss
    first, second = result.history.lines[0]["loss"], result.history.lines[4]["loss"]
    assert second != pytest.approx(result.history.lines[3]["loss"], rel=0.05)
    assert abs(first - second) < 0.5


def test_the_matrix_is_that_of_the_best_weights(tmp_path):
    fit("f-correction", epochs=5, run_dir=tmp_path, stop_after=5)
    result = fit("f-correction", epochs=5, run_dir=tmp_path, resume=True, stop_after=6)
    stopped = fit("f-correction", epochs=5, stop_after=5)
    context, state = stopped.recorder.context, stopped.recorder.state
    assert state.best_epoch == 1 + int(np.argmin(stopped.history["val_loss"]))
    state.restore_best(context.networks[0])
    context.weights_changed()
    by_hand = FCorrection(FCorrectionSettings())
    by_hand.end_stage(context)
    assert np.array_equal(by_hand.T, result.recorder.method.T)


def test_going_on_from_the_first_training_is_a_setting():
    kept, anew = (fit("f-correction", epochs=3, retrain=retrain) for retrain in (False, True))
    assert told(kept.history)[:3] == told(anew.history)[:3]
    assert weights(kept) != weights(anew)
    assert kept.history["loss"][3] < anew.history["loss"][3]


def test_a_matrix_that_is_known_spares_the_first_training():
    known = (0.7 * np.eye(CLASSES) + 0.3 / CLASSES).tolist()
    result = fit("f-correction", epochs=2, transitions=known)
    assert result.history["stage"] == ["corrected"] * 2
    assert result.history["diagonal"] == pytest.approx([0.7 + 0.3 / CLASSES] * 2)
    assert result.recorder.method.T.tolist() == known
    told = result.config["noise_info"]["transitions"]  # by its mean diagonal
    assert (told["value"], told["source"]) == (pytest.approx(0.7 + 0.3 / CLASSES, abs=1e-4), "given")


def test_the_identity_as_matrix_is_plain_training():
    plain, corrected = fit("erm", epochs=2), fit("f-correction", epochs=2, transitions=np.eye(CLASSES).tolist())
    assert corrected.history["loss"] == pytest.approx(plain.history["loss"], rel=1e-3)


@pytest.mark.parametrize("rows", [[[1.0, 0.0]], [[0.9, 0.2], [0.0, 1.0]], [[1.1, -0.1], [0.0, 1.0]]])
def test_what_is_no_matrix_of_chances_is_refused(rows):
    with pytest.raises(InputError, match="give a row for each true class"):
        fit("f-correction", epochs=1, transitions=rows)


def test_a_matrix_of_another_number_of_classes_is_refused():
    with pytest.raises(InputError, match=f"2 rows, but there are {CLASSES} classes"):
        fit("f-correction", epochs=1, transitions=np.eye(2).tolist())


def test_soft_and_hard_agree_in_float32():
    z, y, T = drawn(6, 3, 1)
    single = corrected_nll(z.float(), T, y)
    assert single.dtype == torch.float32
    assert float(single) == pytest.approx(float(corrected_nll(z, T, y)), abs=1e-6)
    assert float(corrected_nll(z, T, y)) == pytest.approx(float(F.nll_loss((z.softmax(1) @ T).log(), y)))
