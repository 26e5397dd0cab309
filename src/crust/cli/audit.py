"""`crust audit`: the labels of the lowest quality, of a run, or of probabilities or features in files."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.formatting import percent, show_log, text_table, visible
from crust.errors import InputError, choices

if TYPE_CHECKING:
    from crust.runs.audit_source import AuditSource

SOURCE = typer.Argument(
    help="Folder of a finished run, or a table of label issues (.csv, .parquet): of crust, cleanlab or another tool.",
    metavar="RUN",
    show_default=False,
)
PROBS = typer.Option(
    help="Without a run: out-of-sample probabilities, a column a class (.npy, .npz:KEY, .csv, .parquet).",
    metavar="FILE",
)
FEATURES = typer.Option(help="Without a run: features, such as embeddings.", metavar="FILE")
LABELS = typer.Option(help="The labels that belong to --probs or --features.", metavar="FILE:KEY")
SHOW = typer.Option(
    help="What to show of the examples: a table or a column of it (texts.csv:body), a .txt with one text a line, an "
    "array of images or features, or the folder that the ids are relative to.",
    metavar="WHAT",
)
DATA = typer.Option(help="The run's data, where it is not in its old place.")
DATA_DIR = typer.Option(help="Where named datasets are; default: as in training.")

MATRIX = 12  # up to so many classes the whole matrix is shown
PAIRS = 15
CLASSES = 12
TWINS = 5
EXCERPT = 280  # letters of what is shown of an example


def audit_command(
    run: Annotated[Path | None, SOURCE] = None,
    top: Annotated[int, typer.Option(help="How many of the worst labels to show.", min=0)] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all, worst first, here (.csv or .parquet).")
    ] = None,
    issues: Annotated[bool, typer.Option("--issues", help="Only the label issues: just the list.")] = False,
    to: Annotated[
        str | None,
        typer.Option(help="Write -o for another tool: cleanlab, label-studio, argilla or fiftyone.", metavar="TOOL"),
    ] = None,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    show: Annotated[str | None, SHOW] = None,
    data: Annotated[str | None, DATA] = None,
    data_dir: Annotated[str | None, DATA_DIR] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found, and the --top worst, as JSON, for a machine to read.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Show the labels of the lowest quality, how many differ from the predicted ones, and which classes are mixed."""
    show_log(logging.ERROR if quiet else logging.WARNING)

    from crust.exchange import TOOLS, write_for
    from crust.runs.audit_source import open_audit

    suffixes = (".csv", ".parquet") if to is None else TOOLS[choices(to, TOOLS, "tool")]
    if to is not None and output is None:
        raise InputError(f"--to {to} writes a file: name it with -o", code="no-output")
    check_output(output, "-o", suffixes, [probs, features, labels])
    source = open_audit(
        run, probs=probs, features=features, labels=labels, show=show, data=data, data_dir=data_dir, progress=not quiet
    )
    check_output(output, "-o", suffixes, [source.path])
    table, classes, verified = source.table, source.classes, source.verified()
    listed = source.suspects()
    if show is not None:
        table = _with_texts(table, source.looks()[0])
    order = ["label_quality", "index"]
    if issues:
        table = table[listed]
    table = table.sort_values(order, ascending=[True, True])
    if output is not None and to is not None:
        looks = source.looks()[0] if to != "cleanlab" else None
        write_for(to, table, output, looks=looks)
    elif output is not None:
        write_table(table, output)
    if as_json:
        typer.echo(json.dumps(_for_machines(source, listed, table.head(top)), indent=2, default=str))
    if quiet or as_json:
        return
    if issues:
        if top and len(table):
            print_whole(_worst_table(table.head(top)))
        typer.echo(f"{len(table):,} of {len(listed):,} labels are label issues")
    else:
        print_audit(table, classes, top, verified, int(listed.sum()), source.noise_rate().sentence())
    if output is not None:
        typer.echo(f"all {len(table):,} {'label issues' if issues else 'labels'}, worst first: {output}")
    elif source.run is not None:
        typer.echo(f"the whole table: {source.path}, or add -o table.csv; only the label issues: add --issues")
    else:
        typer.echo("add -o table.csv to write them all, and --issues for the label issues alone")
    typer.echo(f"next: {_what_next(source, verified is not None)}")


def _for_machines(source: AuditSource, listed: Any, worst: Any) -> dict[str, Any]:
    """What the audit comes down to, and its worst labels."""
    from crust.audit import noise_rate
    from crust.audit.audit_tables import differing
    from crust.audit.reliability import warning_of

    warning = warning_of(source.table)
    return {
        "examples": len(listed),
        "label_issues": int(listed.sum()),
        "differ_from_predicted": int(differing(source.table, source.classes)[1]),
        "noise_rate": vars(noise_rate(source.table, len(source.classes), source.verified())),
        "warnings": [] if warning is None else [warning],
        "worst": json.loads(worst.to_json(orient="records", double_precision=6)),
    }


def _what_next(source: AuditSource, verified: bool) -> str:
    """The commands that follow, as they would be typed."""
    names = ("report", "review") if verified or source.run is None else ("report", "verify", "review")
    commands = [
        shlex.join(["crust", name, str(source.run)]) if name == "verify" else source.command(name) for name in names
    ]
    return f"{', '.join(commands[:-1])}{',' if len(commands) > 2 else ''} or {commands[-1]}"


def _with_texts(table: Any, looks: Any) -> Any:
    """With the beginning of the text, or of the row, that was asked for."""
    if looks is None or not looks.columns:
        return table
    rows = [" · ".join(cell for cell in looks.row(index) if cell) for index in table["index"].tolist()]
    return table.assign(text=[f"{row[:EXCERPT]}…" if len(row) > EXCERPT else row for row in rows])


def print_whole(table: Any) -> None:
    """A table that is wider than the paper keeps its lines: names of files are never cut."""
    from rich.console import Console

    console = Console(highlight=False)
    wanted = max(console.width, console.measure(table, options=console.options.update(max_width=10_000)).maximum)
    Console(highlight=False, width=wanted).print(table, soft_wrap=True)


def print_audit(table: Any, classes: list[Any], top: int, found: dict[str, Any] | None, issues: int,
                rate: str) -> None:  # fmt: skip
    """All of it, on stdout; with what `crust verify` has found, where it was asked."""
    from rich.console import Console

    from crust.audit import class_summary, conflicting_duplicates
    from crust.audit.audit_tables import differing
    from crust.audit.reliability import warning_of

    counts, differ = differing(table, classes)
    console = Console(highlight=False)
    if top:
        print_whole(_worst_table(table.head(top)))
    console.print(f"{issues:,} of {len(table):,} labels are label issues", soft_wrap=True)
    console.print(
        f"{percent(differ / max(1, len(table)))} of {len(table):,} labels differ from the predicted ones",
        soft_wrap=True,
    )
    console.print(rate, soft_wrap=True)
    warning = warning_of(table)
    if warning is not None:
        console.print(visible(warning), soft_wrap=True, markup=False)
    if found is not None:
        for line in verified_lines(found):
            console.print(line, soft_wrap=True, markup=False)
    print_whole(_matrix_table(counts, classes) if len(classes) <= MATRIX else _pairs_table(counts, classes))
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


def _matrix_table(counts: Any, classes: list[Any]) -> Any:
    title = "labels given (row) and predicted (column)"
    rows = [
        [name, *(f"{count:,}" if count else "·" for count in row)]
        for name, row in zip(classes, counts.tolist(), strict=True)
    ]
    return text_table(["given ↓ predicted →", *classes], rows, title=title, left=["given ↓ predicted →"])


def _pairs_table(counts: Any, classes: list[Any]) -> Any:
    """The largest entries off the diagonal, where the matrix is too large for a screen."""
    import numpy as np

    off = counts * (1 - np.eye(len(classes), dtype=np.int64))
    places = [divmod(int(place), len(classes)) for place in np.argsort(-off, axis=None, kind="stable")[:PAIRS]]
    rows = [(classes[i], classes[j], f"{off[i, j]:,}") for i, j in places if off[i, j] > 0]
    heads = ("given", "predicted", "labels")
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
    heads = ("", "labelled", "of these predicted otherwise", "predicted", "of these labelled otherwise")
    return text_table(heads, rows, title=title)
