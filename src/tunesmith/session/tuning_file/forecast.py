"""What a run will take, before it starts: the protocol's forecast, and minutes from a short calibration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Final, Phases, StepForecast, StepsForecast, TuningFile, forecast
from tunesmith.records import Problem, Target
from tunesmith.session.frame.oracle import ConfigurationOracle

from .calibration import WARM_UP, RunCalibration, Sized, calibrate, first_configurations
from .file import policy_of, ready
from .order import checked_order, described_order
from .steps import group_name, problems_of

FINALISTS = 2
"""Candidates that a decision measures again, interleaved: the best one and a rival. More where times lie close."""
MOST_IN_A_BLOCK = 25
"""Executions of one finalist in a block, as the bench has it."""


@dataclass(frozen=True)
class GroupForecast:
    """A size group's steps, and the seconds that they are expected to take: None without a calibration, for the reason
    that `not_timed` gives where one was asked for. `order` says in which order cells will be measured."""

    name: str
    phases: Phases
    forecast: StepsForecast
    seconds: tuple[float | None, ...]
    order: str
    not_timed: str = ""


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

    @property
    def is_possible(self) -> bool:
        """Whether every size group has something left to measure in its last step."""
        return all(group.forecast.is_possible for group in self.groups)


def plan(
    path: Path,
    *,
    device: str | None = None,
    max_size: int | None = None,
    order: str | None = None,
    calibrate: bool | None = None,
) -> Forecast:
    """Forecast a tuning file. With `calibrate`, a few configurations are compiled and timed, which takes seconds.

    Without a word about it, that is done for our own kernels only: a kernel of the user's and its reference are
    programs, which someone who only looks at a file need not mean to run.
    """
    order = checked_order(order)
    file, target = ready(path, max_size, device)
    users = {phases.problem_type.name: None for phases in file.groups if _runs_users_code(phases)}
    notes = [] if calibrate is not None else [_NOT_CALIBRATED.format(name) for name in users]
    groups = (
        _group(file, phases, target, order, not _runs_users_code(phases) if calibrate is None else calibrate)
        for phases in file.groups
    )
    return Forecast(target, (*file.notes, *notes), tuple(groups))


_NOT_CALIBRATED = "{}: no minutes are forecast, since that would run the kernel and its reference; --calibrate does it"


def _runs_users_code(phases: Phases) -> bool:
    return OPERATIONS[phases.problem_type.operation].runs_users_code


def _group(file: TuningFile, phases: Phases, target: Target, order: str, is_calibrated: bool) -> GroupForecast:
    judge, policy = ConfigurationOracle(phases.problem_type, target), policy_of(file)
    steps, described = forecast(phases, judge, judge.program), described_order(order, phases, judge)
    found = calibrate(phases, judge, policy) if is_calibrated else ""
    if isinstance(found, str):
        return GroupForecast(group_name(phases), phases, steps, tuple(None for _ in steps.after), described, found)
    seconds = tuple(_seconds(phases, steps, judge, found, policy))
    return GroupForecast(group_name(phases), phases, steps, seconds, described)


def _seconds(
    phases: Phases, steps: StepsForecast, judge: ConfigurationOracle, known: RunCalibration, policy: Policy
) -> Iterator[float]:
    """Of each step, in their order. What is paid once is in the first step that measures."""
    startup, met = known.startup, set[Problem]()
    for made, step in zip(steps.after, phases.steps, strict=True):
        problems = _runnable(problems_of(step), phases, judge)
        if not made.enqueues or not problems:
            yield 0.0
            continue
        is_raced = not isinstance(step, Final)
        costs = {problem: known.at(judge.work(problem)) for problem in problems}
        measuring = sum(_measuring(made, costs[p], len(problems), is_raced, policy) for p in problems)
        measuring += sum(costs[problem].reference for problem in problems if problem not in met)
        compiling = made.programs * known.compile / (policy.compile_processes or len(os.sched_getaffinity(0)))
        # On the host's CPU, compiling and timing take turns; elsewhere one hides the other.
        yield startup + (compiling + measuring if judge.target.shares_the_host else max(compiling, measuring))
        startup = 0.0
        met.update(problems)


def _measuring(step: StepForecast, cost: Sized, sizes: int, is_raced: bool, policy: Policy) -> float:
    """Seconds that a step takes on one of its sizes: verification once a program, sampling, and the decision.

    In a race, one candidate of each lineage is sampled fully; the others stop when they are provably slower, which
    takes the fewest samples that a policy allows.
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


def _runnable(problems: tuple[Problem, ...], phases: Phases, judge: ConfigurationOracle) -> tuple[Problem, ...]:
    """The problems that some configuration of the file can run: the others cost nothing."""
    configs = [config for config in first_configurations(phases) if not judge.rejections(config)]
    return tuple(p for p in problems if any(not judge.rejections_for(config, p) for config in configs))
