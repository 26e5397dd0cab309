"""A coreset drawn: its objective, and its points in two dimensions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crust._util.atomic_write import write_atomic
from crust._util.plot_style import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 20_000  # more only makes a blot
MEDOIDS = 3_000
NAMED_GROUPS = 10
GREY, INK, RED = "#9aa5b1", "#1f2933", "#d64545"


def draw(path: Path, features: np.ndarray, coreset: Any, *, metric: str = "euclidean", seed: int = 0) -> None:
    """Write the picture of a coreset to `path`, whole or not at all."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.8), dpi=150, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        _draw_objective(left, coreset)
        _draw_points(right, features, coreset, metric, seed)
        write_atomic(path, partial(figure.savefig, format=path.suffix[1:].lower()))


def objective_curve(coreset: Any) -> tuple[np.ndarray, np.ndarray]:
    """The objective after each pick: the last value plus the gains that were still to come.

    Every group starts with its first medoid; the further picks of all groups are merged, largest gains first.

    Returns:
        Numbers of medoids, and the sum of distances at each.
    """
    group = _group_of_medoids(coreset)
    first = np.r_[True, group[1:] != group[:-1]]
    gains = np.asarray(coreset.gains, dtype=np.float64)
    # A falling bound on the gains keeps each group in pick order even where gains rise, as those of `random` may.
    bound = np.concatenate([np.minimum.accumulate(part) for part in np.split(gains, np.flatnonzero(first)[1:])])
    later = np.flatnonzero(~first)
    order = later[np.argsort(-bound[later], kind="stable")]
    to_come = np.r_[np.cumsum(gains[order][::-1])[::-1], 0.0]
    return np.arange(first.sum(), len(gains) + 1), coreset.objective + to_come


def project_to_plane(features: np.ndarray, rows: np.ndarray, metric: str, seed: int = 0) -> np.ndarray:
    """Rows of the data in the two directions that hold most of their spread."""
    from sklearn.decomposition import PCA

    if metric == "precomputed":  # classical scaling: PCA of the points whose distances these are
        squares = np.asarray(features[np.ix_(rows, rows)], dtype=np.float64) ** 2
        squares /= max(squares.max(), np.finfo(float).tiny)
        centred = squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()
        values, vectors = np.linalg.eigh(-0.5 * centred)
        flat = vectors[:, ::-1][:, :2] * np.sqrt(np.clip(values[::-1][:2], 0, None))
    else:
        data = np.asarray(features[rows], dtype=np.float64)
        data = data / max(np.abs(data).max(), np.finfo(float).tiny)  # values of 1e30 must not overflow
        if metric == "cosine":
            data = data / np.maximum(np.linalg.norm(data, axis=1, keepdims=True), np.finfo(float).tiny)
        if min(data.shape) > 2 and np.ptp(data, axis=0).any():
            data = PCA(2, random_state=seed).fit_transform(data)
        flat = data - data.mean(0)
    return np.pad(flat, ((0, 0), (0, max(0, 2 - flat.shape[1]))))[:, :2]


def _draw_objective(axes: Axes, coreset: Any) -> None:
    n = len(coreset.assignment)
    counts, values = objective_curve(coreset)
    axes.plot(counts, values / n, color=INK, linewidth=1.8)
    axes.plot(counts[-1], values[-1] / n, "o", color=RED, markersize=6, zorder=3)
    axes.fill_between(counts, values / n, color=INK, alpha=0.06, linewidth=0)
    if counts[-1] > 20 * counts[0]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    axes.set_xlabel("medoids")
    axes.set_ylabel("mean distance to the nearest medoid")
    axes.set_title(f"Objective over k: {values[-1] / n:.4g} at k = {counts[-1]:,}", loc="left", color=INK)


def _draw_points(axes: Axes, features: np.ndarray, coreset: Any, metric: str, seed: int) -> None:
    n = len(coreset.assignment)
    rng = np.random.default_rng(seed)
    limit = 2_000 if metric == "precomputed" else POINTS  # classical scaling needs a square matrix
    points = np.sort(rng.choice(n, limit, replace=False)) if n > limit else np.arange(n)
    shown = np.arange(len(coreset.indices))
    most = min(MEDOIDS, limit)
    if len(shown) > most:
        shown = np.sort(rng.choice(len(shown), most, replace=False))
    medoids = np.asarray(coreset.indices)[shown]
    rows = np.union1d(points, medoids)
    flat = project_to_plane(features, rows, metric, seed)
    at_point, at_medoid = np.searchsorted(rows, points), np.searchsorted(rows, medoids)

    group = _group_of_medoids(coreset)
    several = 1 < group[-1] + 1 <= NAMED_GROUPS
    colours = _colours(int(group[-1]) + 1) if several else None
    of_point = group[np.asarray(coreset.assignment)[points]]
    size = float(np.clip(9_000 / len(points), 2, 14))
    colour = GREY if colours is None else colours[of_point]
    axes.scatter(flat[at_point, 0], flat[at_point, 1], s=size, c=colour, alpha=0.55, linewidths=0, rasterized=True)
    weights = np.asarray(coreset.weights, dtype=float)[shown]
    scale = float(np.clip(9_000 / len(shown), 8, 90))  # many medoids would cover the points and each other
    sizes = scale * (0.1 + weights / weights.max())
    colour = RED if colours is None else colours[group[shown]]
    axes.scatter(flat[at_medoid, 0], flat[at_medoid, 1], s=sizes, c=colour, edgecolors=INK, linewidths=scale**0.5 / 13)
    if colours is not None:
        names = list(dict.fromkeys(np.asarray(coreset.groups).tolist()))
        for name, colour in zip(names, colours, strict=True):
            axes.scatter([], [], s=25, color=colour, label=str(name).replace("$", r"\$"))
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), handletextpad=0.2, title="group")
    axes.set_xticks([])
    axes.set_yticks([])
    part = f"{n:,}" if len(points) == n else f"{len(points):,} of {n:,}"
    axes.set_title(f"Medoids, sized by cluster, among {part} points", loc="left", color=INK)
    axes.set_xlabel("first principal direction")
    axes.set_ylabel("second principal direction")


def _group_of_medoids(coreset: Any) -> np.ndarray:
    """For each medoid the number of its group; a coreset keeps groups one after the other."""
    if coreset.groups is None:
        return np.zeros(len(coreset.indices), dtype=np.int64)
    names = np.asarray(coreset.groups)
    return np.cumsum(np.r_[False, names[1:] != names[:-1]])


def _colours(count: int) -> np.ndarray:
    from matplotlib import colormaps

    return np.asarray(colormaps["tab10"](np.arange(count)))
