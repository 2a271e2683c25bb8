"""The cost of a few cells of a tuning file, measured before a run, and the expected cost of the other cells."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from tunesmith.bench import Policy
from tunesmith.protocol import Cell, Join, Phases
from tunesmith.records import Configuration, Measurement, Problem, Target
from tunesmith.search import all_or_sample
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .steps import problems_of

PROGRAMS = 3
"""The number of programs that are compiled. The first includes the compiler's start, so only the others count."""
LONGEST_EXECUTION = 0.2
"""Seconds that one execution may take on the largest problem tried. Costs of larger problems follow from their work."""
MOST_SIZES = 3
"""The most sizes tried: the time on each size shows how much larger the next may be."""
WARM_UP = 7
"""Executions before a cell is sampled: a first one, and two blocks of three whose times agree."""


@dataclass(frozen=True, slots=True)
class SizeCost:
    """The cost of cells on problems of this much work, in seconds.

    `verify` is for verifying a configuration, `reference` for making a problem's inputs and reference once, `timing`
    for timing a cell fully, in so many `executions`. `once` is the time of one execution on the device.
    """

    work: float
    verify: float
    reference: float
    timing: float
    executions: float
    once: float


@dataclass(frozen=True)
class RunCalibration:
    """`startup` are seconds that a run spends once, `compile` seconds a program; `sizes` are in the order of work."""

    startup: float
    compile: float
    sizes: tuple[SizeCost, ...]

    def at(self, work: float) -> SizeCost:
        """The expected cost of a problem of this work. Between two sizes, costs are interpolated in the logarithm of
        the work; beyond the largest size, verification and execution grow with the work."""
        last = self.sizes[-1]
        if work >= last.work:
            more = work / last.work if last.work else 1.0
            timing = max(last.timing, last.timing / last.executions * more * min(last.executions, 2 * WARM_UP))
            return SizeCost(work, last.verify * more, last.reference * more, timing, last.executions, last.once * more)
        below = [(low, high) for low, high in pairwise(self.sizes) if low.work <= work]
        if not below:
            return self.sizes[0]
        low, high = below[-1]
        share = math.log(work / low.work) / math.log(high.work / low.work)

        def between(a: float, b: float) -> float:
            return a + share * (b - a)

        return SizeCost(
            work,
            between(low.verify, high.verify),
            between(low.reference, high.reference),
            between(low.timing, high.timing),
            between(low.executions, high.executions),
            math.exp(between(math.log(low.once), math.log(high.once))),
        )


def calibrate(phases: Phases, oracle: ConfigurationOracle, policy: Policy) -> RunCalibration | str:
    """Measure a few configurations on the smallest problem of a size group, then on larger ones. If nothing ran, the
    result is the reason."""
    problems = sorted({p for step in phases.steps for p in problems_of(step)}, key=oracle.work)
    configs, problem = _programs(phases, oracle, problems)
    if problem is None:
        return "nothing is legal"
    # With a single compile process, the compiler's start can be told from the cost of each program.
    plan = _CalibrationPlan(oracle, replace(policy, compile_processes=1), configs, problems[problems.index(problem) :])
    with tempfile.TemporaryDirectory() as scratch:
        carry_out(plan, Path(scratch))
    return plan.calibration()


class _CalibrationPlan(RunPlan):
    def __init__(
        self,
        oracle: ConfigurationOracle,
        policy: Policy,
        configs: Sequence[Configuration],
        problems: Sequence[Problem],
    ) -> None:
        self.target: Target = oracle.target
        self.policy = policy
        self._oracle, self._configs, self._problems = oracle, configs, problems
        self._measured: dict[Problem, list[Measurement]] = {}

    def carry_out(self, run: Run) -> None:
        problem: Problem | None = self._problems[0]
        configs = self._configs
        while problem and len(self._measured) < MOST_SIZES:
            cells: list[Cell] = [(config, problem) for config in configs if _is_legal(self._oracle, config, problem)]
            measure = run.measure(problem.type)
            measure.screen_cells([cells], racing=False)
            known = measure.lookup(cells, racing=False)
            self._measured[problem] = [known[cell] for cell in cells if cell in known]
            # On larger problems the second configuration shows the cost of verifying without making the reference.
            configs = [cell[0] for cell in cells if cell in known and known[cell].ok][:2]
            problem = self._larger(problem) if configs else None

    def _larger(self, problem: Problem) -> Problem | None:
        """The largest problem that should not take long, by the speed on the last problem."""
        seconds = [m.estimate.seconds for m in self._measured[problem] if m.ok and m.estimate]
        most = LONGEST_EXECUTION / median(seconds) * self._oracle.work(problem)
        larger = [p for p in self._problems if self._oracle.work(problem) < self._oracle.work(p) <= most]
        return larger[-1] if larger else None

    def calibration(self) -> RunCalibration | str:
        """The costs of what was measured; if nothing ran, the reason."""
        ran = {p: [m for m in measured if m.ok and m.estimate] for p, measured in self._measured.items()}
        sizes = [self._size_cost(problem, measured) for problem, measured in ran.items() if measured]
        if not sizes:
            failed = next((m for measured in self._measured.values() for m in measured), None)
            return f"{failed.outcome.value}: {failed.reason}" if failed else "nothing is legal"
        first, *others = next(measured for measured in ran.values() if measured)
        compile_ = median([m.cost.compile for m in others or [first]])
        verify = median([m.cost.verify for m in others or [first]])
        startup = max(0.0, first.cost.compile - compile_) + max(0.0, first.cost.verify - verify)
        # `startup` includes the smallest problem's reference.
        return RunCalibration(startup, compile_, (replace(sizes[0], reference=0.0), *sizes[1:]))

    def _size_cost(self, problem: Problem, ran: Sequence[Measurement]) -> SizeCost:
        first, *others = ran
        verify = median([m.cost.verify for m in others or [first]])
        return SizeCost(
            self._oracle.work(problem),
            verify,
            max(0.0, first.cost.verify - verify),
            median([m.cost.timing for m in ran]),
            median([float(len(m.samples) + WARM_UP) for m in ran]),
            median([m.estimate.seconds for m in ran if m.estimate]),
        )


def first_configurations(phases: Phases) -> list[Configuration]:
    """The start, and the start with each single choice of each step; only with some choices if there are very many."""
    steps = [step for step in phases.steps if not isinstance(step, Join)]
    return [phases.start, *(phases.start | choice for step in steps for choice in all_or_sample(step.choices))]


def _programs(
    phases: Phases, oracle: ConfigurationOracle, problems: Sequence[Problem]
) -> tuple[list[Configuration], Problem | None]:
    """Legal configurations with different programs, spread over those of the file, and the smallest problem that they
    run; an empty list and None if nothing is legal."""
    legal = [config for config in first_configurations(phases) if not oracle.rejections(config)]
    for problem in problems:
        runnable = [config for config in legal if not oracle.rejections_for(config, problem)]
        distinct = list({oracle.program(config): config for config in reversed(runnable)}.values())[::-1]
        if distinct:
            return _spread(distinct, PROGRAMS), problem
    return [], None


def _spread(configs: Sequence[Configuration], count: int) -> list[Configuration]:
    """`count` configurations: the first, the last, and others evenly in between."""
    if len(configs) <= count:
        return list(configs)
    return [configs[round(index * (len(configs) - 1) / (count - 1))] for index in range(count)]


def _is_legal(oracle: ConfigurationOracle, config: Configuration, problem: Problem) -> bool:
    return not oracle.rejections(config) and not oracle.rejections_for(config, problem)
