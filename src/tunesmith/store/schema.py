"""The store's tables. Rows are only inserted, never changed; a run's end is another row."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, UniqueConstraint

SCHEMA_VERSION = 1
"""Stored in SQLite's `user_version`. Raise it with every change of the tables."""

APPLICATION_ID = 0x746E736D
"""Stored in SQLite's `application_id` ("tnsm"), so that another program's database is not mistaken for a store."""

COSTS = ("compile_seconds", "verify_seconds", "timing_seconds")
"""Columns for the fields of a `Cost`, in their order."""

metadata = MetaData()


class _Bytes(LargeBinary):
    """Bytes as they are in the file. If a number is there instead, SQLAlchemy would return that many zeros."""

    def result_processor(self, dialect: object, coltype: object) -> None:
        return None


documents = Table(
    "documents",
    metadata,
    Column("digest", String, primary_key=True),
    Column("text", String, nullable=False),
)
"""Solutions, problems and targets as JSON, each once, by the SHA-256 of their text."""

measurements = Table(
    "measurements",
    metadata,
    Column("id", Integer, primary_key=True),
    *(Column(name, String, nullable=False) for name in ("key", "round", "identity", "problem_type")),
    *(
        Column(name, String, ForeignKey("documents.digest"), nullable=False)
        for name in ("solution", "problem", "target")
    ),
    *(Column(name, String, nullable=False) for name in ("toolchain", "outcome", "reason", "detail")),
    *(Column(name, Float) for name in ("seconds", "low", "high")),
    Column("count", Integer),
    Column("samples", _Bytes, nullable=False),
    Column("raced", Integer, nullable=False),
    Column("facts", String, nullable=False),
    *(Column(name, Float, nullable=False) for name in (*COSTS, "started")),
    UniqueConstraint("key", "round"),
    Index("measurements_by_problem", "problem_type", "problem", "seconds"),
)
"""One row for each measurement. `codec.py` has the layout of `samples`, `facts` and the estimate's columns."""

run_events = Table(
    "run_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    Column("kind", String, nullable=False),
    Column("time", Float, nullable=False),
    Column("payload", String, nullable=False),
)
"""A run's beginning, and its end if there is one, as JSON (`runs.py`)."""

steps = Table(
    "steps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    Column("payload", String, nullable=False),
)
"""The result of each step of a run, as JSON (`runs.py`)."""
