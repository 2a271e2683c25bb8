"""Calibrating stream-K: some forty short runs for each kernel and tile, costs fitted to them, one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.bench import Policy
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k.file import dump, read
from tunesmith.models.stream_k.predict import StreamKCalibration, StreamKDecision, calibration_runs, merged
from tunesmith.models.stream_k.predict import StreamKRun as TimedRun
from tunesmith.protocol import Cell
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .kernels import StreamKernel, TileFilter, asked, languages, origin_of, room_of

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


def runs_folder(out: Path) -> Path:
    """Where the measurements of a calibration file are: a folder beside it."""
    return out.with_name(f"{out.stem}.runs")


def calibrate_stream_k(
    task: CalibrationTask,
    out: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    observe: events.Observer = events.nobody,
) -> RunOutcome[CalibrationPlan]:
    """Measure, fit, and write `out`; the same call goes on with a stopped run. `reuse` says what of an earlier run
    counts.

    What `out` holds already stays: other subjects as they are, adjustments of a person's in those that are calibrated
    again. Raises UserError for a task that means nothing and a file that is none, KeyboardInterrupt after everything
    was put away.
    """
    return carry_out(
        CalibrationPlan(task, out, device),
        runs_folder(out),
        budget_minutes=budget_minutes,
        reuse=reuse,
        observe=observe,
    )


class CalibrationPlan(RunPlan):
    """`path` is the calibration file; `made` the calibrations of this run, with what a person adjusted in the file."""

    policy = POLICY

    def __init__(self, task: CalibrationTask, path: Path, device: str | None) -> None:
        self.path = path
        self._known = read(path) if path.exists() else ()
        self.target = target = choose(device, languages=languages())
        room = room_of(target, task.compute_units, task.occupancy)
        found = (one for word in task.what for one in asked(word, task.tile, target, task.kernel, room))
        self._kernels = list(dict.fromkeys(found))
        self.steps = len(self._kernels)
        self._fitted: list[StreamKCalibration] = []
        self._tried = 0
        self._failures: list[str] = []

    def carry_out(self, run: Run) -> None:
        for kernel in self._kernels:
            self._calibrate(run, kernel)
            self._tried += 1
            run.decided()

    @property
    def made(self) -> list[StreamKCalibration]:
        by_subject = {one.subject: one for one in merged(self._known, self._fitted)}
        return [by_subject[one.subject] for one in self._fitted]

    @property
    def unfinished(self) -> str:
        count = len(self._kernels)
        return f"{self._tried} of {count} kernels are calibrated" if self._tried < count else ""

    def outputs(self, run: Run) -> Iterator[Output]:
        if self._fitted:
            text = dump(merged(self._known, self._fitted))
            yield Output(self.path.absolute(), partial(write_atomically, text=text))

    def remarks(self) -> Iterator[str]:
        yield from self._failures

    def _calibrate(self, run: Run, kernel: StreamKernel) -> None:
        subject, measure = kernel.subject, run.measure(kernel.type)
        measure.purpose = str(subject)
        runs = self._runs(run, kernel, measure)
        try:
            made = StreamKCalibration.of(subject, origin_of(kernel, measure), runs, np.random.default_rng(SEED))
        except ValueError as error:
            self._failures.append(f"{subject}: {error}; `tunesmith show` on the folder of runs says why")
            return
        self._fitted.append(made)
        run.say(f"{subject}: {len(runs)} runs, {100 * made.scatter:.1f} % around the fit")

    def _runs(self, run: Run, kernel: StreamKernel, measure: RecordedMeasure) -> list[TimedRun]:
        """Every run once, problem by problem, so that a problem's inputs and reference are made once."""
        planned = calibration_runs(kernel.subject.room, kernel.tile, kernel.parts)
        cells: list[Cell] = [(kernel.configured(StreamKDecision(*one)), kernel.problem_of(one[0])) for one in planned]
        with run.batch(measure.purpose, len(cells)):
            for problem in dict.fromkeys(problem for _, problem in cells):
                configs = [config for config, its in cells if its == problem]
                run.anchor.visit_if_due(measure, measure.screen([configs], [problem], racing=False).cells)
        known = measure.lookup(cells, racing=False)
        for cell in cells:
            if cell not in known:
                run.say(f"{cell[1]} does not fit on {self.target.name}")
        estimates = (
            (launch, known[cell].estimate) for launch, cell in zip(planned, cells, strict=True) if cell in known
        )
        return [TimedRun(*launch, estimate.seconds) for launch, estimate in estimates if estimate]
