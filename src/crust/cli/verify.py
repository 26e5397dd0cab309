"""`crust audit RUN --calibrate`: train once more with planted labels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from crust.cli.formatting import Stopped, duration
from crust.cli.train_progress import EpochProgress
from crust.errors import InputError


def calibrate_run(run: Path, data: str | None, data_dir: str | None, quiet: bool) -> dict[str, Any]:
    """Say what it will cost, train with progress, and leave calibration.json."""
    from crust.runs.audit_table import read_audit
    from crust.runs.data import _examples, options_of
    from crust.training.recorder import History
    from crust.verification import FOLDER, seconds_of, verify_audit

    read_audit(run)  # what can be refused is refused before the data is read
    seconds = seconds_of(run)
    options, seed = options_of(run, data, data_dir)
    examples = _examples(run, options, seed, data_dir)
    if examples.kind == "dataset" and not hasattr(examples.inputs, "fingerprint"):
        raise InputError(f"the data of {run} cannot be opened again: use crust.verify_audit from Python")
    trained = (run / FOLDER / "audit.parquet").is_file()  # before: only the numbers are made anew
    if not quiet and not trained:
        typer.echo(f"calibration trains once more with planted labels: about {duration(seconds)}, as the run took")
    progress = EpochProgress(len(History.load(run / "history.jsonl").lines), quiet)
    try:
        with progress:
            return verify_audit(run, examples, report=progress)
    except KeyboardInterrupt:
        again = f"crust audit {shlex.quote(str(run))} --calibrate"
        raise Stopped(f"stopped; what was trained is in {run / FOLDER}, and {again} goes on with it") from None
