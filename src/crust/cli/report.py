"""`crust report`: the audit of a run, or of files, as one page to look at."""

import logging
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from crust._util.output_files import check_output
from crust.cli.audit import FEATURES, LABELS, PROBS, check_sources
from crust.cli.formatting import show_log
from crust.errors import InputError


def report_command(
    run: Annotated[Path | None, Argument(help="Folder of a finished run.", metavar="RUN", show_default=False)] = None,
    output: Annotated[Path | None, Option("-o", "--output", help="The page (.html), else report.html in RUN.")] = None,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    data: Annotated[
        str | None,
        Option(help="The run's data, where it is not in its old place; or what belongs to --probs, to show it."),
    ] = None,
    data_dir: Annotated[str | None, Option(help="Where named datasets are; default: as in training.")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the audit as one HTML page: label issues with pictures or rows, classes, how sure it is."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    check_sources(run, probs, features, labels)
    if run is None and output is None:
        raise InputError("a report without a run needs a place: give -o report.html", code="no-output")
    check_output(output, "-o", (".html",), [probs, features, labels])

    from crust._util.atomic_write import write_atomic
    from crust.report.page import audit_page
    from crust.runs.data import looks_of_file, looks_or_reason
    from crust.runs.folder import RunFolder

    progress = None if quiet else _examples_so_far()
    if run is None:
        from crust.cli.audit import audit_files

        assert output is not None
        table, classes = audit_files(probs, features, labels, quiet)
        looks = None if data is None else looks_of_file(data, len(table))
        reason = None
        why = "they were not named: --data FILE" if looks is None else None
        name, place, verified = Path(str(probs or features)).name, output, None
    else:
        folder = RunFolder(run)
        table, classes = folder.audit()
        looks, reason = looks_or_reason(folder, table, data, data_dir)
        why, name, verified = reason, run.resolve().name, folder.verified()
        place = folder.report_path if output is None else output
    about: dict[str, Any] = {"name": name, "without": why, "progress": progress, "run": run is not None}
    write_atomic(place, audit_page(table, classes, looks=looks, calibration=verified, **about).encode())
    if quiet:
        return
    if reason is not None:
        typer.echo(f"without pictures or rows: {reason}")
    typer.echo(f"look at: {place}")
    if run is not None:
        typer.echo(f"next: crust review {shlex.quote(str(run))}")


def _examples_so_far() -> Callable[[int], None]:
    """A line every two seconds, for those who wait so long."""
    last = time.monotonic()

    def show(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > 2:
            last = time.monotonic()
            sys.stderr.write(f"{done:,} examples are in the page\n")

    return show
