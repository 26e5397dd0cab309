"""The tree of commands. Each lives in a file of its own and imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

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

SELECT = "crust select features.npy -k 0.1 --groups labels.npy -o coreset.parquet"
TABLE = "crust train patients.csv --label-column diagnosis -o runs/patients"
FEATURES = "--features embeddings.npy --labels labels.npy"
# In the order of the work, with examples on one's own data where a command takes any.
COMMANDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "train": (train_command, (TABLE, "crust train photos/ -o runs/photos", "crust train --resume -o runs/photos")),
    "predict": (predict_command, ("crust predict runs/photos new-photos/ -o predictions.csv",)),
    "audit": (audit_command, ("crust audit runs/photos --top 50 -o table.csv", f"crust audit {FEATURES}")),
    "report": (report_command, ("crust report runs/photos", f"crust report {FEATURES} -o report.html")),
    "verify": (verify_command, ("crust verify runs/photos",)),
    "review": (review_command, ("crust review runs/photos", "crust review runs/photos --export corrections.csv")),
    "apply": (apply_command, ("crust apply runs/patients -o corrected.csv", "crust apply runs/photos corrections.csv",
              "crust apply runs/photos --move")),
    "select": (select_command, (SELECT, "crust select shards/ -k 1000 --engine ray --address 10.0.0.1:6379")),
    "theory": (theory_command, ("crust theory runs/photos --epochs 0,10,40",)),
    "reproduce": (reproduce_command, ("crust reproduce table1 --scale cpu --dry-run",
                  "crust reproduce --grid grid.yaml --jobs 2")),
    "methods": (methods_command, ("crust methods crust", "crust methods --json")),
    "demo": (demo_command, ("crust demo -o demo-output",)),
}  # fmt: skip


def _example(*lines: str) -> str:
    return "Example:\n\n" + "\n\n".join(f"[bold]{line}[/bold]" for line in lines)


class _Flags:
    """A flag takes no value: help says no type beside it."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return found


class _Command(_Flags, TyperCommand):
    pass


class _Group(_Flags, TyperGroup):
    pass


app = typer.Typer(
    name="crust",
    cls=_Group,
    help="Train on data with wrong labels, and find out which labels are wrong.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=_example(TABLE, "crust audit runs/patients", "crust review runs/patients"),
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


for name, (command, examples) in COMMANDS.items():
    app.command(name, cls=_Command, epilog=_example(*examples))(command)
