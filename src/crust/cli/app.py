"""The tree of commands. Each lives in a file of its own and imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from crust import __version__
from crust.cli.select import select

app = typer.Typer(
    name="crust",
    help="Train on data with wrong labels, and find out which labels are wrong.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Example:\n\n[bold]crust select features.npy -k 0.1 --groups labels.npy -o coreset.parquet[/bold]",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crust {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None: ...


app.command(
    "select",
    epilog="Example:\n\n[bold]crust select features.npy -k 0.1 --groups labels.npy -o coreset.parquet[/bold]",
)(select)
