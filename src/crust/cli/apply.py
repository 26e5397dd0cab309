"""`crust apply`: corrected labels in the form that the data came in."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust.cli.formatting import show_log
from crust.cli.train_again import train_again_command
from crust.errors import InputError

if TYPE_CHECKING:
    from crust.corrections.apply_corrections import AppliedCorrections
    from crust.runs.folder import RunFolder


def apply_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    corrections: Annotated[
        Path | None,
        typer.Argument(
            help="A .csv, .tsv or .parquet with index (or id) and corrected; default: the decisions of `crust review`.",
            metavar="CORRECTIONS",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file to write; default: in RUN. Of a folder: the list of moves."),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Move the files of an image folder.")] = False,
    move_back: Annotated[bool, typer.Option("--move-back", help="Move them back to where they were.")] = False,
    data: Annotated[str | None, typer.Option(help="The run's data, where it is not in its old place.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where named datasets are; default: as in training.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the corrected labels: a copy of the table or archive, a file of labels, or a list of images to move."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    if move_back and (move or corrections is not None):
        raise InputError(
            "--move-back undoes what was moved: leave out --move and the corrections", code="options-exclude"
        )

    from crust.corrections.apply_corrections import apply_corrections, data_options, move_files_back
    from crust.runs.folder import RunFolder

    progress = None if quiet else _show_moves
    if move_back:
        found = move_files_back(run, moves=output, data=data, progress=progress)
        if not quiet:
            before = f"; {found.moved_before:,} were in their places" if found.moved_before else ""
            typer.echo(f"{found.moved:,} files moved back{before}")
        return
    found = apply_corrections(
        run, corrections, output=output, move=move, data=data, data_dir=data_dir, progress=progress
    )
    if quiet:
        return
    folder = RunFolder(run)
    options = data_options(folder, data, data_dir)
    if found.form == "folder":
        _print_moves(found, folder, options, data, move)
        return
    typer.echo(f"{found.changed:,} of {found.examples:,} labels changed, written to: {found.path}")
    if found.form == "labels":
        again = train_again_command(folder, options.get("data") or "DATA", options, found.examples, found.path)
    else:
        again = train_again_command(folder, found.path, options, found.examples)
    typer.echo(f"next: {again}")


def _print_moves(
    found: AppliedCorrections, run: RunFolder, options: dict[str, Any], data: str | None, move: bool
) -> None:
    from crust.corrections.apply_corrections import move_back_command

    train = train_again_command(run, options["data"], options, found.examples)
    again = f"back: {move_back_command(run, found.path, data)}; next: {train}"
    before = found.moved_before
    if move:
        had = f"; {before:,} had been before" if before else ""
        typer.echo(f"{found.moved:,} files moved, as listed in {found.path}{had}")
        typer.echo(again)
        return
    what = f"{before:,} of them made before" if before else "nothing is moved yet"
    typer.echo(f"{found.changed:,} moves listed in: {found.path}; {what}")
    typer.echo("next: the same command with --move" if before < found.changed else again)


def _show_moves(done: int, total: int) -> None:
    """A line now and then: renaming is quick, but a network drive is not."""
    if done % 1000 == 0:
        sys.stderr.write(f"{done:,} of {total:,} files moved\n")
