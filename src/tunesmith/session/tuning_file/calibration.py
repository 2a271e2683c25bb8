"""What a few cells of a tuning file cost, measured before a run, and what the others should cost by them."""

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
from tunesmith.search import some
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .steps import problems_of

PROGRAMS = 3
"""Programs that are compiled. The first pays for what a process does once, and only the others count."""
LONGEST_EXECUTION = 0.2
"""Seconds of one execution on the largest problem that is tried; what is larger is expected by its work."""
MOST_SIZES = 3
"""Sizes that are tried at most: each shows how much larger the next may be."""
WARM_UP = 7
"""Executions before a cell is sampled: the first, and two blocks of three that agree."""


@dataclass(frozen=True, slots=True)
class Sized:
    """What cells on problems of this much work took, in seconds: one to verify a configuration, `reference` to make a
    problem's inputs and reference once, `timing` to time it fully in `executions`, of which one takes `once` on the
    device."""

    work: float
    verify: float
    reference: float
    timing: float
    executions: float
    once: float


@dataclass(frozen=True)
class RunCalibration:
    """`startup` is what a run pays once, `compile` what a program costs; `sizes` are in the order of their work."""

    startup: float
    compile: float
    sizes: tuple[Sized, ...]

    def at(self, work: float) -> Sized:
        """What a problem of this work should cost: between two sizes by interpolation in the logarithm of the work;
        beyond the largest, verification and execution grow with the work."""
        last = self.sizes[-1]
        if work >= last.work:
            more = work / last.work if last.work else 1.0
            timing = max(last.timing, last.timing / last.executions * more * min(last.executions, 2 * WARM_UP))
            return Sized(work, last.verify * more, last.reference * more, timing, last.executions, last.once * more)
        below = [(low, high) for low, high in pairwise(self.sizes) if low.work <= work]
        if not below:
            return self.sizes[0]
        low, high = below[-1]
        share = math.log(work / low.work) / math.log(high.work / low.work)

        def between(a: float, b: float) -> float:
            return a + share * (b - a)

        return Sized(
            work,
            between(low.verify, high.verify),
            between(low.reference, high.reference),
            between(low.timing, high.timing),
            between(low.executions, high.executions),
            math.exp(between(math.log(low.once), math.log(high.once))),
        )


def calibrate(phases: Phases, judge: ConfigurationOracle, policy: Policy) -> RunCalibration | str:
    """Measure a few configurations on the smallest problem of a size group, then on larger ones; why there is none,
    where nothing ran."""
    problems = sorted({p for step in phases.steps for p in problems_of(step)}, key=judge.work)
    configs, problem = _programs(phases, judge, problems)
    if problem is None:
        return "nothing is legal"
    # With a single process, what a compiler does once is told apart from what it does for each program.
    plan = _Calibrating(judge, replace(policy, compile_processes=1), configs, problems[problems.index(problem) :])
    with tempfile.TemporaryDirectory() as scratch:
        carry_out(plan, Path(scratch))
    return plan.made()


class _Calibrating(RunPlan):
    def __init__(
        self,
        judge: ConfigurationOracle,
        policy: Policy,
        configs: Sequence[Configuration],
        problems: Sequence[Problem],
    ) -> None:
        self.target: Target = judge.target
        self.policy = policy
        self._judge, self._configs, self._problems = judge, configs, problems
        self._measured: dict[Problem, list[Measurement]] = {}

    def carry_out(self, run: Run) -> None:
        problem: Problem | None = self._problems[0]
        configs = self._configs
        while problem and len(self._measured) < MOST_SIZES:
            cells: list[Cell] = [(config, problem) for config in configs if _is_legal(self._judge, config, problem)]
            measure = run.measure(problem.type)
            measure.screen_cells([cells], racing=False)
            known = measure.lookup(cells, racing=False)
            self._measured[problem] = [known[cell] for cell in cells if cell in known]
            # On larger problems the second configuration tells what verifying costs without making the reference.
            configs = [cell[0] for cell in cells if cell in known and known[cell].ok][:2]
            problem = self._larger(problem) if configs else None

    def _larger(self, problem: Problem) -> Problem | None:
        """The largest problem that should not take long, by the speed on the last one."""
        ran = [each.estimate.seconds for each in self._measured[problem] if each.ok and each.estimate]
        most = LONGEST_EXECUTION / median(ran) * self._judge.work(problem)
        larger = [p for p in self._problems if self._judge.work(problem) < self._judge.work(p) <= most]
        return larger[-1] if larger else None

    def made(self) -> RunCalibration | str:
        ran = {p: [m for m in found if m.ok and m.estimate] for p, found in self._measured.items()}
        sizes = [self._sized(problem, found) for problem, found in ran.items() if found]
        if not sizes:
            failed = next((m for found in self._measured.values() for m in found), None)
            return f"{failed.outcome.value}: {failed.reason}" if failed else "nothing is legal"
        first, *others = next(found for found in ran.values() if found)
        compile_ = median([each.cost.compile for each in others or [first]])
        verify = median([each.cost.verify for each in others or [first]])
        startup = max(0.0, first.cost.compile - compile_) + max(0.0, first.cost.verify - verify)
        # The smallest problem's reference is within what the first one paid.
        return RunCalibration(startup, compile_, (replace(sizes[0], reference=0.0), *sizes[1:]))

    def _sized(self, problem: Problem, ran: Sequence[Measurement]) -> Sized:
        first, *others = ran
        verify = median([each.cost.verify for each in others or [first]])
        return Sized(
            self._judge.work(problem),
            verify,
            max(0.0, first.cost.verify - verify),
            median([each.cost.timing for each in ran]),
            median([float(len(each.samples) + WARM_UP) for each in ran]),
            median([each.estimate.seconds for each in ran if each.estimate]),
        )


def first_configurations(phases: Phases) -> list[Configuration]:
    """The start, and the start with each single choice of each step; of very many, with some."""
    steps = [step for step in phases.steps if not isinstance(step, Join)]
    return [phases.start, *(phases.start | choice for step in steps for choice in some(step.choices))]


def _programs(
    phases: Phases, judge: ConfigurationOracle, problems: Sequence[Problem]
) -> tuple[list[Configuration], Problem | None]:
    """Legal configurations with programs of their own, spread over those of the file, and the smallest problem that
    they run; none where nothing is legal."""
    legal = [config for config in first_configurations(phases) if not judge.rejections(config)]
    for problem in problems:
        runnable = [config for config in legal if not judge.rejections_for(config, problem)]
        distinct = list({judge.program(config): config for config in reversed(runnable)}.values())[::-1]
        if distinct:
            return _spread(distinct, PROGRAMS), problem
    return [], None


def _spread(configs: Sequence[Configuration], count: int) -> list[Configuration]:
    """The first, the last, and others as evenly in between as there are."""
    if len(configs) <= count:
        return list(configs)
    return [configs[round(number * (len(configs) - 1) / (count - 1))] for number in range(count)]


def _is_legal(judge: ConfigurationOracle, config: Configuration, problem: Problem) -> bool:
    return not judge.rejections(config) and not judge.rejections_for(config, problem)
