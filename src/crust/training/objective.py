"""What a step makes small, where the user has a say in it: functions in place of names, and what an example counts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crust._util.foreign import numbers_of, positional_count
from crust.errors import InputError
from crust.training.losses import cross_entropy, one_hot, soft_cross_entropy
from crust.training.method import Batch


@dataclass(frozen=True)
class Functions:
    """What the user gave as a function, where settings know names only."""

    optimizer: Callable[[nn.Module], torch.optim.Optimizer] | None = None
    schedule: Callable[..., float] | None = None
    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    logits: Callable[[Any], Tensor] | None = None

    def names(self) -> dict[str, str]:
        """What they are called, for the record of a run: one that goes on has to have the same."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: _name_of(value) for name, value in given.items() if value is not None}


def split_functions(settings: Mapping[str, Any]) -> tuple[Functions, dict[str, Any]]:
    """Those of the settings that are functions, and the others.

    Example:
        >>> functions, others = split_functions({"optimizer": lambda model: None, "schedule": "linear", "epochs": 3})
        >>> sorted(functions.names()), others
        (['optimizer'], {'schedule': 'linear', 'epochs': 3})
    """
    left, found = dict(settings), {}
    for name in ("loss", "logits"):
        value = left.pop(name, None)
        if value is not None and not callable(value):
            takes = "logits and targets" if name == "loss" else "what the model returns"
            raise InputError(f"{name} is a {type(value).__name__}: give a function of {takes}", code="not-a-function")
        found[name] = value
    for name, example in {
        "optimizer": "lambda model: torch.optim.AdamW(model.parameters(), lr=1e-3)",
        "schedule": "lambda step, steps: 1 - step / steps, or a name such as linear",
    }.items():
        value = left.get(name)
        if value is None or isinstance(value, str):
            continue
        if isinstance(value, type) or hasattr(value, "param_groups") or hasattr(value, "step") or not callable(value):
            what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
            raise InputError(
                f"{name} is {what}, but the run has a network and steps of its own: give a function, {example}",
                code="not-a-function",
            )
        found[name] = left.pop(name)
    return Functions(**found), left


def check_beside(functions: Functions, given: Mapping[str, Any]) -> None:
    """Settings that a function of the user's own has in hand itself."""
    own = ("learning_rate", "momentum", "nesterov", "weight_decay") if functions.optimizer is not None else ()
    held = [("optimizer", name) for name in own] + [("loss", "label_smoothing")] * (functions.loss is not None)
    held += [("schedule", name) for name in ("lr_milestones", "drop_factor") if functions.schedule is not None]
    for function, name in held:
        if name in given:
            raise InputError(
                f"{name} is an affair of the function given as {function}: set it there, and leave it out here",
                code="options-exclude",
            )


def _name_of(function: Any) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else " ".join(repr(function).split())[:200].split(" at 0x")[0]


def rate_of_function(schedule: Callable[..., float], step: int, steps: int) -> float:
    """What the highest rate is multiplied by: the user's function of the step, or of the step and how many there are.

    Example:
        >>> rate_of_function(lambda step, steps: 1 - step / steps, 5, 20), rate_of_function(lambda step: 2**-step, 2, 9)
        (0.75, 0.25)
    """
    try:
        found = schedule(step) if positional_count(schedule) == 1 else schedule(step, steps)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"the function given as schedule fails: {reason}", code="bad-schedule") from error
    try:
        factor = float(found)
    except (TypeError, ValueError):
        factor = float("nan")
    if not 0 <= factor < float("inf"):
        raise InputError(
            f"schedule gives {found!r:.100} at step {step} of {steps}: let it return what the highest rate is "
            "multiplied by, a number from 0 on",
            code="bad-schedule",
        )
    return factor


@dataclass
class Objective:
    """The loss of a batch: cross-entropy, or the user's own; smoothed, and weighed by class and by example.

    Example:
        >>> from crust.training.method import Batch
        >>> z, y = torch.zeros(2, 2), torch.tensor([0, 1])
        >>> batch = Batch(None, y, np.arange(2), np.arange(2))
        >>> loss = Objective(class_weight=np.array([1.0, 3.0]))(z, batch, 2)
        >>> round(float(loss / torch.log(torch.tensor(2.0))), 6)  # the mean of 1 and 3
        2.0
    """

    loss: Callable[[Tensor, Tensor], Tensor] | None = None  # one number an example
    smoothing: float = 0.0
    class_weight: NDArray[np.floating] | None = None
    example_weight: NDArray[np.floating] | None = None  # by position in the training set

    def __call__(self, logits: Tensor, batch: Batch, classes: int) -> Tensor:
        """The mean over the batch."""
        target, weight = self.target(batch, classes), self.weight(batch)
        if self.loss is None:
            if target is None:
                return cross_entropy(logits, batch.y, weight)
            return soft_cross_entropy(logits, target, weight)
        losses = each_loss(self.loss, logits, batch.y if target is None else target)
        return (losses if weight is None else losses * weight).mean()

    def target(self, batch: Batch, classes: int) -> Tensor | None:
        """Rows of shares, where the labels are no plain numbers."""
        if not self.smoothing:
            return batch.target
        rows = one_hot(batch.y, classes) if batch.target is None else batch.target
        return rows * (1 - self.smoothing) + self.smoothing / classes

    def weight(self, batch: Batch) -> Tensor | None:
        """What each example of a batch counts."""
        found = batch.weight
        for each in (
            None if self.class_weight is None else self._of_classes(batch),
            None if self.example_weight is None else _like(self.example_weight[batch.index], batch.y),
        ):
            if each is not None:
                found = each if found is None else found * each
        return found

    def _of_classes(self, batch: Batch) -> Tensor:
        weights = _like(self.class_weight, batch.y)
        return weights[batch.y] if batch.target is None else batch.target @ weights


def _like(values: Any, y: Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float32, device=y.device)


def each_loss(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor) -> Tensor:
    """The losses of a batch by the user's function, one an example."""
    try:
        found = loss(logits, target)
    except Exception as error:
        mixed = " of labels that are rows of shares (leave mixing out with mixup none)" * target.is_floating_point()
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"the function given as loss fails{mixed}: {reason}", code="bad-loss") from error
    if not isinstance(found, Tensor) or found.shape != (len(logits),):
        what = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        raise InputError(
            f"the function given as loss returns {what} for {len(logits)} examples: let it return one number an "
            "example, as losses of torch do with reduction='none'",
            code="loss-shape",
        )
    return found


def make_objective(
    functions: Functions,
    settings: Any,
    labels: NDArray[np.int64],
    classes: int,
    example_weight: NDArray[np.floating] | None = None,
    *,
    device: torch.device | str = "cpu",
) -> Objective:
    """The objective of a run: what the settings and functions say, for these training labels."""
    loss: Any = functions.loss
    if isinstance(loss, nn.Module) and hasattr(loss, "reduction"):  # of torch: they know how
        loss = copy.deepcopy(loss)
        loss.reduction = "none"
    if isinstance(loss, nn.Module):
        loss = loss.to(device)
    if loss is not None:
        y = torch.from_numpy(np.unique(labels)[:2])
        each_loss(
            loss, torch.zeros(len(y), classes, device=device), y.to(device)
        )  # refused now rather than after an epoch
    weights: NDArray[np.floating] | None = None
    if settings.class_weight == "balanced":
        counts = np.bincount(labels, minlength=classes)
        weights = len(labels) / (np.maximum(counts, 1) * max(1, (counts > 0).sum()))
    elif settings.class_weight is not None:
        if len(settings.class_weight) != classes:
            raise InputError(
                f"class_weight has {len(settings.class_weight)} numbers for {classes} classes: give one a class, in "
                "their order, or balanced",
                code="class-weight",
            )
        weights = np.array(settings.class_weight)
    return Objective(loss, settings.label_smoothing, weights, example_weight)


def checked_weights(values: Any, n: int) -> NDArray[np.float64]:
    """What each of n examples counts: numbers from 0 on, not all of them 0."""
    found = numbers_of(values, "sample_weight")
    if found.shape != (n,):
        raise InputError(
            f"sample_weight has shape {found.shape} for {n} examples: give one number an example", code="weight-shape"
        )
    found = found.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise InputError(
            "sample_weight holds numbers below 0, none above it, or no numbers: correct it", code="weight-range"
        )
    return found


def check_takes_loss(objective: Objective, takes: bool, method: str) -> None:
    """Methods whose loss is the very thing that they are have no place for another one."""
    given = {
        "loss": objective.loss is not None,
        "label_smoothing": objective.smoothing > 0,
        "class_weight": objective.class_weight is not None,
        "sample_weight": objective.example_weight is not None,
    }
    first = next((name for name, there in given.items() if there), None)
    if first is not None and not takes:
        raise InputError(
            f"{method} has a loss of its own: leave {first} out, or use a method such as crust or erm", code="own-loss"
        )
