"""`crust audit`: the labels of the lowest quality, of a run, or of probabilities or features in files."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.formatting import percent, show_log, text_table, visible
from crust.errors import InputError

PROBS = typer.Option(
    help="Without a run: out-of-sample probabilities, a column a class (.npy, .npz:KEY, .csv, .parquet).",
    metavar="FILE",
)
FEATURES = typer.Option(help="Without a run: features, such as embeddings.", metavar="FILE")
LABELS = typer.Option(help="The labels that belong to --probs or --features.", metavar="FILE:KEY")

MATRIX = 12  # up to so many classes the whole matrix is shown
PAIRS = 15
CLASSES = 12
TWINS = 5


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
            raise InputError(f"{files[0]} and the run {run} are two audits: give one of them", code="options-exclude")
        return
    if not files:
        raise InputError(
            "there is nothing to audit: name the folder of a run, or give --probs or --features", code="nothing-to-do"
        )
    if files == ["--labels"]:
        raise InputError(
            "--labels alone cannot be judged: give --probs or --features with them", code="options-missing"
        )


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
        raise InputError(
            f"--{'probs' if probs is not None else 'features'} needs labels: give --labels FILE", code="options-missing"
        )
    if probs is not None and features is not None:
        raise InputError("--probs and --features are both given: give one of them", code="options-exclude")

    from crust.audit import find_label_issues
    from crust.data.labels import label_values
    from crust.data.matrix_io import read_matrix

    values, where = label_values(labels)
    given = _read_probabilities(probs) if probs is not None else read_matrix(str(features))
    if len(values) != len(given):
        other = Path(str(probs or features)).name
        raise InputError(
            f"{where} holds {len(values)} labels, but {other} has {len(given)} rows: give one label a row",
            code="labels-length",
        )
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


def print_audit(table: Any, classes: list[Any], top: int, found: dict[str, Any] | None) -> None:
    """All of it, on stdout; with what `crust verify` has found, where it was asked."""
    from rich.console import Console

    from crust.audit import class_summary, conflicting_duplicates, estimate_noise_matrix, noise_rate
    from crust.audit.reliability import warning_of

    position = {name: i for i, name in enumerate(classes)}
    given, better = (table[name].map(position).to_numpy() for name in ("given_label", "predicted_label"))
    rate, matrix = estimate_noise_matrix(given, better, len(classes))
    console = Console(highlight=False)
    if top:
        console.print(_worst_table(table.head(top)))
    console.print(f"{percent(rate)} of {len(table):,} labels differ from the predicted ones", soft_wrap=True)
    console.print(noise_rate(table, len(classes), found).sentence(), soft_wrap=True)
    warning = warning_of(table)
    if warning is not None:
        console.print(visible(warning), soft_wrap=True, markup=False)
    if found is not None:
        for line in verified_lines(found):
            console.print(line, soft_wrap=True, markup=False)
    console.print(_matrix_table(matrix, classes) if len(classes) <= MATRIX else _pairs_table(matrix, classes))
    view = class_summary(table, classes)
    console.print(_classes_table(view))
    rare = view.loc[view["under_selected"], "label"].tolist()
    if rare:
        names = ", ".join(map(visible, rare[:10])) + (" …" if len(rare) > 10 else "")
        console.print(f"hardly ever predicted or selected, so their labels cannot be judged: {names}", soft_wrap=True,
                      markup=False)  # fmt: skip
    twins = conflicting_duplicates(table)
    if len(twins):
        groups = twins.groupby("duplicate_of", sort=True)
        console.print(f"the same example with different labels, {twins['duplicate_of'].nunique():,} times:")
        for _, some in list(groups)[:TWINS]:
            said = ", ".join(f"{row['index']} ({visible(row['given_label'])})" for row in some.to_dict("records")[:10])
            console.print(f"  {said}", soft_wrap=True, markup=False)


def verified_lines(found: dict[str, Any]) -> list[str]:
    """What `crust verify` has found, in words.

    Example:
        >>> share = {"value": 0.2, "low": 0.15, "high": 0.25}
        >>> cut = {"threshold": 0.7, "flagged": 30, "precision": share, "recall": share}
        >>> verified_lines({"noise_rate": share, "cut": cut, "injected": {"count": 50}, "notes": []})[0]
        'verified with 50 injected errors'
    """

    def said(estimate: dict[str, float]) -> str:
        return f"{percent(estimate['value'])} ({percent(estimate['low'])} to {percent(estimate['high'])})"

    count, cut = found["injected"]["count"], found["cut"]
    lines = [f"verified with {count:,} injected errors"]
    if found["noise_rate"] is None:
        return [*lines, "no cut is recommended, since the noise rate is not known"]
    if cut is None:
        return [*lines, "no cut is recommended: hardly any label is wrong"]
    lines.append(
        f"recommended cut: a label quality of {1 - cut['threshold']:.3f} and less, which are {cut['flagged']:,} labels"
    )
    lines.append(f"of these are wrong {said(cut['precision'])}; of all wrong ones these are {said(cut['recall'])}")
    return [*lines, *found["notes"]]


def _worst_table(table: Any) -> Any:
    rate = ["selection_rate"] if table["selection_rate"].notna().any() else []
    names = [*(["id"] if "id" in table else []), "given_label", "predicted_label"]
    text = ["text"] if "text" in table else []
    rows = []
    for row in table.to_dict("records"):
        cells = [row["index"], *(row[name] for name in names)]
        cells += [f"{row['predicted_prob']:.2f}", f"{row['label_quality']:.3f}"]
        if rate:
            cells.append("held out" if row["is_held_out"] else percent(row["selection_rate"]))
        rows.append([*cells, *(row[name] for name in text)])
    heads = ["index", *names, "predicted_prob", "label_quality", *rate, *text]
    title = "the labels of the lowest quality"
    spare = [*rate, "predicted_prob", *(["index"] if "id" in table else []), "label_quality"]  # what they are sorted by
    return text_table(heads, rows, title=title, left=[*names, *text], whole=["id"], spare=spare, cut=text)


def _matrix_table(matrix: Any, classes: list[Any]) -> Any:
    title = "% of those predicted to be (row) that are labelled (column)"
    rows = [
        [name, *(f"{100 * share:.0f}" if share >= 0.005 else "·" for share in row)]
        for name, row in zip(classes, matrix, strict=True)
    ]
    return text_table(["", *classes], rows, title=title)


def _pairs_table(matrix: Any, classes: list[Any]) -> Any:
    """The largest entries off the diagonal, where the matrix is too large for a screen."""
    import numpy as np

    off = matrix * (1 - np.eye(len(classes)))
    places = [divmod(int(place), len(classes)) for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS]]
    rows = [(classes[i], classes[j], percent(float(off[i, j]))) for i, j in places if off[i, j] > 0]
    heads = ("predicted", "labelled", "share")
    return text_table(heads, rows, title="the most frequent confusions", left=heads[:2])


def _classes_table(view: Any) -> Any:
    few = (
        view if len(view) <= CLASSES else view.sort_values("label_noise", ascending=False, kind="stable").head(CLASSES)
    )
    title = "class by class" if len(few) == len(view) else f"the {CLASSES} noisiest of {len(view)} classes"
    rows = []
    for row in few.to_dict("records"):
        noisy, missed = (
            percent(None if row[name] != row[name] else row[name]) for name in ("label_noise", "inverse_label_noise")
        )
        rows.append((row["label"], f"{row['n_given']:,}", noisy, f"{row['n_predicted']:,}", missed))
    heads = ("", "labelled", "of these label issues", "predicted", "of these labelled otherwise")
    return text_table(heads, rows, title=title)
