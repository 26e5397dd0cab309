"""Trackers: the history of a run in TensorBoard, or in any other that Accelerate knows, beside its JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crust._util.foreign import is_sequence
from crust.errors import InputError, MissingPackage, choices
from crust.training.distributed import Processes

PROJECT = "crust"


@dataclass(frozen=True)
class TrackerOptions:
    """Which trackers a run tells, and what each of them is begun with.

    Example:
        >>> TrackerOptions.of({"wandb": {"project": "sorting", "name": "first"}, "tensorboard": {}})
        TrackerOptions(names=['wandb', 'tensorboard'], begin={'wandb': {'name': 'first'}}, project='sorting')
    """

    names: list[str]
    begin: dict[str, dict[str, Any]]
    project: str | None = None  # None: ours

    @classmethod
    def of(cls, trackers: Sequence[str] | Mapping[str, Any]) -> TrackerOptions:
        """From what the user gave: names, or names with options; `project` is one of those."""
        if not isinstance(trackers, Mapping):
            return cls(list(trackers) if is_sequence(trackers) else trackers, {})  # type: ignore[arg-type]
        begin, projects = {}, []
        for name, given in trackers.items():
            if not isinstance(given, Mapping):
                raise InputError(
                    f"the options of the tracker {name} are {given!r:.100}: give a dict, such as "
                    '{"project": "sorting"}',
                    code="tracker-options",
                )
            begin[str(name)] = {key: value for key, value in given.items() if key != "project"}
            projects += [str(given[key]) for key in given if key == "project"]
        if len(set(projects)) > 1:
            raise InputError(
                f"trackers have the projects {', '.join(projects)}: give all of a run the same", code="tracker-options"
            )
        told = {name: options for name, options in begin.items() if options}
        return cls([str(name) for name in trackers], told, projects[0] if projects else None)


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
        options: TrackerOptions,
        config: dict[str, Any],
        then: Iterable[Callable[[dict[str, Any]], None]] = (),
    ):
        self.accelerator, self.names, self.options = processes.accelerator, options.names, options
        self.config, self.then = config, list(then)
        self.started = False

    def begin(self, lines: Iterable[dict[str, Any]]) -> None:
        """Start, with what the history of the run holds already."""
        if not self.names:
            return
        project, begin = self.options.project or PROJECT, dict(self.options.begin)
        if "mlflow" in self.names and (experiment := _active_mlflow()) is not None:
            begin["mlflow"] = {"nested_run": True, **begin.get("mlflow", {})}
            project = self.options.project or experiment
        try:
            if "tensorboard" in self.names and self.accelerator.is_main_process:  # it will be told all of it again
                for file in Path(str(self.accelerator.logging_dir), project).rglob("events.out.tfevents.*"):
                    file.unlink()
            self.accelerator.init_trackers(project, config=plain(self.config), init_kwargs=begin)
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


def _active_mlflow() -> str | None:
    """The experiment of the run of MLflow that goes on around us, of which ours becomes a part; None: there is none."""
    import mlflow

    active = mlflow.active_run()
    return None if active is None else str(mlflow.get_experiment(active.info.experiment_id).name)


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
