"""What the networks share: checks of their sizes, and initial weights.

The ResNets for small images.

Small networks for quick runs and for feature vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from crust.errors import InputError

Network = TypeVar("Network", bound=nn.Module)


def image_channels(in_shape: Sequence[int], name: str) -> int:
    """The number of channels; vectors and tiny images are refused."""
    if len(in_shape) != 3:
        raise InputError(
            f"{name} needs images of shape (channels, height, width), but an example has shape {tuple(in_shape)}: "
            "use the model mlp",
            code="input-shape",
        )
    if min(in_shape[1:]) < 8:
        raise InputError(
            f"{name} needs images of at least 8x8, but they are {in_shape[1]}x{in_shape[2]}: use mlp",
            code="input-shape",
        )
    return in_shape[0]


def check_count(value: Any, what: str) -> int:
    """A whole number of at least 1; anything else is refused."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise InputError(f"{what} has the value {value!r}: give a whole number of at least 1", code="count-range")
    return int(value)


def dropout_layers(share: Any) -> list[nn.Module]:
    """The dropout layer, where there is one."""
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise InputError(
            f"dropout has the value {share!r}: give a share of at least 0 and below 1", code="dropout-range"
        )
    return [nn.Dropout(share)] if share else []


def initialise(model: Network) -> Network:
    """The initial weights of He et al. 2015: normal, with a variance of two over the number of inputs."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


class ResNet(nn.Module):
    """The ResNet for CIFAR of He et al. 2016, section 4.2: 6n + 2 layers in three stages of 16, 32 and 64 channels.

    Shortcuts have no parameters (option A): where the size changes, every second pixel is taken and the new channels
    are zero. Images of another size than 32x32 work as well: the last stage sees a quarter of their side.

    Args:
        in_shape: channels, height and width of an image.
        classes: the number of outputs.
        depth: the number of layers with weights: 8, 14, 20, 32, 44, 56, ...

    Reference:
        He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016.

    Example:
        >>> sum(p.numel() for p in ResNet((3, 32, 32), 10, depth=20).parameters())
        269722
    """

    def __init__(self, in_shape: Sequence[int], classes: int, depth: int):
        super().__init__()
        if depth < 8 or depth % 6 != 2:
            raise InputError(
                f"no ResNet has a depth of {depth}: use 6n + 2, such as 8, 14, 20 or 32", code="depth-range"
            )
        channels = image_channels(in_shape, f"resnet{depth}")
        self.conv = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        blocks = []
        before = 16
        for width in (16, 32, 64):
            for _ in range((depth - 2) // 6):
                blocks.append(_Block(before, width))
                before = width
        self.blocks = nn.Sequential(*blocks)
        self.linear = nn.Linear(64, classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a batch of images."""
        x = relu(self.norm(self.conv(x)), inplace=True)
        x = self.blocks(x)
        return self.linear(avg_pool2d(x, x.shape[-2:]).flatten(1))


class _Block(nn.Module):
    """Two 3x3 convolutions and the identity beside them."""

    def __init__(self, before: int, width: int):
        super().__init__()
        self.new = width - before
        self.conv1 = nn.Conv2d(before, width, 3, stride=2 if self.new else 1, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.new:
            # Pooling of single pixels is x[:, :, ::2, ::2]. The gradient of a slice would leave the channels-last
            # layout, and all that it is then added to takes several times as long.
            x = pad(avg_pool2d(x, 1, stride=2), (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))
        return relu(y.add_(x), inplace=True)


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
    for i, now in enumerate((check_count(width, "width"), 2 * width, 4 * width)):
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
    sizes = [check_count(size, "hidden") for size in (hidden if isinstance(hidden, (list, tuple)) else [hidden])]
    layers: list[nn.Module] = [nn.Flatten()]
    before = math.prod(in_shape)
    for size in sizes:
        layers += [nn.Linear(before, size), nn.ReLU(), *dropout_layers(dropout)]
        before = size
    layers.append(nn.Linear(before, classes))
    return initialise(nn.Sequential(*layers))
