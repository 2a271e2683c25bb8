"""A database that processes can share (`Database`): what SQLite and PostgreSQL have in common.

A process that is killed loses nothing that it committed.
"""

from __future__ import annotations

import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.sql.dml import Insert

from tunesmith.records import UserError

from .location import StoreLocation
from .migrations import OLDEST, migrate
from .schema import LATER_COLUMNS, SCHEMA_VERSION, metadata

T = TypeVar("T")

BUSY_SECONDS = 60.0
"""How long a writer waits for another process's transaction. Ours take milliseconds."""

RETRY_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts, if SQLite answers "busy" at once, as it does while the journal mode changes, or if
PostgreSQL's server starts again."""

NEWER = "use the newer tunesmith that wrote it, or name another store"
OLDER = "move it away and measure again, or use the older tunesmith that wrote it"


@dataclass(frozen=True)
class FoundSchema:
    """What a database holds: tables of ours, of a `version`, or another program's, or nothing."""

    version: int
    is_ours: bool
    is_empty: bool


class Database(ABC):
    """The store's tables in a database. Every error of the database becomes a UserError.

    `version` is that of the tables. It is today's, unless the database is only read. With `reading`, nothing is made or
    changed.
    """

    engine: Engine
    damaged_remedy: str
    """What to do about a damaged row."""
    repeats_commits: bool
    """Whether a transaction may begin again if its commit failed: not if the commit may have been carried out."""

    def __init__(self, location: StoreLocation, reading: bool) -> None:
        self.location, self.version, self._reading = location, SCHEMA_VERSION, reading
        self._is_open = False
        self.name = str(location)

    def _begin(self) -> None:
        """To be called when the engine is there: make, check or migrate the tables."""
        try:
            with self._translated():
                self._retried(self._set_up)
            self._is_open = True
        except BaseException:
            self.engine.dispose()
            raise

    @abstractmethod
    def insert_new(self, table: Table, unique: tuple[str, ...]) -> Insert:
        """A statement that inserts rows and leaves out those whose `unique` columns another row has."""

    @abstractmethod
    def _lock(self, connection: Connection) -> None:
        """Begin a transaction that writes: from here to its end, no other transaction of a store's writes."""

    @abstractmethod
    def _found(self, connection: Connection) -> FoundSchema:
        """What the database holds."""

    @abstractmethod
    def _mark(self, connection: Connection) -> None:
        """Write today's schema version into the database."""

    @abstractmethod
    def _may_retry(self, error: OperationalError) -> bool:
        """Whether a transaction that failed should begin again."""

    @abstractmethod
    def _explained(self, error: BaseException) -> tuple[str, str] | None:
        """What is wrong, and the remedy, for an error of the driver; None for our own mistake."""

    @property
    def _is_writable(self) -> bool:
        """Whether an older store may be migrated. It is read as it is otherwise."""
        return not self._reading

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns of `measurements` that the database does not have, since it is of an older version."""
        return frozenset(name for name, since in LATER_COLUMNS.items() if self.version < since)

    def read(self, action: Callable[[Connection], T]) -> T:
        """Carry out `action`, which only reads. All its statements see one state of the database."""

        def attempt() -> T:
            with self.engine.connect() as connection:
                return action(self._reader(connection))

        with self._translated():
            return self._retried(attempt)

    def _reader(self, connection: Connection) -> Connection:
        """The connection, set up to read."""
        return connection

    def write(self, action: Callable[[Connection], T]) -> T:
        """Carry out `action` in one transaction, while no other writes. The transaction may begin several times."""
        with self._translated():
            return self._retried(lambda: self._attempt(action))

    def _attempt(self, action: Callable[[Connection], T]) -> T:
        with self.engine.connect() as connection:
            self._lock(connection)
            result = action(connection)
            try:
                connection.commit()
            except OperationalError as error:
                if self.repeats_commits or (explained := self._explained(error.orig or error)) is None:
                    raise
                raise UserError(self.name, *explained) from error
            return result

    def close(self) -> None:
        self.engine.dispose()

    def _set_up(self) -> None:
        with self.engine.connect() as connection:
            found = self._found(self._reader(connection))
        if found.is_empty and not self._reading:
            self._attempt(self._create)
            return
        self.version = self._checked(found)
        if self.version < SCHEMA_VERSION and self._is_writable:
            self._attempt(self._migrate)
            self.version = SCHEMA_VERSION

    def _create(self, connection: Connection) -> None:
        if self._found(connection).is_empty:  # another process may have created them first
            metadata.create_all(connection)
            self._mark(connection)

    def _migrate(self, connection: Connection) -> None:
        version = self._checked(self._found(connection))  # another process may have migrated them first
        if version < SCHEMA_VERSION:
            migrate(connection, version)
            self._mark(connection)

    def _checked(self, found: FoundSchema) -> int:
        """The version of the tables. Raises UserError if they are another program's, or of no version that is known."""
        if not found.is_ours:
            raise UserError(self.name, "is another program's database", "name another file or database for the store")
        if OLDEST <= found.version <= SCHEMA_VERSION:
            return found.version
        support, remedy = ("knows up to", NEWER) if found.version > SCHEMA_VERSION else ("writes", OLDER)
        what = f"has schema {found.version}, this tunesmith {support} {SCHEMA_VERSION}"
        raise UserError(self.name, what, remedy)

    def _retried(self, attempt: Callable[[], T]) -> T:
        for pause in RETRY_PAUSES:
            try:
                return attempt()
            except OperationalError as error:
                if not self._may_retry(error):
                    raise
                time.sleep(pause)
        return attempt()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the driver's errors into UserErrors.

        SQLAlchemy does not wrap errors of setting up a connection. An error whose message quotes damaged bytes is a
        UnicodeDecodeError.
        """
        try:
            yield
        except (UserError, KeyboardInterrupt):
            raise
        except Exception as error:
            cause = error.orig if isinstance(error, DatabaseError) and error.orig else error
            if (explained := self._explained(cause)) is None:
                raise
            raise UserError(self.name, *explained) from error

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
            raise UserError(self.name, f"holds a damaged row ({error})", self.damaged_remedy) from error
