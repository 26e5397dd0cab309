"""All examples in two dimensions, so that what is alike lies together: the map of the report and the review."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

WIDTH = 50  # columns that are kept before examples are laid out
LANDMARKS = (
    2000  # examples that are laid out by t-SNE, which takes seconds; all others lie between those nearest to them
)
NEAR = 5
ROWS = 4096  # examples at a time
FEWEST = 10  # of fewer the principal components are shown


def project(
    values: NDArray[np.floating], *, seed: int = 0, report: Callable[[float, float], None] | None = None
) -> NDArray[np.float32]:
    """Rows as points from 0 to 1: t-SNE (van der Maaten and Hinton 2008, scikit-learn's) of principal components.

    Only `LANDMARKS` rows are laid out together; the others lie at the mean of the nearest of these, the nearer the
    more it counts. So time grows with the number of rows, and no matrix of all of them is made.

    Args:
        values: (n, d) features, or probabilities, of which roots are taken first to compare them as Hellinger did.
        seed: of the choice of landmarks and of t-SNE.
        report: called with how much is done, and of how much.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> xy = project(np.concatenate([rng.normal(size=(40, 5)), rng.normal(9, 1, size=(40, 5))]))
        >>> gap = np.linalg.norm(xy[:40].mean(axis=0) - xy[40:].mean(axis=0))
        >>> bool(gap > xy[:40].std()), xy.shape, float(xy.min()), float(xy.max())
        (True, (80, 2), 0.0, 1.0)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    n, rng = len(values), np.random.default_rng(seed)
    x = np.nan_to_num(np.asarray(values, np.float32))
    if x.ndim != 2 or n < 3:
        return np.full((n, 2), 0.5, np.float32)
    kept = np.sort(rng.choice(n, min(n, LANDMARKS), replace=False))
    pca = PCA(min(WIDTH, x.shape[1], len(kept)), svd_solver="full")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that do not vary
        some = pca.fit_transform(x[kept])
        some /= max(float(some[:, 0].std()), 1e-12)
        if len(kept) < FEWEST or not some.any():
            found = np.concatenate([some, np.zeros((len(kept), 2), np.float32)], axis=1)[:, :2]
        else:
            perplexity = min(30.0, (len(kept) - 1) / 4)
            start = np.concatenate([some, 1e-4 * rng.normal(size=some.shape)], axis=1)[:, :2] * 1e-4
            found = TSNE(
                perplexity=perplexity, init=start.astype(np.float32), max_iter=400, random_state=seed, n_jobs=1
            ).fit_transform(some)
    scale = max(float(np.abs(pca.transform(x[kept])[:, 0]).std()), 1e-12) if len(kept) else 1.0
    points = np.empty((n, 2), np.float32)
    points[kept] = found
    others = np.setdiff1d(np.arange(n), kept)
    squares = (some * some).sum(axis=1)
    for first in range(0, len(others), ROWS):
        rows = others[first : first + ROWS]
        part = pca.transform(x[rows]) / scale
        far = np.maximum(squares - 2 * part @ some.T + (part * part).sum(axis=1)[:, None], 0)
        near = np.argpartition(far, NEAR - 1, axis=1)[:, :NEAR]
        weights = 1 / (np.take_along_axis(far, near, axis=1) + 1e-9)
        points[rows] = (found[near] * (weights / weights.sum(axis=1, keepdims=True))[:, :, None]).sum(axis=1)
        if report is not None:
            report(first + len(rows), len(others))
    return _within(points)


def _within(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Moved and scaled to the unit square, both axes alike."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max())
    if size <= 0:
        return np.full_like(points, 0.5)
    moved = (points - low) / size
    return np.clip(moved + (1 - (high - low) / size) / 2, 0, 1).astype(np.float32)
