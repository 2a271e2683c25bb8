"""Tuning GEMM with portBLAS's parameters: the system BLAS, the current library, every combination of a list."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.bench import Bench
from tunesmith.formats.portblas import Config
from tunesmith.records import Target
from tunesmith.session.frame import events
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.logic_check import watch
from tunesmith.session.frame.measure import Ledger
from tunesmith.session.frame.record import booked, run_start
from tunesmith.session.tune.tuning import CACHE, STORE
from tunesmith.store import RunState, Store

from .logic import Written, write
from .rows import REJECTED, Kind, Row, Tuned
from .task import PortBlasTask
from .tuner import PortBlasTuner

__all__ = ["Kind", "PortBlasOutcome", "Row", "Tuned", "tune_portblas"]


@dataclass
class PortBlasOutcome:
    """What a tuning came to: a `Tuned` for each transposition, and the files that were written.

    `look_at` are sentences about what a person should see; without any, all went well.
    """

    task: PortBlasTask
    target: Target
    folder: Path
    config: Config
    tuned: list[Tuned] = field(default_factory=list)
    written: Written = field(default_factory=Written)
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    seconds: float = 0.0
    health: dict[str, float] = field(default_factory=dict)
    look_at: list[str] = field(default_factory=list)


def tune_portblas(
    task: PortBlasTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    observe: events.Observer = events.nobody,
) -> PortBlasOutcome:
    """Measure, choose, and write logic and header; everything goes into `folder`, and the same call goes on with a
    stopped run.

    Raises UserError for a task that means nothing, KeyboardInterrupt after everything was put away.
    """
    task.check()
    target = task.target(device)
    config, candidates = task.candidates(target)
    outcome = PortBlasOutcome(task, target, folder, config)
    observe(events.RunBegan(target, 1))
    for note in config.notes:
        observe(events.Said(note))
    health = HealthWatch(target)
    watched = health.beside(observe)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    with Store.open(folder / STORE) as store, booked(outcome, store, run_start(target, config.path), health):
        with Bench(target, task.policy, folder / CACHE, watched) as bench:
            tuner = PortBlasTuner(
                task, target, tuple(candidates), folder, store, bench, outcome.ledger, watched, deadline
            )
            outcome.tuned += map(tuner.tune, task.names)
            drift = tuner.drifted()
        if drift and drift.alarm:
            outcome.look_at.append(f"the first kernel took {drift.ratio:.2f} of its time when measured again")
        if tuner.spent:
            outcome.state = RunState.INTERRUPTED
            outcome.look_at.append("the budget is spent; the same command with more goes on")
        outcome.look_at += _failures(outcome.tuned)
        outcome.written = write(outcome.tuned, target, folder, store, task.vendor)
        outcome.look_at += watch(outcome.written.logic, folder / CACHE)
    return outcome


def _failures(tuned: Sequence[Tuned]) -> Iterator[str]:
    """What should have run and did not; what was rejected is no failure."""
    for one in tuned:
        for reason, count, example in one.failures():
            if not reason.startswith(REJECTED):
                yield f"{one.name}: {reason} ({count}), first {example}"
        if one.winner is None:
            yield f"{one.name}: nothing ran"
