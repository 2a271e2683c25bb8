"""Changes of the tables from one schema version to the next. All that a store needs are made in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from .schema import SCHEMA_VERSION, folder_keys

OLDEST = 1
"""The first released version. There is a migration from this version and from each later one."""


def _to_2(connection: Connection) -> None:
    """Measurements say which host and which run made them; folders that share a store have keys."""
    for column in ("host", "run"):
        connection.exec_driver_sql(f"ALTER TABLE measurements ADD COLUMN {column} VARCHAR DEFAULT '' NOT NULL")
    folder_keys.create(connection)


MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {1: _to_2}
"""By a version, the change to the next version. A migration adds tables and columns, and changes no row."""


def migrate(connection: Connection, version: int) -> None:
    """Bring tables of an older version to today's, within the connection's transaction."""
    for older in range(version, SCHEMA_VERSION):
        MIGRATIONS[older](connection)
