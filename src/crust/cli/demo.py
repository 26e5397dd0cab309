"""`crust demo`: one network trained twice on digits with wrong labels, plainly and by crust, and what comes out."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from crust.cli.formatting import StoppedByUser, duration, show_log, text_table
from crust.cli.train import train_by_recipe
from crust.errors import InputError
from crust.runs.folder import REPORT

if TYPE_CHECKING:
    from crust.cli.demo_comparison import Facts

FOLDER = Path("demo-output")
METHODS = ("erm", "crust")
NOISE = "symmetric:0.4"
MODEL = "small_cnn"  # what `crust train digits` takes by itself
EPOCHS = 40
MARK = "demo.json"  # what was measured; and it says that the folder is ours, so that the next demo may replace it


def demo_command(
    output: Annotated[Path, Option("-o", "--output", help="Folder for the runs and report.html.")] = FOLDER,
    epochs: Annotated[int, Option(help="Of each of the two runs.", min=1)] = EPOCHS,
    seed: Annotated[int, Option(help="Of everything random: the wrong labels, the networks.", min=0)] = 0,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Train on handwritten digits with 40 % wrong labels, plainly and by crust, and compare: under three minutes."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    start = time.perf_counter()
    settings = {"epochs": epochs, "seed": seed}
    _clear(output, settings)

    from crust._util.atomic_write import write_atomic
    from crust.cli.demo_comparison import Facts, demo_page, measure
    from crust.data import load

    digits = load("digits")
    runs = {}
    for method in METHODS:
        if not quiet:
            typer.echo(f"$ {command(method, output, epochs, seed)}")
        options = {"data": "digits", "model": MODEL, "method": method, "noise": NOISE}
        try:
            result = train_by_recipe(options, settings, output / method, False, quiet)
        except StoppedByUser:
            raise StoppedByUser("stopped before the demo was finished: start again with crust demo") from None
        runs[method] = measure(result, digits)
    commands = [command(method, output, epochs, seed) for method in METHODS]
    facts = Facts(runs["erm"], runs["crust"], NOISE, commands)
    write_atomic(output / REPORT, demo_page(facts, digits.train).encode())
    _mark(output, settings | {"runs": [run.numbers() for run in runs.values()]})
    if not quiet:
        _print_facts(facts, output, time.perf_counter() - start)


def command(method: str, output: Path, epochs: int, seed: int) -> str:
    """What to type to train one of the two.

    Example:
        >>> command("erm", Path("out"), 40, 0)
        'crust train digits --model small_cnn --method erm --noise symmetric:0.4 --epochs 40 --seed 0 -o out/erm'
    """
    words = ["crust", "train", "digits", "--model", MODEL, "--method", method, "--noise", NOISE]
    return shlex.join([*words, "--epochs", str(epochs), "--seed", str(seed), "-o", str(output / method)])


def _clear(folder: Path, settings: dict[str, Any]) -> None:
    """Make room for the runs: what an earlier demo has left is replaced, anything else is not touched."""
    ours = (folder / MARK).is_file()
    for name in (*METHODS, REPORT):
        if (folder / name).exists() and not ours:
            raise InputError(f"{folder / name} is not from a demo: choose another folder with -o", code="output-taken")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in METHODS:
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        (folder / REPORT).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"-o {folder} cannot be used ({error.strerror or error}): choose another folder", code="not-writable"
        ) from None
    _mark(folder, settings)


def _mark(folder: Path, content: dict[str, Any]) -> None:
    from crust._util.atomic_write import write_atomic

    text = json.dumps({"what": "crust demo", "noise": NOISE, **content}, indent=1)
    write_atomic(folder / MARK, f"{text}\n".encode())


def _print_facts(facts: Facts, folder: Path, seconds: float) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"\n{facts.crust.examples:,} handwritten digits, {facts.crust.planted:,} of the labels made wrong on purpose; "
        f"the same network trained twice, in {duration(seconds)}",
        soft_wrap=True,
    )
    console.print(text_table(("", *METHODS), facts.rows()))
    console.print(facts.footnote(), soft_wrap=True)
    console.print(f"look at: {folder / REPORT}", soft_wrap=True, markup=False)
    console.print(f"next: crust audit {shlex.quote(str(folder / 'crust'))}", soft_wrap=True, markup=False)
