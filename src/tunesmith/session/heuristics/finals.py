"""The tables of finals as cells with full configurations, types and device.

These come from a table's details; if it has none, from the logic or the store beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench.machine_failures import machine_failure
from tunesmith.formats.winners.final_details import FinalDetails, NamedDevice, read_details
from tunesmith.logic import Document, Logic, logic_files, read_csv
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.records import Configuration, Estimate, Measurement, Problem, Solution, Target, UserError
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import FILE_NAME, FULL, FolderStore, Store, StoreEntry

from .targets import target_of

UNNAMED = "?"
"""The kernel of a solution that is known by its name in a table only. It may be the best known, but it is never used as
the neighbour of a choice."""


@dataclass(frozen=True, slots=True)
class TimedCell:
    """The time of a solution at a problem, and the round in which it was measured."""

    target: Target
    problem: Problem
    solution: Solution
    estimate: Estimate
    round: str = FULL


@dataclass(frozen=True, slots=True)
class FailedCell:
    """A solution that was tried at a problem and did not run right; the machine did not cause it."""

    target: Target
    problem: Problem
    solution: Solution


MatrixCell = TimedCell | FailedCell


def cells_of_final(table: Path, note: Callable[[str], None]) -> Iterator[MatrixCell]:
    """Every time and every failure of a final. `note` gets a sentence about solutions with unknown configurations.

    Raises UserError if the details, the logic and the store beside the table do not give configurations, type and
    device.
    """
    details = read_details(table)
    if details and details.device:
        return _of_details(details, target_of(details.device, _store_beside(table), table))
    logic = _logic_of(table)
    if logic:
        return _of_logic(table, logic, note)
    store = _store_beside(table)
    if store is None:
        what = "its details have no configurations and devices, and no logic and no store lie beside it"
        raise UserError(str(table), what, f"put the run's {FILE_NAME} or {LOGIC}/*.yaml there, or tune again")
    return _of_store(table, store)


def cells_of_store(kept: FolderStore) -> Iterator[MatrixCell]:
    """Every time and every failure of a store."""
    with Store.read(kept) as store:
        for entry in store.entries():
            yield from _of_entry(entry)


def _of_entry(entry: StoreEntry) -> Iterator[MatrixCell]:
    """The cell of a store's entry; none if it has neither a time nor a failure of its own."""
    target, problem, solution, measurement = entry.target, entry.problem, entry.solution, entry.measurement
    if measurement.ok and measurement.estimate:
        yield TimedCell(target, problem, solution, measurement.estimate, entry.round)
    elif _has_failed(measurement):
        yield FailedCell(target, problem, solution)


def _has_failed(measurement: Measurement) -> bool:
    return not measurement.ok and not machine_failure(measurement)


def _of_details(details: FinalDetails, target: Target) -> Iterator[MatrixCell]:
    for (problem, solution), estimate in details.times.items():
        yield TimedCell(target, problem, solution, estimate)
    for (problem, solution), measurement in details.failures.items():
        if _has_failed(measurement):
            yield FailedCell(target, problem, solution)


def _of_logic(table: Path, logic: Document, note: Callable[[str], None]) -> Iterator[TimedCell]:
    sheet, kind, origin = read_csv(table), logic.problem_type, logic.origin
    solutions = {entry.name: entry.solution for entry in logic.solutions}
    if unknown := [name for name in sheet.names if name not in solutions]:
        note(f"{table}: {len(unknown)} of {len(sheet.names)} solutions are in no logic: they only count as best known")
    device = NamedDevice(origin.api, origin.device, origin.architecture, origin.driver, 0)
    target = target_of(device, _store_beside(table), table)
    for row, name, seconds in sheet.times():
        problem = _problem(sheet.sizes[row], logic, f"{table}:{row + 2}")
        solution = solutions.get(name) or Solution(kind, UNNAMED, Configuration({"Solution": name}))
        yield TimedCell(target, problem, solution, Estimate(seconds, math.nan, math.nan, 1))


def _problem(columns: Mapping[str, int], logic: Document, location: str) -> Problem:
    kind = logic.problem_type
    try:
        sizes = tuple(columns[index] for index in kind.indices)
    except KeyError as error:
        raise UserError(location, f"has no size {error}", f"give the table of a final of {kind.name}") from None
    names = [name for name, _ in OPERATIONS[kind.operation].leading(kind, sizes)]
    return Problem(kind, sizes, tuple(columns[name] for name in names if name in columns))


def _of_store(table: Path, store: FolderStore) -> Iterator[MatrixCell]:
    """All cells of the store at the table's sizes and types, also of solutions that are not in the final."""
    sheet = read_csv(table)
    cells: list[MatrixCell] = []
    stored: set[str] = set()
    for cell in cells_of_store(store):
        stored.add(cell.problem.type.name)
        sizes = dict(zip(cell.problem.type.indices, cell.problem.sizes, strict=True))
        if any(sizes.items() <= row.items() for row in sheet.sizes):
            cells.append(cell)
    types = {_type_name(name, stored) for name in sheet.names}
    return (cell for cell in cells if cell.problem.type.name in types)


def _type_name(solution: str, stored: Collection[str]) -> str:
    """The longest type name with which a solution's name begins, since one type's name may begin with another's. Empty
    if there is none."""
    parts = solution.split("_")
    names = ("_".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in stored or gemm_type_named(name)), "")


def _run_folder(table: Path) -> Path:
    """The folder of the run that wrote a table; the table's own folder if it was moved out of the run's folder."""
    return next((folder.parent for folder in table.absolute().parents if folder.name == TABLES), table.parent)


def _store_beside(table: Path) -> FolderStore | None:
    folders = dict.fromkeys((table.parent, _run_folder(table)))
    return next((kept for folder in folders if (kept := FolderStore.of(folder))), None)


def _logic_of(table: Path) -> Document | None:
    """The logic beside a table that has most of the table's solutions; None if none has any."""
    names = set(read_csv(table).names)
    folders = [folder for folder in (table.parent, _run_folder(table) / LOGIC) if folder.is_dir()]
    documents = [Logic.load(file).document for folder in folders for file in logic_files(folder)]
    counted = [(len(names & {entry.name for entry in document.solutions}), document) for document in documents]
    best = max(counted, key=lambda pair: pair[0], default=None)
    return best[1] if best and best[0] else None
