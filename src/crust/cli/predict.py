"""`crust predict`: what a trained network says of new data."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.formatting import percent, show_log

SHOWN = 10


def predict_command(
    run: Annotated[Path, typer.Argument(help="Folder of a run of `crust train`.", metavar="RUN")],
    data: Annotated[str, typer.Argument(help="Data of the kind it was trained on.", metavar="DATA")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the predictions here (.csv or .parquet).")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Where named datasets are; default: $CRUST_DATA, else data.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Examples at a time.", min=1)] = 128,
    device: Annotated[
        str | None, typer.Option(help="Such as cpu, cuda:1 or mps; default: a GPU where CUDA has one.", metavar="NAME")
    ] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON, for a machine to read.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Predict the classes of new data, with the probabilities of all of them."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    check_output(output, "-o", (".csv", ".parquet"), [data])

    import torch

    import crust
    from crust.data import load_new
    from crust.runs.folder import RunFolder
    from crust.selection.input_checks import check_device

    result = crust.load(run)
    result.model.to(check_device(device) or ("cuda" if torch.cuda.is_available() else "cpu"))
    examples = load_new(data, RunFolder(run).encoding(), data_dir=data_dir, skip_broken=skip_broken)
    table = prediction_table(examples, result.predict_proba(examples, batch_size=batch_size), result.classes)
    if output is not None:
        write_table(table, output)
    if as_json:
        typer.echo(table.to_json(orient="records", double_precision=6, force_ascii=False))
    if quiet or as_json:
        return
    if output is None:
        typer.echo(table.iloc[:SHOWN, : list(table.columns).index("probability") + 1].to_string(index=False))
        if len(table) > SHOWN:
            typer.echo(f"… and {len(table) - SHOWN:,} more")
    if "label" in table:
        known = table[table["label"].notna()]
        right = (known["label"] == known["predicted"]).mean()
        typer.echo(f"accuracy on {len(known):,} examples with labels: {percent(float(right))}")
    if output is not None:
        typer.echo(f"{len(table):,} predictions written to: {output}")
    else:
        typer.echo("next: the same command with -o predictions.csv, to write them all with all probabilities")


def prediction_table(examples: Any, probabilities: Any, classes: list[Any]) -> Any:
    import numpy as np
    import pandas as pd

    names, best = np.array(classes, dtype=object), probabilities.argmax(axis=1)
    columns: dict[str, Any] = {"index": np.arange(len(best))}
    if examples.ids is not None:
        columns["id"] = list(examples.ids)
    if (examples.labels >= 0).any():
        columns["label"] = examples.decode(examples.labels)
    columns |= {"predicted": names[best], "probability": probabilities[np.arange(len(best)), best]}
    columns |= {f"p({name})": probabilities[:, i] for i, name in enumerate(classes)}
    return pd.DataFrame(columns)
