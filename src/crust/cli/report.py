"""`crust report`: the audit of a run, of a table, or of files, as one page to look at."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from crust._util.output_files import check_output
from crust.cli.audit import DATA, DATA_DIR, FEATURES, LABELS, PROBS, SHOW, SOURCE
from crust.cli.formatting import show_log


def report_command(
    run: Annotated[Path | None, SOURCE] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page (.html); default: in RUN, or beside the table or the files."),
    ] = None,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    show: Annotated[str | None, SHOW] = None,
    data: Annotated[str | None, DATA] = None,
    data_dir: Annotated[str | None, DATA_DIR] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the audit as one HTML page: label issues with pictures or rows, a map, classes, how sure it is."""
    show_log(logging.ERROR if quiet else logging.WARNING)

    from crust.runs.audit_source import open_audit

    check_output(output, "-o", (".html",), [probs, features, labels])
    source = open_audit(
        run, probs=probs, features=features, labels=labels, show=show, data=data, data_dir=data_dir, progress=not quiet
    )
    _, reason = source.looks()
    place = source.report(output, progress=None if quiet else _examples_so_far())
    if quiet:
        return
    if reason is not None:
        typer.echo(f"without pictures or rows: {reason}")
    typer.echo(f"look at: {place}")
    typer.echo(f"next: {source.command('review')}")


def _examples_so_far() -> Callable[[int], None]:
    """A line every two seconds, for those who wait so long."""
    last = time.monotonic()

    def show(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > 2:
            last = time.monotonic()
            sys.stderr.write(f"{done:,} examples are in the page\n")

    return show
