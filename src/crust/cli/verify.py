"""`crust verify`: train once more with injected label errors, to know how far a run's audit can be trusted."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path
from typing import Annotated

import typer

from crust._util.progress import EpochProgress
from crust.cli.audit import verified_lines
from crust.cli.formatting import StoppedByUser, duration, show_log
from crust.errors import InputError


def verify_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    data: Annotated[str | None, typer.Option(help="The run's data, where it is not in its old place.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where named datasets are; default: as in training.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found as JSON, for a machine to read.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Estimate noise rate, precision and recall of a run's audit, with intervals: it trains once more, as RUN did."""
    show_log(logging.ERROR if quiet else logging.WARNING)

    from crust.audit.noise_rate import from_verified
    from crust.runs.data import training_examples
    from crust.runs.folder import RunFolder
    from crust.verification import verify_audit

    folder = RunFolder(run)
    folder.audit()  # what can be refused is refused before the data is read
    seconds = folder.seconds()
    examples = training_examples(folder, data, data_dir)
    if examples.kind == "dataset" and not hasattr(examples.inputs, "fingerprint"):
        raise InputError(
            f"the data of {run} cannot be opened again: use crust.verify_audit from Python", code="data-not-reopened"
        )
    trained = folder.verification.audit_path.is_file()  # before: only the numbers are made anew
    if not (quiet or as_json or trained):
        typer.echo(f"trains once more with injected label errors: about {duration(seconds)}, as the run took")
    again = f"crust verify {shlex.quote(str(run))}"
    progress = EpochProgress(len(folder.history()), quiet)
    try:
        with progress:
            found = verify_audit(folder, examples, on_epoch_end=progress)
    except KeyboardInterrupt:
        raise StoppedByUser(
            f"stopped; what was trained is in {folder.verification}, and {again} goes on with it"
        ) from None
    if as_json:
        typer.echo(json.dumps(found, indent=2, default=str))
    if quiet or as_json:
        return
    typer.echo(from_verified(found).sentence())
    for line in verified_lines(found):
        typer.echo(line)
    typer.echo(f"written to: {folder.verified_path}")
    typer.echo(f"next: crust report {shlex.quote(str(run))}, or crust review {shlex.quote(str(run))}")
