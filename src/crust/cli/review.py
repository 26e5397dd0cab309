"""`crust review`: a page on this machine to go through the suspects of a run."""

from __future__ import annotations

import contextlib
import getpass
import logging
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crust._util.output_files import check_output, write_table
from crust.cli.formatting import show_log
from crust.errors import InputError

if TYPE_CHECKING:
    from crust.runs.folder import RunFolder


def review_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")],
    who: Annotated[
        str | None, typer.Option("--as", help="Your name beside your decisions; default: the login name.")
    ] = None,
    port: Annotated[int, typer.Option(help="Default: one that is free.", min=0, max=65535)] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write the decisions here (.csv or .parquet) and stop.", metavar="FILE")
    ] = None,
    data: Annotated[str | None, typer.Option(help="The run's data, where it is not in its old place.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where named datasets are; default: as in training.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and the link.")] = False,
) -> None:
    """Go through likely label errors on a local page: keep, relabel, skip, undo; every decision is kept in RUN."""
    show_log(logging.ERROR if quiet else logging.WARNING)

    from crust.runs.folder import RunFolder

    folder = RunFolder(run)
    check_output(export, "--export", (".csv", ".parquet"), [folder.audit_path])
    table, classes = folder.audit()
    if export is not None:
        write_decisions(folder, table, classes, export, quiet)
        return
    serve(folder, table, classes, who=who, port=port, no_open=no_open, data=data, data_dir=data_dir, quiet=quiet)


def write_decisions(run: RunFolder, table: Any, classes: list[Any], path: Path, quiet: bool) -> None:
    """What `crust apply` and people read: one line a decision."""
    from crust.corrections.corrected_labels import decisions_table

    store = run.review_store(table, classes)
    try:
        found = decisions_table(store.decisions(), table, classes)
    finally:
        store.close()
    write_table(found, path)
    if not quiet:
        changed = int((found["decision"] == "relabel").sum())
        typer.echo(f"{len(found):,} decisions, {changed:,} of them new labels, written to: {path}")
        typer.echo(f"next: {shlex.join(['crust', 'apply', str(run), str(path)])}")


def serve(
    run: RunFolder,
    table: Any,
    classes: list[Any],
    *,
    who: str | None,
    port: int,
    no_open: bool,
    data: str | None,
    data_dir: str | None,
    quiet: bool,
) -> None:
    """Serve the page until Ctrl-C."""
    from crust.audit.noise_rate import noise_rate
    from crust.audit.reliability import warning_of
    from crust.review import ReviewServer
    from crust.runs.data import looks_or_reason

    name = check_name(login_name() if who is None else who)
    verified = run.verified()
    cut = (verified or {}).get("cut")
    least = None if cut is None else cut["threshold"]
    looks, reason = looks_or_reason(run, table, data, data_dir, apart=True)
    options: dict[str, Any] = {"who": name, "port": port, "name": run.path.resolve().name, "least": least}
    # The database is made once the port is ours: a start that fails leaves nothing behind.
    server = ReviewServer(lambda: run.review_store(table, classes, new=True), table, classes, looks, **options)
    with contextlib.closing(server.store), server, contextlib.ExitStack() as ending:
        if reason is not None and not quiet:
            typer.echo(f"without pictures or rows: {reason}", err=True)
        typer.echo(f"open: {server.link}")
        if not quiet:
            typer.echo(noise_rate(table, len(classes), verified).sentence())
            for line in filter(None, [warning_of(table)]):
                typer.echo(line)
            typer.echo(f"as {name}; every decision is kept in {server.store.path}; Ctrl-C ends it")
        try:
            if not no_open:
                import webbrowser

                with contextlib.suppress(OSError):  # no place for the file: the link is on the terminal
                    webbrowser.open(ending.enter_context(way_to(server.link)).as_uri())
            server.serve_forever()
        except KeyboardInterrupt:
            if not quiet:
                typer.echo(f"\nnext: crust apply {shlex.quote(str(run))}")


@contextlib.contextmanager
def way_to(link: str) -> Iterator[Path]:
    """A page that leads to the link, for this user alone: the words that a browser is started with are for all to see.

    Example:
        >>> with way_to("http://127.0.0.1:40613/token/") as path:
        ...     "http://127.0.0.1:40613/token/" in path.read_text(encoding="utf-8")
        True
        >>> path.exists()
        False
    """
    from crust.report.document import render

    with tempfile.TemporaryDirectory(prefix="crust-review-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "open.html")
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(render("review/open.html.j2", link=link), encoding="utf-8")
        yield path


def check_name(name: str) -> str:
    """Somebody's name, short enough to stand beside a decision.

    Example:
        >>> check_name(" first ")
        'first'
        >>> check_name("")
        Traceback (most recent call last):
        ...
        crust.errors.InputError: --as has no name: say who reviews
    """
    found = " ".join(name.split())
    if not found:
        raise InputError("--as has no name: say who reviews", code="reviewer-name")
    if len(found) > 100 or not found.isprintable():
        raise InputError(f"--as {found[:20]!r}… is no name: give one of at most 100 letters", code="reviewer-name")
    return found


def login_name() -> str:
    """Who is logged in, as far as the system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in some containers
        return "unknown"
