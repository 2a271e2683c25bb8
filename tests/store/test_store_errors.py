"""A store that is opened to read stays as it is, and an error of SQLite says what to do about it."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import event
from test_store import START, entry

from tunesmith.records import UserError
from tunesmith.store import Store, database


def test_reading_makes_no_store_where_there_is_none(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        Store.read(tmp_path / "missing" / "s")
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match="another program"):
        Store.read(tmp_path / "empty")
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("empty", 0)]


def test_a_store_that_is_open_to_read_cannot_be_written(tmp_path):
    with Store.open(tmp_path / "s") as store:
        store.commit([entry("a")])
    with Store.read(tmp_path / "s") as store:
        assert [row.key for row in store.entries()] == ["a"]
        with pytest.raises(UserError, match="the store cannot be written"):
            store.commit([entry("b")])
        with pytest.raises(UserError, match="the store cannot be written"):
            store.begin_run(START)
        assert [row.key for row in store.entries()] == ["a"]


ERRORS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY_DBMOVED: "the store cannot be written",
    sqlite3.SQLITE_CANTOPEN_ISDIR: "the store cannot be opened",
    sqlite3.SQLITE_PERM: "the store cannot be opened",
    sqlite3.SQLITE_IOERR_FSYNC: "the disk failed",
    sqlite3.SQLITE_BUSY_SNAPSHOT: "another process holds the store",
    sqlite3.SQLITE_LOCKED_SHAREDCACHE: "another process holds the store",
    sqlite3.SQLITE_CORRUPT_INDEX: "is not a sound SQLite database",
    sqlite3.SQLITE_NOTADB: "is not a sound SQLite database",
    None: "is not a sound SQLite database",
}
"""What the user is told, by SQLite's code; most of them are extended codes, whose low byte is the kind of error."""


@pytest.mark.parametrize("code", ERRORS)
def test_a_user_is_told_what_failed_whatever_the_details_of_sqlites_code_are(tmp_path, monkeypatch, code):
    monkeypatch.setattr(database, "RETRY_PAUSES", ())
    error = sqlite3.DatabaseError("it failed")
    if code is not None:
        error.sqlite_errorcode = code
    with Store.open(tmp_path / "s") as store:

        def fail(*call):
            raise error

        event.listen(store._database.engine, "before_cursor_execute", fail)
        with pytest.raises(UserError) as caught:
            list(store.entries())
    assert caught.value.what.startswith(ERRORS[code])


@pytest.mark.parametrize(
    ("code", "attempts"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, 3),
        (sqlite3.SQLITE_LOCKED, 3),
        (sqlite3.SQLITE_FULL, 1),
        (sqlite3.SQLITE_IOERR_READ, 1),
    ],
)
def test_a_busy_store_is_asked_again_and_a_broken_store_is_not(tmp_path, monkeypatch, code, attempts):
    pauses, begun = [], []
    monkeypatch.setattr(database, "RETRY_PAUSES", (0.25, 0.5))
    monkeypatch.setattr(database.time, "sleep", pauses.append)

    def fail(connection):
        begun.append(connection)
        error = sqlite3.OperationalError("it failed")
        error.sqlite_errorcode = code
        raise database.OperationalError("INSERT", (), error)

    with Store.open(tmp_path / "s") as store, pytest.raises(UserError):
        store._database.write(fail)
    assert len(begun) == attempts
    assert pauses == [0.25, 0.5][: attempts - 1]
