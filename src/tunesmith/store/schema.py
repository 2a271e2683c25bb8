"""The store's tables. Rows are only inserted, never changed; a run's end is another row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
)

SCHEMA_VERSION = 2
"""The version of the tables. Raise it with every change of them, and write a migration (`migrations.py`)."""

APPLICATION_ID = 0x746E736D
"""Stored in SQLite's `application_id` ("tnsm"), so that another program's database is not mistaken for a store. In
PostgreSQL it is half of the key of the lock that writers hold."""

COSTS = ("compile_seconds", "verify_seconds", "timing_seconds")
"""Columns for the fields of a `Cost`, in their order."""

metadata = MetaData()

_ESCAPE, _NUL = "\ue000", "\0"


class _EscapedText(TypeDecorator[str]):
    """Any text in PostgreSQL, which cannot store the character NUL: an escape stands for it. Texts are compared and
    ordered by their code points, as in SQLite."""

    impl = String
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(collation="C")

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if isinstance(value, str) and (_NUL in value or _ESCAPE in value):
            return value.replace(_ESCAPE, f"{_ESCAPE}e").replace(_NUL, f"{_ESCAPE}0")
        return value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if isinstance(value, str) and _ESCAPE in value:
            return value.replace(f"{_ESCAPE}0", _NUL).replace(f"{_ESCAPE}e", _ESCAPE)
        return value


class _Bytes(LargeBinary):
    """Bytes as they are in the file. If a number is there instead, SQLAlchemy would return that many zeros."""

    def result_processor(self, dialect: object, coltype: object) -> None:
        return None


TEXT = String().with_variant(_EscapedText(), "postgresql")
_WHOLE = BigInteger().with_variant(Integer(), "sqlite")


def _text(name: str, *parts: Any, **options: Any) -> Column[str]:
    return Column(name, TEXT, *parts, nullable=False, **options)


documents = Table("documents", metadata, _text("digest", primary_key=True), _text("text"))
"""Solutions, problems and targets as JSON, each once, by the SHA-256 of their text."""

measurements = Table(
    "measurements",
    metadata,
    Column("id", _WHOLE, primary_key=True),
    *map(_text, ("key", "round", "identity", "problem_type")),
    *(_text(name, ForeignKey("documents.digest")) for name in ("solution", "problem", "target")),
    *map(_text, ("toolchain", "outcome", "reason", "detail")),
    *(Column(name, Float) for name in ("seconds", "low", "high")),
    Column("count", _WHOLE),
    Column("samples", _Bytes, nullable=False),
    Column("raced", Integer, nullable=False),
    _text("facts"),
    *(Column(name, Float, nullable=False) for name in (*COSTS, "started")),
    *(_text(name, server_default="") for name in ("host", "run")),
    UniqueConstraint("key", "round"),
    Index("measurements_by_problem", "problem_type", "problem", "seconds"),
)
"""One row for each measurement. `codec.py` has the layout of `samples`, `facts` and the estimate's columns. `host` says
which host and device measured, `run` which run; both are empty if that is unknown."""

run_events = Table(
    "run_events",
    metadata,
    Column("id", _WHOLE, primary_key=True),
    _text("run", index=True),
    _text("kind"),
    Column("time", Float, nullable=False),
    _text("payload"),
)
"""A run's beginning, and its end if there is one, as JSON (`runs.py`)."""

steps = Table("steps", metadata, Column("id", _WHOLE, primary_key=True), _text("run", index=True), _text("payload"))
"""The result of each step of a run, as JSON (`runs.py`)."""

folder_keys = Table("folder_keys", metadata, _text("folder", primary_key=True), _text("key", primary_key=True))
"""The keys that a folder's runs asked for, if several folders share the store. A folder has an id (`folder.py`)."""

LATER_COLUMNS = {"host": 2, "run": 2}
"""The schema version in which a column of `measurements` was added. An older store that is only read has an empty text
in its place."""
