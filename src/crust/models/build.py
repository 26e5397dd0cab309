"""`build_model`: a network by its name, ours or any of timm."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from crust.errors import InputError, choices, require
from crust.models.networks import ResNet, check_count, image_channels, mlp, small_cnn
from crust.models.text_network import TextNetwork

# Every network by its name; a builder takes the shape of an example, the number of outputs and its own settings.
MODELS: dict[str, Callable[..., nn.Module]] = {
    **{f"resnet{depth}": partial(ResNet, depth=depth) for depth in (8, 14, 20, 32, 44, 56)},
    "small_cnn": small_cnn,
    "mlp": mlp,
    "text": TextNetwork,
}


def build_model(name: str, *, in_shape: Sequence[int], classes: int, seed: int = 0, **settings: Any) -> nn.Module:
    """Build a network by name, with weights that depend on the seed alone.

    Args:
        name: one of `MODELS`, `timm:NAME` for any network of timm, or `hf:NAME` (or `hf:FOLDER`) for a pretrained one
            of transformers.
        in_shape: the shape of one example: (channels, height, width) for images, (d,) for vectors; for token ids how
            many there are.
        classes: the number of outputs; 1 for a scalar output.
        seed: where the random weights come from; the random state of the program stays as it is.
        **settings: those of the network: `hidden` and `dropout` for mlp, `width` and `dropout` for small_cnn, `dim`,
            `hidden`, `dropout` and `token_dropout` for text, `pretrained` and everything that `timm.create_model`
            takes for timm.

    Returns:
        The network, on the CPU, in train mode.

    Example:
        >>> model = build_model("resnet8", in_shape=(1, 8, 8), classes=10, seed=1)
        >>> model(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
        >>> build_model("resnet", in_shape=(1, 8, 8), classes=10)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown model 'resnet': use one of resnet8, ..., text, timm:NAME, hf:NAME...
    """
    shape = tuple(check_count(size, "in_shape") for size in in_shape)
    check_count(classes, "classes")
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= int(seed) < 2**63:
        raise InputError(f"seed has the value {seed!r}: give a whole number of at least 0", code="seed-range")
    if isinstance(name, str) and name.startswith(TIMM) and name != TIMM:
        builder: Callable[..., nn.Module] = partial(timm_model, name.removeprefix(TIMM))
    elif isinstance(name, str) and name.startswith(HF) and name != HF:
        builder = partial(hf_model, name.removeprefix(HF))
    else:
        builder = MODELS[choices(name, [*MODELS, "timm:NAME", "hf:NAME"], "model")]
        known = settings_of(name)
        for setting in settings:
            if not known:
                raise InputError(
                    f"{name} has no settings, but {setting!r} is given: leave it out", code="unknown-setting"
                )
            choices(setting, known, f"setting of {name}")
    # The generator of the CPU alone: torch.manual_seed would also seed every GPU.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.random.default_generator.manual_seed(int(seed))
        return builder(shape, classes, **settings).train()


def settings_of(name: str) -> dict[str, Any]:
    """The settings of one of `MODELS` and their defaults.

    Example:
        >>> settings_of("mlp")
        {'hidden': (256, 256), 'dropout': 0.0}
        >>> settings_of("resnet32")
        {}
    """
    builder = MODELS[choices(name, MODELS, "model")]
    fixed = builder.keywords if isinstance(builder, partial) else {}
    parameters = inspect.signature(builder).parameters.values()
    return {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY and p.name not in fixed}


TIMM, HF = "timm:", "hf:"


def timm_model(
    name: str, in_shape: Sequence[int], classes: int, *, pretrained: bool = False, **settings: Any
) -> nn.Module:
    """Build a network of timm for images of a shape; its published weights only where they are asked for."""
    timm = require("timm", extra="vision")
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
                "check the connection, or start from random weights with pretrained=False",
                code="download",
            ) from error
        raise InputError(
            f"{TIMM}{name} could not be built for images of shape {in_shape}: {reason}", code="bad-model"
        ) from error


def hf_model(name: str, in_shape: Sequence[int], classes: int) -> nn.Module:
    """A pretrained network of transformers with a new last layer: for images, or else for texts."""
    transformers = require("transformers", extra="transformers")
    kind = transformers.AutoModelForImageClassification if len(in_shape) == 3 else None
    kind = kind or transformers.AutoModelForSequenceClassification
    try:
        return kind.from_pretrained(name, num_labels=classes, ignore_mismatched_sizes=True)  # type: ignore[no-any-return]
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(
            f"{HF}{name} could not be loaded ({reason}): check the name and the connection, or name a folder",
            code="download",
        ) from error


def model_name(name: str) -> str:
    """The name of a network; a folder that transformers has written is named as one.

    Example:
        >>> model_name("mlp"), model_name("hf:prajjwal1/bert-tiny")
        ('mlp', 'hf:prajjwal1/bert-tiny')
    """
    bare = name.removeprefix(HF)
    return f"{HF}{Path(bare).resolve()}" if name not in MODELS and Path(bare, "config.json").is_file() else name


def timm_config(name: str) -> Any:
    """timm's record of a network: the size of its images, their mean and so on."""
    timm = require("timm", extra="vision")
    from timm.models import PretrainedCfg

    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        nearest = difflib.get_close_matches(architecture, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else "timm.list_models() shows all"
        raise InputError(f"timm has no model {architecture!r}: {hint}", code="unknown-model")
    if tag:
        weights = timm.list_pretrained(f"{architecture}.*")
        choices(tag, [full.partition(".")[2] for full in weights], f"weights of {architecture}")
    return timm.get_pretrained_cfg(name) or PretrainedCfg(input_size=(3, 224, 224))
