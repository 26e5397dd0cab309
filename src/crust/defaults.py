"""What a run is trained with where the user does not say: by the kind and the size of the data.

Measured by `benchmarks/defaults.py`; docs/training.md has the table. Nothing here looks at the data itself, so that the
same question has the same answer wherever it is asked: `fit`, `CrustClassifier` and `crust train` all ask here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crust.errors import InputError
from crust.training.settings import TrainSettings

AUTO = "auto"
Form = Literal["images", "table", "text", "inputs"]
DECIDED = ("epochs", "batch_size", "optimizer", "learning_rate", "weight_decay", "schedule")  # what is chosen here

SMALL_SIDE = 24  # pixels: a ResNet halves them twice, and little would be left
LARGE_SIDE = 96  # beyond, a network that begins with a stride
NETWORKS = ((3_000, "small_cnn"), (15_000, "resnet8"), (40_000, "resnet14"))  # up to so many images; then resnet32
FEW_TEXTS = 3_000  # below, counted words tell more than a network learns of them
FEW_IMAGES = 5_000  # below, a network that has seen others knows more than one can learn from these
SGD_RATE = 0.02  # from here on a rate without an optimizer is one of SGD: Adam's are smaller


@dataclass(frozen=True)
class _Length:
    """Of a run, in updates, since a network learns by those, within bounds of epochs."""

    updates: int
    fewest: int
    most: int

    def epochs(self, n: int, batch_size: int) -> int:
        return min(self.most, max(self.fewest, math.ceil(self.updates / math.ceil(n / batch_size))))


LENGTHS: dict[Form, _Length] = {
    "images": _Length(6_000, 30, 60),
    "table": _Length(4_000, 10, 100),
    "text": _Length(200, 5, 30),
    "inputs": _Length(3_000, 10, 60),
}
BATCHES = ((300, 16), (2_000, 32), (10_000, 64))  # up to so many examples; then 128
RATE: dict[Form, float] = {"images": 0.001, "table": 0.003, "text": 0.001, "inputs": 0.001}  # of Adam and AdamW
SHORT, FASTEST = 1_000, 0.01  # in a run of fewer updates the rate is larger, up to this one
DECAY: dict[Form, float] = {"images": 0.05, "table": 0.6, "text": 0.01, "inputs": 0.01}  # of AdamW, times the rate
FINE_TUNING_EPOCHS, FINE_TUNING_RATE = 5, 5e-5  # of a pretrained network of transformers, as its users have it
FEW_ROWS, FEW_DECAY = 1_000, 2.0  # of a table: fewer are memorised sooner, wrong labels with them


@dataclass(frozen=True)
class Choice:
    """A network and settings: those given, and those that were chosen."""

    model: str | None  # None: a network of the user's own
    settings: dict[str, Any]  # only those that were not given
    sentence: str | None  # what was chosen, for people; None: nothing


def choose(
    kind: str,
    shape: Sequence[int],
    n: int,
    *,
    model: str | None = AUTO,
    given: Mapping[str, Any] | None = None,
    paper: bool = False,
) -> Choice:
    """Choose a network, and the settings of a run that are not given.

    Args:
        kind: of the examples: images, features, tokens, or dataset.
        shape: of one input; () where it is no tensor.
        n: how many examples there are, before any are held out.
        model: a name; "auto": choose one; None: the user has a network.
        given: the settings that the user gave: they stay, and what depends on them follows them.
        paper: a dataset of the paper: its network and its settings.

    Example:
        >>> choose("images", (3, 48, 48), 500).sentence
        'chosen for 500 images of 48x48: small_cnn, 60 epochs, adamw 0.001, cosine, batches of 32'
        >>> choose("features", (8,), 3000, given={"epochs": 5, "learning_rate": 0.05}).settings["optimizer"]
        'sgd'
    """
    given = dict(given or {})
    form = _form(kind, shape)
    if paper:
        network = _paper_network(shape) if model == AUTO else model
        found = {name: TrainSettings.model_fields[name].default for name in DECIDED if name not in given}
        words = "as in the paper: "
    else:
        network = _network(form, shape, n) if model == AUTO else model
        found = {name: value for name, value in _settings(form, n, network, given).items() if name not in given}
        words = f"chosen for {_size(form, shape, n)}: "
    said = [*([network] if model == AUTO and network else []), *_in_words(found, given)]
    return Choice(network, found, words + ", ".join(said) if said else None)


def advice(kind: str, shape: Sequence[int], n: int, model: str | None) -> str | None:
    """A line for those with few images or texts, for whom other features would tell more.

    Example:
        >>> advice("images", (3, 48, 48), 500, "small_cnn")[:62]
        '500 images are few: features of a pretrained network (timm:NAM'
        >>> advice("features", (8,), 500, "mlp") is None
        True
    """
    if kind == "tokens" and n < FEW_TEXTS and model is not None:
        return (
            f"{n:,} texts are few: TF-IDF features often tell more than a network that is trained on words from "
            'scratch; "Few texts" in docs/text.md says how'
        )
    colours = len(shape) == 3 and shape[0] == 3 and min(shape[1:]) >= SMALL_SIDE  # digits are no photographs
    if not colours or n >= FEW_IMAGES or model is None:
        return None
    return (
        f"{n:,} images are few: features of a pretrained network (timm:NAME) often tell more than one trained on them "
        'alone; "Few images" in docs/training.md says how'
    )


def _form(kind: str, shape: Sequence[int]) -> Form:
    if kind == "tokens":
        return "text"
    return "images" if len(shape) == 3 else "table" if kind == "features" or len(shape) == 1 else "inputs"


def _network(form: Form, shape: Sequence[int], n: int) -> str:
    if form == "images":
        side = min(shape[1:])
        if side > LARGE_SIDE:
            return "timm:resnet18"
        return "small_cnn" if side < SMALL_SIDE else next((name for most, name in NETWORKS if n < most), "resnet32")
    if form == "inputs" and not shape:
        raise InputError(
            "the inputs of the dataset are no tensors of one shape, so that no network can be chosen: give a model",
            code="model-not-chosen",
        )
    return "text" if form == "text" else "mlp"


def _paper_network(shape: Sequence[int]) -> str:
    return "resnet32" if min(shape[1:]) <= LARGE_SIDE else "timm:resnet18"


def _settings(form: Form, n: int, network: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    batch_size = given.get("batch_size") or next((size for most, size in BATCHES if n < most), 128)
    epochs = given.get("epochs") or LENGTHS[form].epochs(n, batch_size)
    optimizer, largest = given.get("optimizer"), 0.1 if form == "images" else SGD_RATE
    common = {"epochs": epochs, "batch_size": batch_size}
    if optimizer is None:
        of_sgd = given.get("learning_rate", 0) >= SGD_RATE or "momentum" in given or "nesterov" in given
        if not of_sgd and "learning_rate" not in given and (network or "").startswith("resnet"):
            return {**common, "optimizer": "sgd", "learning_rate": largest, "schedule": "cosine"}
        optimizer = "sgd" if of_sgd else "adamw"
    if optimizer == "adamw" and (network or "").startswith("hf:"):  # pretrained: little is to be changed
        tuned = {"epochs": FINE_TUNING_EPOCHS, "learning_rate": FINE_TUNING_RATE, "weight_decay": DECAY["text"]}
        return {**common, **tuned, "optimizer": "adamw", "schedule": "linear"}
    common["optimizer"] = optimizer
    if optimizer == "sgd":  # asked for: as it always was, but for a rate that networks without BatchNorm survive
        return {**common, "learning_rate": largest}
    falls = "lr_milestones" in given or "drop_factor" in given
    rate = RATE[form]
    if network is not None or form == "table":  # else it may be pretrained
        short = max(1.0, SHORT / (epochs * math.ceil(n / batch_size)))
        rate = round(min(FASTEST, rate * short), 4)
    found = {**common, "learning_rate": rate, "schedule": "milestones" if falls else "cosine"}
    decay = FEW_DECAY if form == "table" and n < FEW_ROWS else DECAY[form]
    return {**found, "weight_decay": decay} if optimizer == "adamw" else found


def _size(form: Form, shape: Sequence[int], n: int) -> str:
    if form == "images":
        return f"{n:,} images of {shape[1]}x{shape[2]}"
    if form == "table":
        return f"{n:,} rows of {math.prod(shape)} features"
    return f"{n:,} texts" if form == "text" else f"{n:,} examples"


def _in_words(found: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    words = [f"{found['epochs']} epochs"] if "epochs" in found else []
    rate = [f"{found['learning_rate']:g}"] if "learning_rate" in found else []
    steps = " ".join([*([found["optimizer"]] if "optimizer" in found else []), *rate])
    words += [steps] if steps else []
    words += [found["schedule"]] if "schedule" in found else []
    return [*words, f"batches of {found['batch_size']}"] if "batch_size" in found else words
