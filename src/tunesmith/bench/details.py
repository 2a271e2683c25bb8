"""What a job's kernel family and operation say about it: modules, probe and plans. Runs in the bench's own process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS
from tunesmith.records import CompiledFacts, Module, Plan, Problem, Rejection, Target, pickled_by_fields

from .job import Job


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class JobPlans:
    """The plan to time, and a plan for each problem to verify before. They need the compiler's facts."""

    timed: Plan
    checks: tuple[tuple[Problem, Plan], ...]


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
    def probe(self) -> tuple[Problem, Plan]:
        """A small problem with its plan, for compilers that finish only at the first launch."""
        small = self._operation.small(self.job.problem)
        is_rejected = any(self._family.rejections_for(self.job.solution.configuration, small, self._target))
        problem = self.job.problem if is_rejected else small
        return problem, self._plan(problem)

    @cached_property
    def probe_key(self) -> str:
        return " ".join(["probe", *(digest for digest, _ in self.modules), self.probe[1].digest()])

    def plans(self, facts: Sequence[CompiledFacts]) -> JobPlans | Rejection:
        """The plans to launch; or the rejection, if the compiler's facts make the job useless."""
        config, problem = self.job.solution.configuration, self.job.problem
        if rejection := next(self._family.rejections_compiled(config, facts, self._target), None):
            return rejection
        checks = self._family.checks(config, problem, self._operation.checks(problem))
        plans = {each: self._plan(each, facts) for each in dict.fromkeys((problem, *checks))}
        return JobPlans(plans[problem], tuple((check, plans[check]) for check in checks))

    def _plan(self, problem: Problem, facts: Sequence[CompiledFacts] = ()) -> Plan:
        return self._family.plan(self.job.solution.configuration, problem, self._target, facts)
