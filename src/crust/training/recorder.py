"""What a run leaves behind: its history, one JSON line an epoch, what it has seen of every example, its checkpoint."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crust._util.atomic_write import write_atomic
from crust._util.foreign_files import parse_json, read_file
from crust.audit.training_dynamics import Watch, trust
from crust.errors import InputError
from crust.training import checkpoint
from crust.training.context import Context
from crust.training.distributed import Collected, OwnRows
from crust.training.evaluation import EpochEvaluation
from crust.training.loop import spent
from crust.training.method import Known, Selection
from crust.training.noise_estimation import described
from crust.training.run_state import RunState


class History:
    """Epochs as dictionaries, in order."""

    def __init__(self, lines: list[dict[str, Any]] | None = None):
        self.lines = list(lines or [])

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.lines)

    def __getitem__(self, key: str) -> list[Any]:
        """One quantity over the epochs; None where it was not measured."""
        return [line.get(key) for line in self.lines]

    def append(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def accuracy(self, key: str = "test_accuracy") -> dict[str, float | None]:
        """Last epoch, mean of the last ten, and best (which is to be read as what it is: chosen on the test set)."""
        lines = [line for line in self.lines if line.get("counts", True)]
        if not lines and self.lines:  # stopped before the stage that counts
            lines = [line for line in self.lines if line.get("stage") == self.lines[-1].get("stage")]
        found = [line[key] for line in lines if line.get(key) is not None]
        if not found:
            return {"last": None, "last10": None, "best": None}
        return {"last": found[-1], "last10": sum(found[-10:]) / len(found[-10:]), "best": max(found)}

    def save(self, path: Path) -> None:
        """Write all lines, atomically."""
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        write_atomic(path, text.encode())

    @classmethod
    def load(cls, path: Path) -> History:
        try:
            return cls([parse_json(line) for line in read_file(path).splitlines()])
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no history of a run: {error}", code="damaged-file") from None


class Recorder:
    """Writes down what it is given, and asks no network. True labels are read here, and only to measure."""

    def __init__(
        self,
        context: Context,
        state: RunState,
        *,
        checkpoint_dir: Path | None,
        history_path: Path | None,
        identity: dict[str, Any],
        report: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.context, self.method, self.state = context, state.plan.method, state
        self.identity, self.report = identity, report
        self.checkpoint_dir, self.history_path = checkpoint_dir, history_path
        self.history = History()
        self.watch = Watch(context.n, context.classes, context.together.slice(context.n))
        self.collected = Collected(context.processes)
        self.watch_validation = None
        if context.validation is not None:
            self.watch_validation = Watch(len(context.validation), context.classes)
        self._clocked: dict[str, float] = {}

    def __call__(self, selection: Selection, facts: dict[str, Any], evaluated: EpochEvaluation) -> None:
        """The loop calls this after every epoch."""
        context = self.context
        line = {"epoch": self.state.epochs_done - 1, **facts}
        if context.noise_info:
            line["noise_info"] = described(context.noise_info)
        if facts["counts"] or spent(context):  # stages that only prepare the ground leave no trace in the audit
            self.watch.choose(selection.indices, selection.weights)
        if context.true_labels is not None:
            right = context.labels[selection.indices] == context.true_labels[selection.indices]
            line["clean_fraction"] = float(right.mean()) if len(right) else None
            weights = selection.weights if selection.weights is not None else np.ones(len(right))
            line["clean_fraction_weighted"] = float((right * weights).sum() / weights.sum()) if len(right) else None
        line |= evaluated.metrics | self._watch(evaluated)
        if spent(context):  # by now: a pass over the training set may have used up what was left
            line["stopped"] = "passes"
        elif self.state.out_of_patience(context.settings):
            line["stopped"] = "patience"
        line["seconds"] = self._seconds()
        line["passes"] = {"forward": context.cost.forward, "backward": context.cost.backward}
        self.history.append(line)
        self.save()
        stop = False
        if self.report is not None and context.processes.first:
            try:
                self.report(line)
            except StopIteration:  # whoever listens has had enough
                stop = True
        self.state.stopped = any(context.processes.gather(stop))

    def look(self, evaluated: EpochEvaluation) -> None:
        """What the audit goes by, where a run ends of which it has seen nothing just now."""
        self._watch(evaluated)
        self.save()

    def _watch(self, evaluated: EpochEvaluation) -> dict[str, float]:
        """Count the pass over the training set, and over those held out, for the audit."""
        context, seen = self.context, evaluated.train
        if seen is None:
            return {}
        labels = context.labels[seen.index]
        found = {"train_accuracy": self._mean(seen.predictions == labels)}
        on_held = None
        if evaluated.validation is not None and context.validation is not None:
            same = evaluated.validation.predictions == context.validation.labels
            on_held = float(same.mean() + 0.5 / len(same) ** 0.5)  # as much more as chance alone may have taken
        counts = trust((context.epoch + 1) / context.epochs, found["train_accuracy"], on_held)
        self.watch.look(seen, labels, counts)
        if self.watch_validation is not None and evaluated.validation is not None and context.validation is not None:
            self.watch_validation.look(evaluated.validation, context.validation.labels, counts)
        if context.true_labels is not None:
            found["train_true_accuracy"] = self._mean(seen.predictions == context.true_labels[seen.index])
        return found

    def _mean(self, right: NDArray[np.bool_]) -> float:
        """The share of all training examples, from our part of them."""
        return float(self.context.together.add(np.array([right.sum()]))[0] / self.context.n)

    def _seconds(self) -> dict[str, float]:
        """Seconds since the last line, part by part."""
        now = self.context.cost.seconds
        found = {name: round(now[name] - self._clocked.get(name, 0.0), 3) for name in now}
        self._clocked = dict(now)
        return found

    # ------------------------------------------------------------ on disk

    def save(self) -> None:
        if self.checkpoint_dir is None or self.history_path is None:
            return
        context = self.context
        seen = self._seen()
        if not context.processes.first:
            return
        content = {
            "identity": self.identity,
            "networks": [context.processes.bare(network).state_dict() for network in context.networks],
            "state": self.state.state(),
            "method": seen["method"],
            "noise_info": described(context.noise_info),
            "watch": seen["watch"],
            "watch_validation": None if self.watch_validation is None else self.watch_validation.state(),
            "history": self.history.lines,
            "counted_pass": None if context.train_pass is None else context.train_pass[0],
            "cost": dataclasses.asdict(context.cost),
        }
        checkpoint.save(self.checkpoint_dir, self.state.epochs_done, content, context.settings.keep_every)
        self.history.save(self.history_path)

    def _seen(self) -> dict[str, Any]:
        """What method and audit remember, of all processes in the first; others send their rows after a look only."""
        watch = self.watch.state()
        if self.context.together.count > 1:
            watch |= {name: OwnRows(watch[name], self.watch.looks) for name in Watch.OF_EACH}
        found: dict[str, Any] = self.collected({"method": self.method.state(), "watch": watch})
        return found

    def finish(self) -> None:
        """After the last epoch everyone learns what all processes have seen."""
        self.collected.known.clear()
        self.watch.join(self.context.together.join)

    def load(self, content: dict[str, Any]) -> None:
        context = self.context
        for network, weights in zip(context.networks, content["networks"], strict=True):
            context.processes.bare(network).load_state_dict(weights)
        self.state.begin(context)
        self.method.load_state(content["method"])
        context.noise_info = {name: Known(**known) for name, known in content.get("noise_info", {}).items()}
        self.state.load(content["state"], context)
        self.watch.load(content["watch"])
        if self.watch_validation is not None:
            self.watch_validation.load(content["watch_validation"])
        self.history = History(content["history"])
        context.counted_pass = content["counted_pass"]
        cost = content["cost"]
        context.cost.forward, context.cost.backward = cost["forward"], cost["backward"]
        context.cost.seconds = cost["seconds"]
        self._clocked = dict(cost["seconds"])
