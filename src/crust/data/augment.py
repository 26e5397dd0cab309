"""The augmentation of He et al. (2016) for small images, a whole batch at a time on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["crop_flip"]


def crop_flip(
    images: torch.Tensor, generator: torch.Generator, *, padding: int = 4, mirror: bool = True
) -> torch.Tensor:
    """Pad with black, crop at random to the old size, mirror half of the images: each image by itself.

    Black is 0 *before* normalisation, as in the usual pipeline of RandomCrop(32, padding=4), RandomHorizontalFlip,
    ToTensor, Normalize: so give raw pixels. All random numbers come from the generator, on the CPU, so that every
    device makes the same crops.

    Args:
        images: (n, channels, height, width), of any type.
        generator: a CPU generator.
        padding: pixels on each side.
        mirror: whether left and right may change places.

    Returns:
        The images, new, of the same shape and type, in channels-last memory.

    References:
        He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016, section 4.2.

    Example:
        >>> import torch
        >>> images = torch.arange(2 * 3 * 8 * 8, dtype=torch.uint8).reshape(2, 3, 8, 8)
        >>> crop_flip(images, torch.Generator().manual_seed(0), padding=1).shape
        torch.Size([2, 3, 8, 8])
    """
    import torch
    import torch.nn.functional

    n, channels, height, width = images.shape
    device = images.device
    offsets = torch.randint(0, 2 * padding + 1, (n, 2), generator=generator).to(device)
    columns = torch.arange(width, device=device).expand(n, width)
    if mirror:
        mirrored = (torch.rand(n, generator=generator) < 0.5).to(device)
        columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    rows = offsets[:, 0, None] + torch.arange(height, device=device)
    columns = offsets[:, 1, None] + columns
    # Channels last, so that a pixel is one row of a table and all of them are fetched by one list of positions.
    padded = torch.nn.functional.pad(images.permute(0, 2, 3, 1), (0, 0, padding, padding, padding, padding))
    which = torch.arange(n, device=device)[:, None, None]
    positions = (which * padded.shape[1] + rows[:, :, None]) * padded.shape[2] + columns[:, None, :]
    pixels = padded.reshape(-1, channels).index_select(0, positions.flatten())
    return pixels.view(n, height, width, channels).permute(0, 3, 1, 2)
