"""Any network of timm, and how it wants its images."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from torch import nn

from crust.errors import InputError, choices
from crust.models.networks import image_channels

TIMM = "timm:"


def timm_model(
    name: str, in_shape: Sequence[int], classes: int, *, pretrained: bool = False, **settings: Any
) -> nn.Module:
    """Build a network of timm for images of a shape; its published weights only where they are asked for."""
    import timm

    channels = image_channels(in_shape, TIMM + name)
    config = None if ":" in name else timm_config(name)
    # Transformers with a table of positions must know the size of the images; others take any.
    if config is not None and config.fixed_input_size and tuple(in_shape[1:]) != tuple(config.input_size[1:]):
        settings = {"img_size": tuple(in_shape[1:]), **settings}
    try:
        return timm.create_model(name, pretrained=pretrained, num_classes=classes, in_chans=channels, **settings)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if pretrained or ":" in name:
            raise InputError(
                f"{TIMM}{name} could not be loaded with its weights ({reason}): "
                "check the connection, or start from random weights with pretrained=False"
            ) from error
        raise InputError(f"{TIMM}{name} could not be built for images of shape {in_shape}: {reason}") from error


def timm_config(name: str) -> Any:
    """timm's record of a network: the size of its images, their mean and so on."""
    import timm
    from timm.models import PretrainedCfg

    if ":" in name:
        raise InputError(f"the preprocessing of {TIMM}{name} comes with its weights: build it, and ask the network")
    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        nearest = difflib.get_close_matches(architecture, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "timm.list_models() shows all"
        raise InputError(f"timm has no model {architecture!r}: {hint}")
    if tag:
        weights = timm.list_pretrained(f"{architecture}.*")
        choices(tag, [full.partition(".")[2] for full in weights], f"weights of {architecture}")
    return timm.get_pretrained_cfg(name) or PretrainedCfg(input_size=(3, 224, 224))
