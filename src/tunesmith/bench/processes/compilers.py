"""The parent's side of compiling: every module once, in processes that may crash or hang."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from tunesmith.records import Binary, CompiledFacts, Measurement, Module, Outcome, Target, UserError
from tunesmith.toolchains import BinaryCache

from ..details import JobDetails
from ..events import Event, ModuleCompiled
from ..job import Policy, launch_outcome
from ..machine_failures import COMPILER_KILLED, COMPILER_WAITED, killed
from .messages import Built, CompilerReady, Probe, Running, Start
from .process import UNWATCHED_SECONDS, Child, Spawner
from .workers import TIMEOUT

_DYING_SECONDS = 5.0
_STARTING_SECONDS = 120.0
CRASHED, TIMED_OUT = "compiler crashes", "compiler timed out"
"""Reasons. Earlier versions wrote "compiler crashed" whatever the machine had done, so that word is not used again."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What came of a module: its binary, or the measurement that says why there is none. `found`: it lay on disk."""

    module: Module
    made: Binary | Measurement
    found: bool = False


@dataclass(eq=False)
class _Task:
    """One thing to build, once for all jobs that need it."""

    key: str
    request: Module | Probe
    built: Built | None = None
    failure: Measurement | None = None
    tried: int = 0
    uncharged: float = 0.0
    found: bool = False


@dataclass(eq=False)
class _Seat:
    """A process of the pool and what it is at; `running` says that a launch of its task runs."""

    child: Child
    task: _Task | None = None
    deadline: float = 0.0
    served: int = 0
    started: bool = False
    running: bool = False


class Compilers:
    """Builds what jobs need. Request jobs, `pump` whenever there is time, and ask for what has become of a job.

    A process that crashed is replaced, and what it was at is tried once more in a fresh one before it is blamed: a
    program probed before it may have broken the process. What is in the cache already is not compiled.
    """

    def __init__(
        self, spawner: Spawner, target: Target, policy: Policy, observe: Callable[[Event], None], kept: BinaryCache
    ) -> None:
        self._spawner, self._target, self._policy, self._observe = spawner, target, policy, observe
        self._kept = kept
        self.processes = policy.compile_processes or len(os.sched_getaffinity(0))
        self._tasks: dict[str, _Task] = {}
        self._queue: deque[_Task] = deque()
        self._seats: list[_Seat] = []

    @property
    def busy(self) -> bool:
        return bool(self._queue) or any(seat.task for seat in self._seats)

    @property
    def connections(self) -> list[Connection]:
        return [seat.child.connection for seat in self._seats if seat.task]

    @property
    def deadline(self) -> float:
        return min((seat.deadline for seat in self._seats if seat.task), default=float("inf"))

    def request(self, modules: Iterable[tuple[str, Module]]) -> int:
        """See to it that modules, given with their digests, are compiled; how many tasks this adds."""
        before = len(self._queue)
        for digest, module in modules:
            self._add(digest, module)
        return len(self._queue) - before

    def compilation(self, digest: str, module: Module) -> Compilation | None:
        """What has become of a module that was requested; None when it is not decided yet."""
        task = self._tasks[digest]
        made = task.failure or (task.built and task.built.binary)
        return Compilation(module, made, task.found) if made else None

    def pump(self) -> None:
        """Collect what is finished, end what takes too long, and hand out what waits. Never blocks for long."""
        for seat in list(self._seats):
            if seat.task:
                self._collect(seat, seat.task)
        self.hand_out()

    def hand_out(self) -> None:
        """Give what waits to the processes that have nothing to do."""
        while self._queue and (seat := self._free_seat(self._queue[0])):
            allowed = self._policy.compile_timeout_seconds if seat.started else _STARTING_SECONDS
            seat.task, seat.deadline = self._queue.popleft(), time.monotonic() + allowed
            seat.child.send(seat.task.request)
            seat.child.watch()

    def binaries(self, job: JobDetails) -> tuple[Binary, ...] | Measurement | None:
        """The job's binaries, the measurement that says why there are none, or None when it is not decided yet."""
        tasks = [self._tasks[digest] for digest, _ in job.modules]
        failure = self._failure(tasks)
        if failure or not all(task.built for task in tasks):
            return failure
        binaries = tuple(task.built.binary for task in tasks if task.built and task.built.binary)
        if not self._target.shares_the_host:
            return binaries
        probe = self._add(job.probe_key, Probe(binaries, *job.probe))
        return self._failure([probe]) or (binaries if probe.built else None)

    def charge(self, job: JobDetails) -> float:
        """Seconds that building the job took, as far as no other job has been charged for it."""
        keys = [digest for digest, _ in job.modules]
        keys += [job.probe_key] if self._target.shares_the_host else []
        seconds = 0.0
        for task in (self._tasks[key] for key in keys if key in self._tasks):
            seconds, task.uncharged = seconds + task.uncharged, 0.0
        return seconds

    def close(self) -> None:
        for seat in self._seats:
            seat.child.end()
        self._seats.clear()

    def _add(self, key: str, request: Module | Probe) -> _Task:
        if key not in self._tasks:
            task = self._tasks[key] = _Task(key, request)
            if isinstance(request, Module) and (kept := self._kept.find(request)):
                task.found = True
                self._settle(task, Built(0.0, kept), Outcome.OK)
            else:
                self._queue.append(task)
        return self._tasks[key]

    def _failure(self, tasks: Sequence[_Task]) -> Measurement | None:
        return next((replace(task.failure, started=time.time()) for task in tasks if task.failure), None)

    def _free_seat(self, task: _Task) -> _Seat | None:
        """A seat for a task; a task that is tried again gets a fresh process."""
        for seat in self._seats:
            if seat.task is None and not (task.tried and seat.served):
                return seat
        idle = next((seat for seat in self._seats if seat.task is None), None)
        if len(self._seats) >= self.processes:
            if idle is None:
                return None
            self._leave(idle)
        seat = _Seat(self._spawner.start("tunesmith.bench.processes.compiler"))
        seat.child.send(Start(self._target, self._policy))
        self._seats.append(seat)
        return seat

    def _leave(self, seat: _Seat, patience: float = 0.0) -> str:
        self._seats.remove(seat)
        return seat.child.end(patience)

    def _collect(self, seat: _Seat, task: _Task) -> None:
        if seat.child.connection.poll():
            message = seat.child.receive()
            if isinstance(message, UserError):
                raise message
            if isinstance(message, CompilerReady):
                seat.started = True
                seat.deadline = time.monotonic() + self._policy.compile_timeout_seconds
            elif isinstance(message, Running):
                seat.running = message.now
                seat.deadline = time.monotonic() + self._allowed(seat)
            elif isinstance(message, Built):
                self._finished(seat, task, message)
            else:
                self._died(seat, task, self._leave(seat, _DYING_SECONDS))
        elif (late := time.monotonic() - seat.deadline) > 0:
            seconds = self._allowed(seat)
            if late > UNWATCHED_SECONDS:
                seat.deadline = time.monotonic() + seconds
                return
            waited = seat.child.kept_waiting(seconds)
            self._leave(seat)
            self._died(seat, task, "", waited)

    def _allowed(self, seat: _Seat) -> float:
        """Seconds for what it does: a kernel that runs has those of a launch."""
        return self._policy.timeout_seconds if seat.running else self._policy.compile_timeout_seconds

    def _finished(self, seat: _Seat, task: _Task, built: Built) -> None:
        seat.task, seat.served = None, seat.served + 1
        if built.poisoned:
            self._leave(seat)
        if isinstance(task.request, Probe):
            self._settle(task, built, launch_outcome(built.reason))
            return
        if built.binary:
            self._kept.keep(task.request, built.binary)
        self._settle(task, built, Outcome.COMPILE_ERROR)

    def _died(self, seat: _Seat, task: _Task, cause: str, waited: bool = False) -> None:
        """A crash is tried again in a fresh process, a silence only if the process had done something before."""
        task.tried += 1
        if task.tried == 1 and (cause or seat.served):
            self._queue.appendleft(task)
            return
        seconds = self._allowed(seat)
        words = "\n".join(filter(None, [cause, seat.child.last_words()]))
        what = "the first launch of a small problem" if isinstance(task.request, Probe) else "compiling"
        if not cause:
            reason = COMPILER_WAITED if waited else TIMEOUT if seat.running else TIMED_OUT
            self._settle(task, Built(seconds, None, reason, f"{what} took more than {seconds:g} s"), Outcome.TIMEOUT)
        elif isinstance(task.request, Probe):
            self._settle(task, Built(0.0, None, cause, f"at {what}\n{words}"), Outcome.CRASH)
        else:
            reason = COMPILER_KILLED if killed(cause) else CRASHED
            self._settle(task, Built(0.0, None, reason, words), Outcome.COMPILE_ERROR)

    def _settle(self, task: _Task, built: Built, failed: Outcome) -> None:
        task.built, task.uncharged = built, built.seconds
        task.failure = Measurement(failed, built.reason, built.detail) if built.reason else None
        waiting = sum(other.built is None for other in self._tasks.values())
        self._observe(ModuleCompiled(task.key, built.seconds, built.reason, waiting))


def facts(binaries: Sequence[Binary]) -> tuple[CompiledFacts, ...]:
    """What the compiler told of every entry, in the order of the modules."""
    return tuple(fact for binary in binaries for fact in binary.facts)
