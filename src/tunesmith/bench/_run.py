"""One pass over jobs: build ahead, measure one after the other, and find out who is to blame when a worker dies."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.records import Binary, Measurement, Outcome, Problem, Rejection, Target

from ._compilers import Compilers, facts
from ._events import Dispatched, Event, Measured
from ._job import Bound, Job, Policy
from ._messages import Candidate, Done, Measure
from ._workers import TIMEOUT, Death, Worker, Workers, wait_until

BROKE_THE_NEXT = "broke the next"
"""Reason of a candidate that ran, and after which another crashes that runs well alone."""


@dataclass
class Shop:
    """What a bench keeps between passes. `verified` names the candidates that were found right."""

    target: Target
    policy: Policy
    workers: Workers
    compilers: Compilers
    observe: Callable[[Event], None]
    verified: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Sent:
    """A job as it was sent to a worker."""

    group: int
    job: Job
    candidate: Candidate
    race_above: float
    compile_seconds: float
    sent: float

    def request(self) -> Measure:
        return Measure(self.candidate, self.race_above)

    def outcome(self, answer: Done | Death) -> Measurement:
        """The measurement, with what only the parent knows."""
        measurement = from_death(answer, 0, self.sent) if isinstance(answer, Death) else answer.measurements[0]
        cost = replace(measurement.cost, compile=self.compile_seconds)
        return replace(measurement, facts=facts(self.candidate.binaries), cost=cost)


def candidate(job: Job, binaries: tuple[Binary, ...], bound: Bound, verified: set[str]) -> Candidate:
    """What is sent of a job: not verified again if this very candidate was found right by this bench."""
    made = Candidate(binaries, job.problem, bound)
    return replace(made, verify=fingerprint(made) not in verified)


def fingerprint(candidate: Candidate) -> str:
    """Hash of the programs, the plans and the problems that they were checked on."""
    parts = [binary.module for binary in candidate.binaries]
    parts += [candidate.problem.to_json(), candidate.bound.timed.digest()]
    parts += [text for problem, plan in candidate.bound.checks for text in (problem.to_json(), plan.digest())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def from_death(death: Death, index: int, started: float) -> Measurement:
    """The measurement of a candidate that took its worker with it."""
    if death.done is not None:
        return death.done.measurements[index]
    return Measurement(death.outcome, death.cause, death.detail, started=started)


class Run:
    """The state of one `Bench.run`.

    A result that is good is held back until the next job on the same worker has its own: if that one dies and runs
    well alone, the held one may have broken the worker for it.
    """

    def __init__(
        self, shop: Shop, groups: Sequence[Sequence[Job]], racing: bool, rivals: Sequence[Mapping[Problem, float]]
    ) -> None:
        self._shop, self._racing = shop, racing
        self._waiting = deque((group, job) for group, jobs in enumerate(groups) for job in jobs)
        self._building: list[tuple[int, Job]] = []
        self._current: Sent | None = None
        self._held: tuple[Sent, Measurement] | None = None
        self._finished: deque[tuple[Job, Measurement]] = deque()
        self._best = {(group, p.to_json()): high for group, known in enumerate(rivals) for p, high in known.items()}

    def results(self) -> Iterator[tuple[Job, Measurement]]:
        try:
            while self._waiting or self._building or self._current:
                self._request_builds()
                self._shop.compilers.pump()
                self._collect()
                self._dispatch()
                # The next job is with the worker before the caller gets the last one's result and takes its time.
                yield from self._drain()
                self._sleep()
            self._release_held()
            yield from self._drain()
        finally:
            if self._current:
                self._shop.workers.drop()

    @property
    def _alternates(self) -> bool:
        """Compiling and timing take turns, since they would disturb each other."""
        return self._shop.target.shares_the_host

    def _drain(self) -> Iterator[tuple[Job, Measurement]]:
        while self._finished:
            yield self._finished.popleft()

    def _request_builds(self) -> None:
        compilers = self._shop.compilers
        if self._alternates:
            if self._building or self._current:
                return
            added, enough = 0, 8 * compilers.processes
            while self._waiting and added < enough:
                self._building.append(self._waiting.popleft())
                added += compilers.request(self._building[-1][1])
            return
        while self._has_room_to_build():
            self._building.append(self._waiting.popleft())
            compilers.request(self._building[-1][1])

    def _has_room_to_build(self) -> bool:
        return bool(self._waiting) and len(self._building) < 4 * self._shop.compilers.processes + 4

    def _dispatch(self) -> None:
        """Settle what cannot be built, and give the worker the first job that can be measured."""
        compilers = self._shop.compilers
        built = [(cell, compilers.binaries(cell[1])) for cell in self._building]
        # Asking may have added probes; whatever is finished by now is looked at in the next turn.
        compilers.hand_out()
        if self._alternates and compilers.busy:
            return
        for cell, binaries in built:
            if isinstance(binaries, Measurement):
                self._building.remove(cell)
                cost = replace(binaries.cost, compile=compilers.charge(cell[1]))
                self._finish(cell[1], replace(binaries, cost=cost))
            elif binaries is not None and self._current is None:
                self._building.remove(cell)
                self._send(*cell, binaries)

    def _send(self, group: int, job: Job, binaries: tuple[Binary, ...]) -> None:
        bound = job.bind(facts(binaries))
        seconds = self._shop.compilers.charge(job)
        if isinstance(bound, Rejection):
            rejected = Measurement(Outcome.REJECTED, bound.reason, bound.detail, facts=facts(binaries))
            cost = replace(rejected.cost, compile=seconds)
            self._finish(job, replace(rejected, cost=cost, started=time.time()))
            return
        race_above = self._best.get((group, job.problem.to_json()), math.inf) if self._racing else math.inf
        made = candidate(job, binaries, bound, self._shop.verified)
        self._current = Sent(group, job, made, race_above, seconds, time.time())
        self._shop.observe(Dispatched(job.key))
        self._shop.workers.current().ask(self._current.request())

    def _collect(self) -> None:
        if self._current is None:
            return
        answer = self._shop.workers.current().poll()
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
        key = (sent.group, sent.job.problem.to_json())
        self._best[key] = min(self._best.get(key, math.inf), measurement.estimate.high)
        self._shop.verified.add(fingerprint(sent.candidate))
        self._held = (sent, measurement)

    def _release_held(self) -> None:
        if self._held:
            sent, measurement = self._held
            self._held = None
            self._finish(sent.job, measurement)

    def _finish(self, job: Job, measurement: Measurement) -> None:
        self._shop.observe(Measured(job.key, measurement))
        self._finished.append((job, measurement))

    def _sleep(self) -> None:
        if not self._alternates and self._has_room_to_build():
            return
        connections, deadline = list(self._shop.compilers.connections), self._shop.compilers.deadline
        if self._current:
            worker = self._shop.workers.current()
            connections.append(worker.connection)
            deadline = min(deadline, worker.deadline)
        if connections:
            wait_until(connections, deadline)

    def _find_the_guilty(self, suspect: Sent, death: Death) -> Done | Death:
        """The suspect runs again alone; if it lives, its predecessor is tried: alone, then with the suspect after it.

        Only a hang in a worker that had served nobody else is blamed at once: it costs the whole timeout to repeat,
        while a crash may be somebody else's doing (the system's, out of memory) and costs little.
        """
        workers = self._shop.workers
        alone_already = workers.current().served == 1
        workers.lost(death, suspect.job.key)
        if death.cause == TIMEOUT and alone_already:
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
        worker.ask(sent.request())
        answer = worker.answer()
        if isinstance(answer, Death):
            self._shop.workers.lost(answer, sent.job.key)
        return answer
