"""What a job's kernel family and operation say about it: modules, probes and plans. Runs in the bench's own process."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS, storage_bytes
from tunesmith.records import CompiledFacts, Launch, Module, Plan, Problem, Rejection, Target, pickled_by_fields

from .job import Job

SMALL_GRID = 65_536
"""PoCL compiles a kernel for its work-group and for grids of fewer work-items than these along each dimension; for
another work-group or a larger grid it compiles again."""

MOST_PROBED = 1 << 26
"""The most bytes of operands and workspace with which a compile process launches: each process has its own."""


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class JobPlans:
    """The plan to time, and a plan for each problem to verify before. They need the compiler's facts."""

    timed: Plan
    checks: tuple[tuple[Problem, Plan], ...]


@dataclass(frozen=True, slots=True)
class PlannedProbe:
    """A problem with its plan that a compile process launches for all jobs with this key. If the problem is small,
    its failure is that of all these jobs. Otherwise another size may still run, and the worker finds it out."""

    key: str
    problem: Problem
    plan: Plan
    is_small: bool


class JobDetails:
    """A job with its details on a target, each computed once, when it is first needed. `race` is the number of the
    job's race in its batch."""

    def __init__(self, job: Job, target: Target, race: int = 0) -> None:
        self.job, self.race, self._target = job, race, target
        self._family, self._operation = KERNELS[job.solution.kernel], OPERATIONS[job.problem.type.operation]

    @cached_property
    def first(self) -> JobDetails | None:
        """The details of the solution whose result this one's must agree with."""
        solution = self.job.first
        return JobDetails(replace(self.job, solution=solution, first=None), self._target) if solution else None

    @cached_property
    def modules(self) -> tuple[tuple[str, Module], ...]:
        """The modules to compile, each with its digest."""
        modules = self._family.modules(self.job.solution.configuration, self.job.problem.type)
        return tuple((module.digest(), module) for module in modules)

    @cached_property
    def probes(self) -> tuple[PlannedProbe, ...]:
        """What to launch, a small problem first, for compilers that finish only at the first launch: it compiles what
        this job will launch. There is at least one probe."""
        problem = self.job.problem
        planned = {each: self._plan(each) for each in (*self._checks, problem)}
        missing = set().union(*map(_variants, planned.values()))
        probes = {each: plan for each, plan in planned.items() if self._memory(each, plan) <= MOST_PROBED}
        small = self._operation.small(problem)
        if not any(self._family.rejections_for(self.job.solution.configuration, small, self._target)):
            probes = {small: self._plan(small)} | probes
        probes = probes or {problem: planned[problem]}
        needed: list[Problem] = []
        for probed, plan in probes.items():
            if _variants(plan) & missing:
                needed.append(probed)
                missing -= _variants(plan)
        return tuple(
            PlannedProbe(self._probe_key(probes[each]), each, probes[each], each == small)
            for each in needed or list(probes)[:1]
        )

    def _memory(self, problem: Problem, plan: Plan) -> int:
        return sum(map(storage_bytes, self._operation.operands(problem))) + plan.workspace_bytes

    def _probe_key(self, plan: Plan) -> str:
        """The same for all plans that compile the same, so that one of them is launched for jobs of any size."""
        return " ".join(["probe", *(digest for digest, _ in self.modules), *map(str, sorted(_variants(plan)))])

    @cached_property
    def _checks(self) -> tuple[Problem, ...]:
        """The problems to verify before the job's problem is timed."""
        problem = self.job.problem
        return self._family.checks(self.job.solution.configuration, problem, self._operation.checks(problem))

    def plans(self, facts: Sequence[CompiledFacts]) -> JobPlans | Rejection:
        """The plans to launch; or the rejection, if the compiler's facts make the job useless."""
        config, problem = self.job.solution.configuration, self.job.problem
        if rejection := next(self._family.rejections_compiled(config, facts, self._target), None):
            return rejection
        plans = {each: self._plan(each, facts) for each in dict.fromkeys((problem, *self._checks))}
        return JobPlans(self._family.timed(plans[problem]), tuple((check, plans[check]) for check in self._checks))

    def _plan(self, problem: Problem, facts: Sequence[CompiledFacts] = ()) -> Plan:
        return self._family.plan(self.job.solution.configuration, problem, self._target, facts)


def _variants(plan: Plan) -> set[tuple[int, str, tuple[int, int, int], bool]]:
    """What a plan's launches have compiled: module, entry, work-group, and whether the grid is small."""
    return {
        (step.module, step.entry, step.work_group, max(map(operator.mul, step.grid, step.work_group)) < SMALL_GRID)
        for step in plan.steps
        if isinstance(step, Launch)
    }
