"""The tables of a review's database, and how to tell that a file has them."""

from __future__ import annotations

import contextlib
import sqlite3

VERSION = 1
APPLICATION = 0x43525354  # "CRST": says that the file is ours

SCHEMA = [
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE decisions (
    example INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,   -- rises by one with every change, undoing included
    kind TEXT,                  -- keep, relabel, skip, or NULL where it was undone
    label INTEGER,              -- the number of the new class, where it is relabelled
    who TEXT NOT NULL,
    at TEXT NOT NULL
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
    old_label INTEGER
)""",
    "CREATE INDEX batches ON events (batch)",
]


def columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of the three tables, none where a table is missing."""
    tables = ("about", "decisions", "events")
    return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def columns_of_a_new_one() -> dict[str, list[str]]:
    """What `columns` says of a database that was just made."""
    with contextlib.closing(sqlite3.connect(":memory:")) as new:
        for statement in SCHEMA:
            new.execute(statement)
        return columns(new)
