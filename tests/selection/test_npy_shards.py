"""GreeDi on points in files: the same answer as in memory, in pieces, wherever the pieces are worked on."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused
from tests.selection.common import all_distances, proxies

import crust
from crust.errors import InputError
from crust.selection import greedi, greedi_files
from crust.selection.npy_shards import describe, find_files, mapped_file

FIELDS = ("indices", "weights", "assignment", "distances")


class Elsewhere:
    """An engine that hands over nothing but bytes, and counts the points that come back."""

    def __init__(self):
        self.points, self.largest = 0, 0

    def map(self, function, items):
        for item in items:
            sent = pickle.dumps((function, item))
            work, what = pickle.loads(sent)
            found = work(what)
            self.largest = max(self.largest, len(sent))
            self.points += len(found) if getattr(found, "ndim", 0) == 2 else 0
            yield pickle.loads(pickle.dumps(found))


@pytest.fixture
def small(monkeypatch):
    """Many shards and many spans for few points."""
    monkeypatch.setattr(greedi, "SHARD_POINTS", 120)
    monkeypatch.setattr(greedi_files, "SPAN_ROWS", 170)


def write(folder, x, sizes=None):
    folder.mkdir(exist_ok=True)
    ends = np.cumsum([len(x)] if sizes is None else sizes)
    assert ends[-1] == len(x)
    for i, part in enumerate(np.split(x, ends[:-1])):
        np.save(folder / f"part-{i:03}.npy", part)
    return folder


def assert_same(a, b, first_gain=True):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.objective == b.objective
    np.testing.assert_array_equal(a.gains[not first_gain :], b.gains[not first_gain :])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("d", [5, 40])
def test_one_file_is_the_answer_in_memory(tmp_path, metric, d):
    x = proxies(1000, d)
    folder = write(tmp_path / "x", x)
    options = {"algorithm": "greedi", "metric": metric, "seed": 3}
    expected = crust.select(x, 20, **options)
    for features, more in (
        (folder, {}),
        (str(folder / "part-000.npy"), {}),
        ([folder / "part-000.npy"], {"engine": Elsewhere()}),
        (np.load(folder / "part-000.npy", mmap_mode="r"), {"engine": Elsewhere()}),
    ):
        found = crust.select(features, 20, **options, **more)
        assert_same(found, expected, first_gain=False)
        assert found.gains[0] >= expected.gains[0]  # from a bound on the largest distance
        assert found.info["path"] == "greedi, 9 shards of 1 file"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [7, 300])
def test_groups_in_files(tmp_path, count):
    """Of 300 groups most have no medoid: their points go to the nearest one of any group."""
    x, groups = proxies(900, 6), np.random.default_rng(1).integers(0, count, 900)
    expected = crust.select(x, 60, groups=groups, algorithm="greedi")
    found = crust.select(write(tmp_path / "x", x), 60, groups=groups, algorithm="greedi", engine=Elsewhere())
    for name in (*FIELDS, "groups"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_few_points_are_exact_greedy(tmp_path):
    x = proxies(300, 4)
    exact = crust.select(x, 90)
    assert_same(crust.select(write(tmp_path / "x", x), 90, algorithm="greedi"), exact, first_gain=False)


@pytest.mark.usefixtures("small")
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_any_cut_into_files_holds_together(tmp_path_factory, data):
    n = data.draw(st.integers(2, 60))
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=5)))
    x = np.random.default_rng(n).integers(0, 5, (n, 2)).astype(np.float32)  # with doubles
    k = data.draw(st.integers(1, n))
    folder = write(tmp_path_factory.mktemp("cut"), x, np.diff([0, *cuts, n]))
    found = crust.select(folder, k, algorithm="greedi", seed=1)
    D = all_distances(x)
    assert len(set(found.indices.tolist())) == k
    assert found.weights.sum() == n
    np.testing.assert_array_equal(found.distances, D[:, found.indices].min(axis=1))
    medoids = found.indices[found.assignment]
    np.testing.assert_array_equal(D[np.arange(n), medoids], found.distances)
    assert (medoids[found.indices] == found.indices).all()  # a medoid belongs to itself
    nearest = D[:, found.indices] == found.distances[:, None]
    lowest = np.where(nearest, found.indices, n).min(axis=1)
    others = np.setdiff1d(np.arange(n), found.indices)
    assert (medoids[others] == lowest[others]).all()  # other ties go to the lowest index
    assert found.gains[1:].sum() == pytest.approx(D[found.indices[0]].sum() - found.objective, abs=1e-3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("sizes", [[400, 300, 300], [30] * 30 + [100], [10] * 100, [999, 1]])
def test_files_as_shards_are_close_to_greedy(tmp_path, sizes):
    x = proxies(1000, 8)
    exact = crust.select(x, 25)
    found = crust.select(write(tmp_path / "x", x, sizes), 25, algorithm="greedi")
    assert found.objective <= (1.03 if min(sizes[0], 50) == 50 else 1.1) * exact.objective


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_processes_find_the_same(tmp_path):
    folder = write(tmp_path / "x", proxies(1000, 8), [400, 350, 250])
    expected = crust.select(folder, 25, algorithm="greedi")
    assert_same(crust.select(folder, 25, algorithm="greedi", engine="local", threads=2), expected)


@pytest.mark.usefixtures("small")
def test_only_the_chosen_and_a_sample_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(greedi, "MEASURED_POINTS", 300)
    x = proxies(6000, 16)
    engine = Elsewhere()
    found = crust.select(write(tmp_path / "x", x, [1000] * 6), 10, algorithm="greedi", engine=engine)
    assert engine.points <= 1 + 300 + 6 * 9 * 10 + 10  # the anchor, the sample, what the shards chose
    assert engine.largest < 20_000  # positions go out, no points but those of the medoids
    assert found.objective <= 1.1 * crust.select(x, 10).objective


def test_large_and_small_values_are_scaled_as_in_memory(tmp_path, small):
    for power in (1e30, 1e-40):
        x = proxies(400, 3) * power
        folder = write(tmp_path / str(power), x, [150, 250])
        expected = crust.select(write(tmp_path / f"{power} one", x), 8, algorithm="greedi")
        assert crust.select(folder, 400, algorithm="greedi").objective == 0.0
        found = crust.select(folder, 8, algorithm="greedi")
        assert 0.8 < found.objective / expected.objective < 1.2
        near = np.linalg.norm(x / power - x[found.indices[found.assignment]] / power, axis=1) * power
        assert found.objective == pytest.approx(near.sum(), rel=1e-5)


def test_rows_count_through_the_files_in_the_order_of_their_names(tmp_path):
    for name in ("b", "a", ".hidden"):
        np.save(tmp_path / f"{name}.npy", np.full((3, 2), ord(name[0]), np.float32))
    files = find_files(tmp_path)
    assert [file.name for file in files.files] == ["a.npy", "b.npy"]
    assert files.shape == (6, 2)
    assert [(number, rows.tolist()) for number, _, rows in files.split(np.array([5, 0, 3]))] == [(0, [0]), (1, [2, 0])]
    turned = find_files([tmp_path / "b.npy", tmp_path / "a.npy", tmp_path / "b.npy"])
    assert [file.name for file in turned.files] == ["b.npy", "a.npy"]


def test_only_whole_files_are_read_elsewhere(tmp_path):
    x = proxies(50, 3)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert mapped_file(mapped) == str(tmp_path / "x.npy")
    for other in (x, mapped[5:], mapped[::-1], mapped[:, :2], mapped.astype(np.float32), [[1.0]]):
        assert mapped_file(other) is None
    mapped[:].tofile(tmp_path / "x.bin")
    assert mapped_file(np.memmap(tmp_path / "x.bin", dtype=x.dtype, shape=x.shape)) is None


def test_files_of_several_machines(tmp_path):
    class Two:
        """Two machines, each with a folder of its own under the same name."""

        def __init__(self, *folders):
            self.folders = folders

        def look(self, function, item):
            found = []
            for number, folder in enumerate(self.folders):
                files = function([str(folder)])
                moved = [type(f)(f.path.replace(str(folder), item[0]), f.rows, f.columns, f.dtype) for f in files]
                found.append((f"machine {number}", moved))
            return found

    x = proxies(40, 3)
    for name, parts in {"one": (0, 1), "two": (1, 2)}.items():
        (tmp_path / name).mkdir()
        for part in parts:
            np.save(tmp_path / name / f"{part}.npy", x[part * 10 : part * 10 + 10])
    files = find_files("shards", Two(tmp_path / "one", tmp_path / "two")).files
    assert [(file.name, file.nodes) for file in files] == [
        ("0.npy", ("machine 0",)), ("1.npy", ()), ("2.npy", ("machine 1",))
    ]  # fmt: skip
    np.save(tmp_path / "two" / "1.npy", x)
    with pytest.raises(InputError, match=r"1\.npy is not the same on all machines"):
        find_files("shards", Two(tmp_path / "one", tmp_path / "two"))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda f: None, "missing-file"),
        (lambda f: f.rmdir(), "missing-file"),
        (lambda f: (f / "a.npy").write_bytes(b"none"), "damaged-file"),
        (lambda f: np.save(f / "a.npy", np.zeros(3)), "not-numbers"),
        (lambda f: np.save(f / "a.npy", np.array([["a"]])), "not-numbers"),
        (lambda f: np.save(f / "a.npy", np.zeros((0, 3))), "empty"),
        (lambda f: np.save(f / "a.npy", np.array([[0.0, np.inf]])), "not-finite"),
        (lambda f: np.save(f / "a.npy", np.array([[object()]]), allow_pickle=True), "damaged-file"),
    ],
)  # fmt: skip
def test_folders_that_are_none(tmp_path, make, code):
    folder = tmp_path / "x"
    folder.mkdir()
    make(folder)
    with refused(code) as caught:
        crust.select(folder, 1, algorithm="greedi")
    assert "\n" not in str(caught.value)


def test_what_files_cannot_do(tmp_path):
    folder = write(tmp_path / "x", np.array([[0.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(InputError, match=r"1 row of zeros only \(row 0\), without a direction .*: drop it or"):
        crust.select(folder, 1, algorithm="greedi", metric="cosine")
    with pytest.raises(InputError, match="'greedy' needs all points at once: use algorithm 'greedi'"):
        crust.select(folder, 1)
    with refused("files-metric"):
        crust.select(folder, 1, algorithm="greedi", metric="precomputed")
    with refused("engine-algorithm"):
        crust.select(np.zeros((3, 2)), 1, engine="local")
    assert describe([str(tmp_path / "nowhere")]) == []
