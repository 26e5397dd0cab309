"""Pad, crop and mirror, against one image at a time and against torchvision."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crust.data.batches import crop_flip


def slowly(images, generator, padding, mirror):
    """One image at a time, from the same random numbers."""
    n, channels, height, width = images.shape
    offsets = torch.randint(0, 2 * padding + 1, (n, 2), generator=generator)
    flips = torch.rand(n, generator=generator) < 0.5 if mirror else torch.zeros(n, dtype=torch.bool)
    found = []
    for image, (top, left), flip in zip(images, offsets.tolist(), flips.tolist(), strict=True):
        padded = torch.zeros(channels, height + 2 * padding, width + 2 * padding, dtype=images.dtype)
        padded[:, padding : padding + height, padding : padding + width] = image
        crop = padded[:, top : top + height, left : left + width]
        found.append(crop.flip(-1) if flip else crop)
    return torch.stack(found) if found else images


@given(
    n=st.integers(0, 6),
    channels=st.sampled_from([1, 3, 4]),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    padding=st.integers(0, 5),
    mirror=st.booleans(),
    dtype=st.sampled_from([torch.uint8, torch.float32]),
    channels_last=st.booleans(),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None)
def test_a_batch_is_its_images_one_by_one(n, channels, height, width, padding, mirror, dtype, channels_last, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(1, 256, (n, channels, height, width), generator=generator).to(dtype)
    given_images = images.to(memory_format=torch.channels_last) if channels_last else images
    found = crop_flip(given_images, torch.Generator().manual_seed(seed), padding=padding, mirror=mirror)
    expected = slowly(images, torch.Generator().manual_seed(seed), padding, mirror)
    assert found.dtype == dtype
    assert torch.equal(found, expected)


def test_each_image_has_an_offset_of_its_own_and_all_occur():
    image = torch.arange(1, 1 + 32 * 32, dtype=torch.float32).reshape(1, 1, 32, 32)
    found = crop_flip(image.expand(4000, 1, 32, 32), torch.Generator().manual_seed(0))
    centre = found[:, 0, 16, 16]  # names the offset and whether it was mirrored
    values, counts = centre.unique(return_counts=True)
    assert len(values) == 9 * 10  # offsets 0…8 from the left, or mirrored, share all columns but one
    corner = (found[:, 0] > 0).sum(dim=(1, 2)).unique()
    assert corner.min() == 28 * 28
    assert corner.max() == 32 * 32
    assert counts.min() > 4000 / 162 * 0.3


def test_black_is_zero_before_normalisation_as_in_torchvision():
    from torchvision.transforms import v2

    image = torch.full((3, 32, 32), 255, dtype=torch.uint8)
    torch.manual_seed(3)
    theirs = v2.RandomCrop(32, padding=4)(image)
    assert set(theirs.unique().tolist()) <= {0, 255}
    ours = crop_flip(image[None], torch.Generator().manual_seed(3))[0]
    assert set(ours.unique().tolist()) <= {0, 255}


def test_the_generator_is_the_only_source():
    images = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    before = torch.get_rng_state()
    generator = torch.Generator().manual_seed(0)
    state = generator.get_state()
    crop_flip(images, generator)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(generator.get_state(), state)


def test_the_images_stay_as_they_were():
    images = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    copy = images.clone()
    crop_flip(images, torch.Generator().manual_seed(0), padding=0, mirror=False).zero_()
    assert torch.equal(images, copy)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_result_lies_pixel_by_pixel(channels):
    images = torch.zeros(2, channels, 8, 8)
    found = crop_flip(images, torch.Generator().manual_seed(0))
    assert found.is_contiguous(memory_format=torch.channels_last)
