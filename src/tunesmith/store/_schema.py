"""The store's tables. Rows are only ever inserted; what changes about a run is a later row."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, UniqueConstraint

SCHEMA_VERSION = 1
"""Kept in SQLite's `user_version`; raised with every change of the tables."""

APPLICATION_ID = 0x746E736D
"""Kept in SQLite's `application_id` ("tnsm"), so that another program's database is not mistaken for a store."""

metadata = MetaData()

documents = Table(
    "documents",
    metadata,
    Column("digest", String, primary_key=True),
    Column("text", String, nullable=False),
)
"""Solutions, problems and targets as JSON, once each, under the SHA-256 of their text."""

measurements = Table(
    "measurements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String, nullable=False),
    Column("round", String, nullable=False),
    Column("identity", String, nullable=False),
    Column("problem_type", String, nullable=False),
    Column("solution", String, ForeignKey("documents.digest"), nullable=False),
    Column("problem", String, ForeignKey("documents.digest"), nullable=False),
    Column("target", String, ForeignKey("documents.digest"), nullable=False),
    Column("toolchain", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("detail", String, nullable=False),
    Column("seconds", Float),
    Column("low", Float),
    Column("high", Float),
    Column("count", Integer),
    Column("samples", LargeBinary, nullable=False),
    Column("raced", Integer, nullable=False),
    Column("facts", String, nullable=False),
    Column("compile_seconds", Float, nullable=False),
    Column("verify_seconds", Float, nullable=False),
    Column("timing_seconds", Float, nullable=False),
    Column("started", Float, nullable=False),
    UniqueConstraint("key", "round"),
    Index("measurements_by_problem", "problem_type", "problem", "seconds"),
)
"""One row a measurement. Layout of `samples`, `facts` and the estimate's columns: `_codec`."""

run_events = Table(
    "run_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    Column("kind", String, nullable=False),
    Column("time", Float, nullable=False),
    Column("payload", String, nullable=False),
)
"""A run's beginning and its end, if it came to one, as JSON: `_runs`."""

steps = Table(
    "steps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    Column("payload", String, nullable=False),
)
"""What each step of a run did, as JSON: `_runs`."""
