"""An SQLite file that processes can share. A process that is killed loses nothing that it committed."""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import QueuePool

from tunesmith.records import UserError

from .schema import APPLICATION_ID, SCHEMA_VERSION, metadata

T = TypeVar("T")

BUSY_SECONDS = 60.0
"""How long SQLite waits for another process's transaction. Ours take milliseconds."""

RETRY_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts if SQLite answers "busy" at once, as it does while the journal mode changes."""

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


class Database:
    """A file with the store's tables. Every error of SQLite with the file becomes a UserError.

    Durability: WAL with `synchronous = NORMAL`. The operating system has the data before a commit returns, so killing
    the process, at any moment and with any signal, loses nothing committed. A power failure may lose the commits since
    the last checkpoint, which are measured again, but never the file. `FULL` would only help in that case, and would
    flush the disk at each commit, while kernels are timed.

    If the folder may not be written to, the file can only be read. With `reading`, nothing is made or changed.
    """

    def __init__(self, path: Path, reading: bool = False) -> None:
        self.path, self._reading = path, reading
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
        try:
            with self._translated():
                _retried(self._set_up)
        except BaseException:
            self.engine.dispose()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection whose every statement sees one state of the file."""
        with self._translated(), self.engine.connect() as connection:
            yield connection

    def write(self, action: Callable[[Connection], T]) -> T:
        """Carry out `action` in one transaction. If the file is busy, the transaction starts again."""

        def attempt() -> T:
            with self.engine.begin() as connection:
                # SQLite waits for a write lock that is requested first. A read that becomes a write fails at once.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return action(connection)

        with self._translated():
            return _retried(attempt)

    def close(self) -> None:
        self.engine.dispose()

    def _set_up(self) -> None:
        with self.engine.connect() as connection:
            if not self._reading:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            version = _pragma(connection, "user_version")
            owner = _pragma(connection, "application_id")
            tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        if version == 0 and owner == 0 and tables == 0 and not self._reading:
            self.write(self._create)
        else:
            self._check(version, owner)

    def _create(self, connection: Connection) -> None:
        if _pragma(connection, "user_version") == 0:  # another process may have created them first
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check(self, version: int, owner: int) -> None:
        if owner != APPLICATION_ID:
            raise UserError(str(self.path), "is another program's database", "name another file for the store")
        if version != SCHEMA_VERSION:
            support, remedy = ("knows up to", _NEWER) if version > SCHEMA_VERSION else ("writes", _OLDER)
            what = f"has schema {version}, this tunesmith {support} {SCHEMA_VERSION}"
            raise UserError(str(self.path), what, remedy)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's errors into UserErrors.

        SQLAlchemy does not wrap errors of setting up a connection. An error whose message quotes damaged bytes is a
        UnicodeDecodeError. A ProgrammingError is our own mistake, and is raised as it is.
        """
        try:
            yield
        except (DatabaseError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
            cause = error.orig if isinstance(error, DatabaseError) else error
            if isinstance(cause, sqlite3.ProgrammingError):
                raise
            unsound = (f"is not a sound SQLite database ({cause})", _MOVE)
            raise UserError(str(self.path), *_PROBLEMS_AND_REMEDIES.get(_code(cause), unsound)) from error

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Turn errors of decoding a damaged row into UserErrors. Only the decoding belongs inside."""
        try:
            yield
        except (
            struct.error,
            ValueError,
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise UserError(str(self.path), f"holds a damaged row ({error})", _MOVE) from error


_NEWER = "use the newer tunesmith that wrote it, or name another file"
_OLDER = "move it away and measure again, or use the older tunesmith that wrote it"
_MOVE = "move it away and run the same command again, or salvage it with `sqlite3 FILE .recover`"


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
    if not os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids) and not log.exists():
        options = {"immutable": "1"}
    elif reading:
        options = {"mode": "ro"}
    else:
        return URL.create("sqlite", database=str(path))
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query={**options, "uri": "true"})


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _code(error: BaseException | None) -> int:
    """SQLite's primary result code; SQLITE_OK for an error that is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF


def _retried(attempt: Callable[[], T]) -> T:
    for pause in RETRY_PAUSES:
        try:
            return attempt()
        except OperationalError as error:
            if _code(error.orig) not in _BUSY_CODES:
                raise
            time.sleep(pause)
    return attempt()
