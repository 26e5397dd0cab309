"""The folder of a run: begun, gone on with, and finished.

What a run was made with, for the record. None of it is part of what makes a run the same run.
"""

from __future__ import annotations

import json
import logging
import platform
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from crust._util.atomic_write import write_atomic
from crust.errors import InputError
from crust.runs.result import Result
from crust.training import checkpoint
from crust.training.distributed import Processes
from crust.training.recorder import Recorder


def open_run(folder: Path, config: dict[str, Any], recorder: Recorder, resume: bool) -> dict[str, Any]:
    """Begin a run in a folder, or go on with the one that is there; what it is made with, for the record."""
    processes = recorder.context.processes
    found = checkpoint.newest(folder / "checkpoint") if (folder / "checkpoint").exists() else None
    processes.wait()  # all have looked before the first one writes
    if found is not None and not resume:
        raise InputError(f"{folder} holds a run already: resume it, or choose another folder")
    if found is None:
        if processes.first:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
        made_with = {"versions": versions()}
        _write_config(folder, {**config, **made_with}, processes)
        return made_with
    changed = _differences(found["identity"], json.loads(json.dumps(config)))
    if changed:
        raise InputError(f"the run in {folder} cannot go on, since this has changed: {', '.join(changed)}")
    try:
        recorder.load(found)
    except RuntimeError as error:
        raise InputError(f"the run in {folder} had another model: {str(error).splitlines()[0]}") from None
    begun = _written_config(folder)
    made_with = went_on(begun, folder) if processes.first else {}
    if any(begun.get(name) != value for name, value in made_with.items()):
        _write_config(folder, {**config, **made_with}, processes)
    return made_with


def _write_config(folder: Path, config: dict[str, Any], processes: Processes) -> None:
    if processes.first:
        write_atomic(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False).encode())


def _written_config(folder: Path) -> dict[str, Any]:
    """The config.yaml of a run, or nothing: the checkpoint holds all that counts."""
    try:
        found = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key} (was {a}, is {b})")
    return found


def finish_run(folder: Path, result: Result) -> None:
    """Leave the kept model and the audit in the run's folder."""
    from safetensors.torch import save

    trained = result.model.state_dict()
    weights = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in trained.items()}
    write_atomic(folder / "model.safetensors", save(weights))
    write_atomic(folder / "config.yaml", yaml.safe_dump(result.config, sort_keys=False).encode())
    buffer = BytesIO()
    result.audit().to_parquet(buffer)
    write_atomic(folder / "audit.parquet", buffer.getvalue())


log = logging.getLogger("crust")


def versions() -> dict[str, Any]:
    """The versions of what computes, the platform, and the number of threads.

    Example:
        >>> sorted(versions())
        ['crust', 'numpy', 'platform', 'python', 'threads', 'torch']
    """
    import numpy as np
    import torch

    from crust import __version__

    return {
        "crust": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def went_on(begun: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The record of a run that goes on: what it was begun with, and all that was different later; says so.

    Args:
        begun: `versions` and `resumed_with` of the run so far, as in its config.yaml; may be empty.
        folder: the run's folder, for the message.

    Example:
        >>> now = versions()
        >>> went_on({"versions": now}, Path("runs/a")) == {"versions": now}
        True
    """
    now = versions()
    first, later = begun.get("versions") or now, list(begun.get("resumed_with") or [])
    before = later[-1] if later else first
    if before != now:
        names = [name for name in now if before.get(name) != now[name]]
        log.warning(
            "the run in %s was made with %s and goes on with %s: it may not end with the same bytes",
            folder,
            ", ".join(f"{name} {before.get(name)}" for name in names),
            ", ".join(f"{name} {now[name]}" for name in names),
        )
        later.append(now)
    return {"versions": first, "resumed_with": later} if later else {"versions": first}
