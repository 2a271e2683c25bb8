"""Copies measurements, runs and steps from one store to another (`copy_store`). Copying again adds what is new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, insert, select

from . import queries
from .entry import AGAIN
from .runs import RunStart
from .schema import documents, folder_keys, measurements, run_events, steps
from .store import CHUNK, Store

Row = Mapping[str, Any]

_NAMES = ("id", "round", "host", "run")
"""Columns that do not tell two measurements of a key apart. The round's name may have one more `+` in another store."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did. `measurements` were added, `present` were there already.

    `older` were left out: the target has a newer measurement of the same key and round. `runs` and `steps` were added.
    """

    measurements: int = 0
    present: int = 0
    older: int = 0
    runs: int = 0
    steps: int = 0


def copy_store(
    source: Store, target: Store, progress: Callable[[int, int], None] = lambda done, total: None
) -> CopyReport:
    """Copy everything in `source`, or what is the folder's if it was opened for a folder.

    A measurement that the target has already is not added. If the target has another one of the same key and round, the
    newer counts: a newer one is added under the round's name with one more `+`, an older one is left out and counted.
    `progress` gets the number of measurements done and their total. Each page of measurements is one transaction, so
    what was copied stays whenever the copy ends. Raises UserError as a store's methods do.
    """
    report, done = CopyReport(), 0
    total = source.count()
    progress(done, total)
    for page in _pages(source):
        report = target._database.write(_PageCopy(source, target, page, report))
        done += len(page)
        target.ask_for(row["key"] for row in page)
        progress(done, total)
    return _copied_runs(source, target, report)


def _pages(source: Store) -> Iterator[Sequence[Row]]:
    conditions = queries.of_folder(source.folder)
    query = queries.rows(source._missing).where(*conditions).order_by(measurements.c.id).limit(CHUNK)
    last = 0
    while page := source._rows(query.where(measurements.c.id > last)):
        last = page[-1]["id"]
        yield page


@dataclass(frozen=True)
class _PageCopy:
    """A transaction that adds a page of measurements with their documents; it gives the report so far."""

    source: Store
    target: Store
    page: Sequence[Row]
    report: CopyReport

    def __call__(self, connection: Connection) -> CopyReport:
        chains: dict[tuple[str, str], list[Row]] = defaultdict(list)
        keys = sorted({row["key"] for row in self.page})
        known = select(measurements).where(measurements.c.key.in_(keys)).order_by(measurements.c.id)
        for known_row in connection.execute(known).mappings():
            chains[_base(dict(known_row))].append(dict(known_row))
        new: list[Row] = []
        present = older = 0
        for row in self.page:
            chain = chains[_base(row)]
            if _content(row) in map(_content, chain):
                present += 1
            elif chain and row["started"] < max(other["started"] for other in chain):
                older += 1
            else:
                new.append({**row, "round": _free_name(row, chain)})
                chain.append(new[-1])
        if new:
            self._add_documents(connection, {row[name] for row in new for name in ("solution", "problem", "target")})
            add = self.target._database.insert_new(measurements, ("key", "round"))
            connection.execute(add, [{name: row[name] for name in row if name != "id"} for row in new])
        report = self.report
        return replace(
            report,
            measurements=report.measurements + len(new),
            present=report.present + present,
            older=report.older + older,
        )

    def _add_documents(self, connection: Connection, digests: Iterable[str]) -> None:
        texts = [
            row
            for page in self.source._rows_with(select(documents), documents.c.digest, sorted(digests))
            for row in page
        ]
        connection.execute(self.target._database.insert_new(documents, ("digest",)), texts)


def _base(row: Row) -> tuple[str, str]:
    """The key and the round without what says that it was measured again."""
    return row["key"], row["round"].rstrip(AGAIN)


def _content(row: Row) -> tuple[Any, ...]:
    return tuple(row[column.name] for column in measurements.c if column.name not in _NAMES)


def _free_name(row: Row, chain: Sequence[Row]) -> str:
    name, taken = _base(row)[1], {other["round"] for other in chain}
    while name in taken:
        name += AGAIN
    return name


def _copied_runs(source: Store, target: Store, report: CopyReport) -> CopyReport:
    runs = {run.id for run in source.runs()}
    events = [row for row in source._rows(select(run_events).order_by(run_events.c.id)) if row["run"] in runs]
    recorded = [row for row in source._rows(select(steps).order_by(steps.c.id)) if row["run"] in runs]
    keys = source._rows(select(folder_keys)) if not (source.folder or source._missing) else []

    def add(connection: Connection) -> CopyReport:
        known = {(run, kind) for run, kind in connection.execute(select(run_events.c.run, run_events.c.kind))}
        new = [_event(row, target.folder) for row in events if (row["run"], row["kind"]) not in known]
        counts = connection.execute(select(steps.c.run, func.count()).group_by(steps.c.run))
        left = {run: int(count) for run, count in counts}
        new_steps = []
        for row in recorded:
            left[row["run"]] = left.get(row["run"], 0) - 1
            if left[row["run"]] < 0:
                new_steps.append({"run": row["run"], "payload": row["payload"]})
        for table, rows in ((run_events, new), (steps, new_steps)):
            if rows:
                connection.execute(insert(table), rows)
        if keys:
            connection.execute(target._database.insert_new(folder_keys, ("folder", "key")), keys)
        begun = sum(row["kind"] == "begin" for row in new)
        return replace(report, runs=begun, steps=len(new_steps))

    return target._database.write(add)


def _event(row: Row, folder: str) -> dict[str, Any]:
    """A run's event for another store. If that is a folder's, the run becomes the folder's."""
    event = {name: row[name] for name in ("run", "kind", "time", "payload")}
    if folder and row["kind"] == "begin":
        event["payload"] = replace(RunStart.from_json(row["payload"]), folder=folder).to_json()
    return event
