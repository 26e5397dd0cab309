"""`crust audit`: the labels that a run doubts most, and what the noise looks like."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from crust.cli.formatting import show_log
from crust.cli.output_files import check_output, write_table
from crust.errors import InputError


def audit(
    run: Annotated[
        Path | None, typer.Argument(help="Folder of a finished run.", metavar="RUN", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the worst labels to show.", min=0)] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all, worst first, here (.csv or .parquet).")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Train once more with planted wrong labels: noise rate, precision and recall with intervals.",
        ),
    ] = False,
    probs: Annotated[
        str | None,
        typer.Option(
            help="Audit without a run: out-of-sample probabilities, a column a class (.npy, .npz:KEY, .csv, .parquet).",
            metavar="FILE",
        ),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Audit without a run: features, such as embeddings.", metavar="FILE")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="The labels that belong to --probs or --features.", metavar="FILE:KEY")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write a page to look at, RUN/report.html or -o FILE.html.")
    ] = False,
    corrections: Annotated[
        str | None,
        typer.Option(
            "--apply",
            help="Write the corrected labels in the form the data came in; corrections: those of `crust review`.",
            metavar="FILE",
        ),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="With --apply: move the files of an image folder.")] = False,
    move_back: Annotated[bool, typer.Option("--move-back", help="Move the files back to where they were.")] = False,
    data: Annotated[str | None, typer.Option(help="The run's data, where it is not in its old place.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where named datasets are; default: as in training.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Show the labels that a run doubts most, the estimated noise rate, and which classes are taken for which."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    outside = [name for name, value in (("--probs", probs), ("--features", features), ("--labels", labels)) if value]
    if run is None:
        if corrections is not None or move or move_back or calibrate:
            raise InputError("this needs a run: name its folder, as in crust audit runs/a --calibrate")
        if not outside:
            raise InputError("there is nothing to audit: name the folder of a run, or give --probs or --features")
        if outside == ["--labels"]:
            raise InputError("--labels alone cannot be judged: give --probs or --features with them")
    elif outside:
        raise InputError(f"{outside[0]} and the run {run} are two audits: give one of them")
    if run is not None and (report or corrections is not None or move or move_back):
        if calibrate:
            raise InputError("--calibrate is a thing of its own: ask for one at a time")
        from crust.cli import audit_acts

        audit_acts.act(run, output, report, corrections, move, move_back, data, data_dir, quiet)
        return
    if report and output is None:
        raise InputError("--report without a run does not know where to go: name a file with -o report.html")
    own = None if run is None else run / "audit.parquet"
    check_output(output, "-o", (".html",) if report else (".csv", ".parquet"), [probs, features, labels, own])

    from crust.audit.accuracy.verified_file import read_calibration
    from crust.runs.audit_table import read_audit

    found = None
    if run is None:
        from crust.cli.audit_files import audited

        table, classes = audited(probs, features, labels, quiet)
        if report and output is not None:
            from crust.cli.audit_acts import write_page

            write_page(output, table, classes, data, Path(str(probs or features)).name, quiet)
            return
    else:
        if calibrate:
            from crust.cli.verify import calibrate_run

            calibrate_run(run, data, data_dir, quiet)
        table, classes = read_audit(run)
        found = read_calibration(run)
    table = table.sort_values(["label_quality", "index"], ascending=[True, True])
    if output is not None:
        write_table(table, output)
    if quiet:
        return
    from crust.cli.audit_tables import show

    show(table, classes, top, found)
    if output is not None:
        typer.echo(f"all {len(table):,} labels, worst first: {output}")
    elif run is not None:
        typer.echo(f"the whole table: {run / 'audit.parquet'}, or add -o table.csv")
    else:
        typer.echo("add -o table.csv to write them all")
