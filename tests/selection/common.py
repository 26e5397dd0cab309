"""What the tests of the single algorithms share."""

import numpy as np
import pytest
from tests.selection.oracle import assign_oracle

from crust.errors import InputError
from crust.selection.assignment import Picks
from crust.selection.distances import Distances, group_distances


def make(points: np.ndarray, metric: str = "euclidean", *, approximate: bool = True) -> Distances:
    """The distances of one group, as `select` makes them."""
    return group_distances(points, None, metric, approximate=approximate)[0]


def all_distances(points: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """The whole matrix, exactly (tests of greedy hold this formula against the obvious one)."""
    n = len(points)
    return make(points, metric, approximate=False).tile(np.arange(n), 0, n, np.empty(n * n, np.float32))


def proxies(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Points like gradients: softmax minus a one-hot label."""
    rng = np.random.default_rng(seed)
    p = np.exp(2 * rng.normal(size=(n, d)))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(n), rng.integers(0, d, n)] -= 1
    return p


def check_picks(picks: Picks, distances: np.ndarray, k: int) -> None:
    """What holds for the picks of any algorithm: owners are nearest, and gains are what they say."""
    n, d = len(distances), distances.astype(np.float64)
    assert len(picks.order) == len(set(picks.order.tolist())) == k
    owner, nearest = assign_oracle(distances, picks.order.tolist())
    assert picks.owner.tolist() == owner.tolist()
    assert picks.nearest.tobytes() == nearest.tobytes()
    total = n * d.max()
    assert picks.gains.sum() == pytest.approx(total - nearest.sum(dtype=np.float64), rel=1e-9, abs=1e-9 * total)
    for t in {0, k // 2, k - 1}:
        before = np.minimum(d.max(), d[picks.order[:t]].min(axis=0, initial=np.inf))
        gain = np.maximum(0, before - d[picks.order[t]]).sum()
        assert picks.gains[t] == pytest.approx(gain, rel=1e-9, abs=1e-9 * total)


def refusal(check, *args, **kwargs):
    """The message of the refusal: one sentence, one line."""
    with pytest.raises(InputError) as caught:
        check(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    return message
