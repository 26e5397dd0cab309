"""Labels in the information and the nuisance space."""

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.theory.common import clusters, normal, small_net
from torch import nn

import crust
from crust.data import from_arrays
from crust.models import build_model
from crust.theory import alignment
from crust.theory.gram import gram, jacobian_rows
from crust.theory.jacobian import Jacobian


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_gram_matrix_is_that_of_the_rows(outputs):
    jacobian = Jacobian(small_net(outputs), normal(9, 6), torch.float64)
    rows = jacobian.rows(np.arange(9)).numpy()
    np.testing.assert_allclose(gram(jacobian), rows @ rows.T, rtol=1e-12)


def test_rows_that_do_not_fit_are_computed_again():
    model, x = build_model("small_cnn", in_shape=(1, 8, 8), classes=2, width=4), normal(9, 1, 8, 8)
    whole = gram(Jacobian(model, x, torch.float64))
    need = 8 * 4 * 18**2
    columns = Jacobian(model, x).factors.columns
    short = Jacobian(model, x, torch.float64, need + 3 * 2 * columns * 2 * 8)
    assert short.factors.at_once() == 1
    np.testing.assert_allclose(gram(short), whole, rtol=1e-12)
    with refused("memory"):
        gram(Jacobian(model, x, torch.float64, need - 1))
    with refused("memory"):
        gram(Jacobian(model, x, torch.float64, need + 1000))


def test_a_linear_network_splits_labels_by_least_squares():
    """The information space of full rank is the span of the data: what least squares can fit."""
    x, y = normal(20, 4), normal(20, seed=5).double().numpy()
    found = alignment(nn.Linear(4, 1, bias=False), x, y, cut=4).sets["all"]
    fitted = x.double().numpy() @ np.linalg.lstsq(x.double().numpy(), y, rcond=None)[0]
    assert found.labels.information == pytest.approx((fitted**2).sum() / (y**2).sum(), rel=1e-6)
    assert found.labels.nuisance == pytest.approx(np.linalg.norm(y - fitted) / np.sqrt(20), rel=1e-6)
    assert found.chance == 4 / 20


def test_several_outputs_are_projected_each_by_itself():
    x, labels = normal(15, 3), np.arange(15) % 2
    found = alignment(nn.Linear(3, 2, bias=False), x, labels, cut=6, loss="squared").sets["all"]
    hot = np.eye(2)[labels]
    fitted = x.double().numpy() @ np.linalg.lstsq(x.double().numpy(), hot, rcond=None)[0]
    assert found.labels.information == pytest.approx((fitted**2).sum() / 15, rel=1e-6)


def test_clean_labels_lie_in_the_information_space_and_errors_in_the_nuisance():
    data = clusters(wrong_each=2)
    found = alignment(small_net(1), data.x, data.y, true_labels=data.truth, coreset=data.members, cut="gap")
    every = found.sets["all"]
    assert every.rank == 4
    assert found.sets["right"].labels.information > 0.999
    # Two of twelve labels in each cluster are wrong: the projection is the mean of each cluster.
    assert every.labels.information == pytest.approx((1 - 2 * 2 / 12) ** 2, abs=1e-3)
    assert every.error.information == pytest.approx(2 / 12, abs=1e-3)


def test_the_claim_is_measured_for_a_clean_and_for_a_dirty_coreset():
    data = clusters(wrong_each=2)
    wrong = np.flatnonzero(data.y != data.truth)
    clean = np.flatnonzero(data.y == data.truth)[::2]
    dirty = np.sort(np.concatenate([wrong, clean[: len(wrong)]]))
    options = {"true_labels": data.truth, "cut": 4, "repeats": 20}
    good = alignment(small_net(1), data.x, data.y, coreset=clean, **options)
    bad = alignment(small_net(1), data.x, data.y, coreset=dirty, **options)
    assert good.claim is True
    assert bad.claim is False
    assert good.sets["coreset"].labels.nuisance < np.mean([one.labels.nuisance for one in good.random])
    assert "coreset, wrong" not in good.sets
    assert bad.sets["coreset, wrong"].examples == len(wrong)
    assert 0 <= good.claim_at_random <= 1


def test_a_random_vector_has_the_share_of_chance():
    found = alignment(small_net(1, hidden=40), normal(150, 6), normal(150, seed=9).numpy(), cut=50).sets["all"]
    assert found.labels.information == pytest.approx(found.chance, abs=0.12)


def test_too_large_for_the_gram_matrix_is_done_without_it(monkeypatch):
    model, x, labels = small_net(3, hidden=20), normal(40, 6), np.arange(40) % 3
    whole = alignment(model, x, labels, coreset=np.arange(0, 40, 2), cut=5, repeats=2)
    monkeypatch.setattr("crust.theory.gram.QUICK_GRAM_ROWS", 10)
    free = alignment(model, x, labels, coreset=np.arange(0, 40, 2), cut=5, repeats=2, k=12)
    for name, one in whole.sets.items():
        assert free.sets[name].labels.information == pytest.approx(one.labels.information, abs=1e-3)
        assert free.sets[name].residual.nuisance == pytest.approx(one.residual.nuisance, abs=1e-3)
    with refused("too-few-values"):
        alignment(model, x, labels, cut=30, k=12)


def test_a_coreset_a_dataset_and_a_resnet_come_as_they_are():
    images = normal(16, 1, 8, 8)
    labels = np.arange(16) % 3
    examples = from_arrays(images.numpy(), labels)
    model = build_model("resnet8", in_shape=(1, 8, 8), classes=3)
    chosen = crust.select(images.reshape(16, -1).numpy(), 4)
    found = alignment(model, examples, coreset=chosen, repeats=2)
    table = found.table()
    assert table["set"].tolist() == ["all", "coreset", "random, mean of 2", "random, standard deviation"]
    assert table.loc[1, "examples"] == 4
    assert table["labels, information"].between(0, 1).all()
    pairs = torch.utils.data.TensorDataset(images, torch.as_tensor(labels))
    assert alignment(model, pairs, labels, cut=3).sets["all"].rank == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"labels": None}, "missing-labels"),
        ({"labels": [0, 1]}, "labels-length"),
        ({"labels": np.full(8, 7)}, "label-range"),
        ({"true_labels": [0, 1]}, "labels-length"),
        ({"coreset": np.arange(9)}, "coreset-members"),
        ({"coreset": [0, 0]}, "coreset-members"),
        ({"coreset": []}, "coreset-members"),
        ({"coreset": crust.select(np.zeros((5, 1)), 2)}, "coreset-data"),
        ({"cut": "elbow"}, "unknown-cut"),
        ({"loss": "hinge"}, "unknown-loss"),
        ({"repeats": -1}, "repeats-range"),
    ],
)
def test_bad_input_gets_a_sentence(options, code):
    arguments = {"labels": np.arange(8) % 3, **options}
    with refused(code) as error:
        alignment(small_net(3), normal(8, 6), **arguments)
    assert "\n" not in str(error.value)


def test_rows_of_examples():
    assert jacobian_rows(np.array([1, 0]), 3).tolist() == [3, 4, 5, 0, 1, 2]
