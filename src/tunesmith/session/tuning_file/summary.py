"""The summary of a run's folder, for a person (`tunesmith show`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import Logic, Sheet, read_csv
from tunesmith.records import Cost, Outcome, Problem, UserError
from tunesmith.session.frame.outputs import LOGIC, TABLES
from tunesmith.store import Failure, FolderStore, StepRecord, Store, StoredRun


@dataclass(frozen=True)
class MeasuringDevice:
    """One of several devices: how many measurements in the store are its own, and on which problems."""

    device: str
    measured: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Summary:
    """The last run and its steps, the final tables by name, the logic, failures by reason, wall time by purpose.
    `devices` says which device measured what, if there were several."""

    run: StoredRun
    runs: int
    steps: tuple[StepRecord, ...]
    finals: tuple[tuple[Path, Sheet], ...]
    logic: tuple[tuple[Path, Logic], ...]
    failures: tuple[Failure, ...]
    cost: Cost
    devices: tuple[MeasuringDevice, ...] = ()


def summarise(folder: Path) -> Summary:
    """Read a run's folder. Raises UserError if there is no run in it."""
    kept = FolderStore.here(folder, "give the folder that `tunesmith tune -o` wrote to")
    with Store.open(kept) as store:
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
            devices=_devices(store),
        )


def _devices(store: Store) -> tuple[MeasuringDevice, ...]:
    """Which device measured what, if there were several."""
    counts: Counter[str] = Counter()
    problems: dict[str, dict[Problem, None]] = defaultdict(dict)
    for entry in store.entries():
        if device := entry.measurement.host:
            counts[device] += 1
            problems[device][entry.problem] = None
    if len(counts) < 2:
        return ()
    return tuple(MeasuringDevice(device, counts[device], tuple(problems[device])) for device in sorted(counts))
