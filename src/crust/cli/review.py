"""`crust review`: a page on this machine to go through the label issues of a run, a table, or files."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.audit import DATA, DATA_DIR, FEATURES, LABELS, PROBS, SHOW, SOURCE
from crust.cli.formatting import show_log


def review_command(
    run: Annotated[Path | None, SOURCE] = None,
    who: Annotated[
        str | None, typer.Option("--as", help="Your name beside your decisions; default: the login name.")
    ] = None,
    port: Annotated[int, typer.Option(help="Default: one that is free.", min=0, max=65535)] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write the decisions here (.csv or .parquet) and stop.", metavar="FILE")
    ] = None,
    probs: Annotated[str | None, PROBS] = None,
    features: Annotated[str | None, FEATURES] = None,
    labels: Annotated[str | None, LABELS] = None,
    show: Annotated[str | None, SHOW] = None,
    data: Annotated[str | None, DATA] = None,
    data_dir: Annotated[str | None, DATA_DIR] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the link.")] = False,
) -> None:
    """Go through likely label errors on a local page: keep, relabel, exclude, note, undo; every decision is kept."""
    show_log(logging.ERROR if quiet else logging.WARNING)

    from crust.runs.audit_source import open_audit

    check_output(export, "--export", (".csv", ".parquet"), [probs, features, labels])
    source = open_audit(
        run, probs=probs, features=features, labels=labels, show=show, data=data, data_dir=data_dir, progress=not quiet
    )
    if export is not None:
        check_output(export, "--export", (".csv", ".parquet"), [source.path])
        write_decisions(source, export, quiet)
        return
    serve(source, who, port, no_open, quiet)


def write_decisions(source: Any, path: Path, quiet: bool) -> None:
    """What `crust apply` and people read: one line a decision."""
    from crust.corrections.corrected_labels import decisions_table

    with contextlib.closing(source.store()) as store:
        found = decisions_table(store.decisions(), source.table, source.classes)
    write_table(found, path)
    if not quiet:
        changed, excluded = (int((found["decision"] == kind).sum()) for kind in ("relabel", "exclude"))
        left_out = f", {excluded:,} excluded" if excluded else ""
        typer.echo(f"{len(found):,} decisions, {changed:,} of them new labels{left_out}, written to: {path}")
        typer.echo(f"next: {source.command('apply', *source.corrections_words(path))}")


def serve(source: Any, who: str | None, port: int, no_open: bool, quiet: bool) -> None:
    """Serve the page until somebody finishes there, or Ctrl-C."""
    from crust.audit.reliability import warning_of
    from crust.runs.review_session import open_browser, serving

    with serving(source, who=who, port=port) as server, contextlib.ExitStack() as ending:
        if server.without is not None and not quiet:
            typer.echo(f"without pictures or rows: {server.without}", err=True)
        typer.echo(f"open: {server.link}")
        if not quiet:
            typer.echo(f"{int(source.suspects().sum()):,} of {len(source.table):,} labels are label issues")
            typer.echo(source.noise_rate().sentence())
            for line in filter(None, [warning_of(source.table)]):
                typer.echo(line)
            typer.echo(f"as {server.who}; every decision is kept in {server.store.path}; Ctrl-C ends it")
        try:
            if not no_open:
                open_browser(server.link, ending)
            server.serve_forever()
        except KeyboardInterrupt:
            if not quiet:
                typer.echo("")
        if not quiet:
            made = [one for one in server.store.decisions() if one.kind is not None]
            new = sum(one.kind == "relabel" for one in made)
            typer.echo(f"{len(made):,} decided, {new:,} of them new labels")
            typer.echo(f"next: {source.command('apply' if made else 'review')}")
