"""One pass over jobs: build ahead, measure one after the other, and find out who is to blame when a worker dies."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tunesmith.problems import OPERATIONS
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
class Ready:
    """A job that can be sent to a worker as it is."""

    group: int
    job: Job
    candidate: Candidate
    fingerprint: str
    compile_seconds: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A job as it was sent to a worker."""

    ready: Ready
    verify: bool
    race_above: float
    ahead: tuple[Problem, ...]
    sent: float

    @property
    def job(self) -> Job:
        return self.ready.job

    def request(self) -> Measure:
        return Measure(replace(self.ready.candidate, verify=self.verify), self.race_above, self.ahead)

    def outcome(self, answer: Done | Death) -> Measurement:
        """The measurement, with what only the parent knows."""
        measurement = from_death(answer, 0, self.sent) if isinstance(answer, Death) else answer.measurements[0]
        cost = replace(measurement.cost, compile=self.ready.compile_seconds)
        return replace(measurement, facts=facts(self.ready.candidate.binaries), cost=cost)


def _by_problem(cells: Sequence[tuple[int, Job]]) -> Iterator[tuple[int, Job]]:
    """Those of one problem in turn, whatever their groups: the worker makes its inputs and references once."""
    by_problem: dict[Problem, list[tuple[int, Job]]] = {}
    for group, job in cells:
        by_problem.setdefault(job.problem, []).append((group, job))
    return chain.from_iterable(by_problem.values())


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
        cells = [(group, job) for group, jobs in enumerate(groups) for job in jobs]
        self._waiting = deque(cells if self._alternates else _by_problem(cells))
        self._building: list[tuple[int, Job]] = []
        self._next: Ready | None = None
        self._current: Sent | None = None
        self._held: tuple[Sent, Measurement] | None = None
        self._finished: deque[tuple[Job, Measurement]] = deque()
        self._best = {(group, p.to_json()): high for group, known in enumerate(rivals) for p, high in known.items()}

    def results(self) -> Iterator[tuple[Job, Measurement]]:
        try:
            while self._waiting or self._building or self._next or self._current:
                # A worker that waits comes before all else.
                self._collect()
                self._dispatch()
                self._request_builds()
                self._shop.compilers.pump()
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
        """Give the worker the next job; on a device of its own, have one more ready for when it is done."""
        while self._current is None and (ready := self._next or self._line_up()):
            self._next = None
            self._send(ready)
        if not self._alternates and self._next is None:
            self._next = self._line_up()

    def _line_up(self) -> Ready | None:
        """Settle what cannot be built; the first job that can be measured, with all that takes time done."""
        compilers = self._shop.compilers
        built = [(cell, compilers.binaries(cell[1])) for cell in self._building]
        # Asking may have added probes; whatever is finished by now is looked at in the next turn.
        compilers.hand_out()
        if self._alternates and compilers.busy:
            return None
        ready: Ready | None = None
        for cell, binaries in built:
            if isinstance(binaries, Measurement):
                self._building.remove(cell)
                cost = replace(binaries.cost, compile=compilers.charge(cell[1]))
                self._finish(cell[1], replace(binaries, cost=cost))
            elif binaries is not None and ready is None:
                self._building.remove(cell)
                ready = self._bound(*cell, binaries)
        return ready

    def _bound(self, group: int, job: Job, binaries: tuple[Binary, ...]) -> Ready | None:
        """None for one that is rejected now that its facts are known; it is settled with that."""
        bound = job.bind(facts(binaries))
        seconds = self._shop.compilers.charge(job)
        if isinstance(bound, Rejection):
            rejected = Measurement(Outcome.REJECTED, bound.reason, bound.detail, facts=facts(binaries))
            cost = replace(rejected.cost, compile=seconds)
            self._finish(job, replace(rejected, cost=cost, started=time.time()))
            return None
        made = Candidate(binaries, job.problem, bound)
        return Ready(group, job, made, fingerprint(made), seconds)

    def _send(self, ready: Ready) -> None:
        key = (ready.group, ready.job.problem.to_json())
        race_above = self._best.get(key, math.inf) if self._racing else math.inf
        verify = ready.fingerprint not in self._shop.verified
        ahead = self._ahead(ready.job.problem) if verify else ()
        self._current = Sent(ready, verify, race_above, ahead, time.time())
        self._shop.workers.current().ask(self._current.request())
        self._shop.observe(Dispatched(ready.job.key))

    def _ahead(self, problem: Problem) -> tuple[Problem, ...]:
        """What will be verified after this problem; nothing where making it ready would disturb what is timed."""
        if self._alternates:
            return ()
        coming = (job.problem for _, job in chain(self._building, self._waiting) if job.problem != problem)
        after = next(coming, None)
        return OPERATIONS[after.type.operation].checks(after) if after else ()

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
        key = (sent.ready.group, sent.job.problem.to_json())
        self._best[key] = min(self._best.get(key, math.inf), measurement.estimate.high)
        self._shop.verified.add(sent.ready.fingerprint)
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
