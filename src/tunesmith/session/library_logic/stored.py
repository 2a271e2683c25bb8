"""Library logic from a store alone (`tunesmith logic build`): of a run that was stopped, or of several hosts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.kernels import KERNELS
from tunesmith.logic import Document, FinalTable, Origin, TableCell, details_of, write_csv, write_logic
from tunesmith.logic.build import build
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, Solution, Target, UserError
from tunesmith.session.frame.logic import runs_anywhere, table_of_entries
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import CONFIRM, FULL, RACE, Store, StoreEntry, store_named

UNFINISHED = "built from a store, whose tuning may not have ended"


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


def logic_of_store(named: str, device: str = "") -> list[StoredLogic]:
    """The logic of each problem type in a store, by times on the `device`, which may be left out if there is one.

    At each size the fastest solution by first times wins. If it was in a race of finalists, the winner of the last such
    race wins instead. Kernels that are not installed here are left out. Raises UserError for a store without times of a
    tuning, of several kinds of device if none is named, of others than the named, and with two types of one name.
    """
    location = store_named(named)
    with Store.read(location) as store:
        found = [entry for entry in store.entries() if _is_known(entry)]
    timed = [entry for entry in found if _time(entry)]
    if not timed:
        raise UserError(str(location.location), "has no time of a tuning", "give the folder of a run, or its store")
    target = _device(timed, str(location.location), device)
    by_type: dict[ProblemType, list[StoreEntry]] = defaultdict(list)
    for entry in found:
        if entry.target.same_device(target):
            by_type[entry.problem.type].append(entry)
    logics = [made for kind, entries in by_type.items() if (made := _logic_of(kind, entries))]
    names = Counter(made.document.problem_type.name for made in logics)
    for name in (name for name, count in names.items() if count > 1):
        what = f"has {names[name]} problem types that are called {name}"
        raise UserError(str(location.location), what, "give the store of a run that tuned one of them")
    return logics


def write_stored(logics: Sequence[StoredLogic], folder: Path) -> None:
    """Write the logics and their tables. Raises UserError, and writes nothing, if one of the files is there."""
    for made in logics:
        table = folder / made.table_path
        for path in (folder / made.logic_path, table, details_of(table)):
            if path.exists():
                raise UserError(str(path), "is there already", "name another folder after -o")
    for made in logics:
        (folder / made.table_path).parent.mkdir(parents=True, exist_ok=True)
        write_csv(made.table, folder / made.table_path, made.target)
        write_logic(made.document, folder / made.logic_path)


def _is_known(entry: StoreEntry) -> bool:
    return entry.problem.type.operation in OPERATIONS and entry.solution.kernel in KERNELS


def _time(entry: StoreEntry) -> float:
    """Seconds; 0 for an entry that may not win, and for one of another round than those that measure a solution."""
    time = TableCell.of(entry.measurement).time
    is_whole = entry.round.startswith((FULL, CONFIRM)) or (entry.round == RACE and not entry.measurement.raced)
    return time.seconds if time and is_whole else 0.0


def _device(entries: Sequence[StoreEntry], named: str, device: str) -> Target:
    """The newest target of the device that is asked for by its name, or by API and name (`CUDA:NVIDIA H200`)."""
    targets = {(entry.target.api, entry.target.name, entry.target.architecture): entry.target for entry in entries}
    asked = [target for target in targets.values() if device in ("", target.name, _name(target))]
    if len(asked) == 1:
        return asked[0]
    names = ", ".join(sorted(map(_name, targets.values())))
    raise UserError(named, f"has times of {names}", "name one of them with --device")


def _name(target: Target) -> str:
    return f"{target.api}:{target.name}"


def _logic_of(kind: ProblemType, entries: Sequence[StoreEntry]) -> StoredLogic | None:
    """The logic of a type; None if no solution of it has a time. Of problems that differ in their scalars, those with
    the scalars of most problems count, since a table has the same for all."""
    scalars = Counter(entry.problem.scalars for entry in entries if _time(entry)).most_common(1)
    if not scalars:
        return None
    of_scalars = [entry for entry in entries if entry.problem.scalars == scalars[0][0]]
    table = _with_races(table_of_entries(kind, _first_times(of_scalars)), of_scalars)
    ran = [problem for problem in table.problems if any(table.time(problem, s) for s in table.solutions)]
    if not ran:
        return None
    right = [entry for entry in of_scalars if entry.measurement.ok]
    target = right[-1].target
    toolchains = "; ".join(sorted({entry.toolchain for entry in right if entry.target.driver == target.driver}))
    latest = max(entry.measurement.started for entry in right)
    date = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(latest))
    origin = Origin.of(target, toolchains, tunesmith.__version__, date)
    general = partial(runs_anywhere, scalars[0][0], target)
    return StoredLogic(build([table], origin, general=general, unfinished=UNFINISHED).document, table, target)


def _first_times(entries: Sequence[StoreEntry]) -> Iterator[StoreEntry]:
    """The full rounds. Of a solution without one, a race that it was not stopped in counts as one, as in a tuning."""
    full = {(entry.problem, entry.solution) for entry in entries if entry.round == FULL}
    for entry in entries:
        if entry.round.startswith(FULL):
            yield entry
        elif entry.round == RACE and not entry.measurement.raced and (entry.problem, entry.solution) not in full:
            yield replace(entry, round=FULL)


def _with_races(table: FinalTable, entries: Sequence[StoreEntry]) -> FinalTable:
    """The table with the times and the winner of each problem's last race that the first times do not contradict."""
    races: dict[Problem, dict[str, dict[Solution, StoreEntry]]] = defaultdict(dict)
    for entry in entries:
        if entry.round.startswith(CONFIRM) and _time(entry) and (entry.problem, entry.solution) in table.cells:
            races[entry.problem].setdefault(entry.round, {})[entry.solution] = entry
    cells, decided = dict(table.cells), {}
    for problem, rounds in races.items():
        first = {solution: time.seconds for solution in table.solutions if (time := table.time(problem, solution))}
        fastest = min(first, key=first.__getitem__, default=None)
        race = next((race for race in reversed(rounds.values()) if fastest in race), None)
        if race:
            cells |= {(problem, solution): TableCell.of(entry.measurement) for solution, entry in race.items()}
            decided[problem] = (min(race, key=lambda solution: _time(race[solution])),)
    return replace(table, cells=cells, decided=decided)
