"""The tree of commands. Each lives in a file of its own and imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from crust import __version__
from crust.cli.audit import audit
from crust.cli.demo import demo
from crust.cli.methods import methods
from crust.cli.predict import predict
from crust.cli.reproduce import reproduce
from crust.cli.review import review
from crust.cli.select import select
from crust.cli.theory import theory
from crust.cli.train import train


def _example(*lines: str) -> str:
    return "Example:\n\n" + "\n\n".join(f"[bold]{line}[/bold]" for line in lines)


SELECT = "crust select features.npy -k 0.1 --groups labels.npy -o coreset.parquet"
AUDIT = (
    "crust audit runs/a --top 20 -o table.csv",
    "crust audit runs/a --report",
    "crust audit runs/a --apply corrections",
    "crust audit --probs probs.npy --labels labels.npy",
)
TRAIN = "crust train cifar10 --model resnet32 --noise symmetric:0.5 --epochs 120 -o runs/a"

app = typer.Typer(
    name="crust",
    help="Train on data with wrong labels, and find out which labels are wrong.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=_example("crust train digits --noise symmetric:0.4 --epochs 20 -o runs/a", SELECT),
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


app.command("demo", epilog=_example("crust demo -o demo-output"))(demo)
app.command("train", epilog=_example(TRAIN, "crust train --resume -o runs/a"))(train)
app.command("predict", epilog=_example("crust predict runs/a cifar10 -o predictions.csv"))(predict)
app.command("audit", epilog=_example(*AUDIT))(audit)
app.command("review", epilog=_example("crust review runs/a", "crust review runs/a --export corrections.csv"))(review)
app.command("theory", epilog=_example("crust theory runs/a --epochs 0,10,40"))(theory)
app.command(
    "reproduce",
    epilog=_example("crust reproduce table1 --scale cpu --dry-run", "crust reproduce --grid grid.yaml --jobs 2"),
)(reproduce)
app.command("methods", epilog=_example("crust methods crust"))(methods)
app.command("select", epilog=_example(SELECT, "crust select shards/ -k 1000 --engine ray --address 10.0.0.1:6379"))(
    select
)
