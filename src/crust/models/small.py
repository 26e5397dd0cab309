"""Small networks for quick runs and for feature vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from crust.models.parts import count, dropout_layers, image_channels, initialise

__all__ = ["mlp", "small_cnn"]


def small_cnn(in_shape: Sequence[int], classes: int, *, width: int = 32, dropout: float = 0.0) -> nn.Module:
    """Three 3x3 convolutions with BatchNorm, each but the last halving the image: for 8x8 to 32x32 and quick runs.

    Args:
        in_shape: channels, height and width of an image.
        classes: the number of outputs.
        width: channels of the first convolution; the next have twice and four times as many.
        dropout: share of the features that is dropped before the last layer.

    Example:
        >>> import torch
        >>> small_cnn((1, 8, 8), 10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """
    layers: list[nn.Module] = []
    before = image_channels(in_shape, "small_cnn")
    for i, now in enumerate((count(width, "width"), 2 * width, 4 * width)):
        layers += [nn.Conv2d(before, now, 3, padding=1, bias=False), nn.BatchNorm2d(now), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(2)] if i < 2 else [nn.AdaptiveAvgPool2d(1)]
        before = now
    layers += [nn.Flatten(), *dropout_layers(dropout), nn.Linear(before, classes)]
    return initialise(nn.Sequential(*layers))


def mlp(
    in_shape: Sequence[int], classes: int, *, hidden: int | Sequence[int] = (256, 256), dropout: float = 0.0
) -> nn.Module:
    """Linear layers with ReLU between them, for feature vectors; images are flattened.

    Args:
        in_shape: the shape of an example, such as (64,).
        classes: the number of outputs.
        hidden: the sizes of the hidden layers; () makes it a linear classifier.
        dropout: share of each hidden layer that is dropped in training.

    Example:
        >>> mlp((4,), 3, hidden=[8])
        Sequential(
          (0): Flatten(start_dim=1, end_dim=-1)
          (1): Linear(in_features=4, out_features=8, bias=True)
          (2): ReLU()
          (3): Linear(in_features=8, out_features=3, bias=True)
        )
    """
    sizes = [count(size, "hidden") for size in (hidden if isinstance(hidden, (list, tuple)) else [hidden])]
    layers: list[nn.Module] = [nn.Flatten()]
    before = math.prod(in_shape)
    for size in sizes:
        layers += [nn.Linear(before, size), nn.ReLU(), *dropout_layers(dropout)]
        before = size
    layers.append(nn.Linear(before, classes))
    return initialise(nn.Sequential(*layers))
