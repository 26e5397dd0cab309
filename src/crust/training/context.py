"""What a method may ask the loop: where we are, random numbers, a look at all examples, and the bill so far."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust import gradients
from crust.data import batches
from crust.training import randomness
from crust.training.batching import cut, walk
from crust.training.processes import Processes
from crust.training.settings import TrainSettings

if TYPE_CHECKING:
    from crust.data import Examples


@dataclass
class Cost:
    """Examples that went through a network, forward and backward, and seconds; all processes together."""

    forward: int = 0
    backward: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def passes(self) -> int:
        return self.forward + self.backward


class Context:
    """The loop's side of the contract with a method."""

    def __init__(
        self,
        train: Examples,
        classes: int,
        networks: list[nn.Module],
        settings: TrainSettings,
        processes: Processes,
        *,
        augment: bool,
        validation: Examples | None,
        plain: Examples | None = None,
        true_labels: NDArray[np.int64] | None = None,
    ):
        self.train, self.validation = train, validation
        self.plain = train if plain is None else plain  # the training set without augmentation of its own
        self.labels = train.labels
        self.n, self.classes = len(train.labels), classes
        self.networks, self.settings, self.processes = networks, settings, processes
        self.augment = augment
        self.true_labels = true_labels  # for measuring, and for `oracle`
        self.stage, self.epoch, self.epochs, self.step = 0, 0, settings.epochs, 0
        self.cost = Cost()
        self._pass: dict[tuple[Any, ...], gradients.GradientPass] = {}
        self._paid: list[tuple[Any, ...]] = []  # looks that were on the bill of the run that is resumed

    @property
    def device(self) -> torch.device:
        return self.processes.device

    @property
    def progress(self) -> float:
        """How far the stage has come, from 0 to 1."""
        return self.epoch / max(1, self.epochs)

    def rng(self, purpose: str, step: bool = False) -> np.random.Generator:
        """Numbers for this epoch (or this step of it), the same whenever it is run again."""
        place = (purpose, self.stage, self.epoch, *((self.step, self.processes.rank) if step else ()))
        return randomness.numpy_rng(self.settings.seed, *place)

    def torch_rng(self, purpose: str) -> torch.Generator:
        return randomness.torch_rng(self.settings.seed, purpose, self.stage, self.epoch, self.processes.rank)

    def tensor(self, values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.as_tensor(values, dtype=dtype, device=self.device)

    def inputs(self, index: NDArray[np.int64]) -> Any:
        """The inputs of some training examples on the device, augmented as the batches are."""
        found = batches(
            self.train,
            index,
            len(index),
            augment=self.augment,
            generator=randomness.torch_rng(
                self.settings.seed, "inputs", self.stage, self.epoch, self.step, self.processes.rank
            ),
            device=self.device,
            channels_last=self.settings.channels_last,
        )
        return next(iter(found))[0]

    def look_at_all(
        self,
        kind: str = "logits",
        *,
        network: int = 0,
        examples: Examples | None = None,
        train_mode: bool = False,
        augment: bool = False,
        layer: str | None = None,
    ) -> gradients.GradientPass:
        """Proxies, predictions and losses of all training examples with the weights as they are now.

        The answer is kept until the next step, so that audit and selection share one pass.
        """
        which = "train" if examples is None else "validation" if examples is self.validation else id(examples)
        key = (kind, network, which, train_mode, augment)
        if key not in self._pass:
            seen = examples if examples is not None else self.train if augment else self.plain
            mine = self.processes.slice(len(seen))
            options: dict[str, Any] = {
                "augment": augment,
                "generator": self.torch_rng("look") if augment else None,
                "device": self.device,
                "workers": self.settings.workers,
                "channels_last": self.settings.channels_last,
            }
            if train_mode:
                pieces = walk(seen, cut(mine, self.settings.batch_size), **options)
            else:
                pieces = batches(seen, mine, self.settings.eval_batch_size, **options)
            place = (self.settings.seed, "look", self.stage, self.epoch, self.processes.rank)
            with randomness.seeded(*place) if train_mode else nullcontext():  # dropout draws in train mode
                found = gradients.proxies(
                    self.processes.bare(self.networks[network]),
                    pieces,
                    seen.labels,
                    kind=kind,
                    layer=layer,
                    device=self.device,
                    train_mode=train_mode,
                    probabilities=True,
                    partial=True,
                )
            self._pass[key] = gradients.merge(self.processes.gather(found), len(seen))
            if key in self._paid:
                self._paid.remove(key)
            else:
                self.cost.forward += len(seen)
        return self._pass[key]

    def looks(self) -> list[list[Any]]:
        """The looks that are still good, for a checkpoint: the same ones cost nothing when the run goes on."""
        return [list(key) for key in self._pass]

    def pay(self, looks: list[list[Any]]) -> None:
        """Take over what `looks` said: these have been counted already."""
        self._paid = [tuple(key) for key in looks]

    def forget_pass(self) -> None:
        """The weights have changed: what was seen of all examples is out of date."""
        self._pass.clear()
        self._paid.clear()
