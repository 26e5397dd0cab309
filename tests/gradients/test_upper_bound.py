"""Why proxies will do: the distances between them follow those between exact gradients, Eq. (upper) of the paper."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from torch.func import functional_call, jacrev, vmap
from torch.nn.functional import cross_entropy

from crust.gradients import proxies
from crust.models import build_model


@pytest.fixture(scope="module")
def trained():
    """A small network on digits with 40% wrong labels, a few epochs old; 300 examples and their given labels."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.4, rng.integers(0, 10, len(y)), y)
    inputs, labels = torch.tensor(x, dtype=torch.float32) / 8 - 1, torch.tensor(y)
    model = build_model("mlp", in_shape=(64,), classes=10, seed=0, hidden=[64])
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(8):
        for rows in torch.from_numpy(rng.permutation(len(y))).split(64):
            loss = cross_entropy(model(inputs[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model, inputs[:300], y[:300]


def rows_of(trained, kind):
    model, x, y = trained
    return proxies(model, [(x, np.arange(len(x)))], y, kind=kind).proxies


@pytest.mark.parametrize(("kind", "floor"), [("logits", 0.8), ("features", 0.8)])
def test_proxy_distances_follow_those_of_exact_gradients(trained, kind, floor):
    """The paper's reason to use proxies; Eq. (upper)."""
    exact, proxy = pdist(rows_of(trained, "exact")), pdist(rows_of(trained, kind))
    pearson, rank = np.corrcoef(exact, proxy)[0, 1], spearmanr(exact, proxy).statistic
    print(f"{kind}: distances of proxies and of exact gradients, Pearson {pearson:.3f}, Spearman {rank:.3f}")
    assert min(pearson, rank) > floor


def test_the_upper_bound_of_the_paper(trained):
    """Eq. (upper): d <= c1 d_proxy + c2. With g = J^T r, g_i - g_j = J_i^T (r_i - r_j) + (J_i - J_j)^T r_j, so c1 is
    the largest norm of a Jacobian, and c2 the largest of the second term. The last bias gives the other side."""
    model, x, y = trained
    x, y = x[:30], y[:30]
    exact, r = rows_of((model, x, y), "exact"), rows_of((model, x, y), "logits")
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    jacobians = vmap(jacrev(lambda p, row: functional_call(model, p, (row[None],))[0]), (None, 0))(parameters, x)
    J = torch.cat([j.flatten(2) for j in jacobians.values()], 2).double()
    R = torch.from_numpy(r).double()
    torch.testing.assert_close(torch.einsum("ncp,nc->np", J, R).float(), torch.from_numpy(exact), rtol=1e-3, atol=1e-4)
    c1 = torch.linalg.matrix_norm(J, 2).max().item()
    second = torch.einsum("ijcp,jc->ijp", J[:, None] - J[None], R).norm(dim=2)
    c2 = second.max().item()
    d, proxy = pdist(exact), pdist(r)
    slack = 1 + 1e-5
    assert (d <= (c1 * proxy + c2) * slack).all()
    assert (proxy <= d * slack).all()
