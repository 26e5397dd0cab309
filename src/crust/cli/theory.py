"""`crust theory`: does the paper's theory hold for a run?"""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from crust.cli.formatting import percent, show_log
from crust.errors import InputError


def theory_command(
    run: Annotated[Path, typer.Argument(help="Folder of a run, finished or going on.", metavar="RUN")],
    epochs: Annotated[
        str | None,
        typer.Option(
            help="Checkpoints to look at, such as 0,10,40 (0: before training), all or last; default: up to six.",
            metavar="LIST",
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Training examples to look at, drawn at random.", min=2)] = 200,
    cut: Annotated[
        str,
        typer.Option(help="Information space: a share of the energy (0.9), a rank (10), or gap.", metavar="CUT"),
    ] = "0.9",
    repeats: Annotated[int, typer.Option(help="Random subsets to compare with.", min=0)] = 10,
    steps: Annotated[int, typer.Option(help="At most so many steps to test the theorem; 0: no test.", min=0)] = 500,
    data_dir: Annotated[
        str | None, typer.Option(help="Where named datasets are; default: $CRUST_DATA, else data.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder to write to; default: RUN.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Spectrum, alignment of labels, quality of coresets and the theorem's premises, as tables and plots."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    where = run if output is None else output
    if where.exists() and not where.is_dir():
        raise InputError(f"-o {where} is a file: name a folder")

    from crust.runs.checkpoints import reopen
    from crust.theory.diagnose import diagnose

    opened = reopen(run, data_dir=data_dir)
    found = diagnose(
        opened,
        parse_epochs(epochs, opened.epochs),
        points=points,
        cut=parse_cut(cut),
        repeats=repeats,
        max_steps=steps,
        say=(lambda text: None) if quiet else _say,
    )

    from crust._util.atomic_write import write_atomic
    from crust.cli import theory_html
    from crust.theory.plots import diagnosis_plots, write_picture

    summary = found.summary()
    where.mkdir(parents=True, exist_ok=True)
    write_atomic(where / "theory.json", json.dumps(summary, ensure_ascii=False).encode())
    write_picture(where / "theory.png", summary)
    write_atomic(where / "theory.html", theory_html.build(summary, diagnosis_plots(summary)).encode())
    if not quiet:
        _print_theory(summary, where)


def parse_epochs(text: str | None, there: list[int]) -> list[int] | None:
    """`--epochs`: numbers, all, or last.

    Example:
        >>> parse_epochs("0, 5", [0, 5, 10]), parse_epochs("last", [0, 5, 10]), parse_epochs(None, [0])
        ([0, 5], [10], None)
        >>> parse_epochs("7", [0, 5, 10])
        Traceback (most recent call last):
        ...
        crust.errors.InputError: there is no checkpoint of epoch 7, only of 0, 5, 10: train with --keep-every N ...
    """
    if text is None or text.strip() == "":
        return None
    if text.strip() in ("all", "last"):
        return list(there) if text.strip() == "all" else [there[-1]]
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d+", part) for part in parts):
        raise InputError(f"--epochs {text} is no list of epochs: write 0,10,40, or all, or last")
    wanted = [int(part) for part in parts]
    for epoch in wanted:
        if epoch not in there:
            raise InputError(
                f"there is no checkpoint of epoch {epoch}, only of {', '.join(map(str, there))}: "
                "train with --keep-every N to keep every Nth"
            )
    return wanted


def parse_cut(text: str) -> int | float | str:
    """`--cut`: a whole number is a rank, a decimal point makes it a share of the energy.

    Example:
        >>> parse_cut("10"), parse_cut("0.9"), parse_cut("gap")
        (10, 0.9, 'gap')
    """
    word = text.strip()
    if re.fullmatch(r"\d+", word):
        return int(word)
    if re.fullmatch(r"\d*\.\d+", word):
        return float(word)
    if word != "gap":
        raise InputError(f"--cut {text}: give a share of the energy such as 0.9, a rank such as 10, or gap")
    return word


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _print_theory(summary: dict, where: Path) -> None:
    """The tables in short."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from crust.cli import theory_html

    console = Console(highlight=False)
    parts = [("Labels in the information space", *theory_html.epoch_rows(summary))]
    heads, rows = theory_html.quality_rows(summary)
    if rows:
        parts.append(("Coresets beside random subsets", heads, rows))
    if summary["guarantee"] is not None:
        heads, rows = theory_html.premise_rows(summary["guarantee"])
        parts.append(("Theorem 1", heads[:-1], [row[:-1] for row in rows]))
    for title, heads, rows in parts:
        shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
        for head in heads:
            shown.add_column(head)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
    if summary["guarantee"] is not None:
        typer.echo(theory_html.outcome_words(summary["guarantee"]))
    noise = "" if summary["noise"] is None else f", {percent(summary['noise'])} of their labels wrong"
    typer.echo(f"{summary['points']:,} examples{noise}; written to: {where / 'theory.html'}, theory.png, theory.json")
