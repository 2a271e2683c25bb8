"""Calibrating stream-K: some forty short runs for each kernel and tile, costs fitted to them, one file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tunesmith.bench import Bench, Policy
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k import Calibration, Room, Run, Subject, calibration_runs, merged
from tunesmith.models.stream_k_file import dump, read
from tunesmith.protocol import Cell
from tunesmith.records import Target
from tunesmith.session.frame import events
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.measure import Ledger, RecordedMeasure, failed
from tunesmith.session.frame.oracle import FamilyJudge
from tunesmith.session.frame.record import booked, run_start
from tunesmith.session.tune.tuning import CACHE, STORE
from tunesmith.store import RunState, Store

from .kernels import StreamKernel, TileFilter, asked, is_capped, languages, model_parts, room_of
from .runs import FirstRun, origin_of

POLICY = Policy(noise=0.01, maximum_samples=60, sampling_seconds=0.2, warm_up_seconds=0.05)
"""Cold, as a product in a program mostly is; about half a second a run with its verification."""

SEED = 0
"""Of the bootstrap: the same runs give the same file."""


@dataclass(frozen=True, slots=True)
class CalibrationTask:
    """What is to be calibrated: each of `what` is a tuning file, a data type or a problem type's name; `kernel` names a
    family among several.

    `compute_units` keeps every grid to part of the device; `occupancy` is how many work-groups a multiprocessor holds.
    """

    what: tuple[str, ...]
    tile: TileFilter | None = None
    kernel: str = ""
    compute_units: int | None = None
    occupancy: int = 1


@dataclass
class CalibrationOutcome:
    """What came of it. `kept` are adjustments of a person's that were in the file, by subject and cost."""

    target: Target
    path: Path
    made: list[Calibration] = field(default_factory=list)
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    seconds: float = 0.0
    look_at: list[str] = field(default_factory=list)
    health: dict[str, float] = field(default_factory=dict)

    @property
    def kept(self) -> dict[str, dict[str, float]]:
        return {str(one.subject): one.adjusted for one in self.made if one.adjusted}


def runs_folder(out: Path) -> Path:
    """Where the measurements of a calibration file are: a folder beside it."""
    return out.with_name(f"{out.stem}.runs")


def calibrate_stream_k(
    task: CalibrationTask,
    out: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    observe: events.Observer = events.nobody,
) -> CalibrationOutcome:
    """Measure, fit, and write `out`; the same call goes on with a stopped run.

    What `out` holds already stays: other subjects as they are, adjustments of a person's in those that are calibrated
    again. Raises UserError for a task that means nothing and a file that is none, KeyboardInterrupt after everything
    was put away.
    """
    known = read(out) if out.exists() else ()
    target = choose(device, languages=languages())
    kernels = list(dict.fromkeys(one for word in task.what for one in asked(word, task.tile, target, task.kernel)))
    room = room_of(target, task.compute_units, task.occupancy)
    outcome = CalibrationOutcome(target, out)
    observe(events.RunBegan(target, len(kernels)))
    watch = HealthWatch(target)
    watched = watch.beside(observe)
    folder = runs_folder(out)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    with (
        Store.open(folder / STORE) as store,
        booked(outcome, store, run_start(target), watch),
        Bench(target, POLICY, folder / CACHE, watched) as bench,
    ):
        work = _Calibrator(outcome, room, store, bench, watched, deadline)
        for kernel in kernels:
            work.calibrate(kernel)
            write_atomically(out, dump(merged(known, outcome.made)))
        outcome.look_at += filter(None, [work.first.again()])
    by_subject = {one.subject: one for one in merged(known, outcome.made)}
    outcome.made = [by_subject[one.subject] for one in outcome.made]
    return outcome


@dataclass
class _Calibrator:
    """Takes one kernel after the other through its runs."""

    outcome: CalibrationOutcome
    room: Room
    store: Store
    bench: Bench
    observe: events.Observer
    deadline: float | None
    first: FirstRun = field(default_factory=FirstRun)

    def calibrate(self, kernel: StreamKernel) -> None:
        target = self.outcome.target
        subject = Subject.of(target, kernel.kernel.name, kernel.data_type, kernel.tile, self.room)
        measure = RecordedMeasure(
            FamilyJudge(kernel.type, target),
            self.bench,
            self.store,
            POLICY,
            self.outcome.ledger,
            self._observe_cells,
            self.deadline,
        )
        measure.purpose = str(subject)
        runs = self._runs(kernel, subject, measure)
        try:
            made = Calibration.of(subject, origin_of(kernel, measure), runs, np.random.default_rng(SEED))
        except ValueError as error:
            self.outcome.look_at.append(f"{subject}: {error}; `tunesmith show` on the folder of runs says why")
            return
        self.outcome.made.append(made)
        self.observe(events.Said(f"{subject}: {len(runs)} runs, {100 * made.scatter:.1f} % around the fit"))

    def _runs(self, kernel: StreamKernel, subject: Subject, measure: RecordedMeasure) -> list[Run]:
        target = self.outcome.target
        planned = calibration_runs(subject.room, subject.tile, model_parts(kernel, self.room, target))
        capped = is_capped(self.room, target)
        cells: list[Cell] = [(kernel.configured(*one, capped), kernel.problem_of(one[0])) for one in planned]
        self.observe(events.BatchBegan(measure.purpose, len(cells), len(measure.lookup(cells, racing=False))))
        _screen(measure, cells)
        known = measure.lookup(cells, racing=False)
        runs = []
        for (work, choice), cell in zip(planned, cells, strict=True):
            measurement = known.get(cell)
            if measurement is None:
                self.observe(events.Said(f"{cell[1]} does not fit on {target.name}"))
            elif measurement.estimate:
                self.first.ran(measure, cell)
                runs.append(Run(work, choice, measurement.estimate.seconds))
            elif failed(measurement):
                why = f"{measurement.outcome.value} ({measurement.reason})"
                self.outcome.look_at.append(f"{kernel.tile} on {cell[1]}: {why}")
        return runs

    def _observe_cells(self, event: events.Event) -> None:
        """All runs of a kernel are one batch, whatever pieces they are measured in."""
        if not isinstance(event, events.BatchBegan):
            self.observe(event)


def _screen(measure: RecordedMeasure, cells: Sequence[Cell]) -> None:
    """Every cell once, problem by problem: a problem's inputs and reference are made once."""
    for problem in dict.fromkeys(problem for _, problem in cells):
        configs = [config for config, its in cells if its == problem]
        measure.screen([configs], [problem], racing=False)
