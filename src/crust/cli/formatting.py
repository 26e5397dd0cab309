"""What the commands say: the library's log on stderr, numbers in words, the end of a run that was stopped."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from crust._util.in_words import duration as duration
from crust._util.in_words import percent as percent

if TYPE_CHECKING:
    from rich.table import Table

# What would be a command to a terminal, or no character at all.
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


CUT = 30  # letters of a text that are shown at least


class StoppedByUser(Exception):
    """Ctrl-C, with what was saved and how to go on; the exit code is 130."""


class _Stderr(logging.Handler):
    """Show on stderr what the library logs, such as the estimate before it starts."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{record.getMessage()}\n")


def show_log(level: int, reading: int = logging.NOTSET) -> None:
    """Let the library speak from this level on; `reading`: from another where it reads data, to say how far it is."""
    logging.getLogger("crust.data").setLevel(reading)
    logger = logging.getLogger("crust")
    logger.setLevel(level)
    logger.handlers = [_Stderr()]


def visible(value: object) -> str:
    """Text from data, for a line on the screen: nothing in it is a command to the terminal.

    Example:
        >>> visible("cat\\x1b[31m")
        'cat�[31m'
    """
    return UNSEEN.sub("\ufffd", str(value))


def text_table(
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    left: Collection[object] = ("",),
    whole: Collection[object] = (),
    spare: Sequence[object] = (),
    cut: Collection[object] = (),
    footer: Sequence[str] = (),
) -> Table:
    """A table for the terminal; what is in it is text, whatever it says.

    Args:
        heads: of the columns.
        rows: a cell a column.
        title: above it.
        left: heads of columns of words; the others hold numbers.
        whole: heads of columns that are never wrapped.
        spare: heads of columns that are left out, one after another, where the screen is too narrow for all.
        cut: heads of columns that get what is left of a line.
        footer: a last row below a line.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_footer=bool(footer))
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(cell_len(visible(head)), *(cell_len(row[i]) for row in cells), 0) for i, head in enumerate(heads)]
    kept = {i for i, head in enumerate(heads) if head not in cut}

    def room() -> int:
        return Console().width - 1 - 3 * (len(kept) + len(cut)) - sum(widths[i] for i in kept)

    for head in spare:
        if room() < (CUT if cut else 0):
            kept.discard(list(heads).index(head))
    shown = [i for i, head in enumerate(heads) if i in kept or head in cut]
    most = max(CUT // 2, room() // max(1, len(cut)))
    for i in shown:
        head = heads[i]
        table.add_column(
            escape(visible(head)),
            footer[i] if footer else "",
            justify="left" if head in left else "right",
            no_wrap=head in whole or head in cut or bool(spare),
            max_width=most if head in cut else None,
        )
    for row in cells:
        table.add_row(*(escape(row[i]) for i in shown))
    return table
