"""The forecast of a run before it starts: the protocol's counts, and minutes from a short calibration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.formats.tensile.tuning import TensileImport
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Final, Phases, StepForecast, StepsForecast, TuningFile, forecast
from tunesmith.records import Problem, Target
from tunesmith.session.frame.oracle import ConfigurationOracle

from .calibration import WARM_UP, RunCalibration, SizeCost, calibrate, first_configurations
from .file import policy_of, ready
from .order import checked_order, described_order
from .steps import group_name, problems_of

FINALISTS = 2
"""Candidates that a decision measures again, interleaved: the best and a rival. Close times need more than these."""
MOST_IN_A_BLOCK = 25
"""The most executions of one finalist in a block, as in the bench."""


@dataclass(frozen=True)
class GroupForecast:
    """A size group's steps, and the seconds that each is expected to take.

    `seconds` are None without a calibration; if one was asked for, `not_timed` is the reason. `order` says in words in
    which order cells will be measured.
    """

    name: str
    phases: Phases
    forecast: StepsForecast
    seconds: tuple[float | None, ...]
    order: str
    not_timed: str = ""


@dataclass(frozen=True)
class Forecast:
    """All size groups of a tuning file on one device. `imported` says what became of a file of Tensile's."""

    target: Target
    notes: tuple[str, ...]
    groups: tuple[GroupForecast, ...]
    imported: TensileImport | None = None

    @property
    def seconds(self) -> float | None:
        known = [seconds for group in self.groups for seconds in group.seconds if seconds is not None]
        return sum(known) if known else None

    @property
    def is_possible(self) -> bool:
        """Whether there are size groups, and each has something left to measure in its last step."""
        return bool(self.groups) and all(group.forecast.is_possible for group in self.groups)


def plan(
    path: Path,
    *,
    device: str | None = None,
    max_size: int | None = None,
    sizes: Path | None = None,
    order: str | None = None,
    calibrate: bool | None = None,
) -> Forecast:
    """Forecast a tuning file. With `calibrate`, a few configurations are compiled and timed, which takes seconds.

    If `calibrate` is None, this is done for our own kernels only: a user's kernel and its reference are programs, which
    a person who only looks at a file may not want to run. `sizes` is the sizes file of a file in Tensile's split form.
    """
    order = checked_order(order)
    made_ready = ready(path, max_size, device, sizes)
    file, target = made_ready.file, made_ready.target
    users = {phases.problem_type.name: None for phases in file.groups if _runs_users_code(phases)}
    notes = [] if calibrate is not None else [_NOT_CALIBRATED.format(name) for name in users]
    groups = (
        _group(file, phases, target, order, not _runs_users_code(phases) if calibrate is None else calibrate)
        for phases in file.groups
    )
    return Forecast(target, (*file.notes, *notes), tuple(groups), made_ready.imported)


_NOT_CALIBRATED = "{}: no minutes are forecast, since that would run the kernel and its reference; --calibrate does it"


def _runs_users_code(phases: Phases) -> bool:
    return OPERATIONS[phases.problem_type.operation].runs_users_code


def _group(file: TuningFile, phases: Phases, target: Target, order: str, is_calibrated: bool) -> GroupForecast:
    oracle, policy = ConfigurationOracle(phases.problem_type, target), policy_of(file)
    steps, described = forecast(phases, oracle, oracle.program), described_order(order, phases, oracle)
    calibration = calibrate(phases, oracle, policy) if is_calibrated else ""
    if isinstance(calibration, str):
        none = tuple(None for _ in steps.after)
        return GroupForecast(group_name(phases), phases, steps, none, described, not_timed=calibration)
    seconds = tuple(_seconds(phases, steps, oracle, calibration, policy))
    return GroupForecast(group_name(phases), phases, steps, seconds, described)


def _seconds(
    phases: Phases, steps: StepsForecast, oracle: ConfigurationOracle, calibration: RunCalibration, policy: Policy
) -> Iterator[float]:
    """The expected seconds of each step. The first step that measures includes the startup."""
    startup, with_reference = calibration.startup, set[Problem]()
    for counts, step in zip(steps.after, phases.steps, strict=True):
        problems = _runnable(problems_of(step), phases, oracle)
        if not counts.enqueues or not problems:
            yield 0.0
            continue
        is_raced = not isinstance(step, Final)
        costs = {problem: calibration.at(oracle.work(problem)) for problem in problems}
        measuring = sum(_measuring(counts, costs[p], len(problems), is_raced, policy) for p in problems)
        measuring += sum(costs[problem].reference for problem in problems if problem not in with_reference)
        compiling = counts.programs * calibration.compile / (policy.compile_processes or len(os.sched_getaffinity(0)))
        # On the host's CPU, compiling and timing take turns; elsewhere they overlap.
        yield startup + (compiling + measuring if oracle.target.shares_the_host else max(compiling, measuring))
        startup = 0.0
        with_reference.update(problems)


def _measuring(step: StepForecast, cost: SizeCost, sizes: int, is_raced: bool, policy: Policy) -> float:
    """Seconds that a step takes on one of its sizes: verification once a program, sampling, and the decision.

    In a race, one candidate of each lineage is sampled fully. The others stop when they are provably slower, which
    takes the fewest samples that the policy allows.
    """
    cells = step.fresh / sizes
    execution = cost.timing / cost.executions
    shortest = min(cost.timing, execution * (WARM_UP + policy.minimum_samples))
    full = min(cells, step.lineages) if is_raced else cells
    timing = full * cost.timing + (cells - full) * shortest
    decisions = step.lineages if is_raced else 1
    if step.candidates <= decisions:
        return cells * cost.verify + timing
    share = policy.sampling_seconds / policy.confirm_blocks
    block = 1 + max(1, min(MOST_IN_A_BLOCK, int(share / max(cost.once, 1e-9)) - 1))
    confirming = FINALISTS * execution * (WARM_UP + policy.confirm_blocks * block)
    return cells * cost.verify + timing + decisions * confirming


def _runnable(problems: tuple[Problem, ...], phases: Phases, oracle: ConfigurationOracle) -> tuple[Problem, ...]:
    """The problems that some configuration of the file can run; the others cost nothing."""
    configs = [config for config in first_configurations(phases) if not oracle.rejections(config)]
    return tuple(p for p in problems if any(not oracle.rejections_for(config, p) for config in configs))
