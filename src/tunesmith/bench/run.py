"""One pass over jobs: build ahead, measure one after the other, and find out who is to blame when a worker dies."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tunesmith.problems import OPERATIONS
from tunesmith.records import Measurement, Outcome, Problem

from .bench_tools import BenchTools, ReadyJob
from .details import JobDetails
from .events import Dispatched, JobMeasured
from .job import Batch, Job
from .machine_failures import WAITED
from .processes.messages import Done, MeasureRequest
from .processes.workers import TIMEOUT, Death, Worker, wait_until
from .timing import race_above

BROKE_THE_NEXT = "broke the next"
"""Reason of a candidate that ran, and after which another crashes that runs well alone."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A job as it was sent to a worker, and when."""

    trial: ReadyJob
    request: MeasureRequest
    since: float

    @property
    def job(self) -> Job:
        return self.trial.job

    def outcome(self, answer: Done | Death) -> Measurement:
        return self.trial.outcome(answer, 0, self.since)


def _by_problem(jobs: Sequence[JobDetails]) -> Iterator[JobDetails]:
    """Those of one problem in turn, whatever their races: the worker makes its inputs and references once."""
    by_problem: dict[Problem, list[JobDetails]] = {}
    for job in jobs:
        by_problem.setdefault(job.job.problem, []).append(job)
    return chain.from_iterable(by_problem.values())


class BatchRun:
    """The state of one `Bench.run`.

    A result that is good is held back until the next job on the same worker has its own: if that one dies and runs
    well alone, the held one may have broken the worker for it.
    """

    def __init__(self, tools: BenchTools, batch: Batch) -> None:
        self._tools, self._racing = tools, batch.racing
        jobs = [JobDetails(job, tools.target, number) for number, race in enumerate(batch.races) for job in race.jobs]
        self._waiting = deque(jobs if self._alternates else _by_problem(jobs))
        self._building: list[JobDetails] = []
        self._next: ReadyJob | None = None
        self._current: Sent | None = None
        self._held: tuple[Sent, Measurement] | None = None
        self._finished: deque[tuple[Job, Measurement]] = deque()
        self._best = {
            (number, problem): high for number, race in enumerate(batch.races) for problem, high in race.rivals.items()
        }

    def results(self) -> Iterator[tuple[Job, Measurement]]:
        try:
            while self._waiting or self._building or self._next or self._current:
                # A worker that waits comes before all else.
                self._collect()
                self._dispatch()
                self._request_builds()
                self._tools.compilers.pump()
                self._dispatch()
                # The next job is with the worker before the caller gets the last one's result and takes its time.
                yield from self._drain()
                self._sleep()
            self._release_held()
            yield from self._drain()
        finally:
            if self._current:
                self._tools.workers.drop()

    @property
    def _alternates(self) -> bool:
        """Compiling and timing take turns, since they would disturb each other."""
        return self._tools.target.shares_the_host

    def _drain(self) -> Iterator[tuple[Job, Measurement]]:
        while self._finished:
            job, measurement = self._finished.popleft()
            self._tools.look_at_the_machine(measurement)
            yield job, measurement

    def _request_builds(self) -> None:
        compilers, added = self._tools.compilers, 0
        if self._alternates and (self._building or self._current):
            return
        while self._waiting and (added < 8 * compilers.processes if self._alternates else self._has_room_to_build()):
            self._building.append(self._waiting.popleft())
            added += compilers.request(self._building[-1].modules)

    def _has_room_to_build(self) -> bool:
        return bool(self._waiting) and len(self._building) < 4 * self._tools.compilers.processes + 4

    def _dispatch(self) -> None:
        """Give the worker the next job; on a device of its own, have one more ready for when it is done."""
        while self._current is None and (trial := self._next or self._line_up()):
            self._next = None
            self._send(trial)
        if not self._alternates and self._next is None:
            self._next = self._line_up()

    def _line_up(self) -> ReadyJob | None:
        """Settle what cannot be measured; the first job that can be, with all that takes time done."""
        compilers = self._tools.compilers
        built = [(job, binaries) for job in self._building if (binaries := compilers.binaries(job)) is not None]
        # Asking may have added probes; whatever is finished by now is looked at in the next turn.
        compilers.hand_out()
        if self._alternates and compilers.busy:
            return None
        first: ReadyJob | None = None
        for job, binaries in built:
            if first is not None and not isinstance(binaries, Measurement):
                continue
            self._building.remove(job)
            made = self._tools.trial(job, binaries)
            if isinstance(made, Measurement):
                self._finish(job.job, made)
            else:
                first = made
        return first

    def _send(self, trial: ReadyJob) -> None:
        problem = trial.job.problem
        rival = self._best.get((trial.race, problem), math.inf) if self._racing else math.inf
        candidate = self._tools.candidate(trial)
        request = MeasureRequest(candidate, race_above(rival), self._ahead(problem) if candidate.verify else ())
        self._current = Sent(trial, request, time.time())
        self._tools.workers.current().ask(request)
        self._tools.observe(Dispatched(trial.job.key))

    def _ahead(self, problem: Problem) -> tuple[Problem, ...]:
        """What will be verified after this problem; nothing where making it ready would disturb what is timed."""
        if self._alternates:
            return ()
        coming = (job.job.problem for job in chain(self._building, self._waiting))
        after = next((other for other in coming if other != problem), None)
        return OPERATIONS[after.type.operation].checks(after) if after else ()

    def _collect(self) -> None:
        if self._current is None:
            return
        answer = self._tools.workers.current().poll()
        if answer is None:
            return
        sent, self._current = self._current, None
        if isinstance(answer, Death):
            answer = self._find_the_guilty(sent, answer)
        self._measured(sent, sent.outcome(answer))

    def _measured(self, sent: Sent, measurement: Measurement) -> None:
        self._release_held()
        if not measurement.ok:
            self._finish(sent.job, measurement)
            return
        assert measurement.estimate is not None
        key = (sent.trial.race, sent.job.problem)
        self._best[key] = min(self._best.get(key, math.inf), measurement.estimate.high)
        self._tools.verified.add(sent.trial.fingerprint)
        self._held = (sent, measurement)

    def _release_held(self) -> None:
        if self._held:
            sent, measurement = self._held
            self._held = None
            self._finish(sent.job, measurement)

    def _finish(self, job: Job, measurement: Measurement) -> None:
        self._tools.observe(JobMeasured(job.key, measurement))
        self._finished.append((job, measurement))

    def _sleep(self) -> None:
        if not self._alternates and self._has_room_to_build():
            return
        connections, deadline = list(self._tools.compilers.connections), self._tools.compilers.deadline
        if self._current:
            worker = self._tools.workers.current()
            connections.append(worker.connection)
            deadline = min(deadline, worker.deadline)
        if connections:
            wait_until(connections, deadline)

    def _find_the_guilty(self, suspect: Sent, death: Death) -> Done | Death:
        """The suspect runs again alone; if it lives, its predecessor is tried: alone, then with the suspect after it.

        Only a hang in a worker that had served nobody else is blamed at once: it costs the whole timeout to repeat,
        while a crash may be somebody else's doing (the system's, out of memory) and costs little.
        """
        workers = self._tools.workers
        alone_already = workers.current().served == 1
        workers.lost(death, suspect.job.key)
        if death.cause in (TIMEOUT, WAITED) and alone_already:
            return death
        again = self._ask(workers.fresh(), suspect)
        if self._held and isinstance(again, Done):
            predecessor, measurement = self._held
            trial = self._ask(workers.fresh(), predecessor)
            if isinstance(trial, Death):
                self._held = None
                self._finish(predecessor.job, predecessor.outcome(trial))
            elif isinstance(trial := self._ask(workers.current(), suspect), Death):
                self._held = None
                detail = f"another candidate, good when alone, ended with {trial.cause} when it ran after this one"
                broke = replace(measurement, outcome=Outcome.CRASH, reason=BROKE_THE_NEXT, detail=detail, estimate=None)
                self._finish(predecessor.job, broke)
        return again

    def _ask(self, worker: Worker, sent: Sent) -> Done | Death:
        return self._tools.ask(worker, sent.request, [sent.job])
