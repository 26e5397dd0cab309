"""What a training method is: the questions that the loop asks it, in the order in which it asks them.

    for stage in method.stages():
        networks from scratch, as they are, or the best so far      (stage.start)
        method.begin_stage(context)
        for each epoch:
            selection = method.begin_epoch(context)                 who is trained on, with what weight
            for each batch of the selection, in random order:
                batch = method.prepare(batch, context)              mixing, soft targets
                outputs = [network(batch.x) for network in networks]
                losses = method.losses(outputs, batch, context)     one a network, or None: no step
                one step for each network
        method.end_stage(context)

A method never sees true labels, but for `oracle`, which says so. All it keeps between epochs is in `state()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from torch import Tensor

    from crust.training.context import Context


class Settings(BaseModel):
    """Settings of a method; an unknown one is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass
class Batch:
    """Some training examples on the device, with their given (noisy) labels."""

    x: Any
    y: Tensor
    index: NDArray[np.int64]  # positions in the training set
    rows: NDArray[np.int64]  # positions in the epoch's selection
    weight: Tensor | None = None  # multiplies each loss
    target: Tensor | None = None  # soft labels, where they are not one-hot


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
    """Some epochs of training with one objective."""

    name: str = "train"
    epochs: int | None = None  # None: as many as the experiment says
    start: str = "keep"  # scratch: new weights; keep: go on; best: the kept ones of the stage before
    learning_rate: float | None = None
    schedule: bool = True  # the experiment's drops; False: a constant rate
    counts: bool = True  # whether its accuracy is the method's accuracy
    subset: NDArray[np.int64] | None = None


class Method:
    """The contract. A method overrides what it needs; `state` and `load_state` make it resumable."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line for `crust methods`
    networks: ClassVar[int] = 1
    needs: ClassVar[str] = "nothing"  # what it must know besides the data
    wants_features: ClassVar[bool] = False
    Settings: ClassVar[type[Settings]] = Settings

    def __init__(self, settings: BaseModel):
        self.settings = settings

    def stages(self) -> list[Stage]:
        return [Stage()]

    def begin_stage(self, context: Context) -> None: ...

    def end_stage(self, context: Context) -> None: ...

    def looks_at_all(self, epoch: int) -> bool:
        """Whether `begin_epoch` of this epoch will ask for a pass over all training examples."""
        return False

    def begin_epoch(self, context: Context) -> Selection | None:
        """Who is trained on; None: everyone."""
        return None

    def prepare(self, batch: Batch, context: Context) -> Batch:
        return batch

    def losses(self, outputs: list[Output], batch: Batch, context: Context) -> list[Tensor | None]:
        raise AssertionError(f"{type(self).__name__} has no losses")

    def extra_parameters(self) -> list[Tensor]:
        """Tensors that are trained beside the first network's."""
        return []

    def opinions(self) -> dict[str, NDArray[np.floating]]:
        """What the method itself thinks of each training example, for the audit: larger means more doubt."""
        return {}

    def state(self) -> dict[str, Any]:
        """All that must survive: numpy arrays, tensors, and anything JSON can hold."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        if state:
            raise AssertionError(f"{type(self).__name__} was given a state that it does not have")
