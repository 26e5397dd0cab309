"""Distances that are kept in a square matrix: each pair above the diagonal once, as near the exact one as promised."""

import numpy as np
import pytest
from tests.selection.common import proxies

from crust.selection.distances import Distances, scale_points
from crust.selection.executors import Ticker


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize(("n", "d"), [(513, 40), (2100, 30), (700, 5)])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_pair_is_kept_and_shown_once(metric, n, d, threads):
    points, _ = scale_points((proxies(n, d) + 0.01).astype(np.float64), metric)
    distances = Distances.of_points(points, metric)
    assert not distances.exact
    square, shown = np.full((n, n), np.nan, np.float32), np.zeros((n, n), np.int32)

    def consume(tile, top, left, slot):
        rows, columns = np.arange(top, top + tile.shape[0]), np.arange(left, left + tile.shape[1])
        upper = rows[:, None] <= columns
        shown[np.ix_(rows, columns)] += upper
        assert np.array_equal(square[np.ix_(rows, columns)][upper], tile[upper])

    distances.each_tile(consume, threads, Ticker(), square)
    above = np.triu_indices(n, 1)
    assert (shown[above] == 1).all()
    exact = np.array([distances.exact_row(i) for i in range(0, n, 50)])
    for row, i in zip(exact, range(0, n, 50), strict=True):
        assert (square[i, i + 1 :] <= distances.limits(row)[i + 1 :]).all()  # what the error bound allows
        assert np.allclose(square[i, i + 1 :], row[i + 1 :], rtol=1e-3, atol=1e-4)
