"""Map-style datasets from Python and where their labels come from."""

import numpy as np
import pytest
import torch
from tests.refusals import refused
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from crust.data import from_dataset
from crust.errors import InputError


class Labelled(Dataset):
    def __init__(self, labels, targets=None, classes=None):
        self.labels, self.read = labels, 0
        if targets is not None:
            self.targets = targets
        if classes is not None:
            self.classes = classes

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        self.read += 1
        return torch.zeros(2), self.labels[i]


def test_targets_are_taken_where_items_agree():
    labels = [i % 3 for i in range(1000)]
    dataset = Labelled(labels, targets=torch.tensor(labels), classes=["a", "b", "c"])
    examples = from_dataset(dataset)
    assert examples.labels.tolist() == labels
    assert examples.classes == ["a", "b", "c"]
    assert dataset.read < 50


def test_items_are_read_where_targets_do_not_agree():
    labels = [(i + 1) % 3 for i in range(40)]
    for targets in ([i % 3 for i in range(40)], [0, 1], np.eye(40).tolist()):
        assert from_dataset(Labelled(labels, targets=targets)).labels.tolist() == labels


@pytest.mark.parametrize("kind", [int, np.int64, torch.tensor, str, np.float32])
def test_labels_of_any_kind(kind):
    assert from_dataset(Labelled([kind(i % 2) for i in range(6)])).labels.tolist() == [0, 1] * 3


def test_labels_given_separately_go_before_all():
    dataset = Labelled([0, 1, 0, 1], targets=[0, 1, 0, 1], classes=["a", "b"])
    assert from_dataset(dataset, labels=["b", "b", "a", "a"]).labels.tolist() == [1, 1, 0, 0]
    assert dataset.read == 0
    bare = [torch.zeros(2)] * 3
    assert from_dataset(bare, labels=[7, 8, 7]).classes == [7, 8]


def test_rows_of_a_subset():
    inner = Labelled([0, 1, 2, 0, 1, 2], targets=[0, 1, 2, 0, 1, 2], classes=["a", "b", "c"])
    examples = from_dataset(Subset(Subset(inner, [5, 4, 3, 2]), [3, 1]))
    assert examples.labels.tolist() == [2, 1]
    assert examples.classes == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("dataset", "labels", "words"),
    [
        ([torch.zeros(2)] * 3, None, "item 0 of the dataset is not a pair"),
        (Labelled([0, 1]), [0], "1 labels for 2 examples"),
        (Labelled([]), None, "empty"),
        (Labelled([1, 1]), None, "two classes"),
        (TensorDataset(torch.zeros(3, 2)), None, "not a pair"),
        ([{"text": "a", "label": 0}] * 2, None, r"'text', 'label' by name.*: give a pair of two columns"),
    ],
)
def test_datasets_that_cannot_be_used(dataset, labels, words):
    with pytest.raises(InputError, match=words):
        from_dataset(dataset, labels)


def test_a_stream_is_no_map_style_dataset():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([])

    with refused("not-a-dataset"):
        from_dataset(Stream())
