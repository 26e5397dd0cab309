"""A review, served for as long as somebody works in it; and what was decided."""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust._util.foreign_files import path_of
from crust.corrections.corrected_labels import decisions_table
from crust.errors import InputError
from crust.runs.audit_source import AuditSource, open_audit

if TYPE_CHECKING:
    import pandas as pd

    from crust.review import ReviewServer

__all__ = ["review_labels"]


def review_labels(
    audit: Any,
    *,
    show: Any = None,
    store: str | Path | None = None,
    who: str | None = None,
    port: int = 0,
    browser: bool = True,
    on_start: Callable[[ReviewServer], None] | None = None,
) -> pd.DataFrame:
    """Open the review page for any audit, wait until somebody has finished it there, and return what was decided.

    Every decision is on disk before the page shows it: stopped by Ctrl-C, or killed, the next call goes on.

    Args:
        audit: a run, its `Result`, or a table of label issues as a DataFrame or a file: from `Result.audit`,
            `crust.find_label_issues`, a sampler, or from another tool, such as cleanlab's.
        show: what is shown of the examples: a list of texts or images, a table, an array, a dataset, a folder of images
            that the ids of the audit are relative to, or the name of a file, `texts.csv:column`.
        store: the database of the decisions; default: in the run's folder or beside the table, else `review.sqlite` in
            the current folder.
        who: stands beside the decisions; default: the login name.
        port: where the page is served on this machine; 0 takes one that is free.
        browser: open one. Else the link is only printed.
        on_start: called with the server before it waits, such as to show its `link` elsewhere.

    Returns:
        A row a decision: `index`, `id` (where there are any), `given`, `decision` (keep, relabel, exclude or skip),
        `corrected`, `reason`, `note`, `who`, `at`. `crust.apply_corrections` takes it.

    Example:
        >>> import tempfile, pandas as pd
        >>> columns = {"given_label": ["a", "b"], "predicted_label": ["a", "a"], "label_quality": [0.9, 0.2]}
        >>> found = review_labels(
        ...     pd.DataFrame(columns), show=["one", "two"], store=f"{tempfile.mkdtemp()}/review.sqlite", browser=False,
        ...     on_start=lambda server: server.finish(),  # instead of somebody who works there
        ... )
        open: http://127.0.0.1:.../.../
        >>> len(found)
        0
    """
    source = audit if isinstance(audit, AuditSource) else open_audit(audit, show=show)
    if show is not None:
        source = dataclasses.replace(source, show=show, _looks=None)
    place = source.review_path if store is None else path_of(store, "store")
    with serving(source, who=who, port=port, store=place or Path(source.usual_review_name)) as server:
        print(f"open: {server.link}")  # noqa: T201 - the one thing that must be told
        with contextlib.ExitStack() as ending, contextlib.suppress(KeyboardInterrupt):
            if browser:
                open_browser(server.link, ending)
            if on_start is not None:
                on_start(server)
            server.serve_forever()
        return decisions_table(server.store.decisions(), source.table, source.classes)


@contextlib.contextmanager
def serving(
    source: AuditSource, *, who: str | None = None, port: int = 0, store: Path | None = None
) -> Iterator[ReviewServer]:
    """The server of a review, ready to serve; closed at the end. What is shown is read before the port is taken."""
    from crust.review import ReviewServer

    looks, reason = dataclasses.replace(source, apart=True).looks()
    cut = (source.verified() or {}).get("cut")
    # The database is made once the port is ours: a start that fails leaves nothing behind.
    server = ReviewServer(
        lambda: source.store(store, new=True),
        source.with_evidence(),
        source.classes,
        looks,
        who=check_name(login_name() if who is None else who),
        port=port,
        name=source.name,
        least=None if cut is None else cut["threshold"],
        points=source.map,
        next_steps=[source.command("apply")] if source.words else [],
        without=reason,
    )
    with contextlib.closing(server.store), server:
        yield server


def open_browser(link: str, ending: contextlib.ExitStack) -> None:
    """Open the page in a browser, as far as there is one."""
    import webbrowser

    with contextlib.suppress(OSError):  # no place for the file: the link is on the terminal
        webbrowser.open(ending.enter_context(way_to(link)).as_uri())


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
