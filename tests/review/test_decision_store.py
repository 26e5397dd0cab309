"""Decisions on disk: versions, conflicts, undoing, several writers, and databases that are not ours."""

import sqlite3
import threading

import pandas as pd
import pytest
from tests.refusals import refused

from crust.review import Change, Store, StoreError, run_key
from crust.review.decision_store import VERSION


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


@pytest.fixture
def store(path):
    found = Store(path, "audit 1", range(100), 10)
    yield found
    found.close()


def known(store):
    return {one.example: (one.kind, one.label, one.version) for one in store.decisions()}


def test_a_decision_has_who_and_when_and_is_there_again(store, path):
    saved, conflicts, batch = store.decide([Change(7, 0, "relabel", 3), Change(8, 0, "keep")], who="first")
    assert [(one.example, one.version, one.who) for one in saved] == [(7, 1, "first"), (8, 1, "first")]
    assert conflicts == []
    assert batch == 1
    assert saved[0].at.endswith("Z")
    store.close()
    again = Store(path, "audit 1")
    assert known(again) == {7: ("relabel", 3, 1), 8: ("keep", None, 1)}
    assert again.undoable("first") == [1]
    assert again.undoable("second") == []
    again.close()


def test_a_change_made_on_an_old_version_is_not_written(store):
    store.decide([Change(1, 0, "keep")], who="first")
    saved, conflicts, _ = store.decide([Change(1, 0, "relabel", 2), Change(2, 0, "relabel", 2)], who="second")
    assert [one.example for one in saved] == [2]
    assert [(one.example, one.version, one.now.who, one.now.kind) for one in conflicts] == [(1, 0, "first", "keep")]
    assert known(store) == {1: ("keep", None, 1), 2: ("relabel", 2, 1)}
    saved, conflicts, _ = store.decide([Change(1, 1, "relabel", 2)], who="second")
    assert (saved[0].version, conflicts) == (2, [])


def test_undoing_brings_back_what_was_before(store):
    store.decide([Change(1, 0, "keep")], who="first")
    batch = store.decide([Change(1, 1, "relabel", 4), Change(2, 0, "skip")], who="first")[2]
    saved, conflicts, number = store.undo(batch, who="first")
    assert {one.example: one.kind for one in saved} == {1: "keep", 2: None}
    assert conflicts == []
    assert number > batch
    assert known(store) == {1: ("keep", None, 3), 2: (None, None, 2)}
    assert store.undoable("first") == [1]  # what undoes is not undone itself
    with refused("already-undone"):
        store.undo(batch, who="first")
    with refused("unknown-batch"):
        store.undo(99, who="first")


def test_undoing_does_not_touch_what_others_changed_since(store):
    batch = store.decide([Change(1, 0, "keep"), Change(2, 0, "keep")], who="first")[2]
    store.decide([Change(1, 1, "relabel", 4)], who="second")
    saved, conflicts, _ = store.undo(batch, who="first")
    assert [one.example for one in saved] == [2]
    assert [(one.example, one.now.who) for one in conflicts] == [(1, "second")]
    assert known(store)[1] == ("relabel", 4, 2)


def test_changes_since(store):
    _, start = store.changes(0)
    assert start == 0
    store.decide([Change(1, 0, "keep")], who="first")
    changes, last = store.changes(0)
    assert ([one.example for one in changes], last) == ([1], 1)
    store.decide([Change(2, 0, "keep")], who="first")
    store.undo(1, who="first")
    changes, last = store.changes(last)
    assert ([(one.example, one.kind) for one in changes], last) == ([(1, None), (2, "keep")], 3)
    assert store.changes(last) == ([], 3)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change(100, 0, "keep"), "unknown-example"),
        (Change(1, 0, "relabel", 10), "unknown-class"),
        (Change(1, 0, "relabel"), "label-without-relabel"),
        (Change(1, 0, "keep", 2), "label-without-relabel"),
        (Change(1, 0, "burn"), "unknown-decision"),
    ],
)
def test_what_cannot_be_decided_changes_nothing(store, change, code):
    with refused(code):
        store.decide([Change(3, 0, "keep"), change], who="first")
    with refused("nothing-chosen"):
        store.decide([], who="first")
    assert known(store) == {}


def test_many_writers_of_several_connections_lose_nothing(path):
    stores = [Store(path, "audit 1") for _ in range(4)]
    results = []

    def work(number):
        for i in range(25):
            # All fight for example 0, and each has an example of its own.
            changes = [Change(0, i, "keep"), Change(1 + number, i, "relabel", i % 10)]
            results.extend([stores[number].decide(changes, who="w")[0]])

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    final = {one.example: one for one in stores[0].decisions()}
    won = [saved for saved in results if any(one.example == 0 for one in saved)]
    assert final[0].version == len(won)
    assert all(final[1 + number].version == 25 for number in range(4))
    versions = sorted(one.version for saved in won for one in saved if one.example == 0)
    assert versions == list(range(1, len(won) + 1))  # no version was written twice
    [store.close() for store in stores]


def test_databases_that_are_not_ours_are_left_alone(tmp_path, path, store):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = other.read_bytes()
    with refused("not-a-review"):
        Store(other, "audit 1")
    assert other.read_bytes() == before
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but a long text" * 100)
    with refused("not-a-review"):
        Store(text, "audit 1")
    store.close()
    with refused("other-audit"):
        Store(path, "audit 2")
    with refused("no-review"):
        Store(tmp_path / "none.sqlite", None)


def test_another_version_is_refused_in_a_sentence(path, store):
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with refused("store-version"):
        Store(path, "audit 1")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("crust.review.decision_store.WAIT", 0.05)


def test_a_locked_database_gets_a_sentence_and_works_again(impatient, path):
    store = Store(path, "audit 1", range(100), 10)
    batch = store.decide([Change(1, 0, "keep")], who="first")[2]
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for work in (lambda: store.decide([Change(2, 0, "keep")], who="first"), lambda: store.undo(batch, who="first")):
        with refused("store-locked", StoreError):
            work()
    assert known(store) == {1: ("keep", None, 1)}  # reading goes on
    other.execute("ROLLBACK")
    store.decide([Change(2, 0, "keep")], who="first")
    assert known(store) == {1: ("keep", None, 1), 2: ("keep", None, 1)}
    store.close()
    other.execute("PRAGMA journal_mode = DELETE")  # where one who writes may keep others from reading
    other.execute("BEGIN EXCLUSIVE")
    with refused("store-locked"):  # and not: move it away
        Store(path, "audit 1")
    other.close()


def test_what_could_not_be_committed_is_taken_back(impatient, path):
    store = Store(path, "audit 1", range(100), 10)
    store._connection.execute("PRAGMA journal_mode = DELETE")  # where one who reads keeps others from committing
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM decisions").fetchall()
    with refused("store-locked", StoreError):
        store.decide([Change(1, 0, "keep")], who="first")
    other.close()
    assert known(store) == {}
    store.decide([Change(1, 0, "skip")], who="first")
    assert known(store) == {1: ("skip", None, 1)}
    store.close()


def broken(path, *statements):
    """Change the database behind the store's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE about",
        "DROP TABLE decisions",
        "DROP TABLE events",
        "ALTER TABLE decisions ADD COLUMN more",
        "ALTER TABLE events RENAME COLUMN undoes TO other",
    ],
)
def test_other_tables_are_refused_in_a_sentence(path, store, statement):
    store.close()
    broken(path, statement)
    with refused("lost-tables"):
        Store(path, "audit 1")


def test_a_database_that_says_nothing_of_its_audit_is_refused(path, store):
    store.close()
    broken(path, "DELETE FROM about")
    with refused("other-audit"):
        Store(path, "audit 1")


def test_a_table_that_goes_while_it_is_open_gets_a_sentence(path, store):
    broken(path, "DROP TABLE events")
    for work in (
        lambda: store.decide([Change(1, 0, "keep")], who="first"),
        lambda: store.undo(1, who="first"),
        lambda: store.changes(0),
        lambda: store.undoable("first"),
    ):
        with refused("store-failed", StoreError):
            work()
    broken(path, "DROP TABLE decisions")
    with refused("store-failed", StoreError):
        store.decisions()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("100, 1, 'keep', NULL, 'a', ''", "about example 100, which this audit does not have"),
        ("1, 1, 'burn', NULL, 'a', ''", "about example 1 of the unknown kind 'burn'"),
        ("1, 1, 'keep', 2, 'a', ''", "about example 1 with a label, 2, that does not belong there"),
        ("1, 1, NULL, 2, 'a', ''", "about example 1 with a label, 2, that does not belong there"),
        ("1, 1, 'relabel', 10, 'a', ''", "about example 1 with the class number 10, which this audit does not have"),
        ("1, 1, 'relabel', -1, 'a', ''", "about example 1 with the class number -1"),
        ("1, 1, 'relabel', NULL, 'a', ''", "about example 1 with the class number None"),
        ("1, 1, 'relabel', 'cat', 'a', ''", "about example 1 with the class number 'cat'"),
        ("1, 'x', 'keep', NULL, 'a', ''", "about example 1 without a version, a name or a time"),
        ("1, 1, 'keep', NULL, x'00', ''", "about example 1 without a version, a name or a time"),
    ],
)
def test_decisions_that_no_review_writes_get_a_sentence(path, store, row, said):
    store.decide([Change(5, 0, "keep")], who="first")
    broken(
        path,
        f"INSERT INTO decisions (example, version, kind, label, who, at) VALUES ({row})",
        f"UPDATE events SET example = {row.split(',')[0]}",
    )
    for work in (store.decisions, lambda: store.changes(0)):
        with pytest.raises(StoreError, match=f"review.sqlite holds a decision {said}"):
            work()


def test_undoing_does_not_bring_back_what_no_review_writes(path, store):
    batch = store.decide([Change(1, 0, "keep")], who="first")[2]
    broken(path, "UPDATE events SET old_kind = 'relabel', old_label = 77")
    with refused("bad-decision", StoreError):
        store.undo(batch, who="first")
    assert known(store) == {1: ("keep", None, 1)}


def test_the_key_of_an_audit():
    table = pd.DataFrame({"index": [0, 1], "given_label": ["a", "b"], "label_quality": [0.9, 0.8]})
    key = run_key(table, ["a", "b"])
    assert run_key(table.iloc[::-1].assign(error_score=0.5), ["a", "b"]) == key  # order and scores do not matter
    assert run_key(table.assign(given_label="a"), ["a", "b"]) != key
    assert run_key(table, ["b", "a"]) != key
