"""`crust audit`: the labels that a run doubts most, and what the noise looks like."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from crust.cli.messages import percent, show_log
from crust.cli.words import check_output, write_table

MATRIX = 12  # up to so many classes the whole matrix is shown
PAIRS = 15


def audit(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    top: Annotated[int, typer.Option(help="How many of the worst labels to show.", min=0)] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all, worst first, here (.csv or .parquet).")
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
    if report or corrections is not None or move or move_back:
        from crust.cli import audit_acts

        audit_acts.act(run, output, report, corrections, move, move_back, data, data_dir, quiet)
        return
    check_output(output, "-o", (".csv", ".parquet"))

    from crust.audit import estimated_transitions, read_audit

    table, classes = read_audit(run)
    table = table.sort_values(["doubt", "index"], ascending=[False, True])
    if output is not None:
        write_table(table, output)
    if quiet:
        return
    from rich.console import Console

    position = {name: i for i, name in enumerate(classes)}
    given, better = (table[name].map(position).to_numpy() for name in ("label", "suggested"))
    rate, matrix = estimated_transitions(given, better, len(classes))
    console = Console(highlight=False)
    if top:
        console.print(_worst(table.head(top)))
    console.print(
        f"estimated noise rate: {percent(rate)} of {len(table):,} labels differ from the suggested ones", soft_wrap=True
    )
    console.print(_matrix(matrix, classes) if len(classes) <= MATRIX else _pairs(matrix, classes))
    if output is not None:
        console.print(f"all {len(table):,} labels, worst first: {output}", soft_wrap=True, markup=False)
    else:
        console.print(f"the whole table: {run / 'audit.parquet'}, or add -o table.csv", soft_wrap=True, markup=False)


def _worst(table: Any) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    heads = ["index", *(["id"] if "id" in table else []), "label", "suggested", "probability", "doubt", "chosen"]
    shown = Table(box=box.SIMPLE_HEAD, title="the labels to doubt most", title_justify="left")
    for head in heads:
        shown.add_column(head, justify="left" if head in ("id", "label", "suggested") else "right")
    for row in table.to_dict("records"):
        cells = [str(row[head]) for head in heads[: heads.index("probability")]]
        chosen = "held out" if row["held_out"] else percent(row["chosen"])
        shown.add_row(*map(escape, cells), f"{row['probability']:.2f}", f"{row['doubt']:.3f}", chosen)
    return shown


def _matrix(matrix: Any, classes: list[Any]) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = "% of those that seem to be (row) labelled (column)"
    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    shown.add_column("")
    for name in classes:
        shown.add_column(escape(str(name)), justify="right")
    for name, row in zip(classes, matrix, strict=True):
        shown.add_row(escape(str(name)), *(f"{100 * share:.0f}" if share >= 0.005 else "·" for share in row))
    return shown


def _pairs(matrix: Any, classes: list[Any]) -> Any:
    """The largest entries off the diagonal, where the matrix is too large for a screen."""
    import numpy as np
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    off = matrix * (1 - np.eye(len(classes)))
    shown = Table(box=box.SIMPLE_HEAD, title="the most frequent confusions", title_justify="left")
    for head in ("seems to be", "labelled", "share"):
        shown.add_column(head, justify="right" if head == "share" else "left")
    for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS]:
        i, j = divmod(int(place), len(classes))
        if off[i, j] > 0:
            shown.add_row(escape(str(classes[i])), escape(str(classes[j])), percent(float(off[i, j])))
    return shown
