"""The store of measurements, which are appended and never changed."""

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
from .entry import AGAIN, CONFIRM, RECHECK, RenewedKey, StoreEntry, confirm_round
from .runs import RunEnd, RunStart, StepRecord, StoredRun
from .schema import COSTS, documents, measurements, run_events, steps

FILE_NAME = "measurements.sqlite"
"""The name of a store's file in the folder of a run."""

CHUNK = 500
"""Keys of one query, below every SQLite's limit of variables; and rows of one page when entries are read."""

_LATER = measurements.alias("later")
_BASE, _LATER_BASE = (func.rtrim(table.c.round, AGAIN, type_=String) for table in (measurements, _LATER))
_IS_CURRENT = ~(
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
"""The condition that no later row replaced a row. Measuring a round again also replaces its second result."""

_SOLUTION, _PROBLEM, _TARGET = (documents.alias(name) for name in ("solution_text", "problem_text", "target_text"))


@dataclass(frozen=True, slots=True)
class Failure:
    """How often jobs failed for one reason, and an example of the failure's detail."""

    problem_type: str
    outcome: Outcome
    reason: str
    count: int
    example: str


class Store:
    """An append-only SQLite file of measurements, unique by (key, round), with the runs that made them.

    Several processes may use it at once. A killed process loses nothing that it committed (see `database.Database`). A
    store must not be used after a fork. Every method raises UserError if the file is damaged or locked for long, or the
    disk is full.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock = database, clock

    @staticmethod
    def open(path: Path | str) -> Store:
        """Open a store, and make it and its folder if need be. UserError if the file is no store of this version."""
        return Store(Database(Path(path)))

    @staticmethod
    def read(path: Path | str) -> Store:
        """Open an existing store only to read. Raises UserError as `open` does, and if there is no file."""
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
        """Append entries in one transaction, all or none; returns how many were new.

        An entry whose (key, round) is in the store already is left out, unless that pair is among `replacing`. Then the
        entry replaces the earlier measurement, which stays in the file but is returned by no method. After the return,
        killing this process does not lose the entries.
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
            add_documents = sqlite.insert(documents).on_conflict_do_nothing(index_elements=["digest"])
            connection.execute(add_documents, [{"digest": digest, "text": text} for digest, text in texts.items()])
            add_measurements = sqlite.insert(measurements).on_conflict_do_nothing(index_elements=["key", "round"])
            return connection.execute(add_measurements, [_renamed(connection, row, replacing) for row in rows]).rowcount

        return self._database.write(append)

    def rounds(self, keys: Iterable[str]) -> dict[str, dict[str, Measurement]]:
        """Every measurement of these keys, by key and round. A key without measurements has no rounds."""
        rounds: dict[str, dict[str, Measurement]] = {key: {} for key in keys}
        query = select(measurements).where(_IS_CURRENT).order_by(measurements.c.id)
        for rows in self._rows_with(query, measurements.c.key, rounds):
            with self._database.decoding():
                for row in rows:
                    rounds[row["key"]][row["round"].rstrip(AGAIN)] = codec.measurement_of(row)
        return rounds

    def carry_over(self, renewed: Mapping[str, RenewedKey]) -> int:
        """Copy the entries with former keys to the keys of today, all rounds or none; returns how many copies are new.

        A round of finalists has a name made from their keys. It is carried over if all of its keys are in `renewed`.
        The copies have no cost (`cost`).
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
        """Entries in the order of their commits. An empty filter selects everything."""
        query = _whole(_filters(problem_type, round_prefix, outcomes)).order_by(measurements.c.id).limit(CHUNK)
        last = 0
        while rows := self._rows(query.where(measurements.c.id > last)):
            last = rows[-1]["id"]
            for row in rows:
                with self._database.decoding():
                    entry = codec.entry_of(row)
                yield entry

    def problems(self, problem_type: str) -> list[Problem]:
        """Every problem, of the type with this name, that has a measurement."""
        digests = select(measurements.c.problem).where(measurements.c.problem_type == problem_type)
        rows = self._rows(select(documents.c.text).where(documents.c.digest.in_(digests)).order_by(documents.c.digest))
        with self._database.decoding():
            return [Problem.from_json(row["text"]) for row in rows]

    def best(self, problem_type: str = "", round_prefix: str = "") -> dict[Problem, StoreEntry]:
        """The entry with the smallest median for each problem with a successful run, over all devices in the store."""
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
        """Failures counted by reason, the most frequent first."""
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
        """Wall seconds spent on all measurements in the store."""
        aggregates = (func.total, func.min, func.max)
        query = select(*(aggregate(measurements.c[name]) for aggregate in aggregates for name in COSTS))
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
        """Record that a run begins; returns its id, for `record_step` and `end_run`."""
        run = uuid.uuid4().hex
        self._append(run_events, run=run, kind="begin", time=self._clock(), payload=start.to_json())
        return run

    def end_run(self, run: str, end: RunEnd) -> None:
        self._append(run_events, run=run, kind="end", time=self._clock(), payload=end.to_json())

    def runs(self) -> list[StoredRun]:
        """Every run, in the order in which they began. A run that was killed has no end."""
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
        """The steps of a run, in the order in which they were recorded."""
        rows = self._rows(select(steps).where(steps.c.run == run).order_by(steps.c.id))
        with self._database.decoding():
            return [StepRecord.from_json(row["payload"]) for row in rows]

    def _append(self, table: Table, **row: str | float) -> None:
        self._database.write(lambda connection: connection.execute(insert(table), [row]))

    def _entries_with(self, column: ColumnElement[str], values: Iterable[str]) -> list[StoreEntry]:
        """Entries whose column has one of these values, in the order of their commits."""
        entries: list[StoreEntry] = []
        for rows in self._rows_with(_whole([_IS_CURRENT]).order_by(measurements.c.id), column, sorted(values)):
            with self._database.decoding():
                entries += map(codec.entry_of, rows)
        return entries

    def _rows_with(
        self, query: Select[Any], column: ColumnElement[str], values: Iterable[str]
    ) -> Iterator[list[dict[str, Any]]]:
        """The query's rows whose column has one of these values, page by page."""
        all_values = list(values)
        for start in range(0, len(all_values), CHUNK):
            yield self._rows(query.where(column.in_(all_values[start : start + CHUNK])))

    def _rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        with self._database.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _renamed(connection: Connection, row: dict[str, Any], replacing: Collection[tuple[str, str]]) -> dict[str, Any]:
    """The row; if it replaces an earlier one, with the first free name of its round."""
    if (row["key"], row["round"]) not in replacing:
        return row
    taken = set(connection.execute(select(measurements.c.round).where(measurements.c.key == row["key"])).scalars())
    round_ = row["round"]
    while round_ in taken:
        round_ += AGAIN
    return {**row, "round": round_}


def _copy(entry: StoreEntry, today: RenewedKey, round_: str) -> StoreEntry:
    """A copy of an entry under another key and round. It has no cost, since the time was spent only once."""
    free = replace(entry.measurement, cost=Cost())
    return StoreEntry(
        today.key, round_, entry.identity, today.solution, today.problem, entry.target, entry.toolchain, free
    )


def _filters(problem_type: str, round_prefix: str, outcomes: Collection[Outcome]) -> list[ColumnElement[bool]]:
    columns = measurements.c
    filters: list[ColumnElement[bool]] = [_IS_CURRENT]
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
