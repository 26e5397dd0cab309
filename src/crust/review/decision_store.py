"""Decisions in SQLite: on disk before they are confirmed, with who and when, and never written over unseen."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crust._util.foreign_files import check_regular, path_of
from crust.errors import InputError, choices
from crust.review.decisions import KINDS, NOTE, REASON, Change, Conflict, Decision, StoreError, wrong

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Store", "run_key"]

WAIT = 10.0  # seconds for another process that writes
VERSION = 2
APPLICATION = 0x43525354  # "CRST": says that the file is ours

SCHEMA = [
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE decisions (
    example INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,   -- rises by one with every change, undoing included
    kind TEXT,                  -- keep, relabel, exclude, skip, or NULL where it was undone
    label INTEGER,              -- the number of the new class, where it is relabelled
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT,                -- why it is excluded
    note TEXT NOT NULL DEFAULT ''
)""",
    """CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER NOT NULL,     -- what was decided at once is undone at once
    example INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT,
    label INTEGER,
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    undoes INTEGER,             -- the batch that this one took back
    old_kind TEXT,
    old_label INTEGER,
    reason TEXT,
    note TEXT NOT NULL DEFAULT '',
    old_reason TEXT,
    old_note TEXT NOT NULL DEFAULT ''
)""",
    "CREATE INDEX batches ON events (batch)",
]
# What version 1 had not.
NEW_COLUMNS = [
    ("decisions", "reason TEXT"), ("decisions", "note TEXT NOT NULL DEFAULT ''"),
    ("events", "reason TEXT"), ("events", "note TEXT NOT NULL DEFAULT ''"),
    ("events", "old_reason TEXT"), ("events", "old_note TEXT NOT NULL DEFAULT ''"),
]  # fmt: skip
NOW = "example, version, kind, label, who, at, reason, note"


class Store:
    """The decisions of one review.

    Args:
        path: the database; it is made where it is not there.
        key: which audit it belongs to, from `run_key`; None takes any that is there.
        examples: the indices that can be decided; None allows any.
        classes: how many there are; None allows any.

    Example:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()) / "review.sqlite", "audit 1")
        >>> saved, conflicts, batch = store.decide([Change(7, 0, "relabel", 3), Change(9, 0, "keep")], who="first")
        >>> [one.version for one in saved], conflicts
        ([1, 1], [])
        >>> store.decide([Change(7, 0, "keep")], who="second")[1][0].now.who
        'first'
        >>> [one.kind for one in store.undo(batch, who="first")[0]]
        [None, None]
        >>> store.close()
    """

    def __init__(
        self, path: str | Path, key: str | None, examples: Iterable[int] | None = None, classes: int | None = None
    ):
        self.path = Path(path)
        self._examples = None if examples is None else frozenset(examples)
        self._classes = classes
        self._lock = threading.Lock()
        if key is None and not self.path.is_file():
            raise InputError(f"there is no review in {self.path.parent}: start one with crust review", code="no-review")
        try:
            with contextlib.ExitStack() as failing:
                if self._made():
                    failing.callback(self._unmade)
                # Without a cache shared between threads: every statement runs under the lock.
                self._connection = sqlite3.connect(
                    self.path, timeout=WAIT, isolation_level=None, check_same_thread=False
                )
                failing.callback(self._connection.close)
                # Synced at every commit: what is confirmed survives a kill and a loss of power.
                self._connection.execute("PRAGMA synchronous = FULL")
                self._open(key)
                with contextlib.suppress(sqlite3.OperationalError):  # another process may be just writing: let it
                    self._connection.execute("PRAGMA journal_mode = WAL")
                failing.pop_all()
        except sqlite3.Error as error:
            if _locked(error):  # one that is in use is not to be moved away
                raise InputError(self._sentence(error), code="store-locked") from None
            if "full" in str(error) or "I/O" in str(error):
                raise InputError(
                    f"{self.path} cannot be written ({error}): make room on the disk", code="cannot-write"
                ) from None
            what = f"{self.path} cannot be used as the database of a review ({error}): move it away"
            raise InputError(what, code="not-a-review") from None

    def _made(self) -> bool:
        """Whether the file was made now: decisions are for their owner's eyes, and SQLite's other files follow it."""
        check_regular(path_of(self.path, "the database of a review"))
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written ({(error.strerror or str(error)).lower()}): choose another place",
                code="cannot-write",
            ) from None
        return True

    def _unmade(self) -> None:
        """Nothing is left of a review that could not be begun, unless another process has begun it meanwhile."""
        if self.path.stat().st_size == 0:
            for end in ("", "-journal", "-wal", "-shm"):
                self.path.with_name(f"{self.path.name}{end}").unlink(missing_ok=True)

    def _open(self, key: str | None) -> None:
        """Make the tables where the file is new; refuse what is not ours before anything in it is changed."""
        if self._one("PRAGMA user_version") == 0 and not self._one("SELECT count(*) FROM sqlite_master"):
            with _Writing(self._connection):
                # Another process may have made them while this one waited for its turn.
                if not self._one("SELECT count(*) FROM sqlite_master"):
                    for statement in SCHEMA:
                        self._connection.execute(statement)
                    self._connection.execute("INSERT INTO about VALUES ('audit', ?)", [key or ""])
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version = {VERSION}")
        if self._one("PRAGMA application_id") != APPLICATION:
            raise InputError(
                f"{self.path} is no database of a review: move it away, or name another", code="not-a-review"
            )
        if self._one("PRAGMA user_version") == 1:
            with _Writing(self._connection):
                if self._one("PRAGMA user_version") == 1:  # no other process was first
                    for name, column in NEW_COLUMNS:
                        self._connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}")
                    self._connection.execute(f"PRAGMA user_version = {VERSION}")
        version = self._one("PRAGMA user_version")
        if version != VERSION:
            raise InputError(
                f"{self.path} is a review of version {version}, and this crust knows version {VERSION}: "
                "open it with the crust that made it, or move it away",
                code="store-version",
            )
        if _columns(self._connection) != _columns_of_a_new_one():
            raise InputError(
                f"{self.path} has lost tables of the review, or has others: bring back a copy of it, "
                "or move it away to begin a new one",
                code="lost-tables",
            )
        if key is not None and self._one("SELECT value FROM about WHERE name = 'audit'") != key:
            raise InputError(
                f"{self.path} is the review of another audit, or of labels that have changed since: move it away to "
                "begin a new one, or give what it belongs to",
                code="other-audit",
            )

    def close(self) -> None:
        """Leave the database as one file."""
        with self._lock:
            self._connection.close()

    def decide(self, changes: Sequence[Change], *, who: str) -> tuple[list[Decision], list[Conflict], int]:
        """Decide some examples at once.

        Args:
            changes: what is decided.
            who: decides.

        Returns:
            What is saved, which is on disk; what is not, since somebody else was there first; the number to undo it by.
        """
        self._check(changes)
        wanted = [(one.example, one.version, one.kind, one.label, one.reason, one.note) for one in changes]
        return self._write(wanted, who, None)

    def undo(self, batch: int, *, who: str) -> tuple[list[Decision], list[Conflict], int]:
        """Take back what was decided at once, where it is still as it was decided then.

        Returns:
            As `decide` does.
        """
        with self._using():
            rows = self._connection.execute(
                "SELECT example, version, old_kind, old_label, old_reason, old_note FROM events WHERE batch = ?",
                [batch],
            ).fetchall()
            undone = self._one("SELECT count(*) FROM events WHERE undoes = ?", [batch])
        if not rows:
            raise InputError(f"there is no decision number {batch}: it cannot be undone", code="unknown-batch")
        if undone:
            raise InputError(f"decision number {batch} is undone already", code="already-undone")
        return self._write(rows, who, batch)

    def decisions(self) -> list[Decision]:
        """All that is decided now, by example."""
        with self._using():
            rows = self._connection.execute(f"SELECT {NOW} FROM decisions ORDER BY example").fetchall()
        return [self._decision(row) for row in rows]

    def changes(self, since: int) -> tuple[list[Decision], int]:
        """What has changed after an event, as it is now; and the number of the last event."""
        with self._using():
            last = self._one("SELECT coalesce(max(number), 0) FROM events")
            rows = self._connection.execute(
                f"SELECT {NOW} FROM decisions "
                "WHERE example IN (SELECT example FROM events WHERE number > ?) ORDER BY example",
                [since],
            ).fetchall()
        return [self._decision(row) for row in rows], last

    def undoable(self, who: str, most: int = 100) -> list[int]:
        """The last batches of one person that can still be undone, the newest last."""
        with self._using():
            rows = self._connection.execute(
                "SELECT DISTINCT batch FROM events WHERE who = ? AND undoes IS NULL AND batch NOT IN "
                "(SELECT undoes FROM events WHERE undoes IS NOT NULL) ORDER BY batch DESC LIMIT ?",
                [who, most],
            ).fetchall()
        return [batch for (batch,) in reversed(rows)]

    def _write(
        self,
        wanted: Sequence[tuple[int, int, str | None, int | None, str | None, str | None]],
        who: str,
        undoes: int | None,
    ) -> tuple[list[Decision], list[Conflict], int]:
        at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        saved, conflicts = [], []
        with self._using(), _Writing(self._connection):
            batch = self._one("SELECT coalesce(max(batch), 0) + 1 FROM events")
            for example, version, kind, label, reason, note in wanted:
                row = self._connection.execute(f"SELECT {NOW} FROM decisions WHERE example = ?", [example]).fetchone()
                now = None if row is None else self._decision(row)
                if (now.version if now else 0) != version:
                    conflicts.append(Conflict(example, version, now))
                    continue
                old = now or Decision(example, 0, None, None, who, at)
                text = old.note if note is None else note
                # What an undone one brings back comes from the database too.
                new = self._decision((example, version + 1, kind, label, who, at, reason, text))
                self._insert("INSERT OR REPLACE INTO decisions", vars(new))
                before = {"old_kind": old.kind, "old_label": old.label, "old_reason": old.reason, "old_note": old.note}
                self._insert("INSERT INTO events", {**vars(new), "batch": batch, "undoes": undoes, **before})
                saved.append(new)
        return saved, conflicts, batch

    def _insert(self, into: str, values: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"{into} ({', '.join(values)}) VALUES ({marks})", list(values.values()))

    def _check(self, changes: Sequence[Change]) -> None:
        if not changes:
            raise InputError("no example is chosen: choose at least one", code="nothing-chosen")
        for one in changes:
            if one.kind is not None:
                choices(one.kind, KINDS, "decision")
            elif one.note is None:
                raise InputError("nothing is decided and nothing is noted: do one of both", code="nothing-chosen")
            if one.reason is not None and one.kind != "exclude":
                raise InputError("a reason belongs to exclude and to nothing else: give it there only", code="reason")
            for text, most, what in ((one.reason, REASON, "reason"), (one.note, NOTE, "note")):
                if text is not None and (len(text) > most or "\0" in text):
                    raise InputError(f"a {what} has at most {most:,} letters: shorten it", code="long-note")
            if (one.label is None) == (one.kind == "relabel"):
                raise InputError(
                    "a label belongs to relabel and to nothing else: give it there only", code="label-without-relabel"
                )
            if one.label is not None and self._classes is not None and not 0 <= one.label < self._classes:
                raise InputError(
                    f"there is no class number {one.label}: classes go from 0 to {self._classes - 1}",
                    code="unknown-class",
                )
            if self._examples is not None and one.example not in self._examples:
                raise InputError(
                    f"there is no example {one.example} in this audit: choose one that is there", code="unknown-example"
                )

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """The database for one thread at a time; what it cannot do becomes a sentence."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                code = "store-locked" if _locked(error) else "store-failed"
                raise StoreError(self._sentence(error), code=code) from None

    def _sentence(self, error: sqlite3.Error) -> str:
        if _locked(error):
            return f"{self.path} was locked by another program for {WAIT:g} seconds: end that one, and try again"
        return f"{self.path} cannot be read or written ({error}): check the file and its disk, and try again"

    def _decision(self, row: Sequence[Any]) -> Decision:
        """A row of the database, which another program may have changed."""
        found = Decision(*row)
        what = wrong(found, self._examples, self._classes)
        if what is not None:
            raise StoreError(
                f"{self.path} holds a decision {what}: bring back a copy of it, or move it away to begin a new one",
                code="bad-decision",
            )
        return found

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        row = self._connection.execute(query, values).fetchone()
        return None if row is None else row[0]


class _Writing:
    """One transaction: all of it is on disk, or nothing."""

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self.connection.execute("COMMIT")
        finally:
            # Also where COMMIT failed: the next one could not begin. A full disk may have rolled back by itself.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of the three tables, none where a table is missing."""
    tables = ("about", "decisions", "events")
    return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def _columns_of_a_new_one() -> dict[str, list[str]]:
    """What `_columns` says of a database that was just made."""
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in SCHEMA:
            new.execute(statement)
        return _columns(new)


def _locked(error: sqlite3.Error) -> bool:
    return "locked" in str(error)  # its number is not there before Python 3.11


def run_key(table: pd.DataFrame, classes: Sequence[Any]) -> str:
    """What tells one audit from another: which labels were given to how many examples.

    Args:
        table: the audit.
        classes: its classes.

    Example:
        >>> import pandas as pd
        >>> len(run_key(pd.DataFrame({"index": [0, 1], "given_label": ["a", "b"]}), ["a", "b"]))
        16
    """
    known = table.sort_values("index")
    digest = hashlib.sha256(repr([str(name) for name in classes]).encode())
    digest.update(repr(list(zip(known["index"].tolist(), map(str, known["given_label"]), strict=True))).encode())
    return digest.hexdigest()[:16]
