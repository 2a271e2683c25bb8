"""Library logic from a store alone (`tunesmith logic build`): of a run that was stopped, or of several hosts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.kernels import has_kernel_of
from tunesmith.logic import Document, FinalTable, Origin, TableCell, details_of, write_csv, write_logic
from tunesmith.logic.build import build
from tunesmith.problems import OPERATIONS
from tunesmith.records import Measurement, Problem, ProblemType, Solution, Target, UserError
from tunesmith.session.frame.logic import runs_anywhere
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import CONFIRM, FULL, RACE, Store, StoreEntry, answering, combined_rounds, store_named

UNFINISHED = "built from a store, whose tuning may not have ended"
_REMEDY = "give the folder of a run, or its store"

Device = tuple[str, str, str]
"""API, name and architecture."""


@dataclass(frozen=True, slots=True)
class StoredLogic:
    """A store's logic of one problem type on one kind of device, and the table that it was made from."""

    document: Document
    table: FinalTable
    target: Target

    @property
    def logic_path(self) -> Path:
        """Where `write_stored` puts the logic within its folder."""
        return Path(LOGIC) / f"{self.document.problem_type.name}.yaml"

    @property
    def table_path(self) -> Path:
        """Where `write_stored` puts the table within its folder, as a tuning puts a final."""
        name = self.document.problem_type.name
        return Path(TABLES) / name / f"{name}_Final.csv"


@dataclass
class _Measured:
    """What a store has of a problem type on one device: the rounds of each problem with a solution, by key and name.

    A new driver or compiler makes new keys. The key of a cell's last measurement is the last of its keys. `target` is
    that of the last measurement that ran right, `latest` when the latest of these began, `toolchains` are by driver.
    """

    rounds: dict[tuple[Problem, Solution], dict[str, dict[str, Measurement]]] = field(default_factory=dict)
    target: Target | None = None
    toolchains: dict[str, set[str]] = field(default_factory=dict)
    latest: float = 0.0

    def add(self, entry: StoreEntry) -> None:
        measurement = entry.measurement
        by_key = self.rounds.setdefault((entry.problem, entry.solution), {})
        rounds = by_key[entry.key] = by_key.pop(entry.key, {})
        rounds[entry.round] = replace(measurement, samples=(), facts=())
        if measurement.ok:
            self.target, self.latest = entry.target, max(self.latest, measurement.started)
            self.toolchains.setdefault(entry.target.driver, set()).add(entry.toolchain)

    def of(self, cell: tuple[Problem, Solution]) -> Mapping[str, Measurement]:
        """The rounds of the newest key."""
        return next(reversed(self.rounds[cell].values()))


def logic_of_store(named: str, device: str = "") -> list[StoredLogic]:
    """The logic of each problem type in a store, by times on the `device`, which may be left out if there is one.

    At each size the fastest solution by first times wins. If it was in a race of finalists, the winner of the last such
    race wins instead. Kernels that are not installed here, or have other parameters here, are left out. Raises
    UserError for a store without times of a tuning, of several kinds of device if none is named, of others than the
    named, and with two types of one name.
    """
    location = store_named(named)
    by_device: dict[Device, dict[ProblemType, _Measured]] = defaultdict(lambda: defaultdict(_Measured))
    with Store.read(location) as store:
        for entry in store.entries():
            is_known = entry.problem.type.operation in OPERATIONS and has_kernel_of(entry.solution, entry.target)
            if is_known and entry.round.startswith((FULL, RACE, CONFIRM)):
                target = entry.target
                by_device[target.api, target.name, target.architecture][entry.problem.type].add(entry)
    shown = str(location.location)
    if not by_device:
        raise UserError(shown, "has no time of a tuning by a kernel that is installed here", _REMEDY)
    made = (_logic_of(kind, measured) for kind, measured in by_device[_device(by_device, shown, device)].items())
    logics = [logic for logic in made if logic]
    if not logics:
        raise UserError(shown, "has no time of a solution that ran right", _REMEDY)
    for name, count in Counter(logic.document.problem_type.name for logic in logics).items():
        if count > 1:
            what = f"has {count} problem types that are called {name}"
            raise UserError(shown, what, "give the store of a run that tuned one of them")
    return logics


def write_stored(logics: Sequence[StoredLogic], folder: Path) -> None:
    """Write the logics and their tables. Raises UserError, and writes nothing, if one of the files is there."""
    for made in logics:
        table = folder / made.table_path
        for path in (folder / made.logic_path, table, details_of(table)):
            if path.exists():
                raise UserError(str(path), "is there already", "name another folder after -o")
    for made in logics:
        write_csv(made.table, folder / made.table_path, made.target)
        write_logic(made.document, folder / made.logic_path)


def _device(devices: Collection[Device], named: str, device: str) -> Device:
    """The device that is asked for: by its name, by API and name (`CUDA:NVIDIA H200`), or by its architecture too."""
    asked = [found for found in devices if device in ("", found[1], ":".join(found[:2]), ":".join(found))]
    if len(asked) == 1:
        return asked[0]
    names = ", ".join(sorted(map(":".join, devices)))
    raise UserError(named, f"has times of {names}", "name one of them with --device")


def _logic_of(kind: ProblemType, measured: _Measured) -> StoredLogic | None:
    """The logic of a type; None if no solution of it has a time. Of problems that differ in their scalars, those with
    the scalars of most problems count, since a table has the same for all."""
    cells = {
        cell: TableCell.of(combined_rounds(answer, rounds))
        for cell in measured.rounds
        if (answer := answering(rounds := measured.of(cell)))
    }
    ran = dict.fromkeys(problem for (problem, _), cell in cells.items() if cell.time)
    if not ran or measured.target is None:
        return None
    ((scalars, _),) = Counter(problem.scalars for problem in ran).most_common(1)
    cells = {(problem, solution): cell for (problem, solution), cell in cells.items() if problem.scalars == scalars}
    table = _with_races(FinalTable.of_cells(kind, cells), measured)
    if not any(cell.time for cell in table.cells.values()):
        return None
    target = measured.target
    toolchains = "; ".join(sorted(measured.toolchains[target.driver]))
    date = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(measured.latest))
    origin = Origin.of(target, toolchains, tunesmith.__version__, date)
    general = partial(runs_anywhere, scalars, target)
    return StoredLogic(build([table], origin, general=general, unfinished=UNFINISHED).document, table, target)


def _with_races(table: FinalTable, measured: _Measured) -> FinalTable:
    """The table with the winner of the last race of each problem's fastest solution, without what failed in it."""
    cells, decided = dict(table.cells), dict[Problem, tuple[Solution, ...]]()
    for problem in table.problems:
        tried = [solution for solution in table.solutions if (problem, solution) in cells]
        first = {solution: time.seconds for solution in tried if (time := table.time(problem, solution))}
        fastest = min(first, key=first.__getitem__, default=tried[0])
        raced = [name for name in measured.of((problem, fastest)) if name.startswith(CONFIRM)]
        if raced:
            rounds = {solution: measured.of((problem, solution)) for solution in tried}
            race = {solution: TableCell.of(of[raced[-1]]) for solution, of in rounds.items() if raced[-1] in of}
            cells |= {(problem, solution): cell for solution, cell in race.items() if not cell.time}
            times = {solution: cell.time.seconds for solution, cell in race.items() if cell.time}
            decided |= {problem: (min(times, key=times.__getitem__),)} if times else {}
    return replace(table, cells=cells, decided=decided)
