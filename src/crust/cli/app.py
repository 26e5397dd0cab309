"""The tree of commands. Each lives in a file of its own and imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from crust import __version__
from crust.cli.apply import apply_command
from crust.cli.audit import audit_command
from crust.cli.demo import demo_command
from crust.cli.methods import methods_command
from crust.cli.predict import predict_command
from crust.cli.report import report_command
from crust.cli.reproduce import reproduce_command
from crust.cli.review import review_command
from crust.cli.select import select_command
from crust.cli.theory import theory_command
from crust.cli.train import train_command
from crust.cli.verify import verify_command


def _example(*lines: str) -> str:
    return "Example:\n\n" + "\n\n".join(f"[bold]{line}[/bold]" for line in lines)


SELECT = "crust select features.npy -k 0.1 --groups labels.npy -o coreset.parquet"
TRAIN = "crust train photos/ --epochs 60 -o runs/a"

app = typer.Typer(
    name="crust",
    help="Train on data with wrong labels, and find out which labels are wrong.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=_example(TRAIN, "crust audit runs/a", SELECT),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crust {__version__}")
        raise typer.Exit


@app.callback()
def _main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None: ...  # --debug is found by `main`, after any command


# In the order of the work; the examples are on one's own data, where a command takes any.
app.command("train", epilog=_example(TRAIN, "crust train table.csv --label-column kind -o runs/b",
            "crust train --resume -o runs/a"))(train_command)  # fmt: skip
app.command("predict", epilog=_example("crust predict runs/a new-photos/ -o predictions.csv"))(predict_command)
app.command("audit", epilog=_example("crust audit runs/a --top 50 -o table.csv",
            "crust audit --probs probs.npy --labels labels.npy"))(audit_command)  # fmt: skip
app.command("report", epilog=_example("crust report runs/a",
            "crust report --features embeddings.npy --labels labels.npy --data texts.txt -o report.html",
            ))(report_command)  # fmt: skip
app.command("verify", epilog=_example("crust verify runs/a"))(verify_command)
app.command("review", epilog=_example("crust review runs/a", "crust review runs/a --export corrections.csv"))(
    review_command
)
app.command("apply", epilog=_example("crust apply runs/a -o corrected.csv", "crust apply runs/a corrections.csv",
            "crust apply runs/a --move"))(apply_command)  # fmt: skip
app.command("select", epilog=_example(SELECT, "crust select shards/ -k 1000 --engine ray --address 10.0.0.1:6379"))(
    select_command
)
app.command("theory", epilog=_example("crust theory runs/a --epochs 0,10,40"))(theory_command)
app.command(
    "reproduce",
    epilog=_example("crust reproduce table1 --scale cpu --dry-run", "crust reproduce --grid grid.yaml --jobs 2"),
)(reproduce_command)
app.command("methods", epilog=_example("crust methods crust"))(methods_command)
app.command("demo", epilog=_example("crust demo -o demo-output"))(demo_command)
