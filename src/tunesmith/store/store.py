"""The store: what was measured, appended and never changed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, Table, func, insert, or_, select
from sqlalchemy.dialects import sqlite

from tunesmith.records import Cost, Measurement, Outcome, Problem

from . import codec
from .database import Database
from .entry import AGAIN, CONFIRM, RECHECK, Renewed, StoreEntry, confirm_round
from .runs import RunEnd, RunStart, StepRecord, StoredRun
from .schema import COSTS, documents, measurements, run_events, steps

FILE_NAME = "measurements.sqlite"
"""What a store is called in the folder of a run."""

CHUNK = 500
"""Keys a query: below every SQLite's limit of variables. Rows a page when entries are read."""

_LATER = measurements.alias("later")
_BASE, _LATER_BASE = (func.rtrim(table.c.round, AGAIN, type_=String) for table in (measurements, _LATER))
_STANDS = ~(
    select(_LATER.c.id)
    .where(
        _LATER.c.key == measurements.c.key,
        _LATER.c.id > measurements.c.id,
        _LATER.c.round.endswith(AGAIN),
        or_(_LATER_BASE == _BASE, _LATER_BASE + RECHECK == _BASE),
    )
    .correlate(measurements)
    .exists()
)
"""Of a row: nothing replaced it. Who measures a round again replaces the second result of that round too."""

_SOLUTION, _PROBLEM, _TARGET = (documents.alias(name) for name in ("solution_text", "problem_text", "target_text"))


@dataclass(frozen=True, slots=True)
class Failure:
    """How often something did not run, and one example of what was said about it."""

    problem_type: str
    outcome: Outcome
    reason: str
    count: int
    example: str


class Store:
    """An append-only SQLite file of measurements, unique by (key, round), with the runs that made them.

    Safe for several processes at once; a killed process loses nothing committed (`_database.Database` says how). Not to
    be carried across a fork. Every method raises UserError when the file is damaged, locked for long or out of room.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock = database, clock

    @staticmethod
    def open(path: Path | str) -> Store:
        """Open a store, made with its folder if it is not there; UserError for what is no store of this version."""
        return Store(Database(Path(path)))

    @staticmethod
    def read(path: Path | str) -> Store:
        """Open a store that is there, and write nothing, whatever the file is; otherwise as `open`."""
        return Store(Database(Path(path), reading=True))

    @property
    def path(self) -> Path:
        return self._database.path

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def commit(self, entries: Iterable[StoreEntry], replacing: Collection[tuple[str, str]] = ()) -> int:
        """Append entries in one transaction, all or none; those whose (key, round) is there already are left out,
        unless it is among `replacing`: there they stand in the place of what was measured before.

        What was replaced stays in the file, and no method here gives it. Returns how many were new. When it returns,
        they are safe from a kill of this process.
        """
        texts: dict[str, str] = {}
        rows: list[dict[str, Any]] = []
        for entry in entries:
            parts = {column: (codec.digest(text), text) for column, text in codec.documents_of(entry).items()}
            texts.update(parts.values())
            rows.append(codec.row_of(entry, {column: digest for column, (digest, _) in parts.items()}))
        if not rows:
            return 0

        def append(connection: Connection) -> int:
            known = sqlite.insert(documents).on_conflict_do_nothing(index_elements=["digest"])
            connection.execute(known, [{"digest": digest, "text": text} for digest, text in texts.items()])
            once = sqlite.insert(measurements).on_conflict_do_nothing(index_elements=["key", "round"])
            return connection.execute(once, [_renamed(connection, row, replacing) for row in rows]).rowcount

        return self._database.write(append)

    def rounds(self, keys: Iterable[str]) -> dict[str, dict[str, Measurement]]:
        """Everything that is there of these keys, by key and round; a key that nothing is known of has no rounds."""
        found: dict[str, dict[str, Measurement]] = {key: {} for key in keys}
        query = select(measurements).where(_STANDS).order_by(measurements.c.id)
        for rows in self._rows_with(query, measurements.c.key, found):
            with self._database.decoding():
                for row in rows:
                    found[row["key"]][row["round"].rstrip(AGAIN)] = codec.measurement_of(row)
        return found

    def carry_over(self, renewed: Mapping[str, Renewed]) -> int:
        """Append what is under former keys again under the keys of today, all rounds or none; returns how many are new.

        A round of finalists, whose name is made from their keys, is carried over once all of them are in `renewed`. The
        copies cost nothing (`cost`).
        """
        former = self._entries_with(measurements.c.key, renewed)
        names = {entry.round for entry in former if entry.round.startswith(CONFIRM)}
        finalists: dict[str, set[str]] = {name: set() for name in names}
        for entry in self._entries_with(_BASE, names):
            finalists[entry.round].add(entry.key)
        rounds = {entry.round: entry.round for entry in former if entry.round not in names}
        for name, keys in finalists.items():
            if keys <= renewed.keys():
                rounds[name] = confirm_round(renewed[key].key for key in keys)
        return self.commit(
            _copy(entry, renewed[entry.key], rounds[entry.round]) for entry in former if entry.round in rounds
        )

    def entries(
        self, problem_type: str = "", round_prefix: str = "", outcomes: Collection[Outcome] = ()
    ) -> Iterator[StoreEntry]:
        """Entries in the order of their commits; an empty filter lets everything through."""
        query = _whole(_filters(problem_type, round_prefix, outcomes)).order_by(measurements.c.id).limit(CHUNK)
        last = 0
        while rows := self._rows(query.where(measurements.c.id > last)):
            last = rows[-1]["id"]
            for row in rows:
                with self._database.decoding():
                    entry = codec.entry_of(row)
                yield entry

    def problems(self, problem_type: str) -> list[Problem]:
        """Every problem of a type by this name that anything was measured of."""
        its = select(measurements.c.problem).where(measurements.c.problem_type == problem_type)
        rows = self._rows(select(documents.c.text).where(documents.c.digest.in_(its)).order_by(documents.c.digest))
        with self._database.decoding():
            return [Problem.from_json(row["text"]) for row in rows]

    def best(self, problem_type: str = "", round_prefix: str = "") -> dict[Problem, StoreEntry]:
        """The entry with the smallest median for each problem that anything ran on, over all devices in the store."""
        filters = [*_filters(problem_type, round_prefix, (Outcome.OK,)), measurements.c.seconds.is_not(None)]
        rank = func.row_number().over(
            partition_by=measurements.c.problem, order_by=(measurements.c.seconds, measurements.c.id)
        )
        ranked = select(measurements.c.id, rank.label("rank")).where(*filters).subquery()
        firsts = select(ranked.c.id).where(ranked.c.rank == 1)
        rows = self._rows(_whole([measurements.c.id.in_(firsts)]).order_by(measurements.c.id))
        with self._database.decoding():
            return {entry.problem: entry for entry in map(codec.entry_of, rows)}

    def failures(self, problem_type: str = "", round_prefix: str = "") -> list[Failure]:
        """What did not run, counted by reason, the most frequent first."""
        columns = (measurements.c.problem_type, measurements.c.outcome, measurements.c.reason)
        count = func.count().label("count")
        query = (
            select(*columns, count, func.min(measurements.c.detail).label("example"))
            .where(*_filters(problem_type, round_prefix, ()), measurements.c.outcome != Outcome.OK.value)
            .group_by(*columns)
            .order_by(count.desc(), *columns)
        )
        rows = self._rows(query)
        with self._database.decoding():
            return [
                Failure(row["problem_type"], Outcome(row["outcome"]), row["reason"], row["count"], row["example"])
                for row in rows
            ]

    def cost(self) -> Cost:
        """Wall seconds spent on everything in the store."""
        query = select(*(of(measurements.c[name]) for of in (func.total, func.min, func.max) for name in COSTS))
        with self._database.reading() as connection:
            numbers = tuple(connection.execute(query).one())
        sums, least, most = (numbers[first : first + len(COSTS)] for first in range(0, len(numbers), len(COSTS)))
        with self._database.decoding():
            for name, low, high in zip(COSTS, least, most, strict=True):
                if low is not None:
                    codec.check_spent(name, low)
                    codec.check_spent(name, high)
        return Cost(*sums)

    def begin_run(self, start: RunStart) -> str:
        """Note that a run begins; returns its id, for `record_step` and `end_run`."""
        run = uuid.uuid4().hex
        self._append(run_events, run=run, kind="begin", time=self._clock(), payload=start.to_json())
        return run

    def end_run(self, run: str, end: RunEnd) -> None:
        self._append(run_events, run=run, kind="end", time=self._clock(), payload=end.to_json())

    def runs(self) -> list[StoredRun]:
        """Every run in the order in which they began. One that was killed has no end."""
        rows = self._rows(select(run_events).order_by(run_events.c.id))
        runs: dict[str, StoredRun] = {}
        with self._database.decoding():
            for row in rows:
                if row["kind"] == "begin":
                    runs[row["run"]] = StoredRun(row["run"], row["time"], RunStart.from_json(row["payload"]))
                else:
                    end = RunEnd.from_json(row["payload"])
                    runs[row["run"]] = replace(runs[row["run"]], ended=row["time"], end=end)
        return list(runs.values())

    def record_step(self, run: str, step: StepRecord) -> None:
        self._append(steps, run=run, payload=step.to_json())

    def steps(self, run: str) -> list[StepRecord]:
        """The steps of a run in the order in which they were recorded."""
        rows = self._rows(select(steps).where(steps.c.run == run).order_by(steps.c.id))
        with self._database.decoding():
            return [StepRecord.from_json(row["payload"]) for row in rows]

    def _append(self, table: Table, **row: str | float) -> None:
        self._database.write(lambda connection: connection.execute(insert(table), [row]))

    def _entries_with(self, column: ColumnElement[str], values: Iterable[str]) -> list[StoreEntry]:
        """Entries whose column has one of these values, in the order of their commits."""
        entries: list[StoreEntry] = []
        for rows in self._rows_with(_whole([_STANDS]).order_by(measurements.c.id), column, sorted(values)):
            with self._database.decoding():
                entries += map(codec.entry_of, rows)
        return entries

    def _rows_with(
        self, query: Select[Any], column: ColumnElement[str], values: Iterable[str]
    ) -> Iterator[list[dict[str, Any]]]:
        """What the query finds where a column has one of these values, page by page."""
        asked = list(values)
        for start in range(0, len(asked), CHUNK):
            yield self._rows(query.where(column.in_(asked[start : start + CHUNK])))

    def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _renamed(connection: Connection, row: dict[str, Any], replacing: Collection[tuple[str, str]]) -> dict[str, Any]:
    """The row under the first free name of its round, if it replaces what is there."""
    if (row["key"], row["round"]) not in replacing:
        return row
    taken = set(connection.execute(select(measurements.c.round).where(measurements.c.key == row["key"])).scalars())
    round_ = row["round"]
    while round_ in taken:
        round_ += AGAIN
    return {**row, "round": round_}


def _copy(entry: StoreEntry, today: Renewed, round_: str) -> StoreEntry:
    """At no cost: the time was spent once."""
    free = replace(entry.measurement, cost=Cost())
    return StoreEntry(
        today.key, round_, entry.identity, today.solution, today.problem, entry.target, entry.toolchain, free
    )


def _filters(problem_type: str, round_prefix: str, outcomes: Collection[Outcome]) -> list[ColumnElement[bool]]:
    columns = measurements.c
    filters: list[ColumnElement[bool]] = [_STANDS]
    if problem_type:
        filters.append(columns.problem_type == problem_type)
    if round_prefix:
        filters.append(func.substr(columns.round, 1, len(round_prefix)) == round_prefix)
    if outcomes:
        filters.append(columns.outcome.in_([outcome.value for outcome in outcomes]))
    return filters


def _whole(filters: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Measurements with their documents' texts in place of the digests."""
    texts = {"solution": _SOLUTION, "problem": _PROBLEM, "target": _TARGET}
    own = [column for column in measurements.c if column.name not in texts]
    query = select(*own, *(text.c.text.label(name) for name, text in texts.items())).where(*filters)
    for name, text in texts.items():
        query = query.join(text, measurements.c[name] == text.c.digest)
    return query
