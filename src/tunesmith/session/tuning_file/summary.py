"""The summary of a run's folder, for a person (`tunesmith show`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import Logic, Sheet, read_csv
from tunesmith.records import Cost, Outcome, UserError
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import Failure, FolderStore, StepRecord, Store, StoredRun


@dataclass(frozen=True)
class Summary:
    """The last run and its steps, the final tables by name, the logic, failures by reason, wall time by purpose."""

    run: StoredRun
    runs: int
    steps: tuple[StepRecord, ...]
    finals: tuple[tuple[Path, Sheet], ...]
    logic: tuple[tuple[Path, Logic], ...]
    failures: tuple[Failure, ...]
    cost: Cost


def summarise(folder: Path) -> Summary:
    """Read a run's folder. Raises UserError if there is no run in it."""
    kept = FolderStore.here(folder, "give the folder that `tunesmith tune -o` wrote to")
    with Store.read(kept) as store:
        runs = store.runs()
        if not runs:
            raise UserError(store.location, "no run is recorded in it", "run `tunesmith tune FILE -o` first")
        failures = tuple(failure for failure in store.failures() if failure.outcome is not Outcome.REJECTED)
        return Summary(
            run=runs[-1],
            runs=len(runs),
            steps=tuple(store.steps(runs[-1].id)),
            finals=tuple((p, read_csv(p)) for p in sorted((folder / TABLES).glob("*/*_Final.csv"))),
            logic=tuple((p, Logic.load(p)) for p in sorted((folder / LOGIC).glob("*.yaml"))),
            failures=failures,
            cost=store.cost(),
        )
