"""A run opened again at any of its checkpoints: the network of that moment, and what the method chooses with it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crust._util import seeding
from crust.data import Examples, hold_out
from crust.errors import InputError, choices
from crust.methods import METHODS
from crust.models import build_model
from crust.runs.data import examples_of_spec, load_data, options_of, with_labels
from crust.runs.folder import RunFolder
from crust.training import checkpoint
from crust.training.context import Context
from crust.training.distributed import Processes
from crust.training.epoch_scaling import warmup_of
from crust.training.settings import split_settings

SELECTING = ("crust", "crust-paper", "crust-released", "random", "small-loss", "oracle")


@dataclass(frozen=True)
class Choice:
    """Who is trained on: positions in the part that was chosen from, and their weights, which sum to its size."""

    indices: NDArray[np.int64]
    weights: NDArray[np.float64]


class Reopened:
    """A run, finished or still going on, with its training examples as it was given them, and the truth if known."""

    def __init__(self, folder: str | Path, train: Examples, truth: NDArray[np.int64] | None = None):
        self.folder = RunFolder(folder)
        self.config = self.folder.config()
        if not self.config["built"]:
            raise InputError(
                f"the run in {folder} trained a network of your own, a {self.config['model']}: "
                "use crust.theory from Python",
                code="own-model",
            )
        if train.fingerprint() != self.config["data"]:
            raise InputError(
                f"the data is not what the run in {folder} was trained on: give the same data and labels",
                code="other-data",
            )
        self.method = self.config["method"]
        kind = METHODS[choices(self.method, METHODS, "method")]
        known = {**self.config["experiment"], **self.config["settings"]}
        self.experiment, self.own = split_settings(known, kind.Settings)
        kept = np.arange(len(train))
        if self.config["validation"] and self.config.get("validation_data") is None:
            rng = seeding.numpy_rng(self.experiment.seed, "validation")
            kept, _ = hold_out(train.labels, self.config["validation"], rng)
        self.examples = train.subset(kept)
        self.truth = None if truth is None else truth[kept]
        self._held: dict[int, dict[str, Any]] = {}

    @property
    def epochs(self) -> list[int]:
        """Epochs that can be looked at: 0 before the first step, then those whose checkpoints are there."""
        return [0, *(int(path.name) for path in checkpoint.numbered(self.folder.checkpoint_dir))]

    def hold(self, epochs: Sequence[int] | None = None, most: int = 6) -> list[int]:
        """Read the checkpoints of some epochs now, since a run that goes on removes old ones; return which they are.

        Without a list: the first, the last, and some between, at most so many.
        """
        for _ in range(5):  # where the run removes one while we read, look again
            wanted = spaced(self.epochs, most) if epochs is None else sorted(set(epochs))
            try:
                for epoch in wanted:
                    self._content(epoch)
                return wanted
            except InputError:
                if epochs is not None or all(epoch in self.epochs for epoch in wanted):
                    raise
        raise InputError(
            f"the run in {self.folder} removes its checkpoints faster than they are read: name --epochs",
            code="missing-checkpoint",
        )

    def sample(self, points: int) -> NDArray[np.int64]:
        """The same few training examples for all epochs, at random."""
        n = len(self.examples)
        if points >= n:
            return np.arange(n)
        rng = seeding.numpy_rng(self.experiment.seed, "theory")
        return np.sort(rng.choice(n, points, replace=False))

    def network(self, epoch: int) -> nn.Module:
        """The first network after so many epochs, in eval mode."""
        shape, classes = tuple(self.config["inputs"]["shape"]), len(self.config["classes"])
        model = build_model(self.config["model"], in_shape=shape, classes=classes, seed=self.experiment.seed * 1000)
        if epoch:
            try:
                model.load_state_dict(self._content(epoch)["networks"][0])
            except (RuntimeError, LookupError, TypeError, AttributeError, ValueError):
                raise InputError(
                    f"the checkpoint of epoch {epoch} in {self.folder} is of another network: name other epochs",
                    code="other-model",
                ) from None
        return model.eval()

    def choice(self, epoch: int, rows: NDArray[np.int64], share: float | None = None) -> Choice | None:
        """What the method would choose from some of the examples for the next epoch; None where it chooses nothing.

        Warm-up is over for this question. A share other than the run's own can be asked for.
        """
        if self.method not in SELECTING:
            return None
        own = self.own if share is None else self.own.model_copy(update={"fraction": share})
        if getattr(own, "fraction", None) == "auto":  # it would wait until labels are memorised, and for its next pass
            own = own.model_copy(update={"select_after": 0, "select_every": 1})
        method = METHODS[self.method](own)
        memory = self._content(epoch)["method"]
        if memory:
            try:
                method.load_state(_rows_of_state(memory, rows, len(self.examples)))
            except (RuntimeError, LookupError, TypeError, AttributeError, ValueError):
                raise InputError(
                    f"the checkpoint of epoch {epoch} in {self.folder} is of another method: name other epochs",
                    code="other-model",
                ) from None
        part = self.examples.subset(rows)
        context = Context(
            part,
            len(part.classes),
            [copy.deepcopy(self.network(epoch))],  # published code moves statistics while it looks
            self.experiment,
            Processes(cpu=not torch.cuda.is_available()),
            augment=False,
            validation=None,
            true_labels=None if self.truth is None else self.truth[rows],
        )
        context.epoch = max(1, epoch, warmup_of(getattr(own, "select_after", 0), context.epochs))
        selection = method.begin_epoch(context)
        if selection is None:
            return None
        indices, first = np.unique(selection.indices, return_index=True)
        weights = np.ones(len(indices)) if selection.weights is None else selection.weights[first].astype(np.float64)
        return Choice(indices, weights * (len(rows) / weights.sum()))

    def _content(self, epoch: int) -> dict[str, Any]:
        if epoch in self._held:
            return self._held[epoch]
        if epoch == 0:
            return {"networks": [], "method": {}}
        if epoch not in self.epochs:
            there = ", ".join(map(str, self.epochs))
            raise InputError(
                f"the run in {self.folder} has no checkpoint of epoch {epoch}, only of {there}: "
                "choose among these, or train with --keep-every N to keep more",
                code="missing-checkpoint",
            )
        place = self.folder.checkpoint_dir / f"{epoch:06d}"
        content = checkpoint.read(place)
        try:
            self._held[epoch] = {"networks": content["networks"][:1], "method": content["method"]}
        except (LookupError, TypeError):
            raise InputError(
                f"{place} is not as crust has written it: name other epochs", code="damaged-file"
            ) from None
        return self._held[epoch]


def spaced(epochs: Sequence[int], most: int) -> list[int]:
    """The first, the last and some between.

    Example:
        >>> spaced(range(0, 41, 5), 6), spaced([0, 3], 6)
        ([0, 10, 15, 25, 30, 40], [0, 3])
    """
    if len(epochs) <= most:
        return list(epochs)
    return [epochs[round(i * (len(epochs) - 1) / (most - 1))] for i in range(most)]


def reopen(
    folder: str | Path,
    spec: dict[str, Any] | None = None,
    *,
    data_dir: str | Path | None = None,
    human_labels: str | Path | None = None,
) -> Reopened:
    """A run with its data, as its recipe or its specification says, or as a specification that is given says."""
    run = RunFolder(folder)
    run.config()
    if spec is None and run.trained_by == "recipe":
        options, seed = options_of(run, data_dir=None if data_dir is None else str(data_dir))
        examples, truth, _ = with_labels(load_data(options), options, seed)
        return Reopened(folder, examples, truth)
    if spec is None and run.trained_by is None:
        raise InputError(
            f"{run} does not say what it was trained on, as runs of crust train do: use crust.theory from Python",
            code="unknown-data",
        )
    examples, truth = examples_of_spec(run.spec() if spec is None else spec, data_dir, human_labels)
    return Reopened(folder, examples, truth)


def _rows_of_state(state: dict[str, Any], rows: NDArray[np.int64], n: int) -> dict[str, Any]:
    """A method's memory of some examples; its last coreset is left out, since it is chosen anew."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, dict) and name != "coreset":
            found[name] = _rows_of_state(value, rows, n)
        elif name != "coreset":
            found[name] = value[rows] if isinstance(value, np.ndarray) and value.shape[:1] == (n,) else value
    return found
