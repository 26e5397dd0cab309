"""`crust apply`: corrected labels in the form that the data came in."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust.cli.audit import DATA_DIR, FEATURES, LABELS, PROBS, SHOW, SOURCE
from crust.cli.formatting import show_log
from crust.cli.retrain import retrain_command
from crust.errors import InputError

if TYPE_CHECKING:
    from crust.corrections.apply_corrections import AppliedCorrections
    from crust.runs.audit_source import AuditSource


def apply_command(
    run: Annotated[Path | None, SOURCE] = None,
    corrections: Annotated[
        Path | None,
        typer.Argument(
            help="A .csv, .tsv or .parquet with index (or id) and corrected, or a .json of Label Studio, Argilla or "
            "FiftyOne; default: the decisions of `crust review`.",
            metavar="CORRECTIONS",
            show_default=False,
        ),
    ] = None,
    named: Annotated[
        Path | None, typer.Option("--corrections", help="The same, with --probs or --features.", metavar="FILE")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file to write; default: in RUN. Of a folder: the list of moves."),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Move the files of an image folder.")] = False,
    move_back: Annotated[bool, typer.Option("--move-back", help="Move them back to where they were.")] = False,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    show: Annotated[str | None, SHOW] = None,
    data: Annotated[
        str | None, typer.Option(help="The run's data, where it is not in its old place; or the table to correct.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="Of the table that --data names.")] = None,
    data_dir: Annotated[str | None, DATA_DIR] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the corrected labels: a copy of the table or archive, a file of labels, or a list of images to move."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    corrections = corrections or named
    if move_back and (move or corrections is not None):
        raise InputError(
            "--move-back undoes what was moved: leave out --move and the corrections", code="options-exclude"
        )

    from crust.corrections.apply_corrections import apply_corrections, move_files_back, source_options
    from crust.runs.audit_source import open_audit

    progress = None if quiet else _show_moves
    source = open_audit(run, probs=probs, features=features, labels=labels, show=show, data=data, data_dir=data_dir)
    if move_back:
        found = move_files_back(source, moves=output, progress=progress)
        if not quiet:
            before = f"; {found.moved_before:,} were in their places" if found.moved_before else ""
            typer.echo(f"{found.moved:,} files moved back{before}")
        return
    found = apply_corrections(
        source, corrections, output=output, move=move, label_column=label_column, progress=progress
    )
    if quiet:
        return
    options = source_options(source, label_column)
    if found.form == "folder":
        told = [] if corrections is None else source.corrections_words(corrections)
        aside = [] if output is None else ["-o", str(output)]
        _print_moves(found, source, options, None if move else source.command("apply", *told, *aside, "--move"))
        return
    gone = ""
    if found.excluded:
        what = "marked as excluded" if found.form == "labels" else "left out"
        gone = f", {found.excluded:,} example{'s' if found.excluded > 1 else ''} {what}"
    typer.echo(f"{found.changed:,} of {found.examples:,} labels changed{gone}, written to: {found.path}")
    typer.echo(f"next: {_again(source, found, options)}")


def _again(source: AuditSource, found: AppliedCorrections, options: dict[str, Any]) -> str:
    """What to do with corrected labels: train as before, or for the first time, or audit again."""
    if source.run is not None and found.form == "labels":
        return retrain_command(source.run, options.get("data") or "DATA", options, found.examples, found.path)
    if source.run is not None:
        return retrain_command(source.run, found.path, options, found.examples)
    if found.form == "table":
        column = ["--label-column", options["label_column"]] if options.get("label_column") else []
        return shlex.join(["crust", "train", str(found.path), *column])
    if found.form == "npz":
        return shlex.join(["crust", "train", str(found.path)])
    if source.words[:1] in (["--probs"], ["--features"]):
        again = f"{found.path}:label" if found.form == "labels" else str(found.path)
        return (
            f"{shlex.join(['crust', 'audit', *source.words[:2], '--labels', again])}, or train on the corrected labels"
        )
    return shlex.join(["crust", "train", "DATA", "--labels", str(found.path)])


def _print_moves(found: AppliedCorrections, source: AuditSource, options: dict[str, Any], to_move: str | None) -> None:
    """What was moved; or what would be, and the command that does it."""
    from crust.corrections.apply_corrections import move_back_command

    if source.run is None:
        train = shlex.join(["crust", "train", options["data"]])
    else:
        train = retrain_command(source.run, options["data"], options, found.examples)
    again = f"back: {move_back_command(source, found.path)}; next: {train}"
    before = found.moved_before
    if to_move is None:
        had = f"; {before:,} had been before" if before else ""
        typer.echo(f"{found.moved:,} files moved, as listed in {found.path}{had}")
        typer.echo(again)
        return
    what = f"{before:,} of them made before" if before else "nothing is moved yet"
    typer.echo(f"{found.changed:,} moves listed in: {found.path}; {what}")
    typer.echo(f"next: {to_move}" if before < found.changed else again)


def _show_moves(done: int, total: int) -> None:
    """A line now and then: renaming is quick, but a network drive is not."""
    if done % 1000 == 0:
        sys.stderr.write(f"{done:,} of {total:,} files moved\n")
