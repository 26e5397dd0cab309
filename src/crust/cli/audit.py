"""`crust audit`: the labels of the lowest quality, of a run, or of probabilities or features in files."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.formatting import show_log
from crust.errors import InputError

PROBS = typer.Option(
    help="Without a run: out-of-sample probabilities, a column a class (.npy, .npz:KEY, .csv, .parquet).",
    metavar="FILE",
)
FEATURES = typer.Option(help="Without a run: features, such as embeddings.", metavar="FILE")
LABELS = typer.Option(help="The labels that belong to --probs or --features.", metavar="FILE:KEY")


def audit_command(
    run: Annotated[
        Path | None, typer.Argument(help="Folder of a finished run.", metavar="RUN", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the worst labels to show.", min=0)] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all, worst first, here (.csv or .parquet).")
    ] = None,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Show the labels of the lowest quality, how many differ from the predicted ones, and which classes are mixed."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    check_sources(run, probs, features, labels)

    from crust.runs.folder import RunFolder

    folder = None if run is None else RunFolder(run)
    own = None if folder is None else folder.audit_path
    check_output(output, "-o", (".csv", ".parquet"), [probs, features, labels, own])
    table, classes = audit_files(probs, features, labels, quiet) if folder is None else folder.audit()
    verified = None if folder is None else folder.verified()
    table = table.sort_values(["label_quality", "index"], ascending=[True, True])
    if output is not None:
        write_table(table, output)
    if quiet:
        return
    from crust.cli.audit_tables import print_audit

    print_audit(table, classes, top, verified)
    if output is not None:
        typer.echo(f"all {len(table):,} labels, worst first: {output}")
    elif folder is not None:
        typer.echo(f"the whole table: {folder.audit_path}, or add -o table.csv")
    else:
        typer.echo("add -o table.csv to write them all")
    typer.echo(f"next: {_what_next(run, probs, features, labels, verified is not None)}")


def check_sources(run: Path | None, probs: str | None, features: str | None, labels: str | None) -> None:
    """Either a run, or files: not both, and not nothing."""
    files = [name for name, value in (("--probs", probs), ("--features", features), ("--labels", labels)) if value]
    if run is not None:
        if files:
            raise InputError(f"{files[0]} and the run {run} are two audits: give one of them")
        return
    if not files:
        raise InputError("there is nothing to audit: name the folder of a run, or give --probs or --features")
    if files == ["--labels"]:
        raise InputError("--labels alone cannot be judged: give --probs or --features with them")


def _what_next(run: Path | None, probs: str | None, features: str | None, labels: str | None, verified: bool) -> str:
    """The commands that follow, as they would be typed."""
    from crust.runs.folder import REPORT

    if run is None:
        source = ["--probs", str(probs)] if probs is not None else ["--features", str(features)]
        return shlex.join(["crust", "report", *source, "--labels", str(labels), "-o", REPORT])
    names = ("report", "review") if verified else ("report", "verify", "review")
    commands = [shlex.join(["crust", name, str(run)]) for name in names]
    return f"{', '.join(commands[:-1])}, or {commands[-1]}"


def audit_files(probs: str | None, features: str | None, labels: str | None, quiet: bool) -> tuple[Any, list[Any]]:
    """The table and the classes of an audit without training."""
    if labels is None:
        raise InputError(f"--{'probs' if probs is not None else 'features'} needs labels: give --labels FILE")
    if probs is not None and features is not None:
        raise InputError("--probs and --features are both given: give one of them")

    from crust.audit import find_label_issues
    from crust.data.labels import label_values
    from crust.data.matrix_io import read_matrix

    values, where = label_values(labels)
    given = _read_probabilities(probs) if probs is not None else read_matrix(str(features))
    if len(values) != len(given):
        other = Path(str(probs or features)).name
        raise InputError(f"{where} holds {len(values)} labels, but {other} has {len(given)} rows: give one label a row")
    if probs is not None:
        table = find_label_issues(_as_column_names(values, labels, given), given)
    else:
        table = find_label_issues(values, features=given, progress=not quiet)
    names = set(table["given_label"]) | set(table["predicted_label"])
    return table, sorted(names)


def _as_column_names(values: Any, labels: str, given: Any) -> Any:
    """The labels as text where only so they are the names of the columns: true and 01 are no numbers then."""
    from crust.data.labels import label_values

    names = {str(name) for name in getattr(given, "columns", ())}
    if not names or {str(value) for value in values.tolist()} <= names:
        return values
    texts, _ = label_values(labels, text=True)
    return texts if {str(text) for text in texts.tolist()} <= names else values


def _read_probabilities(spec: str) -> Any:
    """The matrix; of a table with its column names, which are those of the classes."""
    from crust.data import matrix_io, table_io

    matrix = matrix_io.read_matrix(spec)
    path = matrix_io.split_spec(spec)[0]
    if path.suffix.lower() not in matrix_io.TABLES:
        return matrix
    import pandas as pd

    with matrix_io.reading(path):
        table = table_io.read_table_file(path)
        names = [name for name in table.column_names if name and table_io.is_numeric(table.schema.field(name).type)]
    return pd.DataFrame(matrix, columns=names) if len(names) == matrix.shape[1] else matrix
