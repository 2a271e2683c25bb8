"""One pass over jobs: build ahead, measure them in turn, and find out which job is to blame when a worker dies."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
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
from .processes.worker_handle import TIMEOUT, Death, Worker, wait_until
from .timing import lost_above

PROBLEMS_AHEAD = 3
"""For how many problems the worker makes inputs and references while it measures another one."""
BROKE_THE_NEXT = "broke the next"
"""Reason of a candidate that ran, but after which another candidate crashes, which runs well alone."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A job that was sent to a worker: its request, and the time `since` which the worker has it. `verified` is the
    answer of an earlier request that verified the job, if there was one."""

    ready_job: ReadyJob
    request: MeasureRequest
    since: float
    verified: Measurement | None = None

    @property
    def job(self) -> Job:
        return self.ready_job.job

    def outcome(self, answer: Done | Death) -> Measurement:
        measurement = self.ready_job.outcome(answer, 0, self.since)
        if self.verified is None:
            return measurement
        cost = replace(measurement.cost, verify=measurement.cost.verify + self.verified.cost.verify)
        return replace(measurement, cost=cost, detail=measurement.detail or self.verified.detail)


class BatchRun:
    """The state of one `Bench.run`.

    A good result is held back until the next job on the same worker has its own result. If the next job dies, but runs
    well alone, the held job may have broken the worker.
    """

    def __init__(self, tools: BenchTools, batch: Batch) -> None:
        self._tools, self._racing = tools, batch.racing
        jobs = [JobDetails(job, tools.target, number) for number, race in enumerate(batch.races) for job in race.jobs]
        self._waiting = deque(self._in_order(jobs))
        self._problems = list(dict.fromkeys((*(job.job.problem for job in self._waiting), *batch.ahead)))
        self._position = {problem: position for position, problem in enumerate(self._problems)}
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
            self._begin()
            while self._is_at_work:
                # An idle worker comes first.
                self._collect()
                self._dispatch()
                self._request_builds()
                self._tools.compilers.pump()
                self._dispatch()
                # The worker gets its next job before the caller gets a result, since the caller may take its time.
                yield from self._drain()
                if not self._has_room_to_build():
                    self._sleep()
            self._release_held()
            yield from self._drain()
        finally:
            if self._current:
                self._tools.workers.drop()

    def _begin(self) -> None:
        """Begin to compile, and to open the device meanwhile: nothing is timed yet that this would disturb."""
        if self._waiting:
            self._request_builds()
            self._tools.compilers.hand_out()
            self._tools.workers.begin()

    @property
    def _is_at_work(self) -> bool:
        return bool(self._waiting or self._building or self._next or self._current)

    def _in_order(self, jobs: Sequence[JobDetails]) -> Iterable[JobDetails]:
        """The jobs grouped by problem, whatever their races, so that the worker makes inputs and references once."""
        by_problem: dict[Problem, list[JobDetails]] = {}
        for job in jobs:
            by_problem.setdefault(job.job.problem, []).append(job)
        return chain.from_iterable(by_problem.values())

    def _drain(self) -> Iterator[tuple[Job, Measurement]]:
        while self._finished:
            job, measurement = self._finished.popleft()
            self._tools.check_folders(measurement)
            yield job, measurement

    def _request_builds(self) -> None:
        while self._has_room_to_build():
            self._build_next()

    def _build_next(self) -> int:
        """Begin to build the next job; returns how many tasks this adds."""
        self._building.append(self._waiting.popleft())
        return self._tools.request(self._building[-1])

    def _has_room_to_build(self) -> bool:
        return bool(self._waiting) and len(self._building) < 4 * self._tools.compilers.processes + 4

    def _dispatch(self) -> None:
        """Give the worker the next job, and keep the job after it ready."""
        while self._current is None and (ready_job := self._next or self._line_up()):
            self._next = None
            self._send(ready_job)
        if self._next is None:
            self._next = self._line_up()

    def _line_up(self) -> ReadyJob | None:
        """Finish the jobs that cannot be measured, and return the first that can; it is compiled and ready to send."""
        built = [(job, binaries) for job in self._building if (binaries := self._tools.binaries(job)) is not None]
        # `binaries` may have added probes. What they have finished is looked at in the next turn.
        self._tools.compilers.hand_out()
        first: ReadyJob | None = None
        for job, binaries in built:
            if first is not None and not isinstance(binaries, Measurement):
                continue
            self._building.remove(job)
            result = self._tools.ready_job(job, binaries)
            if isinstance(result, Measurement):
                self._finish(job.job, result)
            else:
                first = result
        return first

    def _send(self, ready_job: ReadyJob, verified: Measurement | None = None, times: bool = True) -> None:
        """Let the worker measure a job. `verified` says how it was verified before; without `times` it is verified
        only."""
        problem = ready_job.job.problem
        rival = self._best.get((ready_job.race, problem), math.inf)
        race_limit, rival = (lost_above(rival), math.inf) if self._racing else (math.inf, rival)
        candidate = self._tools.candidate(ready_job)
        ahead = self._ahead(problem) if candidate.verify else ()
        request = MeasureRequest(candidate, race_limit, rival, ahead, times)
        self._current = Sent(ready_job, request, time.time(), verified)
        self._tools.workers.current().ask(request)
        if times:
            self._tools.observe(Dispatched(ready_job.job.key, ready_job.job.solution))

    def _ahead(self, problem: Problem) -> tuple[Problem, ...]:
        """The checks to prepare for the problems after this one, of which some take longer than this one's jobs. First
        come the problems whose jobs were overtaken, since they are still compiled."""
        here = self._position[problem]
        compiling = (job.job.problem for job in self._building)
        overtaken = dict.fromkeys(other for other in compiling if self._position[other] < here)
        following = (*overtaken, *self._problems[here + 1 : here + 1 + PROBLEMS_AHEAD])[:PROBLEMS_AHEAD]
        checks = tuple(check for other in following for check in OPERATIONS[other.type.operation].checks(other))
        self._tools.share(checks)
        return checks

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
        if measurement.estimate is not None:
            key = (sent.ready_job.race, sent.job.problem)
            self._best[key] = min(self._best.get(key, math.inf), measurement.estimate.high)
        self._tools.verified.add(sent.ready_job.fingerprint)
        self._held = (sent, measurement)

    def _release_held(self) -> None:
        if self._held:
            sent, measurement = self._held
            self._held = None
            self._passed(sent, measurement)

    def _passed(self, sent: Sent, measurement: Measurement) -> None:
        """Take a good result, after which the next job ran as well."""
        self._finish(sent.job, measurement)

    def _finish(self, job: Job, measurement: Measurement) -> None:
        self._tools.observe(JobMeasured(job.key, measurement))
        self._finished.append((job, measurement))

    def _sleep(self) -> None:
        """Wait for a process to answer."""
        connections, deadline = list(self._tools.compilers.connections), self._tools.compilers.deadline
        if self._current:
            worker = self._tools.workers.current()
            connections.append(worker.connection)
            deadline = min(deadline, worker.deadline)
        if connections:
            wait_until(connections, deadline)

    def _find_the_guilty(self, suspect: Sent, death: Death) -> Done | Death:
        """Run the suspect again alone. If it survives, run its predecessor alone, then the suspect after it.

        Only a timeout in a worker that had no other job is blamed at once, since to repeat it costs the whole timeout.
        A crash costs little to repeat, and the system may have caused it (out of memory).
        """
        workers = self._tools.workers
        alone_already = workers.current().served == 1
        workers.lost(death, suspect.job.key)
        if death.cause in (TIMEOUT, WAITED) and alone_already:
            return death
        again = self._ask(workers.fresh(), suspect)
        if self._held and isinstance(again, Done):
            predecessor, measurement = self._held
            answer = self._ask(workers.fresh(), predecessor)
            if isinstance(answer, Death):
                self._held = None
                self._finish(predecessor.job, predecessor.outcome(answer))
            elif isinstance(answer := self._ask(workers.current(), suspect), Death):
                self._held = None
                detail = f"another candidate, good when alone, ended with {answer.cause} when it ran after this one"
                broke = replace(measurement, outcome=Outcome.CRASH, reason=BROKE_THE_NEXT, detail=detail, estimate=None)
                self._finish(predecessor.job, broke)
        return again

    def _ask(self, worker: Worker, sent: Sent) -> Done | Death:
        return self._tools.ask(worker, sent.request, [sent.job])
