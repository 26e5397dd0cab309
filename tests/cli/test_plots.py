"""The picture of a coreset: the curve is the true objective, and no data makes it fail."""

import numpy as np
import pytest

import crust
from crust.cli import select_plot

RNG = np.random.default_rng(7)


def distances(points):
    return np.sqrt(((points[:, None].astype(np.float64) - points[None]) ** 2).sum(-1)).astype(np.float32)


@pytest.mark.parametrize("algorithm", ["greedy", "random"])
def test_the_curve_is_the_objective_after_each_pick(algorithm):
    points = RNG.normal(size=(80, 3))
    coreset = crust.select(points, 12, algorithm=algorithm)
    counts, values = select_plot.objective_curve(coreset)
    assert counts.tolist() == list(range(1, 13))
    matrix = distances(points)
    expected = [matrix[:, coreset.indices[:k]].min(axis=1).sum(dtype=np.float64) for k in counts]
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_the_curve_over_groups_starts_with_one_medoid_each():
    points, groups = RNG.normal(size=(90, 3)), RNG.integers(3, size=90)
    coreset = crust.select(points, 15, groups=groups)
    counts, values = select_plot.objective_curve(coreset)
    assert counts.tolist() == list(range(3, 16))
    matrix = np.where(groups[:, None] == groups, distances(points), np.inf)
    first = [coreset.indices[coreset.groups == g][0] for g in range(3)]
    np.testing.assert_allclose(values[0], matrix[:, first].min(axis=1).sum(dtype=np.float64), rtol=1e-5)
    np.testing.assert_allclose(values[-1], coreset.objective)
    assert (np.diff(values) <= 0).all()


def test_projection_of_a_plane_keeps_distances():
    flat = RNG.normal(size=(50, 2))
    turned = flat @ np.linalg.qr(RNG.normal(size=(6, 6)))[0][:2]
    rows = np.arange(50)
    for found in (
        select_plot.project_to_plane(turned, rows, "euclidean"),
        select_plot.project_to_plane(distances(turned), rows, "precomputed"),
    ):
        ratio = distances(found)[0, 1:] / distances(turned)[0, 1:]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("points", "k", "groups"),
    [
        (np.zeros((1, 1)), 1, None),
        (np.zeros((20, 3)), 5, None),
        (np.arange(20.0).reshape(-1, 1), 20, None),
        (RNG.normal(size=(40, 5)) * 1e30, 4, None),
        (RNG.normal(size=(40, 5)) * 1e-30, 4, None),
        (RNG.normal(size=(40, 2)).astype(np.float16), 4, np.repeat(["$a_$", "b_$"], 20)),
        (RNG.integers(5, size=(40, 2)), 20, np.arange(40) % 20),
        (RNG.normal(size=(2, 300)), 1, None),
    ],
)
def test_any_data_can_be_drawn(tmp_path, points, k, groups):
    coreset = crust.select(points, k, groups=groups)
    select_plot.draw(tmp_path / "out.png", points, coreset)
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_other_formats(tmp_path, suffix, start):
    points = RNG.normal(size=(30, 3)) + 1
    select_plot.draw(tmp_path / f"out.{suffix}", points, crust.select(points, 3, metric="cosine"), metric="cosine")
    assert (tmp_path / f"out.{suffix}").read_bytes().startswith(start)


def test_many_points_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setattr(select_plot, "POINTS", 50)
    monkeypatch.setattr(select_plot, "MEDOIDS", 20)
    seen = []
    project = select_plot.project_to_plane
    counting = lambda f, rows, *a: seen.append(len(rows)) or project(f, rows, *a)  # noqa: E731
    monkeypatch.setattr(select_plot, "project_to_plane", counting)
    points = RNG.normal(size=(300, 4))
    select_plot.draw(tmp_path / "out.png", points, crust.select(points, 100))
    assert 50 <= seen[0] <= 70
    select_plot.draw(tmp_path / "out.png", distances(points), crust.select(points, 10), metric="precomputed")


def test_a_picture_that_fails_leaves_nothing(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def fail(self, file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    points = RNG.normal(size=(30, 3))
    with pytest.raises(crust.InputError, match="No space left"):
        select_plot.draw(tmp_path / "out.png", points, crust.select(points, 3))
    assert list(tmp_path.iterdir()) == []
