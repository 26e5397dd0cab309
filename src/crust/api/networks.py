"""The networks of a method: the user's own, or those that a name or a function makes."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn

from crust.data import Examples
from crust.errors import InputError
from crust.models import build_model
from crust.training import randomness
from crust.training.settings import TrainSettings


def maker(
    model: nn.Module | str | Callable[[], nn.Module], examples: Examples, settings: TrainSettings
) -> Callable[[int], nn.Module]:
    """A function that makes network number i: the given one first, others with weights of their own."""
    classes = len(examples.classes)
    pixels = settings.channels_last and examples.kind == "images"
    layout = torch.channels_last if pixels else torch.preserve_format

    def fresh(i: int) -> nn.Module:
        if isinstance(model, str):
            network = build_model(model, in_shape=examples.shape, classes=classes, seed=settings.seed * 1000 + i)
            return network.to(memory_format=layout)
        with randomness.seeded(settings.seed, "weights", i):
            if not isinstance(model, nn.Module):
                network = model()
                if not isinstance(network, nn.Module):
                    raise InputError(
                        f"the function given as model makes a {type(network).__name__}: let it make a network"
                    )
                return network.to(memory_format=layout)
            network = copy.deepcopy(model)
            if i:
                for module in network.modules():
                    reset = getattr(module, "reset_parameters", None)
                    if callable(reset):
                        reset()
        return network.to(memory_format=layout)

    return fresh
