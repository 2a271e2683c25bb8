"""What a bench keeps from request to request, and what becomes of a job on its way to a worker."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tunesmith.records import Binary, Cost, Measurement, Outcome, Rejection, Target

from .details import JobDetails
from .events import Event
from .job import Job
from .machine_failures import look_for_room
from .processes.compilers import Compilers, facts
from .processes.messages import Candidate, Done, InterleaveRequest, MeasureRequest
from .processes.workers import Death, Worker, Workers


@dataclass(frozen=True)
class ReadyJob:
    """A job that can be sent to a worker as it is."""

    job: Job
    race: int
    candidate: Candidate
    compile_seconds: float

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the programs, the plans and the problems that they are checked on."""
        candidate = self.candidate
        parts = [binary.module for binary in candidate.binaries]
        parts += [candidate.problem.to_json(), candidate.bound.timed.digest()]
        parts += [text for problem, plan in candidate.bound.checks for text in (problem.to_json(), plan.digest())]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def outcome(self, answer: Done | Death, index: int, started: float) -> Measurement:
        """The measurement in a worker's answer, or of its death, with what only the parent knows."""
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
    """What a bench keeps. `folders` are those that its processes write to, `verified` holds the fingerprints of what
    was found right."""

    target: Target
    workers: Workers
    compilers: Compilers
    observe: Callable[[Event], None]
    folders: Sequence[Path] = ()
    verified: set[str] = field(default_factory=set)

    def trial(self, job: JobDetails, built: tuple[Binary, ...] | Measurement) -> ReadyJob | Measurement:
        """What can be sent of a job; the measurement that says why nothing can, with the job's cost."""
        cost = Cost(compile=self.compilers.charge(job))
        if isinstance(built, Measurement):
            return replace(built, cost=cost)
        known = facts(built)
        bound = job.bound(known)
        if isinstance(bound, Rejection):
            refused = Measurement(Outcome.REJECTED, bound.reason, bound.detail, facts=known)
            return replace(refused, cost=cost, started=time.time())
        return ReadyJob(job.job, job.race, Candidate(built, job.job.problem, bound), cost.compile)

    def candidate(self, trial: ReadyJob) -> Candidate:
        """What is sent: not verified again if this very candidate was found right by this bench."""
        return replace(trial.candidate, verify=trial.fingerprint not in self.verified)

    def look_at_the_machine(self, measurement: Measurement) -> None:
        """Before a failure is handed out: raises UserError where everything fails because nothing can be written."""
        if measurement.outcome not in (Outcome.OK, Outcome.REJECTED, Outcome.WRONG_RESULT):
            look_for_room(self.folders)

    def ask(self, worker: Worker, request: MeasureRequest | InterleaveRequest, jobs: Sequence[Job]) -> Done | Death:
        """Wait for the answer; a worker that died is given up."""
        worker.ask(request)
        answer = worker.answer()
        if isinstance(answer, Death):
            self.workers.lost(answer, jobs[answer.index].key)
        return answer
