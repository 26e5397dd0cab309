"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from crust._util.foreign_files import path_of
from crust.errors import InputError


def write_atomic(path: str | Path, write: bytes | Callable[[BinaryIO], object]) -> None:
    """Write a file under another name and move it into place, so that no reader ever sees half of it.

    Args:
        path: where it shall be; a file that is there is replaced, one behind a link too.
        write: the content, or a function that writes it to an open file.
    """
    path = path_of(path)
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent} to write {path.name} to: create it first", code="missing-folder"
        )
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file", code="not-a-file")
    if path.exists() and not path.is_file():  # renamed over, /dev/null would be a file for everybody
        raise InputError(f"{path} is a pipe or a device: give the name of a file", code="not-a-file")
    target = path.resolve()  # through links: the file they lead to is replaced, not the link
    draft = target.with_name(_draft_name(target, secrets.token_hex(4)))
    try:
        try:
            with draft.open("xb") as file:
                if isinstance(write, bytes):
                    file.write(write)
                else:
                    write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:  # Ctrl-C too leaves nothing behind
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(
            f"{path} could not be written ({error.strerror or error}): choose another place", code="cannot-write"
        ) from None


def make_folder(path: Path) -> None:
    """A folder with all above it, there or not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "there is a file of that name" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise InputError(
            f"cannot make the folder {path} ({reason.lower()}): choose another place", code="cannot-write"
        ) from None


def remove_drafts(path: Path) -> None:
    """Remove what processes have left that were killed while they wrote this file; nobody else may be writing it."""
    for draft in path.parent.glob(_draft_name(Path(glob.escape(path.name)), "?" * 8)):
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _draft_name(path: Path, mark: str) -> str:
    """Hidden, and no longer than file systems take, however long the file's own name is.

    Example:
        >>> _draft_name(Path("note.txt"), "0123abcd"), len(_draft_name(Path(250 * "a"), "0123abcd"))
        ('.note.txt.0123abcd.tmp', 254)
    """
    return f".{os.fsdecode(os.fsencode(path.name)[:240])}.{mark}.tmp"
