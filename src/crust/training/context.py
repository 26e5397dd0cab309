"""What a method may ask the loop: where we are, random numbers, a pass over the training set, and the cost so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust import gradients
from crust._util import seeding
from crust._util.torch_modules import evaluating, forward_logits
from crust.data import batches
from crust.selection.together import ALONE, Together
from crust.training import evaluation
from crust.training.distributed import Processes
from crust.training.evaluation import Prediction, Tap
from crust.training.method import Known, Output
from crust.training.objective import Functions, Objective
from crust.training.settings import TrainSettings

if TYPE_CHECKING:
    from crust.data import Examples


@dataclass
class Cost:
    """Examples that went through a network, forward and backward, and seconds; all processes together.

    What a process does alone is `mine` until `settle` adds up that of all.
    """

    forward: int = 0
    backward: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    mine: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def passes(self) -> int:
        return self.forward + self.backward

    def spend(self, forward: int = 0, backward: int = 0) -> None:
        """Passes of this process, on its own examples."""
        self.mine[0] += forward
        self.mine[1] += backward

    def settle(self, processes: Processes) -> None:
        """Add up what all processes have spent; called by all of them at the same moment."""
        forward, backward = processes.sums(self.mine)
        self.forward, self.backward, self.mine = self.forward + forward, self.backward + backward, [0, 0]


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
        tests: dict[str, Examples] | None = None,
        functions: Functions | None = None,
        objective: Objective | None = None,
    ):
        self.train, self.validation = train, validation
        self.plain = train if plain is None else plain  # the training set without augmentation of its own
        self.tests = tests or {}
        self.functions = functions or Functions()  # of the user's own, in place of names
        self.objective = objective or Objective()
        self.own_optimizer = self.functions.optimizer  # in a stage that has another one None
        self.labels = train.labels
        self.n, self.classes = len(train.labels), classes
        self.networks, self.processes = networks, processes
        self.experiment = self.settings = settings  # in a stage `settings` has what the stage changes
        self.augment = augment
        self.true_labels = true_labels  # for measuring, and for `oracle`
        self.stage, self.epoch, self.epochs, self.step = 0, 0, settings.epochs, 0
        self.active = len(networks)  # how many are trained in this stage
        self.noise_info: dict[str, Known] = {}  # what is known of the noise, and from where
        self.cost = Cost()
        self._taps: dict[int, Tap] = {}
        # The pass over the training set with the present weights, and by which proxy: audit and selection share it.
        self.train_pass: tuple[str, gradients.GradientPass] | None = None
        self.validation_pass: gradients.GradientPass | None = None
        self.counted_pass: str | None = None  # the proxy of the one that the run which is resumed has counted already

    @property
    def device(self) -> torch.device:
        return self.processes.device

    @property
    def together(self) -> Together:
        """The processes, where each keeps what it has seen of its examples; else as if there were one."""
        return self.processes if self.processes.splits and self.n >= self.processes.count else ALONE

    @property
    def progress(self) -> float:
        """How far the stage has come, from 0 to 1."""
        return self.epoch / max(1, self.epochs)

    def rng(self, purpose: str, step: bool = False) -> np.random.Generator:
        """Numbers for this epoch (or this step of it), the same whenever it is run again."""
        place = (purpose, self.stage, self.epoch, *((self.step, self.processes.rank) if step else ()))
        return seeding.numpy_rng(self.settings.seed, *place)

    def torch_rng(self, purpose: str) -> torch.Generator:
        return seeding.torch_rng(self.settings.seed, purpose, self.stage, self.epoch, self.processes.rank)

    def tensor(self, values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.as_tensor(values, dtype=dtype, device=self.device)

    def inputs(self, index: NDArray[np.int64], purpose: str = "inputs") -> Any:
        """The inputs of some training examples on the device, augmented as the batches are.

        Within a step the same purpose draws the same crops: give another one for another view.
        """
        found = batches(
            self.train,
            index,
            len(index),
            augment=self.augment,
            generator=seeding.torch_rng(
                self.settings.seed, purpose, self.stage, self.epoch, self.step, self.processes.rank
            ),
            device=self.device,
            channels_last=self.settings.channels_last,
        )
        return next(iter(found))[0]

    def tap(self, network: int, sample: Any) -> Tap:
        """What catches the features of a network; made when it is first asked for."""
        if network not in self._taps:
            self._taps[network] = Tap(self.processes.bare(self.networks[network]), sample)
        return self._taps[network]

    def predict(
        self,
        index: NDArray[np.int64] | None = None,
        *,
        network: int = 0,
        examples: Examples | None = None,
        features: bool = False,
    ) -> Prediction:
        """What a network says of some examples (default: of all that are trained on, for which `evaluate_train_set` is
        better, since it keeps its answer): in eval mode, not augmented, counted. All processes ask together."""
        found = evaluation.predict(self, index, network, examples, features)
        self.cost.forward += len(found.index)
        return found

    def evaluate_batch(self, x: Any, network: int = 0, features: bool = False) -> Output:
        """What a network says of a batch in eval mode: no gradients, no statistics moved; counted."""
        model = self.processes.bare(self.networks[network])
        tap = self.tap(network, x) if features else None
        with evaluating(model), self.processes.accelerator.autocast():
            logits = forward_logits(model, x).float()
        self.cost.spend(forward=len(logits))
        return Output(logits, None if tap is None else tap.take())

    def evaluate_train_set(
        self, kind: str = "logits", *, network: int = 0, train_mode: bool = False, augment: bool = False
    ) -> gradients.GradientPass:
        """Proxies, predictions and losses of all training examples with the weights as they are now; counted.

        The loop has made the pass already where `Method.train_set_pass` announced it: then this is that one.

        Args:
            kind: of the gradient proxy, see `crust.gradients`.
            network: its number.
            train_mode: as the published code of CRUST does it: BatchNorm statistics move.
            augment: evaluate augmented examples.
        """
        plain = network == 0 and not train_mode and not augment
        if plain and self.train_pass is not None and self.train_pass[0] == kind and self.together.count == 1:
            return self.train_pass[1]
        if plain and self.together.count > 1:
            return evaluation.gather_pass(self.evaluate_our_part(kind), self.n, self.processes)
        examples = self.train if augment else self.plain
        found = evaluation.evaluate(self, examples, kind, network=network, train_mode=train_mode, augment=augment)
        if plain and self.counted_pass == kind:
            self.counted_pass = None
        else:
            self.cost.forward += len(examples)
        if plain:
            self.train_pass = kind, found
        return found

    def evaluate_our_part(self, kind: str = "logits") -> gradients.GradientPass:
        """The same of our training examples alone, `self.together.slice(self.n)`; of all, where there is one process.

        Nothing but sums goes from one process to another.
        """
        if self.together.count == 1:
            return self.evaluate_train_set(kind)
        if self.train_pass is None or self.train_pass[0] != kind:
            found = evaluation.evaluate(self, self.plain, kind, whole=False)
            if self.counted_pass == kind:
                self.counted_pass = None
            else:
                self.cost.forward += self.n
            self.train_pass = kind, found
        return self.train_pass[1]

    def evaluate_validation(self) -> gradients.GradientPass | None:
        """The same for those held out, made once an epoch; None where nothing is held out. Measuring is not counted."""
        if self.validation is not None and self.validation_pass is None:
            self.validation_pass = evaluation.evaluate(self, self.validation)
        return self.validation_pass

    def weights_changed(self) -> None:
        """What passes over the training set and those held out have said is out of date."""
        self.train_pass = self.counted_pass = self.validation_pass = None
