"""What the networks share: checks of their sizes, and initial weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from torch import nn

from crust.errors import InputError

Network = TypeVar("Network", bound=nn.Module)


def image_channels(in_shape: Sequence[int], name: str) -> int:
    """The number of channels; vectors and tiny images are refused."""
    if len(in_shape) != 3:
        raise InputError(
            f"{name} needs images of shape (channels, height, width), but an example has shape {tuple(in_shape)}: "
            "use the model mlp"
        )
    if min(in_shape[1:]) < 8:
        raise InputError(f"{name} needs images of at least 8x8, but they are {in_shape[1]}x{in_shape[2]}: use mlp")
    return in_shape[0]


def count(value: Any, what: str) -> int:
    """A whole number of at least 1; anything else is refused."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 1:
        raise InputError(f"{what} has the value {value!r}: give a whole number of at least 1")
    return int(value)


def dropout_layers(share: Any) -> list[nn.Module]:
    """The dropout layer, where there is one."""
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise InputError(f"dropout has the value {share!r}: give a share of at least 0 and below 1")
    return [nn.Dropout(share)] if share else []


def initialise(model: Network) -> Network:
    """The initial weights of He et al. 2015: normal, with a variance of two over the number of inputs."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model
