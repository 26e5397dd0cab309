import json
import os
import pickle
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused
from torch.utils.data import DataLoader, TensorDataset

from crust.errors import InputError
from crust.selection import coreset as module
from crust.selection.coreset import Coreset, WeightedSubset

FIELDS = ("indices", "weights", "assignment", "gains", "distances", "groups")


def some_coreset(n=20, k=5, groups=None, seed=0, info=None):
    """Random, but of the right form: a medoid belongs to itself, a cluster never crosses groups."""
    rng = np.random.default_rng(seed)
    indices = rng.permutation(n)[:k]
    assignment = rng.integers(0, k, n)
    assignment[indices] = np.arange(k)
    distances = rng.random(n).astype(np.float32)
    distances[indices] = 0
    return Coreset(
        indices=indices,
        weights=np.bincount(assignment, minlength=k),
        assignment=assignment,
        gains=rng.normal(size=k) * 1e-3,
        objective=distances.sum(dtype=np.float64) / 3,
        distances=distances,
        groups=None if groups is None else np.asarray(groups)[rng.integers(0, len(groups), k)],
        info={"algorithm": "greedy", "metric": "euclidean", "k": k, "seed": seed} if info is None else info,
    )


def assert_same(one, other):
    for name in FIELDS:
        a, b = getattr(one, name), getattr(other, name)
        if a is None:
            assert b is None
            continue
        assert a.dtype == b.dtype, name
        assert a.shape == b.shape, name
        assert a.tobytes() == b.tobytes(), name
    assert one.objective == other.objective
    assert one.info == other.info


# ---------------------------------------------------------------------------------------------- the object


def test_length_and_size():
    coreset = some_coreset(n=20, k=5)
    assert len(coreset) == 5
    assert coreset.n == 20


def test_types_are_brought_into_one_form():
    coreset = Coreset([1], [2], [0, 0], [1], np.float32(0.5), [0.5, 0.0], groups=["a"])
    assert [getattr(coreset, name).dtype.str for name in FIELDS] == ["<i8", "<i8", "<i8", "<f8", "<f4", "<U1"]
    assert type(coreset.objective) is float


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        some_coreset().objective = 0.0


def test_words():
    assert repr(some_coreset(info={})).startswith("Coreset(5 of 20 points, objective ")
    assert ", 1 group, objective" in repr(some_coreset(groups=["a"]))
    assert repr(some_coreset()).endswith(", greedy, euclidean)")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": [1]}, "weights has shape (1,), but it must be (2,)"),
        ({"gains": [[1.0, 2.0]]}, "gains has shape (1, 2)"),
        ({"distances": [0.0]}, "distances has shape (1,), but it must be (3,)"),
        ({"indices": [[1, 2]]}, "indices has shape (1, 2), but it must be (k,)"),
        ({"groups": ["a"]}, "groups has shape (1,)"),
        ({"groups": [0.5, 1.5]}, "groups has type float64"),
    ],
)
def test_shapes_are_held(change, words):
    good = {
        "indices": [1, 2],
        "weights": [2, 1],
        "assignment": [0, 0, 1],
        "gains": [9.0, 4.9],
        "objective": 0.1,
        "distances": [0.1, 0.0, 0.0],
    }
    with pytest.raises(InputError) as caught:
        Coreset(**{**good, **change})
    assert words in str(caught.value)


# ---------------------------------------------------------------------------------------------- the file


@pytest.mark.parametrize(
    "groups",
    [
        None,
        ["b", "a", "longer name"],
        ["", "é", "日本"],
        [-3, 0, 7],
        [True, False],
        np.array([-3, 7], dtype=np.int8),
        np.array([3, 2**64 - 1], dtype=np.uint64),
        np.array([-3, 7], dtype=">i4"),
        np.array(["b", "a"], dtype="<U9"),
    ],
)
@pytest.mark.parametrize(("n", "k"), [(20, 5), (1, 1), (6, 6), (3000, 700)])
def test_loading_gives_back_what_was_saved(tmp_path, groups, n, k):
    coreset = some_coreset(n, k, groups)
    coreset.save(tmp_path / "coreset.parquet")
    assert_same(Coreset.load(tmp_path / "coreset.parquet"), coreset)


@given(st.integers(1, 40), st.data())
def test_loading_gives_back_any_coreset(tmp_path_factory, n, data):
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    k = data.draw(st.integers(1, n))
    names = data.draw(
        st.none()
        | st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1)
        | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1)
    )
    coreset = some_coreset(n, k, names, seed=data.draw(st.integers(0, 1000)))
    gains = data.draw(st.lists(st.floats(allow_nan=False), min_size=k, max_size=k))
    coreset.gains[:] = gains
    coreset.save(path)
    assert_same(Coreset.load(path), coreset)


def test_settings_come_back(tmp_path):
    info = {"algorithm": "lazy", "seed": np.int64(3), "epsilon": 0.1, "device": None, "path": {"stored": [1, 2]}}
    some_coreset(info=info).save(tmp_path / "c.parquet")
    assert Coreset.load(tmp_path / "c.parquet").info == {**info, "seed": 3}


def test_loaded_arrays_can_go_to_torch(tmp_path):
    some_coreset(groups=[1, 2]).save(tmp_path / "c.parquet")
    loaded = Coreset.load(tmp_path / "c.parquet")
    for name in FIELDS:
        torch.from_numpy(getattr(loaded, name))  # warns, and so fails, for arrays that cannot be written to


def test_pandas_shows_a_table_that_explains_itself(tmp_path):
    coreset = some_coreset(groups=["cat", "dog"])
    coreset.save(tmp_path / "c.parquet")
    table = pd.read_parquet(tmp_path / "c.parquet")
    assert list(table.columns) == ["medoid", "distance", "rank", "weight", "gain", "group"]
    assert len(table) == coreset.n
    assert table["weight"].sum() == coreset.n
    assert table[table["rank"] >= 0].sort_values("rank").index.tolist() == coreset.indices.tolist()
    assert table["medoid"].value_counts().to_dict() == dict(zip(coreset.indices, coreset.weights, strict=True))
    assert table["gain"].notna().sum() == len(coreset)
    assert (table["group"] == table["group"][table["medoid"]].to_numpy()).all()
    about = json.loads(pq.read_schema(tmp_path / "c.parquet").metadata[b"crust"])
    assert about["objective"] == coreset.objective
    assert about["info"] == coreset.info


def test_saving_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "c.parquet"
    some_coreset(seed=1).save(path)
    some_coreset(seed=2).save(str(path))
    assert Coreset.load(str(path)).info["seed"] == 2
    assert [file.name for file in tmp_path.iterdir()] == ["c.parquet"]


def test_a_file_has_the_usual_permissions(tmp_path):
    some_coreset().save(tmp_path / "c.parquet")
    (tmp_path / "plain").touch()
    assert (tmp_path / "c.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failed_save_keeps_what_was_there(tmp_path, monkeypatch, failure):
    path = tmp_path / "c.parquet"
    some_coreset(seed=1).save(path)
    before = path.read_bytes()

    def fail(table, file, **options):
        file.write(b"half")
        raise failure

    monkeypatch.setattr(pq, "write_table", fail)
    expected = KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else InputError
    with pytest.raises(expected) as caught:
        some_coreset(seed=2).save(path)
    if expected is InputError:
        assert "could not be written (No space left on device)" in str(caught.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.parquet"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.parquet").symlink_to(tmp_path / "real.parquet")
    some_coreset().save(tmp_path / "link.parquet")
    assert (tmp_path / "link.parquet").is_symlink()
    assert_same(Coreset.load(tmp_path / "real.parquet"), some_coreset())


def test_saving_needs_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*missing to write c.parquet to: create it first"):
        some_coreset().save(tmp_path / "missing" / "c.parquet")
    assert not (tmp_path / "missing").exists()
    with pytest.raises(InputError, match="is a folder: give the name of a file"):
        some_coreset().save(tmp_path)


def test_saving_into_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some_coreset().save("c.parquet")
    assert len(Coreset.load("c.parquet")) == 5


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(InputError, match="could not be written"):
        some_coreset().save(tmp_path / "c.parquet")


def test_loading_what_is_not_there(tmp_path):
    with refused("missing-file"):
        Coreset.load(tmp_path / "c.parquet")
    with refused("is-folder"):
        Coreset.load(tmp_path)


def test_loading_what_is_no_coreset(tmp_path):
    path = tmp_path / "c.parquet"
    path.write_bytes(b"")
    with refused("damaged-file"):
        Coreset.load(path)
    path.write_text("a,b\n1,2\n")
    with refused("damaged-file"):
        Coreset.load(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with refused("not-a-coreset"):
        Coreset.load(path)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_truncated_files_are_refused(tmp_path, share):
    path = tmp_path / "c.parquet"
    some_coreset(n=500, k=50, groups=["a", "b"]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with refused("damaged-file"):
        Coreset.load(path)


def test_bytes_gone_bad_are_refused_or_harmless(tmp_path):
    coreset = some_coreset(n=500, k=50, groups=["a", "b"])
    path = tmp_path / "c.parquet"
    coreset.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(whole) * 3 // 4, 60):  # data pages; the footer, at the end, has no checksum
        bad = bytearray(whole)
        bad[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        try:
            loaded = Coreset.load(path)
        except InputError:
            refused += 1
        else:
            assert_same(loaded, coreset)
    assert refused > 30


def rewritten(path, change):
    """The file again, after `change` of its columns and of its metadata."""
    table = pq.read_table(path)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    about = json.loads(table.schema.metadata[b"crust"])
    change(columns, about)
    pq.write_table(pa.table(columns, metadata={"crust": json.dumps(about)}), path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda columns, about: about.update(format=99, version="9.0"), "is of newer crust 9.0"),
        (lambda columns, about: about.update(what="audit"), "does not hold together"),
        (lambda columns, about: about.update(k=4), "does not hold together"),
        (lambda columns, about: about.update(n=21), "does not hold together"),
        (lambda columns, about: about.pop("objective"), "does not hold together"),
        (lambda columns, about: about.update(groups="<i8"), "does not hold together"),
        (lambda columns, about: columns.pop("weight"), "does not hold together"),
        (lambda columns, about: np.copyto(columns["medoid"], 99), "does not hold together"),
        (lambda columns, about: np.copyto(columns["medoid"], -1), "does not hold together"),
        (lambda columns, about: np.copyto(columns["rank"], 0), "does not hold together"),
    ],
)
def test_tables_that_were_changed_are_refused(tmp_path, change, words):
    path = tmp_path / "c.parquet"
    some_coreset().save(path)
    rewritten(path, lambda columns, about: None)
    assert_same(Coreset.load(path), some_coreset())
    rewritten(path, change)
    with pytest.raises(InputError) as caught:
        Coreset.load(path)
    assert words in str(caught.value)


# ---------------------------------------------------------------------------------------------- the subset


def test_items_carry_their_weight():
    coreset = some_coreset()
    data = TensorDataset(torch.arange(20.0), torch.arange(20))
    subset = coreset.subset(data)
    assert len(subset) == 5
    assert subset.weights.dtype == np.float32
    assert subset.weights.mean() == pytest.approx(1, abs=1e-6)
    for position, (x, y, weight) in enumerate(subset):
        assert x == y == coreset.indices[position]
        assert weight == np.float32(coreset.weights[position] * 5 / 20)
    assert coreset.subset(data, scale="count").weights.tolist() == coreset.weights.tolist()
    assert subset[-1][1] == coreset.indices[-1]


@pytest.mark.parametrize(
    ("item", "expected"), [((1, 2), (1, 2, 3.0)), ([1, 2], (1, 2, 3.0)), ("x", ("x", 3.0)), ({"a": 1}, ({"a": 1}, 3.0))]
)
def test_items_of_every_form(item, expected):
    coreset = Coreset([2], [3], [0, 0, 0], [1.0], 0.0, [0.0, 0.0, 0.0])
    assert coreset.subset([None, None, item], scale="count")[0] == expected


def test_a_loader_takes_it():
    coreset = some_coreset()
    subset = coreset.subset(TensorDataset(torch.arange(20.0)[:, None], torch.arange(20)))
    # Pickled, as on the way to a worker process
    batches = list(DataLoader(pickle.loads(pickle.dumps(subset)), batch_size=2))
    assert torch.cat([y for _, y, _ in batches]).tolist() == coreset.indices.tolist()
    weights = torch.cat([weight for _, _, weight in batches])
    assert weights.dtype == torch.float32
    assert weights.tolist() == subset.weights.tolist()


def test_datasets_that_hand_out_batches_are_asked_for_batches():
    class Batched:
        asked = ()

        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise AssertionError("one by one is slow here")

        def __getitems__(self, indices):
            self.asked = indices
            return [{"x": i} for i in indices]

    data = Batched()
    subset = WeightedSubset(data, [2, 0], np.ones(2))
    (items, weights), *rest = DataLoader(subset, batch_size=2)
    assert not rest
    assert items["x"].tolist() == [2, 0]
    assert weights.tolist() == [1, 1]
    assert all(type(index) is int for index in data.asked)


def test_datasets_that_do_not_fit():
    coreset = some_coreset()
    with pytest.raises(InputError, match="has 19 items, but the coreset was chosen from 20 points"):
        coreset.subset(list(range(19)))
    with pytest.raises(InputError, match="a generator: give one with a length"):
        coreset.subset(x for x in range(20))
    with pytest.raises(InputError, match=r"unknown scale 'means'.*did you mean 'mean'"):
        coreset.subset(list(range(20)), scale="means")


def test_version_is_written(monkeypatch):
    def absent(name):
        raise module.importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(module.importlib.metadata, "version", absent)
    assert module._version() == "unknown"
