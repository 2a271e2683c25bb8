"""One SQLite file, opened so that processes can share it and a killed one loses nothing committed."""

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
"""How long SQLite waits for another process's transaction; ours take milliseconds."""

RETRY_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts where SQLite answers "busy" without waiting, as while the journal mode is changed."""

_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_COMPLAINTS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room and run the same command again: it goes on where it stopped"),
    sqlite3.SQLITE_READONLY: ("the store cannot be written", "make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: ("the store cannot be opened", "make its folder writable, or use a copy of it"),
    sqlite3.SQLITE_PERM: ("the store cannot be opened", "check who owns the file"),
    sqlite3.SQLITE_IOERR: ("the disk failed", "check the disk, then run the same command again"),
    sqlite3.SQLITE_BUSY: ("another process holds the store", "end it, or wait, and run the same command again"),
    sqlite3.SQLITE_LOCKED: ("another process holds the store", "end it, or wait, and run the same command again"),
}


class Database:
    """A file with the store's tables. Every error that SQLite has with the file comes out as a UserError.

    Durability: WAL with `synchronous = NORMAL`. A commit has been handed to the kernel before it returns, so killing
    the process, at any moment and with any signal, loses nothing committed. A power failure may lose the commits since
    the last checkpoint, never the file; they are measured again. `FULL` would add a disk flush to each commit, next to
    kernels being timed, for that case only.

    Where the folder may not be written, the file is read as it lies there. With `reading`, nothing is made or changed.
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
        """Carry out `action` in one transaction, again from its start if the file was busy."""

        def attempt() -> T:
            with self.engine.begin() as connection:
                # Taking the write lock first lets SQLite wait for it; a read that turns into a write fails at once.
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
        if _pragma(connection, "user_version") == 0:  # another process may have been first
            metadata.create_all(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check(self, version: int, owner: int) -> None:
        if owner != APPLICATION_ID:
            raise UserError(str(self.path), "is another program's database", "name another file for the store")
        if version != SCHEMA_VERSION:
            knows, remedy = ("knows up to", _NEWER) if version > SCHEMA_VERSION else ("writes", _OLDER)
            what = f"has schema {version}, this tunesmith {knows} {SCHEMA_VERSION}"
            raise UserError(str(self.path), what, remedy)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's complaints as the user's errors.

        Those made while a connection is set up are not wrapped by SQLAlchemy; a complaint that quotes damaged bytes is
        a UnicodeDecodeError; a ProgrammingError is our own mistake.
        """
        try:
            yield
        except (DatabaseError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
            said = error.orig if isinstance(error, DatabaseError) else error
            if isinstance(said, sqlite3.ProgrammingError):
                raise
            unsound = (f"is not a sound SQLite database ({said})", _MOVE)
            raise UserError(str(self.path), *_COMPLAINTS.get(_code(said), unsound)) from error

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Rows that do not say what they should as the user's errors. Only the decoding belongs inside."""
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
    """SQLite reads a WAL database only where it may make files beside it, unless it is told that nobody writes it.

    That is so where we may not: a writer who may has a log there, which is part of the database.
    """
    log = path.with_name(f"{path.name}-wal")
    if not os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids) and not log.exists():
        how = {"immutable": "1"}
    elif reading:
        how = {"mode": "ro"}
    else:
        return URL.create("sqlite", database=str(path))
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query={**how, "uri": "true"})


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())


def _code(error: BaseException | None) -> int:
    """SQLite's primary result code, or -1."""
    code = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1


def _retried(attempt: Callable[[], T]) -> T:
    for pause in RETRY_PAUSES:
        try:
            return attempt()
        except OperationalError as error:
            if _code(error.orig) not in _BUSY_CODES:
                raise
            time.sleep(pause)
    return attempt()
