"""The data of a recipe, with the labels it is trained on: for training, and for whatever opens a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crust.errors import InputError

if TYPE_CHECKING:
    from crust.data import Bundle, Examples
    from crust.noise import RealisedNoise


def load_data(options: dict[str, Any]) -> Bundle:
    """The data that a recipe names."""
    from crust.data import load

    names = ("data_dir", "label_column", "image_size", "skip_broken", "limit", "test")
    return load(options["data"], **{name: options[name] for name in names if options.get(name) is not None})


def with_labels(bundle: Bundle, options: dict[str, Any], seed: int) -> tuple[Examples, Any, RealisedNoise | None]:
    """The examples with the labels to train on, the true labels where they are known, and the noise that was made."""
    from crust.data import read_labels

    examples = bundle.train
    if options.get("noise") is not None:
        noise = _noise(bundle, str(options["noise"]), seed)
        return examples.with_labels(noise.labels), examples.labels, noise
    found = {}
    for name in ("labels", "true_labels"):
        if options.get(name) is not None:
            found[name] = read_labels(options[name], bundle.total, examples.classes, bundle.rows, examples.ids)
    if "labels" in found:
        examples = examples.with_labels(found["labels"])
    return examples, found.get("true_labels"), None


def _noise(bundle: Bundle, text: str, seed: int) -> RealisedNoise:
    from crust.noise import parse_noise, realise

    examples, features = bundle.train, None
    if parse_noise(text).name == "instance":
        if examples.kind == "dataset":
            raise InputError("instance noise needs the examples in memory: use another noise, or a --limit")
        features = examples.inputs.numpy()
        if features.dtype.kind == "u":
            features = features / 255.0
    return realise(
        examples.labels, text, len(examples.classes), seed, features=features, superclasses=bundle.superclasses
    )
