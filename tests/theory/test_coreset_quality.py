"""What a coreset is worth: against the whole matrix, in closed form, and beside random subsets."""

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.theory.common import clusters, normal, small_net
from torch import nn

import crust
from crust.gradients import proxies
from crust.theory import coreset_quality, gram
from crust.theory.gram import Weighted, largest_outside, least, main_clusters
from crust.theory.jacobian import Jacobian


@pytest.mark.parametrize(("outputs", "loss"), [(1, "squared"), (3, "cross-entropy"), (3, "squared")])
def test_all_errors_are_those_of_the_whole_matrix(outputs, loss):
    """The slow way: J itself, m x m matrices, gradients by autograd."""
    model, x = small_net(outputs), normal(20, 6)
    labels = np.arange(20) % 3 if outputs > 1 else normal(20, seed=4).double().numpy()
    index, r = np.array([1, 5, 6, 12, 19]), np.array([2.0, 6.0, 3.0, 4.0, 5.0])
    found = coreset_quality(model, x, labels, index, weights=r, loss=loss, clusters=2, repeats=3)

    rows = Jacobian(model, x, torch.float64).rows(np.arange(20)).numpy()
    chosen = (index[:, None] * outputs + np.arange(outputs)).reshape(-1)
    part, big = rows[chosen], np.repeat(r, outputs)
    norm = np.linalg.norm(rows, 2)
    whole, subset = rows.T @ rows, part.T @ (big[:, None] * part)
    assert found.norm == pytest.approx(norm)
    assert found.beta == pytest.approx(np.sqrt(6) * np.linalg.norm(part, 2))
    assert found.errors.norm == pytest.approx(abs(found.beta - norm))
    assert found.errors.gram == pytest.approx(np.linalg.norm(whole - subset, 2) / norm**2)
    gradients = proxies(model, [(x, np.arange(20))], labels, kind="exact", loss=loss).proxies.astype(np.float64)
    full = gradients.sum(0)
    gap = np.linalg.norm(full - (r[:, None] * gradients[index]).sum(0)) / np.linalg.norm(full)
    assert found.errors.gradient == pytest.approx(gap, rel=1e-4)
    assert (found.r_min, found.r_max) == (2, 6)
    assert len(found.random) == 3


def test_alpha_is_the_smallest_gain_over_the_support_subspace():
    model, x = small_net(2), normal(12, 6)
    index, r, main = np.arange(6), np.array([1.0, 2.0, 3.0, 1.0, 5.0, 2.0]), np.array([0, 0, 1, 1, 2, 2])
    found = coreset_quality(model, x, np.arange(12) % 2, index, weights=r, clusters=main, repeats=0)
    rows = Jacobian(model, x, torch.float64).rows(index).numpy() * np.sqrt(np.repeat(r, 2))[:, None]
    directions = normal(4000, 6, seed=8).double().numpy()
    gains = []
    for c in directions:  # c has a number a cluster and output
        u = (np.sqrt(r)[:, None] * c.reshape(3, 2)[main]).reshape(-1)
        gains.append(np.linalg.norm(rows.T @ u) / np.linalg.norm(u))
    assert found.alpha <= min(gains) * (1 + 1e-9)
    assert found.alpha == pytest.approx(min(gains), rel=0.3)


def test_a_perfect_coreset_of_clustered_points():
    data = clusters()
    found = coreset_quality(small_net(1), data.x, data.y, data.members, clusters=4, true_labels=data.truth)
    assert max(found.errors.gram, found.errors.gradient) < 1e-9
    assert found.errors.norm_share < 1e-9
    assert np.array_equal(np.unique(found.clusters, return_counts=True)[1], [6, 6, 6, 6])
    assert len({(a, b) for a, b in zip(found.clusters, data.cluster[data.members], strict=True)}) == 4
    assert found.noise == 0
    assert found.condition < 3
    # where weights and rows are equal within clusters, every bound holds but that with diag(r)
    assert [bound.holds for bound in found.bounds] == [True, True, True, False]


def test_noise_is_counted_overall_by_weight_and_by_cluster():
    data = clusters(wrong_each=4, wrong_in=(0, 2))
    weights = np.where(data.y[data.members] != data.truth[data.members], 3.0, 1.0)
    found = coreset_quality(
        small_net(1), data.x, data.y, data.members, weights=weights, true_labels=data.truth,
        clusters=data.cluster[data.members], repeats=0,
    )  # fmt: skip
    assert found.noise == 4 / 24
    assert found.noise_weighted == 12 / (12 + 20)
    np.testing.assert_allclose(found.noise_by_cluster, [6 / 10, 0, 6 / 10, 0])
    assert found.noise_of_all == 8 / 48


def test_singular_values_of_random_weights_obey_the_bounds_of_algebra():
    rng = np.random.default_rng(0)
    for seed in range(5):
        model, x = small_net(2, seed=seed), normal(15, 6, seed=seed)
        index = rng.choice(15, 6, replace=False)
        found = coreset_quality(
            model, x, np.arange(15) % 2, index, weights=rng.uniform(0.5, 9, 6), clusters=3, repeats=0
        )
        assert all(bound.holds for bound in found.bounds if bound.always)


def test_a_linear_network_in_closed_form():
    x = torch.diag(torch.tensor([4.0, 3.0, 2.0]))
    model = nn.Linear(3, 1, bias=False)
    found = coreset_quality(model, x, [1.0, 0.0, -1.0], [0, 1], clusters=2, repeats=0)  # weights of 3/2
    assert found.beta == pytest.approx(np.sqrt(1.5) * 4)
    assert found.alpha == pytest.approx(np.sqrt(1.5) * 3)
    assert found.errors.gram == pytest.approx(max(0.5 * 16, 0.5 * 9, 4) / 16)


def test_a_coreset_of_medoids_beats_random_ones():
    data = clusters()
    x = data.x + 0.2 * normal(48, 6, seed=2)
    model = small_net(1)
    rows = Jacobian(model, x).rows(np.arange(48)).numpy()
    chosen = crust.select(rows, 4)
    found = coreset_quality(model, x, data.y, chosen, repeats=20)
    table = found.table().set_index("error")
    assert table.loc["gram", "coreset"] < table.loc["gram", "random, mean"]
    assert table["random, standard deviation"].notna().all()


def test_main_clusters_and_subspaces():
    data = clusters()
    jacobian = Jacobian(small_net(1), data.x, torch.float64)
    rows = jacobian.rows(np.arange(48)).numpy()
    found = Weighted(rows @ rows.T, 1, data.members, data.weights.astype(float))
    main = main_clusters(found, 4)
    basis = found.cluster_basis(main, weighted=True)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    assert largest_outside(found.scaled, basis) < 1e-5 * found.values[0]
    assert least(found.scaled, basis) == pytest.approx(found.values[3])
    assert main_clusters(found, 99).tolist() == list(range(24))


def test_one_eigenvalue_is_found_as_all_of_them_are(monkeypatch):
    model, x, labels = small_net(3), normal(30, 6), np.arange(30) % 3
    whole = coreset_quality(model, x, labels, np.arange(0, 30, 3), repeats=2)
    monkeypatch.setattr(gram, "DENSE_SIZE", 5)
    alone = coreset_quality(model, x, labels, np.arange(0, 30, 3), repeats=2)
    for one, other in zip([whole.errors, *whole.random], [alone.errors, *alone.random], strict=True):
        assert other.norm == pytest.approx(one.norm, rel=1e-6)
        assert other.gram == pytest.approx(one.gram, rel=1e-6)
    matrix = np.array([[1.0, 2.0], [2.0, -4.0]])
    assert gram.largest_eigenvalue(lambda v: matrix @ v, 2) == pytest.approx(np.abs(np.linalg.eigvalsh(matrix)).max())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"coreset": None}, "missing-coreset"),
        ({"coreset": np.arange(9)}, "coreset-members"),
        ({"weights": [1.0]}, "weights-shape"),
        ({"weights": [1.0, -1.0, 1.0]}, "weights-shape"),
        ({"clusters": 0}, "clusters-count"),
        ({"clusters": [0, 1]}, "clusters-shape"),
        ({"memory_limit": 500}, "memory"),
        ({"repeats": -1}, "repeats-range"),
    ],
)
def test_bad_input_gets_a_sentence(options, code):
    arguments = {"coreset": [1, 2, 3], **options}
    with refused(code) as error:
        coreset_quality(small_net(3), normal(8, 6), np.arange(8) % 3, **arguments)
    assert "\n" not in str(error.value)
