"""Trackers: the history of a run in TensorBoard, or in any other that Accelerate knows, beside its JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from crust._util.foreign import is_sequence
from crust.errors import InputError, MissingPackage, choices
from crust.training.distributed import Processes

PROJECT = "crust"


def check_trackers(names: Sequence[str], folder: Path | None) -> None:
    """Refuse trackers that do not exist, are not installed, or have nowhere to write.

    Example:
        >>> check_trackers(["tensorbord"], None)
        Traceback (most recent call last):
        ...
        crust.errors.InputError: unknown tracker 'tensorbord': use one of ...; did you mean 'tensorboard'?
    """
    if isinstance(names, str):
        raise InputError(f"trackers is the word {names!r}: give a list, such as [{names!r}]", code="trackers-type")
    if not is_sequence(names):
        raise InputError(f"trackers is a {type(names).__name__}: give a list of names", code="trackers-type")
    if not names:
        return
    from accelerate import tracking

    for name in names:
        choices(name, sorted(tracking.LOGGER_TYPE_TO_CLASS), "tracker")
        if name not in [str(there) for there in tracking.get_available_trackers()]:
            raise MissingPackage(f"the tracker {name} is not installed: run pip install {name}", name=name)
        if folder is None and tracking.LOGGER_TYPE_TO_CLASS[name].requires_logging_directory:
            raise InputError(f"the tracker {name} writes files: give the run a folder (run_dir)", code="no-run-folder")


class Tracking(AbstractContextManager["Tracking"]):
    """The trackers of one run. All epochs so far are told again where it goes on, so that none is missing or double."""

    def __init__(
        self,
        processes: Processes,
        names: Sequence[str],
        config: dict[str, Any],
        then: Iterable[Callable[[dict[str, Any]], None]] = (),
    ):
        self.accelerator, self.names, self.config, self.then = processes.accelerator, list(names), config, list(then)
        self.started = False

    def begin(self, lines: Iterable[dict[str, Any]]) -> None:
        """Start, with what the history of the run holds already."""
        if not self.names:
            return
        try:
            if "tensorboard" in self.names and self.accelerator.is_main_process:  # it will be told all of it again
                for file in Path(str(self.accelerator.logging_dir), PROJECT).rglob("events.out.tfevents.*"):
                    file.unlink()
            self.accelerator.init_trackers(PROJECT, config=plain(self.config))
        except Exception as error:  # packages of others: no account, no connection, no space
            reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(". ")
            raise InputError(
                f"cannot start the trackers {', '.join(self.names)}: {reason}", code="tracker-start"
            ) from error
        self.started = True
        for line in lines:
            self.log(line)

    def __call__(self, line: dict[str, Any]) -> None:
        """Tell one epoch to the trackers, and to whoever listens after them."""
        if self.names:
            self.log(line)
        for listener in self.then:
            listener(line)

    def log(self, line: dict[str, Any]) -> None:
        """All numbers of a line of the history."""
        self.accelerator.log(numbers(line), step=int(line["epoch"]))

    def __exit__(self, *_: object) -> None:
        for tracker in self.accelerator.trackers if self.started else []:  # end_training would end the processes too
            tracker.finish()


def numbers(line: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a line of the history; those of a part under its name.

    Example:
        >>> numbers({"epoch": 1, "stage": "train", "clean_fraction": None, "seconds": {"epoch": 0.5}})
        {'seconds/epoch': 0.5}
    """
    found: dict[str, float] = {}
    for name, value in line.items():
        if isinstance(value, dict):
            found |= numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and f"{prefix}{name}" != "epoch":
            found[prefix + name] = float(value)
    return found


def plain(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A configuration as trackers take it: one level, simple values.

    Example:
        >>> plain({"method": "erm", "settings": {"lr_milestones": [0.5], "fraction": None}})
        {'method': 'erm', 'settings/lr_milestones': '[0.5]', 'settings/fraction': 'None'}
    """
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found |= plain(value, f"{prefix}{name}/")
        else:
            found[prefix + name] = value if isinstance(value, bool | int | float | str) else str(value)
    return found
