"""What `crust audit` does besides showing: the report page, and corrected labels in the form the data came in."""

from __future__ import annotations

from pathlib import Path

from crust.errors import InputError


def act(
    run: Path,
    output: Path | None,
    report: bool,
    corrections: str | None,
    move: bool,
    move_back: bool,
    data: str | None,
    data_dir: str | None,
    quiet: bool,
) -> None:
    """Do the one thing that was asked for."""
    asked = [report, corrections is not None or move, move_back]
    if sum(asked) != 1:
        raise InputError("--report, --apply and --move-back are three things: ask for one at a time")
