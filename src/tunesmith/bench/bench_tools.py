"""The state that a bench keeps between requests, and the steps that turn a job into a worker's request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tunesmith.problems import OPERATIONS
from tunesmith.records import Binary, Cost, Measurement, Outcome, Problem, Rejection, Target

from .details import JobDetails, JobPlans
from .events import Event
from .job import Job
from .machine_failures import check_room
from .processes.compilers import Compilers, facts
from .processes.messages import Candidate, Done, InterleaveRequest, MeasureRequest
from .processes.worker_handle import Death, Worker
from .processes.workers import Workers
from .verification.cases import inputs_of

Fingerprint = tuple[tuple[str, ...], Problem, JobPlans]


@dataclass(frozen=True)
class ReadyJob:
    """A job that is compiled and can be sent to a worker."""

    job: Job
    race: int
    candidate: Candidate
    compile_seconds: float

    @property
    def fingerprint(self) -> Fingerprint:
        """The programs, the plans, and the problems that the programs are verified on."""
        candidate = self.candidate
        return tuple(binary.module for binary in candidate.binaries), candidate.problem, candidate.plans

    def outcome(self, answer: Done | Death, index: int, started: float) -> Measurement:
        """The measurement at `index` of a worker's answer, or of its death, with the compiler's facts and cost."""
        done = answer.done if isinstance(answer, Death) else answer
        if done is not None:
            measurement = done.measurements[index]
        else:
            assert isinstance(answer, Death)
            measurement = Measurement(answer.outcome, answer.cause, answer.detail, started=started)
        cost = replace(measurement.cost, compile=self.compile_seconds)
        return replace(measurement, facts=facts(self.candidate.binaries), cost=cost)


@dataclass
class BenchTools:
    """The state of a bench. `folders` are those that its processes write to. `verified` holds the fingerprints of the
    jobs whose results were right, `shared` the problems whose verification has all that it needs of this process."""

    target: Target
    workers: Workers
    compilers: Compilers
    observe: Callable[[Event], None]
    folders: Sequence[Path] = ()
    seed: int = 0
    verified: set[Fingerprint] = field(default_factory=set)
    shared: set[Problem] = field(default_factory=set)

    def binaries(self, job: JobDetails) -> tuple[Binary, ...] | Measurement | None:
        """`Compilers.binaries` of the job, if the solution that its result must agree with is built as well."""
        first = self.compilers.binaries(job.first) if job.first else ()
        return self.compilers.binaries(job) if isinstance(first, tuple) else first

    def request(self, job: JobDetails) -> int:
        """Queue all modules that a job needs; returns how many tasks this adds."""
        added = self.compilers.request(job.modules)
        return added + (self.compilers.request(job.first.modules) if job.first else 0)

    def ready_job(self, job: JobDetails, built: tuple[Binary, ...] | Measurement) -> ReadyJob | Measurement:
        """The job as it can be sent to a worker, or the measurement that says why it cannot, with the job's cost."""
        cost = Cost(compile=self.compilers.charge(job))
        if isinstance(built, Measurement):
            return replace(built, cost=cost)
        compiled_facts = facts(built)
        plans = job.plans(compiled_facts)
        if isinstance(plans, Rejection):
            rejected = Measurement(Outcome.REJECTED, plans.reason, plans.detail, facts=compiled_facts)
            return replace(rejected, cost=cost, started=time.time())
        candidate = Candidate(built, job.job.problem, plans, first=self._first(job))
        return ReadyJob(job.job, job.race, candidate, cost.compile)

    def _first(self, job: JobDetails) -> Candidate | None:
        """The candidate with whose result the job's must agree. It was measured before, so it is built and legal."""
        if job.first is None:
            return None
        built = self.compilers.binaries(job.first)
        assert isinstance(built, tuple)
        plans = job.first.plans(facts(built))
        assert not isinstance(plans, Rejection)
        return Candidate(built, job.job.problem, plans)

    def candidate(self, ready_job: ReadyJob) -> Candidate:
        """The candidate to send. It is not verified again if this bench has verified the same candidate before."""
        candidate = replace(ready_job.candidate, verify=ready_job.fingerprint not in self.verified)
        if candidate.verify:
            self.share(problem for problem, _ in candidate.plans.checks)
        return candidate

    def prepare(self, problem: Problem) -> None:
        """Let the worker that was begun prepare a problem while its candidates are compiled."""
        if self.workers.has_only_begun:
            checks = OPERATIONS[problem.type.operation].checks(problem)
            self.share(checks)
            self.workers.prepare(checks)

    def share(self, problems: Iterable[Problem]) -> None:
        """Hand over what the worker needs of this process to verify these problems."""
        for problem in problems:
            if problem not in self.shared:
                OPERATIONS[problem.type.operation].share(problem, partial(inputs_of, problem, self.seed))
                self.shared.add(problem)

    def check_folders(self, measurement: Measurement) -> None:
        """Call this before a failure is yielded. Raises UserError if every job fails because nothing can be written."""
        if measurement.outcome not in (Outcome.OK, Outcome.REJECTED, Outcome.WRONG_RESULT):
            check_room(self.folders)

    def ask(self, worker: Worker, request: MeasureRequest | InterleaveRequest, jobs: Sequence[Job]) -> Done | Death:
        """Send a request and wait for the answer. A worker that died is replaced."""
        worker.ask(request)
        answer = worker.answer()
        if isinstance(answer, Death):
            self.workers.lost(answer, jobs[answer.index].key)
        return answer
