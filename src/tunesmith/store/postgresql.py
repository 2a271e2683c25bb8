"""A PostgreSQL database as the store's, for the processes of many hosts. Only this module needs psycopg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import URL, Column, Connection, Engine, Integer, MetaData, Table, create_engine, func, make_url, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.dml import Insert

from tunesmith.records import UserError

from .database import BUSY_SECONDS, Database, FoundSchema
from .location import StoreLocation
from .schema import APPLICATION_ID, SCHEMA_VERSION

EXTRA = "pip install 'tunesmith[postgresql]'"

OLDEST_SERVER = 12
"""The oldest major version of the server that is accepted."""

CONNECTION = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 60_000}
"""libpq's settings, unless the URL has others: seconds to connect; seconds after which an idle connection is probed;
milliseconds after which a host that does not answer counts as gone."""

VERSIONS = Table("tunesmith_schema", MetaData(), Column("version", Integer, primary_key=True))
"""Says that the schema holds a store, and has each version that its tables had; the largest is today's."""

_AGAIN = "run the same command again: it finds everything that was committed"
_LOST = ("the connection to the database was lost", f"see that its server runs, and {_AGAIN}")
_FULL = ("the database's disk is full", "make room and run the same command again: it goes on where it stopped")
_FORBIDDEN = "let the database's owner grant this user the right to use its schema and to make tables there"

_BY_SQLSTATE: Mapping[str, tuple[str, str]] = {
    "08": _LOST,
    "57P": _LOST,
    "53100": _FULL,
    "53300": ("the database has too many connections", "end some of them, or raise its max_connections"),
    "53": ("the database's machine is short of something", f"see its server's log, and {_AGAIN}"),
    "25006": ("the store cannot be written: the database is read-only", "name the primary server, not a standby"),
    "42501": ("the store cannot be used: permission was denied", _FORBIDDEN),
    "3F000": ("the schema is not there", "make the schema that the URL's search_path names"),
    "55P03": ("another process holds the store", "end it, or wait, and run the same command again"),
    "57014": ("the server cancelled a statement", f"raise its statement_timeout, and {_AGAIN}"),
    "40": ("other transactions were in the way", _AGAIN),
    "42P01": ("is no sound store: a table is missing", "restore the database, or name another one"),
    "42703": ("is no sound store: a column is missing", "restore the database, or name another one"),
    "XX": ("the database is damaged", "restore it from a backup, or name another one"),
    "58": ("the database's disk failed", "check its disk, then run the same command again"),
}
"""What failed and the remedy, by the beginning of SQLSTATE; the longest that fits counts. PostgreSQL's documentation
has the codes in its appendix A."""

_BY_WORDS = (
    (r"password authentication failed", "the password is wrong", "set PGPASSWORD, or mend ~/.pgpass"),
    (r"no password supplied", "a password is needed", "set PGPASSWORD, or write it into ~/.pgpass"),
    (r"database .* does not exist", "the database does not exist", "make it with `createdb`, or name another one"),
    (r"role .* does not exist", "the user does not exist", "name another user, or make this one with `createuser`"),
    (r"no pg_hba.conf entry", "the server does not admit this user from this host", "add a line to its pg_hba.conf"),
)
"""libpq gives no code for a failed connection, so these errors are known by their words. A server that speaks another
language than English gets the general remedy below; its words are shown."""

_UNREACHABLE = "see that the server runs and that the URL has the right host and port"

_PASSING = ("08", "57P", "40")
"""The beginnings of SQLSTATEs after which a transaction begins again. A lost connection may have none, too."""


class PostgreSQLDatabase(Database):
    """A PostgreSQL schema (the first of the search path) with the store's tables.

    Writers hold an advisory lock until their transaction ends, so that ids are in the order of commits. A commit
    returns when the server has flushed it (`synchronous_commit`), so a kill of this process or of the server does not
    lose it. If a connection is lost, the transaction begins again, unless it was lost during a commit.
    """

    damaged_remedy = "restore the database from a backup, or name another one"
    repeats_commits = False

    def __init__(self, location: StoreLocation, reading: bool = False) -> None:
        super().__init__(location, reading)
        try:
            self._url = make_url(location.url)
        except (ArgumentError, ValueError):
            what = "cannot be read as a URL"
            raise UserError(self.name, what, "write postgresql://USER@HOST:PORT/DATABASE") from None
        self.engine = _engine(self._url, self.name)
        self._begin()

    def insert_new(self, table: Table, unique: tuple[str, ...]) -> Insert:
        return postgresql.insert(table).on_conflict_do_nothing(index_elements=unique)

    def _reader(self, connection: Connection) -> Connection:
        return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def _lock(self, connection: Connection) -> None:
        if self._reading:
            raise UserError(self.name, "the store cannot be written: it was opened to read", "open it to write")
        milliseconds = int(1000 * BUSY_SECONDS)
        connection.exec_driver_sql(
            f"SELECT set_config('lock_timeout', '{milliseconds}', true), "
            f"pg_advisory_xact_lock({APPLICATION_ID}, hashtext(current_schema()))"
        )

    def _found(self, connection: Connection) -> FoundSchema:
        server, encoding, schema = connection.exec_driver_sql(
            "SELECT current_setting('server_version_num'), current_setting('server_encoding'), current_schema()"
        ).one()
        if int(server) < OLDEST_SERVER * 10_000:
            what = f"its server is PostgreSQL {int(server) // 10_000}"
            raise UserError(self.name, what, f"use PostgreSQL {OLDEST_SERVER} or newer")
        if encoding != "UTF8":
            what = f"the database stores texts as {encoding}"
            raise UserError(self.name, what, "make one with `createdb --encoding UTF8 --template template0`")
        if schema is None:
            raise UserError(self.name, *_BY_SQLSTATE["3F000"])
        tables = set(
            connection.exec_driver_sql(
                "SELECT relname FROM pg_catalog.pg_class "
                "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')"
            ).scalars()
        )
        is_ours = VERSIONS.name in tables
        version = connection.execute(select(func.max(VERSIONS.c.version))).scalar_one() if is_ours else 0
        return FoundSchema(version or 0, is_ours, not tables)

    def _mark(self, connection: Connection) -> None:
        VERSIONS.create(connection, checkfirst=True)
        connection.execute(VERSIONS.insert().values(version=SCHEMA_VERSION))

    def _checked(self, found: FoundSchema) -> int:
        if found.is_empty:
            raise UserError(self.name, "there is no store in the database", "name a store, or the folder of a run")
        if not found.is_ours:
            remedy = "make a database for the store, or a schema: add ?options=-csearch_path%3DSCHEMA to the URL"
            raise UserError(self.name, "another program has tables there", remedy)
        return super()._checked(found)

    def _may_retry(self, error: OperationalError) -> bool:
        state = getattr(error.orig, "sqlstate", None) or ""
        if not state:  # not connected: a store that was never reached is not waited for
            return self._is_open and not any(re.search(words, str(error.orig)) for words, _, _ in _BY_WORDS)
        return state.startswith(_PASSING)

    def _explained(self, error: BaseException) -> tuple[str, str] | None:
        import psycopg

        if isinstance(error, UnicodeDecodeError):
            return _BY_SQLSTATE["XX"]
        if not isinstance(error, psycopg.Error):
            return None
        message = self._shown(str(error))
        if state := error.sqlstate or "":
            if codes := [code for code in _BY_SQLSTATE if state.startswith(code)]:
                what, remedy = _BY_SQLSTATE[max(codes, key=len)]
                return f"{what} ({message})", remedy
            return None
        if not isinstance(error, psycopg.OperationalError):
            return None
        for words, what, remedy in _BY_WORDS:
            if re.search(words, message):
                return f"{what} ({message})", remedy
        if message.startswith(("connection failed", "connection is bad", "connection timeout")):
            return f"the database cannot be reached ({message})", _UNREACHABLE
        return f"{_LOST[0]} ({message})", _LOST[1]

    def _shown(self, message: str) -> str:
        """The driver's message in one line, without the password."""
        words = " ".join(message.split())
        password = self._url.password
        return words.replace(str(password), "***") if password else words


def _engine(url: URL, name: str) -> Engine:
    chosen = {key for key in CONNECTION if key in url.query}
    settings: dict[str, Any] = {key: value for key, value in CONNECTION.items() if key not in chosen}
    # A pooler between us and the server may not keep prepared statements.
    settings["prepare_threshold"] = None
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"), connect_args=settings, poolclass=QueuePool, pool_pre_ping=True
        )
    except ImportError:
        raise UserError(name, "needs psycopg, which is not installed", EXTRA) from None
