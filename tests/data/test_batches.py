"""Batches: the right rows, normalised as torchvision does it, and the same for any number of workers."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from crust.data import Examples, batches, from_arrays, from_dataset
from crust.data.batches import crop_flip
from crust.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
LABELS = np.arange(20) % 3


class Plain:
    """A map-style dataset that is no torch class; draws from all three global generators."""

    def __init__(self, n=20, noise=False):
        self.n, self.noise = n, noise

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not isinstance(i, int):
            raise TypeError
        x = torch.full((3,), float(i))
        if self.noise:
            x = torch.stack([torch.rand(()), torch.tensor(random.random()), torch.tensor(np.random.rand())])  # noqa: NPY002
        return x, i % 3


def collected(found):
    pairs = list(found)
    return torch.cat([x for x, _ in pairs]), np.concatenate([rows for _, rows in pairs])


def test_images_are_normalised_as_torchvision_does_it():
    from torchvision import transforms

    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    examples = from_arrays(IMAGES, LABELS, mean=mean, std=std)
    pipeline = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
    expected = torch.stack([pipeline(image) for image in IMAGES])
    x, rows = collected(batches(examples, batch_size=7))
    np.testing.assert_array_equal(rows, np.arange(20))
    assert torch.equal(x, expected)


def test_any_order_with_repeats():
    examples = from_arrays(IMAGES, LABELS)
    whole, _ = collected(batches(examples))
    order = [3, 3, 19, 0, 7]
    found = list(batches(examples, order, 2))
    assert [rows.tolist() for _, rows in found] == [[3, 3], [19, 0], [7]]
    assert torch.equal(torch.cat([x for x, _ in found]), whole[order])
    assert list(batches(examples, [], 2)) == []


@pytest.mark.parametrize("channels_last", [True, False])
def test_the_layout(channels_last):
    x, _ = next(batches(from_arrays(IMAGES, LABELS), channels_last=channels_last))
    assert x.is_contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def test_augmented_images_are_crops_of_the_raw_ones():
    examples = from_arrays(IMAGES, LABELS)
    x, _ = collected(batches(examples, None, 20, augment=True, generator=torch.Generator().manual_seed(5)))
    raw = crop_flip(examples.inputs, torch.Generator().manual_seed(5), padding=1)
    again = Examples(raw, examples.labels, examples.classes, "images", examples.mean, examples.std)
    assert torch.equal(x, collected(batches(again))[0])


def test_digits_are_not_mirrored():
    left = np.zeros((50, 8, 8), np.uint8)
    left[:, :, 2] = 255
    examples = from_arrays(left, np.arange(50) % 2, normalise=False)
    examples.mirror = False
    x, _ = collected(batches(examples, None, 50, augment=True, generator=torch.Generator().manual_seed(0)))
    assert x.sum(dim=(0, 1, 2)).nonzero().flatten().tolist() == [1, 2, 3]


def test_nothing_in_the_examples_changes():
    for inputs in (IMAGES, IMAGES.astype(np.float32), IMAGES.reshape(20, -1)):
        examples = from_arrays(inputs, LABELS)
        before = examples.inputs.clone()
        for x, _ in batches(examples, None, 20):
            x.zero_()
        assert torch.equal(examples.inputs, before)


def test_features_are_standardised_and_stay_under_augmentation():
    features = np.random.default_rng(1).normal(5, 3, (100, 4))
    features[:, 3] = 7  # nothing varies
    examples = from_arrays(features, np.arange(100) % 2)
    x, _ = collected(batches(examples, augment=True))
    np.testing.assert_allclose(x.mean(dim=0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(dim=0, correction=0), [1, 1, 1, 0], atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_number_of_workers_changes_nothing():
    examples = from_dataset(Plain(noise=True))
    order = np.random.default_rng(0).permutation(20)

    def run(workers, seed):
        return collected(batches(examples, order, 6, generator=torch.Generator().manual_seed(seed), workers=workers))

    alone, rows = run(0, seed=1)
    np.testing.assert_array_equal(rows, order)
    assert torch.equal(run(2, seed=1)[0], alone)
    assert not torch.equal(run(0, seed=2)[0], alone)


def test_no_random_number_outside_is_used_up():
    examples = from_dataset(Plain(noise=True))
    random.seed(0), np.random.seed(0), torch.manual_seed(0)  # noqa: NPY002
    expected = random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002
    random.seed(0), np.random.seed(0), torch.manual_seed(0)  # noqa: NPY002
    first, _ = collected(batches(examples, None, 6))
    second, _ = collected(batches(examples, None, 6))
    assert examples.shape == (3,)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected  # noqa: NPY002
    assert torch.equal(first, second)  # a pass without a generator repeats itself


def test_rows_of_a_dataset():
    examples = from_dataset(Plain()).subset([5, 9, 2])
    x, rows = collected(batches(examples, [2, 0]))
    assert x[:, 0].tolist() == [2, 5]
    assert rows.tolist() == [2, 0]


class Nested:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {"ids": torch.tensor([i, i]), "mask": [torch.ones(1), torch.zeros(1, dtype=torch.float64)]}, i % 2


def test_inputs_that_are_no_tensor():
    x, _ = next(batches(from_dataset(Nested()), [2, 3]))
    assert x["ids"].tolist() == [[2, 2], [3, 3]]
    assert x["mask"][0].shape == (2, 1)


class Fails:
    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if self.what == "picture":
            from PIL import Image

            return Image.new("RGB", (4, 4)), i % 2
        if self.what == "sentence" and i == 3:
            raise InputError("picture.jpg is broken: repair it")
        return torch.zeros(3 + (i == 2)), i % 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("picture", "item 0 of the dataset is a Image: give the dataset a transform"),
        ("shapes", r"items 0 and 2 of the dataset have different shapes, \(3,\) and \(4,\)"),
        ("sentence", r"^picture.jpg is broken: repair it$"),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_items_that_cannot_be_used(what, words, workers):
    examples = from_dataset(Fails(what), labels=[0, 1, 0, 1])
    order = [3] if what == "sentence" else None
    with pytest.raises(InputError, match=words):
        list(batches(examples, order, workers=workers))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": [20]}, "does not fit 20 examples"),
        ({"order": [-1]}, "does not fit"),
        ({"batch_size": 0}, "batch size"),
        ({"augment": True}, "generator"),
    ],
)
def test_impossible_batches_are_refused_at_once(options, words):
    with pytest.raises(InputError, match=words):
        batches(from_arrays(IMAGES, LABELS), **options)


def test_tensors_of_a_tensor_dataset_are_taken_as_they_are():
    x, y = torch.rand(6, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    examples = from_dataset(TensorDataset(x, y))
    assert examples.kind == "features"
    found, _ = collected(batches(examples))
    assert torch.equal(found, x.float())
    images = from_dataset(TensorDataset(torch.rand(6, 4, 7, 7), y))
    assert (images.kind, images.shape, images.mean) == ("images", (4, 7, 7), None)
