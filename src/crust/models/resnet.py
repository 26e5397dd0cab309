"""The ResNets for small images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from crust.errors import InputError
from crust.models.parts import image_channels, initialise

__all__ = ["ResNet"]


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
            raise InputError(f"no ResNet has a depth of {depth}: use 6n + 2, such as 8, 14, 20 or 32")
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
