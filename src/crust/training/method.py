"""What a training method is: the questions that the loop asks it, in the order in which it asks them.

    method.begin_run(context)                                       the data and the experiment are known
    where the settings say "estimate": the noise is estimated first (noise_estimation.py), and the weights put back
    while stage := method.next_stage(number of stages done):
        networks from scratch, as they are, or the best so far      (stage.start)
        method.begin_stage(context)
        for each epoch:
            selection = method.begin_epoch(context)                 who is trained on, with what weight; by a pass over
                                                                    the training set, where train_set_pass says so
            for each batch of the selection, in random order:
                batch = method.prepare(batch, context)              mixing, soft targets, inputs for each network
                outputs = [network(batch.x) for network in networks]
                losses = method.losses(outputs, batch, context)     one a network, or None: no step
                one step for each network that has a loss
            method.end_epoch(context)
            evaluate, keep the best weights, save everything
        the best weights again, where the stage says so             (stage.end)
        method.end_stage(context)

A method never sees true labels, but for `oracle` and `mentornet`'s variant `dd`, which say so. All it keeps between
epochs is in `state()`: a run that is resumed in the middle of a stage asks `next_stage` again and goes on with the next
epoch, without `begin_stage`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from crust.training.distributed import Tally
from crust.training.learning_rate import warmup_factor

if TYPE_CHECKING:
    from torch import Tensor

    from crust.training.context import Context
    from crust.training.settings import TrainSettings


class Settings(BaseModel):
    """Settings of a method; an unknown one is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Known:
    """Something that a method must know of the noise, and where it is from."""

    value: Any
    source: Literal["estimated", "given", "true"]


@dataclass
class Batch:
    """Some training examples on the device, with their given (noisy) labels."""

    x: Any
    y: Tensor
    index: NDArray[np.int64]  # positions in the training set
    rows: NDArray[np.int64]  # positions in the epoch's selection
    weight: Tensor | None = None  # multiplies each loss
    target: Tensor | None = None  # soft labels, where they are not one-hot
    partner_x: Any = None  # inputs of the partners for mixing, where those were read with the batch
    inputs: list[Any] | None = None  # inputs for each network, where they differ; None for one: nothing for it
    extra: dict[str, Any] = field(default_factory=dict)  # from `prepare` to `losses`


@dataclass
class Output:
    """What a network said of a batch."""

    logits: Tensor
    features: Tensor | None = None  # input of the last layer, where the method asks for it


@dataclass
class Selection:
    """Who is trained on in one epoch: a row a visit."""

    indices: NDArray[np.int64]
    weights: NDArray[np.float32] | None = None
    partners: NDArray[np.int64] | None = None  # a row's partner for mixing; itself where there is none
    facts: dict[str, Any] = field(default_factory=dict)  # for the history


@dataclass(frozen=True)
class Stage:
    """Some epochs of training with one objective. What is None is as the experiment says."""

    name: str = "train"
    epochs: int | None = None
    start: Literal["scratch", "initial", "keep", "best"] = "keep"  # new weights, the run's first, as they are, kept
    end: Literal["last", "best"] = "last"  # best: the first network gets its kept weights before `end_stage`
    networks: int | None = None  # how many of the method's networks are trained; the others rest
    optimizer: Literal["sgd", "adam", "adamw"] | None = None
    learning_rate: float | None = None
    extra_learning_rate: float | None = None  # of the method's own tensors; None: that of the network
    momentum: float | None = None
    weight_decay: float | None = None
    batch_size: int | None = None
    clip_norm: float | None = None
    ema: float | None = None
    full_batches: bool = False  # leave out a last batch that is short, where there is a full one
    schedule: bool = True  # the experiment's schedule and warm-up; False: a constant rate
    factors: tuple[tuple[float, float], ...] | None = None  # instead of both: (share of the epochs, factor since then)
    select_by: Literal["val_accuracy", "val_loss", "method", "last"] = "val_accuracy"  # whose weights are kept
    keep_initial: bool = False  # the weights at the beginning may be kept too
    held: NDArray[np.int64] | None = None  # training examples to select on, in place of the validation set
    counts: bool = True  # whether its accuracy is the method's accuracy
    subset: NDArray[np.int64] | None = None  # who is trained on, where `begin_epoch` does not say

    def settings(self, experiment: TrainSettings) -> TrainSettings:
        """The experiment's settings with what this stage has of its own."""
        names = ("epochs", "optimizer", "learning_rate", "momentum", "weight_decay", "batch_size", "clip_norm", "ema")
        own = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if own.get("momentum") == 0:
            own["nesterov"] = False
        return experiment.model_copy(update=own)

    def rate_at(
        self,
        epoch: int,
        settings: TrainSettings,
        part: float = 0.0,
        steps: int | None = None,
        own: Callable[[float], float] | None = None,
    ) -> float:
        """The learning rate of an epoch of this stage, or within it.

        Args:
            epoch: counted from 0.
            settings: of the stage.
            part: how much of the epoch is done.
            steps: how many of the stage are done.
            own: a schedule of the user's own, by how much of the stage is done.
        """
        if self.factors is not None:
            passed = [factor for share, factor in self.factors if epoch >= round(share * settings.epochs)]
            return settings.learning_rate * (passed[-1] if passed else 1.0)
        if not self.schedule:
            return settings.learning_rate
        rise = 1.0 if steps is None else warmup_factor(steps, settings.warmup_steps)
        if own is not None:
            return settings.learning_rate * own((epoch + part) / settings.epochs) * rise
        return settings.rate_at(epoch, settings.epochs, part) * rise


class Method:
    """The contract. A method overrides what it needs; `state` and `load_state` make it resumable."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""  # one line for `crust methods`
    networks: ClassVar[int] = 1
    needs: ClassVar[str] = "nothing"  # what it must know besides the data, for people
    uses_true_labels: ClassVar[bool] = False
    state_names: ClassVar[tuple[str, ...]] = ()  # attributes that `state` saves, but for those that are None
    estimates_itself: bool = False  # where settings say "estimate": the method does it, not the loop
    wants_features: ClassVar[bool] = False
    Settings: ClassVar[type[Settings]] = Settings

    def __init__(self, settings: BaseModel):
        self.settings = settings

    def begin_run(self, context: Context) -> None:
        """Before anything else is asked, in a new run and in a resumed one (there before `load_state`)."""

    def stages(self) -> list[Stage]:
        """The stages that are known beforehand."""
        return [Stage()]

    def next_stage(self, done: int) -> Stage | None:
        """The stage after so many; None: the end. It may depend on what is in `state()`, and on nothing else."""
        stages = self.stages()
        return stages[done] if done < len(stages) else None

    def begin_stage(self, context: Context) -> None: ...

    def end_stage(self, context: Context) -> None: ...

    def train_set_pass(self, epoch: int, epochs: int) -> str | None:
        """By which gradient proxy `begin_epoch` of this epoch, of so many, will evaluate the training set; None: not.

        The loop makes that pass once, at the end of the epoch before, for the audit and the method alike.
        """
        return None

    def begin_epoch(self, context: Context) -> Selection | None:
        """Who is trained on; None: everyone."""
        return None

    def prepare(self, batch: Batch, context: Context) -> Batch:
        return batch

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        """One a network, or None where it takes no step; here the (weighted) cross-entropy, also of soft labels.

        Or what the user has set in its place: a method with a loss of its own does not take that.
        """
        return [context.objective(output.logits, batch, context.classes) for output in outputs]

    @classmethod
    def takes_loss(cls) -> bool:
        """Whether a loss of the user's own can be in the place of this method's."""
        return cls.losses is Method.losses

    def end_epoch(self, context: Context) -> None:
        """After the last batch: the moment to gather what batches have left, before everything is saved."""

    def score(self, probabilities: NDArray[np.floating], labels: NDArray[np.int64]) -> float:
        """How good the first network is, from its (n, classes) probabilities of the validation set; larger is better.

        Asked where a stage selects by "method".
        """
        raise AssertionError(f"{type(self).__name__} has no score")

    def extra_parameters(self) -> list[Tensor]:
        """Tensors that are trained beside the first network's, without weight decay.

        Their values are saved and put back by the loop; `load_state` only has to make them again.
        """
        return []

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """What the method itself thinks of each training example, for the audit: larger means likelier wrong.

        Arrays with one number an example become columns of the audit.
        """
        return {}

    def state(self) -> dict[str, Any]:
        """All that must survive: numpy arrays, tensors, and anything JSON can hold; here what `state_names` says."""
        found = {name: getattr(self, name) for name in self.state_names}
        found = {name: value.state() if isinstance(value, Tally) else value for name, value in found.items()}
        return {name: value for name, value in found.items() if value is not None}

    def load_state(self, state: dict[str, Any]) -> None:
        assert not set(state) - set(self.state_names), f"{type(self).__name__} was given a state that it does not have"
        for name, value in state.items():
            if value is None:
                continue
            if isinstance(getattr(self, name), Tally):  # made by `begin_run`
                getattr(self, name).load(value)
            else:
                setattr(self, name, value)
