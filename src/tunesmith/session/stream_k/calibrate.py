"""Calibrating stream-K: some forty short runs for each kernel and tile, costs fitted to them, written to one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.bench import Policy
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k.calibration_file import dump, read
from tunesmith.models.stream_k.decision_models import StreamKCalibration, StreamKDecision, calibration_runs, merged
from tunesmith.models.stream_k.decision_models import StreamKRun as TimedRun
from tunesmith.protocol import Cell
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .kernels import StreamKernel, TileFilter, kernels_named, languages, origin_of, room_of

POLICY = Policy(noise=0.01, maximum_samples=60, sampling_seconds=0.2, warm_up_seconds=0.05)
"""Times are taken with cold caches, as most products in a program have; a run takes half a second, verified."""

SEED = 0
"""The seed of the bootstrap: the same runs give the same file."""


@dataclass(frozen=True, slots=True)
class CalibrationTask:
    """The kernels to calibrate: each of `what` is a tuning file, a data type or a problem type's name; `kernel` names a
    family if there are several.

    `compute_units` limits every grid to a part of the device; `occupancy` is the number of work-groups that a
    multiprocessor holds.
    """

    what: tuple[str, ...]
    tile: TileFilter | None = None
    kernel: str = ""
    compute_units: int | None = None
    occupancy: int = 1


def runs_folder(out: Path) -> Path:
    """The folder with the measurements of a calibration file, beside the file."""
    return out.with_name(f"{out.stem}.runs")


def calibrate_stream_k(
    task: CalibrationTask,
    out: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    observe: events.Observer = events.nobody,
) -> RunOutcome[CalibrationPlan]:
    """Measure, fit, and write `out`; the same call resumes a stopped run. `reuse` says which earlier measurements are
    used again.

    Other subjects in `out` stay as they are; a subject that is calibrated again keeps a person's adjustments. Raises
    UserError for a task that makes no sense and for an `out` that is no calibration file, KeyboardInterrupt after
    everything is written.
    """
    return carry_out(
        CalibrationPlan(task, out, device),
        runs_folder(out),
        budget_minutes=budget_minutes,
        reuse=reuse,
        store=store,
        wait=wait,
        observe=observe,
    )


class CalibrationPlan(RunPlan):
    """`path` is the calibration file. `made` are the calibrations of this run, with a person's adjustments in the
    file."""

    policy = POLICY

    def __init__(self, task: CalibrationTask, path: Path, device: str | None) -> None:
        self.path = path
        self._known = read(path) if path.exists() else ()
        self.target = target = choose(device, languages=languages())
        room = room_of(target, task.compute_units, task.occupancy)
        named = (kernel for word in task.what for kernel in kernels_named(word, task.tile, target, task.kernel, room))
        self._kernels = list(dict.fromkeys(named))
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
        by_subject = {calibration.subject: calibration for calibration in merged(self._known, self._fitted)}
        return [by_subject[fitted.subject] for fitted in self._fitted]

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
            fitted = StreamKCalibration.of(subject, origin_of(kernel, measure), runs, np.random.default_rng(SEED))
        except ValueError as error:
            self._failures.append(f"{subject}: {error}; `tunesmith show` on the folder of runs says why")
            return
        self._fitted.append(fitted)
        run.say(f"{subject}: {len(runs)} runs, {100 * fitted.scatter:.1f} % around the fit")

    def _runs(self, run: Run, kernel: StreamKernel, measure: RecordedMeasure) -> list[TimedRun]:
        """Time every run once, problem by problem, so that a problem's inputs and reference are made once."""
        launches = calibration_runs(kernel.subject.room, kernel.tile, kernel.parts)
        cells: list[Cell] = [
            (kernel.configured(StreamKDecision(work, choice)), kernel.problem_of(work)) for work, choice in launches
        ]
        with run.batch(measure.purpose, len(cells)):
            for problem in dict.fromkeys(problem for _, problem in cells):
                configs = [config for config, of_cell in cells if of_cell == problem]
                run.anchor.visit_if_due(measure, measure.screen([configs], [problem], racing=False).cells)
        known = measure.lookup(cells, racing=False)
        for cell in cells:
            if cell not in known:
                run.say(f"{cell[1]} does not fit on {self.target.name}")
        estimates = (
            (launch, known[cell].estimate) for launch, cell in zip(launches, cells, strict=True) if cell in known
        )
        return [TimedRun(*launch, estimate.seconds) for launch, estimate in estimates if estimate]
