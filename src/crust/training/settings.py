"""How to train, whatever the method: the experiment's settings."""

from __future__ import annotations

import difflib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from crust.errors import InputError
from crust.training.learning_rate import Schedule, schedule_factor

# Names in other tools, and ours.
SYNONYMS = {
    "lr": "learning_rate", "num_workers": "workers", "max_grad_norm": "clip_norm", "scheduler": "schedule",
    "lr_scheduler": "schedule", "num_epochs": "epochs", "num_train_epochs": "epochs", "max_epochs": "epochs",
    "n_epochs": "epochs", "wd": "weight_decay", "bs": "batch_size", "optim": "optimizer", "coreset": "fraction",
    "share": "fraction", "amp": "mixed_precision", "fp16": "mixed_precision", "bf16": "mixed_precision",
    "gpu": "device", "cuda": "device", "random_state": "seed", "gradient_accumulation_steps": "accumulate",
    "accumulate_grad_batches": "accumulate", "label_smoothing_factor": "label_smoothing",
    "class_weights": "class_weight", "early_stopping": "patience", "early_stopping_patience": "patience",
    "lr_scheduler_type": "schedule", "per_device_train_batch_size": "batch_size",
    "per_device_eval_batch_size": "eval_batch_size", "val_batch_size": "eval_batch_size",
    "gradient_clip_val": "clip_norm", "precision": "mixed_precision", "train_batch_size": "batch_size",
    "ddp_find_unused_parameters": "find_unused_parameters", "warmup_epochs": "select_after",
}  # fmt: skip
# And of arguments of `crust.fit`, which are no settings.
ARGUMENTS = {
    "criterion": "loss", "loss_fn": "loss", "compute_loss_func": "loss", "data_collator": "collate_fn",
    "collator": "collate_fn", "callbacks": "on_epoch_end", "log_with": "trackers", "report_to": "trackers",
    "output_dir": "run_dir", "eval_dataset": "val_set", "eval_set": "val_set", "val_dataset": "val_set",
    "validation_split": "validation", "validation_data": "val_set", "test_dataset": "test_set",
    "resume_from_checkpoint": "resume", "verbose": "progress",
}  # fmt: skip


class TrainSettings(BaseModel):
    """Network-independent settings of a run; the paper's for CIFAR are the defaults.

    Example:
        >>> TrainSettings(epochs=40).rate_at(30, 40)
        0.010000000000000002
        >>> TrainSettings(schedule="linear").rate_at(2, 4, 0.5)  # in the middle of the third epoch of four
        0.037500000000000006
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(120, ge=1, le=1_000_000, description="passes over the training set")
    batch_size: int = Field(128, ge=1, description="examples in a step")
    optimizer: Literal["sgd", "adam", "adamw"] = Field("sgd", description="who turns gradients into steps")
    learning_rate: float = Field(0.1, gt=0, description="the highest rate of the run")
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    nesterov: bool = Field(False, description="momentum that looks ahead, for sgd")
    weight_decay: float = Field(5e-4, ge=0, description="how much weights shrink in a step, times the rate")
    schedule: Schedule = Field(
        "milestones", description="how the rate falls; all but milestones set it anew at every step"
    )
    warmup_steps: int = Field(
        0, ge=0, description="steps at the beginning of a stage in which the rate rises in equal parts"
    )
    lr_milestones: tuple[float, ...] = Field(
        (2 / 3, 5 / 6), description="where the rate falls, as shares of the epochs"
    )
    drop_factor: float = Field(0.1, gt=0, le=1, description="what the rate is multiplied by at a milestone")
    clip_norm: float | None = Field(None, gt=0, description="largest norm of a step's gradient")
    accumulate: int = Field(1, ge=1, description="batches whose gradients make one step together")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of a label that is spread over all classes")
    class_weight: Literal["balanced"] | tuple[float, ...] | None = Field(
        None, description="what examples count by their given label: balanced (rare ones more), or a number a class"
    )
    patience: int | None = Field(
        None, ge=1, description="end a stage after so many epochs without a better model; null: go to its end"
    )
    ema: float | None = Field(
        None, gt=0, lt=1, description="share of the averaged weights that a step leaves; null: no averaging"
    )
    seed: int = Field(0, ge=0, description="of weights, order and every draw: the same seed, the same run")
    workers: int = Field(0, ge=0, description="processes that read data beside the training")
    eval_batch_size: int | None = Field(
        None, ge=1, description="examples in a batch of an evaluation pass; null: 1024 of rows of features, else 128"
    )
    mixed_precision: Literal["no", "fp16", "bf16"] = Field(
        "no", description="half precision in the forward pass, where the device can"
    )
    device: str | None = Field(
        None, description="where to compute, such as cpu, cuda, cuda:1 or mps; null: a GPU where CUDA has one"
    )
    channels_last: bool = Field(True, description="memory layout of images that is faster for convolutions")
    audit_every: int | None = Field(
        None, ge=1, description="epochs between passes over all examples; null: ten in a run"
    )
    test_every: int = Field(
        1, ge=1, description="epochs between evaluations of the test set; the last ten are always measured"
    )
    top: int | None = Field(
        None, ge=2, description="also count an example as right whose class is among the first so many"
    )
    find_unused_parameters: bool = Field(
        False, description="for several processes: the model has weights that are not used in every step"
    )
    max_passes: float | None = Field(None, gt=0, description="stop when that many examples went forward or backward")
    stop_after: int | None = Field(None, ge=1, description="stop after this epoch, to be resumed")
    keep_every: int | None = Field(
        None, ge=1, description="epochs between checkpoints that stay; null: only the newest two"
    )

    @field_validator("lr_milestones")
    @classmethod
    def _inside(cls, milestones: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < one <= 1 for one in milestones):
            raise ValueError("milestones are shares of the epochs, between 0 and 1")
        return tuple(sorted(milestones))

    @field_validator("class_weight")
    @classmethod
    def _counts(cls, weights: Any) -> Any:
        if isinstance(weights, tuple) and not (all(0 <= one < float("inf") for one in weights) and any(weights)):
            raise ValueError("weights are numbers from 0 on, not all of them 0")
        return weights

    def rate_at(self, epoch: int, epochs: int, part: float = 0.0) -> float:
        """The learning rate in an epoch (counted from 0) of which some part is done, without the warm-up."""
        if self.schedule == "milestones":
            return self.learning_rate * self.drop_factor ** sum(
                epoch >= round(at * epochs) for at in self.lr_milestones
            )
        return self.learning_rate * schedule_factor(self.schedule, (epoch + part) / epochs)

    def test_due(self, epoch: int, epochs: int) -> bool:
        """Whether accuracy on the test set is measured after this epoch."""
        return (epoch + 1) % self.test_every == 0 or epoch + 10 >= epochs

    def examples_at_once(self, kind: str) -> int:
        """How many examples an evaluation pass takes at once: rows of features are small, whatever the network is."""
        return self.eval_batch_size or (1024 if kind == "features" else 128)

    def audit_due(self, epoch: int, epochs: int) -> bool:
        """Whether all examples are looked at after this epoch for the audit's sake."""
        every = self.audit_every or max(1, epochs // 10)
        return (epoch + 1) % every == 0 or epoch + 1 == epochs


def split_settings(settings: dict[str, Any], method: type[BaseModel]) -> tuple[TrainSettings, BaseModel]:
    """Sort settings into the experiment's and the method's; an unknown or impossible one gets a sentence."""
    ours, theirs = set(TrainSettings.model_fields), set(method.model_fields)
    for name in settings:
        if name not in ours | theirs:
            if SYNONYMS.get(name) in ours | theirs or name in ARGUMENTS:
                here = ARGUMENTS.get(name) or SYNONYMS[name]
                raise InputError(f"unknown setting {name!r}: it is {here} here", code="unknown-setting")
            nearest = difflib.get_close_matches(str(name).lower(), sorted(ours | theirs), n=3, cutoff=0.5)
            if nearest:
                hint = ", ".join(map(repr, nearest[:-1])) + " or " * (len(nearest) > 1) + repr(nearest[-1])
                raise InputError(f"unknown setting {name!r}: did you mean {hint}?", code="unknown-setting")
            raise InputError(
                f"unknown setting {name!r}: there are {', '.join(sorted(ours | theirs))}", code="unknown-setting"
            )
    return (
        checked(TrainSettings, {name: value for name, value in settings.items() if name in ours - theirs}),
        checked(method, {name: value for name, value in settings.items() if name in theirs}),
    )


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"{value!r:.100}"


def checked(model: type[BaseModel], values: dict[str, Any]) -> Any:
    """Build a settings object, or say in one sentence what is wrong."""
    for name, value in values.items():
        if isinstance(value, bool) and "bool" not in str(model.model_fields[name].annotation):
            raise InputError(f"setting {name} is {value}: give a value that is no yes or no", code="bad-setting")
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        what = first["msg"].removeprefix("Value error, ")
        raise InputError(
            f"setting {where} is {_shown(first['input'])}: {what[0].lower()}{what[1:]}", code="bad-setting"
        ) from None
