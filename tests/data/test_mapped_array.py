"""Memory maps of more than is kept in memory: the same examples, read as they are needed."""

import numpy as np
import pytest
import torch
from tests.refusals import refused

import crust
from crust.data import batches, examples, image_folder, mapped_array
from crust.data.mapped_array import MappedArray
from crust.data.npz_dataset import from_arrays

rng = np.random.default_rng(0)
KINDS = {
    "features": rng.normal(3, 2, (50, 7)).astype(np.float32),
    "doubles": rng.normal(size=(50, 7)),
    "counts": rng.integers(0, 300, (50, 7)),
    "words": (rng.random((50, 60)) * (rng.random((50, 60)) < 0.1)).astype(np.float32),
    "pixels": rng.integers(0, 256, (50, 9, 8, 3), dtype=np.uint8),
    "grey": rng.integers(0, 256, (50, 9, 8), dtype=np.uint8),
    "channels first": rng.random((50, 3, 9, 8)).astype(np.float32),
}
LABELS = np.arange(50) % 3


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """Writes an array and opens it as a map that stays on disk."""
    monkeypatch.setattr(image_folder, "IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(mapped_array, "AT_ONCE", 1000)
    monkeypatch.setattr(examples, "CHUNK", 500)

    def opened(array):
        np.save(tmp_path / "x.npy", array)
        return np.load(tmp_path / "x.npy", mmap_mode="r")

    return opened


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_those_of_the_array(kind, mapped):
    plain, there = from_arrays(KINDS[kind], LABELS), from_arrays(mapped(KINDS[kind]), LABELS)
    assert isinstance(there.inputs, MappedArray)
    assert (plain.kind, plain.shape, plain.mean, plain.std) == (there.kind, there.shape, there.mean, there.std)
    assert plain.fingerprint() == there.fingerprint()
    rows = rng.permutation(50)[:33]
    some = [one.subset(rows).subset(np.arange(20)) for one in (plain, there)]
    assert some[0].fingerprint() == some[1].fingerprint()
    order = [3, 3, 19, 0, 7]
    for a, b in zip(*(batches(one, order, 2) for one in some), strict=True):
        assert a[0].equal(b[0])
        assert a[0].stride() == b[0].stride()
    assert there.inputs[-1].equal(plain.inputs[-1])


def test_a_run_has_the_same_bytes_and_the_file_is_not_read_whole(mapped, monkeypatch):
    x = KINDS["features"]
    how = {"method": "crust", "epochs": 4, "batch_size": 8, "validation": 0.2, "select_after": 1, "progress": False}
    plain = crust.fit("mlp", (x, LABELS), **how)
    largest = []
    true_gather = MappedArray.gather
    monkeypatch.setattr(MappedArray, "gather", lambda self, rows: largest.append(len(rows)) or true_gather(self, rows))
    there = crust.fit("mlp", (mapped(x), LABELS), eval_batch_size=16, **how)
    assert max(largest) <= max(16, 1000 // 28)
    seen = ["index", "given_label", "selection_rate", "mean_loss", "aum", "is_held_out"]  # by the network alone
    assert plain.audit()[seen].equals(there.audit()[seen])
    assert (plain.predict_proba(x) == there.predict_proba(x)).all()
    for name, value in plain.model.state_dict().items():
        assert value.equal(there.model.state_dict()[name])


def test_numbers_that_are_none_are_named_with_their_row(mapped):
    x = KINDS["features"].copy()
    x[47, 2] = np.nan
    for wrong in (x, np.where(np.isnan(x), 1e300, x.astype(np.float64))):
        with refused("not-finite") as caught:
            from_arrays(mapped(wrong), LABELS)
        assert "row 47" in str(caught.value)


def test_small_maps_and_images_of_whole_numbers_are_read(tmp_path, mapped):
    assert isinstance(from_arrays(mapped(KINDS["grey"].astype(np.int64)), LABELS).inputs, torch.Tensor)
    image_folder.IN_MEMORY_BYTES = 10**6  # put back by the fixture
    assert isinstance(from_arrays(mapped(KINDS["features"]), LABELS).inputs, torch.Tensor)
