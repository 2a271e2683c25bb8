"""The store of measurements, which are appended and never changed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, func, insert, select

from tunesmith.records import Cost, Measurement, Outcome, Problem

from . import codec, queries
from .database import Database
from .entry import AGAIN, CONFIRM, RenewedKey, StoreEntry, confirm_round
from .folder import FolderStore
from .location import StoreLocation
from .runs import RunEnd, RunStart, StepRecord, StoredRun
from .schema import COSTS, documents, folder_keys, measurements, run_events, steps

CHUNK = 500
"""Keys of one query, below every SQLite's limit of variables; and rows of one page when entries are read."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How often jobs failed for one reason, and an example of the failure's detail."""

    problem_type: str
    outcome: Outcome
    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """The current measurements of one device with one driver on one host (empty if unknown), and how many `ran`."""

    device: str
    api: str
    driver: str
    host: str
    measurements: int
    ran: int


class Store:
    """Measurements, unique by (key, round), with the runs that made them, in an SQLite file or a PostgreSQL database.

    Several processes may use it at once. A killed process loses nothing that it committed (see `database.Database`). A
    store must not be used after a fork. Every method raises UserError if the database is damaged or locked for long,
    cannot be reached, or has no room.

    If `folder` is not empty, several folders share the store, and it is used for the folder with this id: `runs`,
    `entries`, `best`, `failures` and `cost` have only what is the folder's. `rounds` finds every measurement, since a
    key holds everything that could change it.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time, folder: str = "") -> None:
        self._database, self._clock, self.folder = database, clock, folder
        self._add_documents = database.insert_new(documents, ("digest",))
        self._add_measurements = database.insert_new(measurements, ("key", "round"))
        self._digests: dict[codec.Document, str] = {}  # of the documents that are known to be in the database
        self._run = ""
        self._asked_for: set[str] = set()

    @staticmethod
    def open(named: FolderStore | StoreLocation | Path | str) -> Store:
        """Open a store by its path, its URL (`location.StoreLocation.of`), or as that of a folder.

        The file with its folder, or the database's tables, are made if need be. Tables of an older version are
        migrated. Raises UserError if it is no store, or one of a newer version.
        """
        return _opened(named, reading=False)

    @staticmethod
    def read(named: FolderStore | StoreLocation | Path | str) -> Store:
        """Open an existing store only to read; it stays as it is. Raises UserError as `open` does, and if there is no
        store."""
        return _opened(named, reading=True)

    @property
    def location(self) -> str:
        """The file's path, or the URL without a password."""
        return self._database.name

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
        digests: dict[codec.Document, str] = {}
        rows: list[dict[str, Any]] = []
        for entry in entries:
            own: dict[str, str] = {}
            for column, document in codec.documents_of(entry).items():
                if (digest := self._digests.get(document) or digests.get(document)) is None:
                    text = codec.document_to_json(document)
                    digest = digests[document] = codec.digest(text)
                    texts[digest] = text
                own[column] = digest
            row = codec.row_of(entry, own)
            rows.append({**row, "run": row["run"] or self._run})
        if not rows:
            return 0

        def append(connection: Connection) -> int:
            if texts:
                new = [{"digest": digest, "text": text} for digest, text in texts.items()]
                connection.execute(self._add_documents, new)
            named = [_renamed(connection, row, replacing) for row in rows]
            counted = {"preserve_rowcount": True}
            return connection.execute(self._add_measurements, named, execution_options=counted).rowcount

        added = self._database.write(append)
        self._digests |= digests
        return added

    def rounds(self, keys: Iterable[str]) -> dict[str, dict[str, Measurement]]:
        """Every measurement of these keys, by key and round. A key without measurements has no rounds."""
        rounds: dict[str, dict[str, Measurement]] = {key: {} for key in keys}
        query = queries.rows(self._missing).where(queries.IS_CURRENT).order_by(measurements.c.id)
        for rows in self._rows_with(query, measurements.c.key, rounds):
            with self._database.decoding():
                for row in rows:
                    rounds[row["key"]][row["round"].rstrip(AGAIN)] = codec.measurement_of(row)
        return rounds

    def ask_for(self, keys: Iterable[str]) -> None:
        """Record that the folder's runs use the measurements of these keys, whoever made them."""
        if new := sorted(set(keys) - self._asked_for if self.folder else ()):
            add = self._database.insert_new(folder_keys, ("folder", "key"))
            rows = [{"folder": self.folder, "key": key} for key in new]
            self._database.write(lambda connection: connection.execute(add, rows))
            self._asked_for.update(new)

    def made_by(self, runs: Collection[str], keys: Iterable[str]) -> set[tuple[str, str]]:
        """The key and round of each measurement of these keys that one of these runs made."""
        query = select(measurements.c.key, measurements.c.round).where(queries.IS_CURRENT, measurements.c.run.in_(runs))
        pages = self._rows_with(query, measurements.c.key, keys) if runs else ()
        return {(row["key"], row["round"].rstrip(AGAIN)) for page in pages for row in page}

    def carry_over(self, renewed: Mapping[str, RenewedKey]) -> int:
        """Copy the entries with former keys to the keys of today, all rounds or none; returns how many copies are new.

        A round of finalists has a name made from their keys. It is carried over if all of its keys are in `renewed`.
        The copies have no cost (`cost`).
        """
        former = self._entries_with(measurements.c.key, renewed)
        names = {entry.round for entry in former if entry.round.startswith(CONFIRM)}
        finalists: dict[str, set[str]] = {name: set() for name in names}
        for entry in self._entries_with(queries.BASE_ROUND, names):
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
        conditions = queries.filters(problem_type, round_prefix, outcomes, self.folder)
        query = queries.whole_rows(conditions, self._missing).order_by(measurements.c.id).limit(CHUNK)
        last = 0
        while rows := self._rows(query.where(measurements.c.id > last)):
            last = rows[-1]["id"]
            for row in rows:
                with self._database.decoding():
                    entry = codec.entry_of(row)
                yield entry

    def problems(self, problem_type: str) -> list[Problem]:
        """Every problem, of the type with this name, that has a measurement in the store."""
        digests = select(measurements.c.problem).where(measurements.c.problem_type == problem_type)
        rows = self._rows(select(documents.c.text).where(documents.c.digest.in_(digests)).order_by(documents.c.digest))
        with self._database.decoding():
            return [Problem.from_json(row["text"]) for row in rows]

    def best(self, problem_type: str = "", round_prefix: str = "") -> dict[Problem, StoreEntry]:
        """The entry with the smallest median for each problem with a successful run, over all devices in the store."""
        ran = queries.filters(problem_type, round_prefix, (Outcome.OK,), self.folder)
        rank = func.row_number().over(
            partition_by=measurements.c.problem, order_by=(measurements.c.seconds, measurements.c.id)
        )
        ranked_rows = select(measurements.c.id, rank.label("rank")).where(*ran, measurements.c.seconds.is_not(None))
        ranked = ranked_rows.subquery()
        firsts = select(ranked.c.id).where(ranked.c.rank == 1)
        conditions = [measurements.c.id.in_(firsts)]
        rows = self._rows(queries.whole_rows(conditions, self._missing).order_by(measurements.c.id))
        with self._database.decoding():
            return {entry.problem: entry for entry in map(codec.entry_of, rows)}

    def failures(self, problem_type: str = "", round_prefix: str = "") -> list[Failure]:
        """Failures counted by reason, the most frequent first."""
        columns = (measurements.c.problem_type, measurements.c.outcome, measurements.c.reason)
        count = func.count().label("count")
        query = (
            select(*columns, count, func.min(measurements.c.detail).label("example"))
            .where(*queries.filters(problem_type, round_prefix, (), self.folder), _HAS_FAILED)
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
        """Wall seconds spent on all measurements in the store, or on those that the folder's runs made."""
        runs = [run.id for run in self.runs()] if self.folder else None
        made = [measurements.c.run.in_(runs)] if runs is not None else []
        sums = (func.coalesce(func.sum(measurements.c[name]), 0.0) for name in COSTS)
        extremes = (extreme(measurements.c[name]) for extreme in (func.min, func.max) for name in COSTS)
        query = select(*sums, *extremes).where(*made)
        numbers = tuple(self._database.read(lambda connection: connection.execute(query).one()))
        totals, least, most = (numbers[first : first + len(COSTS)] for first in range(0, len(numbers), len(COSTS)))
        with self._database.decoding():
            for name, low, high in zip(COSTS, least, most, strict=True):
                if low is not None:
                    codec.check_spent(name, low)
                    codec.check_spent(name, high)
        return Cost(*totals)

    def count(self) -> int:
        """The number of rows of measurements in the store (of the folder), with those that were replaced."""
        query = select(func.count()).select_from(measurements).where(*queries.of_folder(self.folder))
        return int(self._database.read(lambda connection: connection.execute(query).scalar_one()))

    def devices(self) -> list[DeviceCount]:
        """What was measured on which device, by the devices' names and hosts."""
        rows = self._rows(queries.device_counts(self.folder, self._missing))
        with self._database.decoding():
            targets = [(codec.target_from_json(row["target"]), row) for row in rows]
        counts = [
            DeviceCount(target.name, target.api, target.driver, row["host"], row["count"], int(row["ran"] or 0))
            for target, row in targets
        ]
        return sorted(counts, key=lambda count: (count.device, count.api, count.driver, count.host))

    def begin_run(self, start: RunStart) -> str:
        """Record that a run begins; returns its id, for `record_step` and `end_run`. Until the run ends, measurements
        that are committed here are the run's."""
        run = self._run = uuid.uuid4().hex
        start = replace(start, folder=self.folder)
        self._append(run_events, run=run, kind="begin", time=self._clock(), payload=start.to_json())
        return run

    def end_run(self, run: str, end: RunEnd) -> None:
        self._run = ""
        self._append(run_events, run=run, kind="end", time=self._clock(), payload=end.to_json())

    def runs(self) -> list[StoredRun]:
        """Every run (of the folder), in the order in which they began. A run that was killed has no end."""
        rows = self._rows(select(run_events).order_by(run_events.c.id))
        runs: dict[str, StoredRun] = {}
        with self._database.decoding():
            for row in rows:
                if row["kind"] == "begin":
                    runs[row["run"]] = StoredRun(row["run"], row["time"], RunStart.from_json(row["payload"]))
                else:
                    end = RunEnd.from_json(row["payload"])
                    runs[row["run"]] = replace(runs[row["run"]], ended=row["time"], end=end)
        return [run for run in runs.values() if self.folder in ("", run.start.folder)]

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
        query = queries.whole_rows([queries.IS_CURRENT], self._missing).order_by(measurements.c.id)
        for rows in self._rows_with(query, column, sorted(values)):
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
        return self._database.read(lambda connection: [dict(row) for row in connection.execute(query).mappings()])

    @property
    def _missing(self) -> frozenset[str]:
        return self._database.missing_columns


_HAS_FAILED = measurements.c.outcome != Outcome.OK.value


def _opened(named: FolderStore | StoreLocation | Path | str, reading: bool) -> Store:
    """The store. A backend is imported if it is used, since PostgreSQL's needs an optional package."""
    store = named if isinstance(named, FolderStore) else FolderStore(StoreLocation.of(named))
    if store.location.url:
        from .postgresql import PostgreSQLDatabase

        return Store(PostgreSQLDatabase(store.location, reading), folder=store.folder)
    from .sqlite import SQLiteDatabase

    return Store(SQLiteDatabase(store.location, reading), folder=store.folder)


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
