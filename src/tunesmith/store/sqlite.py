"""An SQLite file as the store's database, for the processes of one host."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.dml import Insert

from tunesmith.records import UserError

from .database import BUSY_SECONDS, Database, FoundSchema
from .location import StoreLocation
from .schema import APPLICATION_ID, SCHEMA_VERSION

_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PROBLEMS_AND_REMEDIES = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room and run the same command again: it goes on where it stopped"),
    sqlite3.SQLITE_READONLY: ("the store cannot be written", "make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: ("the store cannot be opened", "make its folder writable, or use a copy of it"),
    sqlite3.SQLITE_PERM: ("the store cannot be opened", "check who owns the file"),
    sqlite3.SQLITE_IOERR: ("the disk failed", "check the disk, then run the same command again"),
    sqlite3.SQLITE_BUSY: ("another process holds the store", "end it, or wait, and run the same command again"),
    sqlite3.SQLITE_LOCKED: ("another process holds the store", "end it, or wait, and run the same command again"),
}
_MOVE = "move it away and run the same command again, or salvage it with `sqlite3 FILE .recover`"


class SQLiteDatabase(Database):
    """A file with the store's tables.

    Durability: WAL with `synchronous = NORMAL`. The operating system has the data before a commit returns, so killing
    the process, at any moment and with any signal, loses nothing committed. A power failure may lose the commits since
    the last checkpoint, which are measured again, but never the file. `FULL` would only help in that case, and would
    flush the disk at each commit, while kernels are timed.

    If the folder may not be written to, the file can only be read.
    """

    damaged_remedy = _MOVE
    repeats_commits = True

    def __init__(self, location: StoreLocation, reading: bool = False) -> None:
        super().__init__(location, reading)
        assert location.path is not None
        self.path = path = location.path
        if path.is_dir():
            raise UserError(str(path), "is a folder", "name a file in it, such as store.sqlite")
        if path.exists() and not path.is_file():
            raise UserError(str(path), "is no regular file", "name a store, or a place for one")
        if reading and not path.is_file():
            raise UserError(str(path), "no such file", "name a store, or the folder of a run")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(str(path), f"its folder cannot be made ({error.strerror})", "name another place") from None
        self.engine = _engine(path, reading)
        self._begin()

    def insert_new(self, table: Table, unique: tuple[str, ...]) -> Insert:
        return sqlite.insert(table).on_conflict_do_nothing(index_elements=unique)

    def _reader(self, connection: Connection) -> Connection:
        connection.exec_driver_sql("BEGIN")
        return connection

    def _lock(self, connection: Connection) -> None:
        # SQLite waits for a write lock that is requested first. A read that becomes a write fails at once.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _set_up(self) -> None:
        if not self._reading:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        super()._set_up()

    def _found(self, connection: Connection) -> FoundSchema:
        version = _pragma(connection, "user_version")
        owner = _pragma(connection, "application_id")
        tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        return FoundSchema(version, owner == APPLICATION_ID, not (version or owner or tables))

    def _mark(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @property
    def _is_writable(self) -> bool:
        return not self._reading and _may_write(self.path) and _may_write(self.path.parent)

    def _may_retry(self, error: OperationalError) -> bool:
        return _code(error.orig) in _BUSY_CODES

    def _explained(self, error: BaseException) -> tuple[str, str] | None:
        if isinstance(error, sqlite3.ProgrammingError) or not isinstance(
            error, sqlite3.DatabaseError | UnicodeDecodeError
        ):
            return None
        unsound = (f"is not a sound SQLite database ({error})", _MOVE)
        return _PROBLEMS_AND_REMEDIES.get(_code(error), unsound)


def _engine(path: Path, reading: bool) -> Engine:
    engine = create_engine(
        _url(path, reading),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        poolclass=QueuePool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    return engine


def _url(path: Path, reading: bool) -> URL:
    """The URL by which SQLite opens the file.

    SQLite reads a WAL database only if it may make files beside it, or if the URL says that nobody writes it
    (`immutable`). We say so if we may not write to the folder and it has no log, since a writer would have a log there,
    which is part of the database.
    """
    log = path.with_name(f"{path.name}-wal")
    if not _may_write(path.parent) and not log.exists():
        options = {"immutable": "1"}
    elif reading:
        options = {"mode": "ro"}
    else:
        return URL.create("sqlite", database=str(path))
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query={**options, "uri": "true"})


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _code(error: BaseException | None) -> int:
    """SQLite's primary result code; SQLITE_OK for an error that is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF
