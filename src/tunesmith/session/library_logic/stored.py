"""Library logic from a store alone (`tunesmith logic build`): of a run that was stopped, or of several hosts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.logic import Document, FinalTable, Origin, write_csv, write_logic
from tunesmith.logic.build import build
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, Solution, Target, UserError
from tunesmith.session.frame.logic import runs_anywhere, table_of_entries
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import CONFIRM, FULL, Store, StoreEntry, store_named

FINAL = "_Final.csv"
"""The end of a table's name, by which `tunesmith heuristics` knows a final."""


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
        """Where `write_stored` puts the table within its folder."""
        return Path(TABLES) / f"{self.document.problem_type.name}{FINAL}"


def logic_of_store(named: str, device: str = "") -> list[StoredLogic]:
    """The logic of each problem type in a store, by times on the `device`, which may be left out if there is one.

    At each size the fastest finalist of the last race wins; where none was run, the fastest of all. Raises UserError
    for a store without times of a tuning, of several kinds of device if none is named, and of others than the named.
    """
    with Store.read(store_named(named)) as store:
        found = [entry for entry in store.entries() if entry.problem.type.operation in OPERATIONS]
    timed = [entry for entry in found if entry.round == FULL and entry.measurement.ok]
    if not timed:
        raise UserError(named, "has no time of a tuning", "give the folder of a run, or its store")
    target = _device(timed, named, device)
    own = [entry for entry in found if entry.target.same_device(target)]
    kinds = dict.fromkeys(entry.problem.type for entry in timed if entry.target.same_device(target))
    return [_logic_of(kind, target, [entry for entry in own if entry.problem.type == kind]) for kind in kinds]


def write_stored(logics: Sequence[StoredLogic], folder: Path) -> None:
    """Write the logics and their tables. Raises UserError, and writes nothing, if one of the files is there."""
    for made in logics:
        for path in (folder / made.logic_path, folder / made.table_path):
            if path.exists():
                raise UserError(str(path), "is there already", "name another folder after -o")
    for made in logics:
        write_csv(made.table, folder / made.table_path, made.target)
        write_logic(made.document, folder / made.logic_path)


def _device(entries: Sequence[StoreEntry], named: str, device: str) -> Target:
    """The newest target of the device that is asked for."""
    targets = {(entry.target.api, entry.target.name, entry.target.architecture): entry.target for entry in entries}
    asked = [target for target in targets.values() if device in ("", target.name)]
    if len(asked) != 1:
        names = ", ".join(sorted({target.name for target in targets.values()}))
        raise UserError(named, f"has times of {names}", "name one of them with --device")
    return asked[0]


def _logic_of(kind: ProblemType, target: Target, entries: Sequence[StoreEntry]) -> StoredLogic:
    full = [entry for entry in entries if entry.round.startswith(FULL)]
    table = replace(table_of_entries(kind, full), decided=_winners(entries))
    toolchains = "; ".join(sorted({entry.toolchain for entry in full}))
    latest = max(entry.measurement.started for entry in full)
    date = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(latest))
    origin = Origin.of(target, toolchains, tunesmith.__version__, date)
    general = partial(runs_anywhere, full[0].problem.scalars, target)
    return StoredLogic(build([table], origin, general=general).document, table, target)


def _winners(entries: Iterable[StoreEntry]) -> dict[Problem, tuple[Solution, ...]]:
    """For each problem that has raced finalists, the fastest of the last race."""
    races: dict[Problem, dict[str, list[StoreEntry]]] = {}
    for entry in entries:
        if entry.round.startswith(CONFIRM) and entry.measurement.ok and entry.measurement.estimate:
            races.setdefault(entry.problem, {}).setdefault(entry.round, []).append(entry)
    last = {problem: next(reversed(rounds.values())) for problem, rounds in races.items()}
    return {problem: (min(race, key=_seconds).solution,) for problem, race in last.items()}


def _seconds(entry: StoreEntry) -> float:
    assert entry.measurement.estimate
    return entry.measurement.estimate.seconds
