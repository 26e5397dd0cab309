"""What `crust audit` does besides showing: the report page, and corrected labels in the form the data came in."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from crust.cli.output_files import check_output
from crust.errors import InputError


def act(
    run: Path,
    output: Path | None,
    report: bool,
    corrections: str | None,
    move: bool,
    move_back: bool,
    data: str | None,
    data_dir: str | None,
    quiet: bool,
) -> None:
    """Do the one thing that was asked for."""
    if sum([report, corrections is not None or move, move_back]) != 1:
        raise InputError("--report, --apply and --move-back are three things: ask for one at a time")
    if report:
        write_report(run, output, data, data_dir, quiet)
    elif move_back:
        from crust.cli.apply import back

        back(run, output, data, quiet)
    elif corrections is None:
        raise InputError("--move belongs to --apply: say which corrections, as in --apply corrections --move")
    else:
        from crust.cli.apply import apply

        apply(run, output, corrections, move, data, data_dir, quiet)


def write_report(run: Path, output: Path | None, data: str | None, data_dir: str | None, quiet: bool) -> None:
    """The page of a run's audit."""
    check_output(output, "-o", (".html",))

    from crust._util.atomic_write import write_atomic
    from crust.audit.accuracy.verified_file import read_calibration
    from crust.report.page import audit_page
    from crust.runs.audit_table import read_audit
    from crust.runs.data import looks_or_reason

    table, classes = read_audit(run)
    looks, reason = looks_or_reason(run, table, data, data_dir)
    place = run / "report.html" if output is None else output
    name = run.resolve().name
    text = audit_page(
        table,
        classes,
        looks=looks,
        calibration=read_calibration(run),
        name=name,
        without=reason,
        progress=None if quiet else _progress(),
    )
    write_atomic(place, text.encode())
    if quiet:
        return
    if reason is not None:
        typer.echo(f"without pictures or rows: {reason}")
    typer.echo(f"look at: {place}")


def write_page(place: Path, table: Any, classes: list[Any], data: str | None, name: str, quiet: bool) -> None:
    """The page of an audit without a run; with the rows of a table, or the images of an array, where they are named."""
    from crust._util.atomic_write import write_atomic
    from crust.report.page import audit_page
    from crust.runs.data import looks_of_file

    looks = None if data is None else looks_of_file(data, len(table))
    why = "they were not named: --data FILE" if looks is None else None
    text = audit_page(
        table, classes, looks=looks, name=name, without=why, progress=None if quiet else _progress(), run=False
    )
    write_atomic(place, text.encode())
    if not quiet:
        typer.echo(f"look at: {place}")


def _progress() -> Callable[[int], None]:
    """A line every two seconds, for those who wait so long."""
    last = time.monotonic()

    def report(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > 2:
            last = time.monotonic()
            sys.stderr.write(f"{done:,} examples are in the page\n")

    return report
