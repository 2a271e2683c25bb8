"""What a run will take, before it starts: the protocol's forecast, and minutes from a short calibration."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Benchmark, Cell, Fork, Phases, StepForecast, TuningFile, forecast
from tunesmith.protocol import Forecast as StepsForecast
from tunesmith.records import Configuration, Measurement, Problem, Target
from tunesmith.search import some
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.run import Plan, Run, carry_out

from .file import policy_of, ready
from .steps import group_name, problems_of

REFERENCE_RATE = 2e10
"""Flop/s of a float64 reference with its bound on the host, at a guess: it only matters for large problems."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one configuration cost on the file's smallest problem: seconds to compile and verify, flop/s when it ran."""

    compile_seconds: float
    verify_seconds: float
    verified_work: float
    rate: float


@dataclass(frozen=True)
class GroupForecast:
    """A size group's steps, and the seconds that they are expected to take (None without a calibration)."""

    name: str
    phases: Phases
    forecast: StepsForecast
    seconds: tuple[float | None, ...]


@dataclass(frozen=True)
class Forecast:
    """All size groups of a tuning file on one device."""

    target: Target
    notes: tuple[str, ...]
    groups: tuple[GroupForecast, ...]

    @property
    def seconds(self) -> float | None:
        known = [seconds for group in self.groups for seconds in group.seconds if seconds is not None]
        return sum(known) if known else None


def plan(
    path: Path, *, device: str | None = None, max_size: int | None = None, calibrate: bool | None = None
) -> Forecast:
    """Forecast a tuning file. With `calibrate`, one configuration is compiled and timed (seconds on most devices).

    Without a word about it, that is done for our own kernels only: a kernel of the user's and its reference are
    programs, which someone who only looks at a file need not mean to run.
    """
    file, target = ready(path, max_size, device)
    users = {phases.problem_type.name: None for phases in file.groups if _runs_users_code(phases)}
    notes = [] if calibrate is not None else [_NOT_CALIBRATED.format(name) for name in users]
    groups = (
        _group(file, phases, target, not _runs_users_code(phases) if calibrate is None else calibrate)
        for phases in file.groups
    )
    return Forecast(target, (*file.notes, *notes), tuple(groups))


_NOT_CALIBRATED = "{}: no minutes are forecast, since that would run the kernel and its reference; --calibrate does it"


def _runs_users_code(phases: Phases) -> bool:
    return OPERATIONS[phases.problem_type.operation].runs_users_code


class OneCell(Plan):
    """Measures one cell."""

    def __init__(self, target: Target, policy: Policy, cell: Cell) -> None:
        self.target, self.policy, self._cell = target, policy, cell
        self.measurement: Measurement | None = None

    def carry_out(self, run: Run) -> None:
        self.measurement = run.measure(self._cell[1].type).again(self._cell, "calibration")


def _group(file: TuningFile, phases: Phases, target: Target, calibrate: bool) -> GroupForecast:
    judge, policy = ConfigurationOracle(phases.problem_type, target), policy_of(file)
    steps = forecast(phases, judge)
    calibration = _calibrate(phases, judge, policy) if calibrate else None
    processes = policy.compile_processes or target.compute_units if target.shares_the_host else 1
    seconds = tuple(
        _expected(step, _runnable(problems, phases, judge), calibration, policy, processes) if calibration else None
        for step, problems in zip(steps.after, map(problems_of, phases.steps), strict=True)
    )
    return GroupForecast(group_name(phases), phases, steps, seconds)


def _expected(
    step: StepForecast, problems: tuple[Problem, ...], known: Calibration, policy: Policy, processes: int
) -> float:
    """Compiling once a candidate, then for each cell verification (fixed, and with the work) and sampling.

    Sampling is warm-up and samples at the calibrated rate, kept within the policy's limits; racing makes it less.
    """
    if not step.enqueues or not problems:
        return 0.0
    cells = step.enqueues / len(problems)
    operation = OPERATIONS[problems[0].type.operation]
    seconds = step.candidates * known.compile_seconds / processes
    for problem in problems:
        work = operation.work(problem)
        once = work / known.rate if known.rate else 0.0
        sampling = min(policy.maximum_samples * once, policy.sampling_seconds)
        warm_up = min(policy.warm_up_seconds, 10 * once)
        at_least = (policy.minimum_samples + 2) * once
        verify = known.verify_seconds + max(0.0, work - known.verified_work) / REFERENCE_RATE
        seconds += cells * (verify + max(warm_up + sampling, at_least))
    return seconds


def _calibrate(phases: Phases, judge: ConfigurationOracle, policy: Policy) -> Calibration | None:
    """Measure the first legal configuration on the smallest problem of the file; None when that one does not run."""
    problems = sorted({p for step in phases.steps for p in problems_of(step)}, key=judge.work)
    found = next(((c, p) for p in problems for c in _first_configurations(phases) if _legal(judge, c, p)), None)
    if found is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        measurement = carry_out(OneCell(judge.target, policy, found), Path(scratch)).plan.measurement
    if measurement is None or not measurement.estimate:
        return None
    cost, work = measurement.cost, judge.work(found[1])
    return Calibration(cost.compile, cost.verify, work, work / measurement.estimate.seconds)


def _first_configurations(phases: Phases) -> list[Configuration]:
    """The start, and the start with each single choice of each step; of very many, with some."""
    steps = [step for step in phases.steps if isinstance(step, Fork | Benchmark)]
    return [phases.start, *(phases.start | choice for step in steps for choice in some(step.choices))]


def _runnable(problems: tuple[Problem, ...], phases: Phases, judge: ConfigurationOracle) -> tuple[Problem, ...]:
    """The problems that some configuration of the file can run: the others cost nothing."""
    configs = [config for config in _first_configurations(phases) if not judge.rejections(config)]
    return tuple(p for p in problems if any(not judge.rejections_for(config, p) for config in configs))


def _legal(judge: ConfigurationOracle, config: Configuration, problem: Problem) -> bool:
    return not judge.rejections(config) and not judge.rejections_for(config, problem)
