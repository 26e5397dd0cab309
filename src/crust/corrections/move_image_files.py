"""Image folders: a corrected label is a file in another folder. A list first, then the moves, never over a file."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from crust._util.atomic_write import write_atomic
from crust._util.foreign_files import check_regular
from crust.data.image_folder import check_inside
from crust.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("index", "from", "to")
EXCLUDED = ".excluded"


@dataclass(frozen=True)
class Move:
    """One file, by its name before and after, relative to the folder of the classes."""

    index: int
    old: str
    new: str

    def back(self) -> Move:
        """The move that undoes it."""
        return Move(self.index, self.new, self.old)


def plan_moves(
    root: Path, audit: pd.DataFrame, changes: Mapping[int, int], classes: Sequence[Any], left_out: Sequence[int] = ()
) -> list[Move]:
    """Where each file with another label goes: into the folder of its class, under a name that is free there.

    What is left out goes below `EXCLUDED`, which no reader of image folders looks into.

    Args:
        root: the folder of the class folders.
        audit: what is corrected, with the files as `id`.
        changes: by index, the number of the new class.
        classes: the names of the class folders.
    """
    names = dict(zip(audit["index"].tolist(), audit["id"].astype(str), strict=True))
    taken: set[str] = set()
    moves = []
    for index, number in sorted([*changes.items(), *((index, -1) for index in left_out)]):
        old = PurePosixPath(names[index])
        check_inside(str(old))
        if not (root / old).is_file():
            raise InputError(
                f"{root / old} is no longer there: name the folder of the images with --data", code="missing-file"
            )
        wanted = PurePosixPath(*([EXCLUDED, *old.parts] if number < 0 else [str(classes[number]), *old.parts[1:]]))
        new, count = wanted, 1
        while str(new) in taken or _there(root / new):
            count += 1
            new = wanted.with_name(f"{wanted.stem}-{count}{wanted.suffix}")
        taken.add(str(new))
        moves.append(Move(index, str(old), str(new)))
    return moves


def write_moves(moves: Sequence[Move], path: str | Path) -> None:
    """The list as .csv: columns index, from, to."""
    buffer = StringIO()
    # All names in quotes: a carriage return in one would else end its line.
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows([COLUMNS, *((move.index, move.old, move.new) for move in moves)])
    write_atomic(path, buffer.getvalue().encode("utf-8", "surrogateescape"))
    if read_moves(path) != list(moves):  # before a file is moved that nobody could move back
        raise InputError(
            f"{path} does not hold the moves as they were written: nothing was moved, write it elsewhere",
            code="cannot-write",
        )


def read_moves(path: str | Path) -> list[Move]:
    """A list of moves again."""
    check_regular(Path(path))
    try:
        with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        moves = [Move(int(row["index"]), row["from"], row["to"]) for row in rows]
    except FileNotFoundError:
        raise InputError(
            f"there is no list of moves {path}: write one with crust apply RUN", code="missing-file"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise InputError(
            f"{path} is no list of moves: it needs the columns {', '.join(COLUMNS)}", code="bad-moves"
        ) from None
    for move in moves:
        check_inside(move.old)
        check_inside(move.new)
    return moves


def do_moves(root: Path, moves: Sequence[Move], report: Callable[[int], None] | None = None) -> tuple[int, int]:
    """Move files, one after the other; what is moved already is left, so that it can be started again.

    Nothing is moved before all of it is known to be possible, and no file is ever written over. `report` is called with
    the number of files that are done. Returns how many were moved now, and how many had been before.
    """
    todo = [move for move in moves if not _done(root, move)]
    for move in todo:
        if not _there(root / move.old):
            raise InputError(
                f"{root / move.old} is no longer there, nor is {move.new}: nothing more was moved", code="missing-file"
            )
        if _there(root / move.new) and not _same_file(root / move.old, root / move.new):
            raise InputError(
                f"{root / move.new} is there already and is not written over: nothing more was moved",
                code="file-exists",
            )
    for count, move in enumerate(todo):
        try:
            (root / move.new).parent.mkdir(parents=True, exist_ok=True)
            _rename(root / move.old, root / move.new)
        except OSError as error:
            raise InputError(
                f"{root / move.old} could not be moved ({error.strerror or error}): {count} of {len(todo)} are; "
                "start again to go on",
                code="cannot-move",
            ) from None
        if report is not None:
            report(count + 1)
    return len(todo), len(moves) - len(todo)


def any_done(root: Path, moves: Sequence[Move]) -> bool:
    """Whether a list of moves was begun: one is made, or was killed between the new name and the old one's removal."""
    return any(
        _done(root, move) or (_there(root / move.old) and _same_file(root / move.old, root / move.new))
        for move in moves
    )


def done(root: Path, moves: Sequence[Move]) -> list[Move]:
    """The moves of a list that are made."""
    return [move for move in moves if _done(root, move)]


def _done(root: Path, move: Move) -> bool:
    return _there(root / move.new) and not _there(root / move.old)


def _there(path: Path) -> bool:
    return os.path.lexists(path)


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _rename(old: Path, new: Path) -> None:
    """Rename a file; unlike `rename` on most systems, never over another one."""
    if os.name == "nt":
        old.rename(new)
        return
    if not _same_file(old, new):  # both are there after a kill between the two steps
        try:
            os.link(old, new, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: the name is taken first, then what stands there is replaced
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                old.replace(new)
            except OSError:
                with contextlib.suppress(OSError):
                    new.unlink()
                raise
            return
    old.unlink()
