"""The parent's side of compiling: every module once, in processes that may crash or hang."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from tunesmith.devices import COMPILING
from tunesmith.records import Binary, CompiledFacts, Measurement, Module, Outcome, Target, UserError
from tunesmith.toolchains import BinaryCache

from ..details import JobDetails
from ..events import Event, ModuleCompiled
from ..job import Policy, launch_outcome
from ..machine_failures import COMPILER_KILLED, COMPILER_WAITED, ended_from_outside
from .messages import Built, CompilerReady, Probe, Running, Start
from .process import UNWATCHED_SECONDS, Child, Spawner
from .worker_handle import TIMEOUT

_DYING_SECONDS = 5.0
_STARTING_SECONDS = 120.0
CRASHED, TIMED_OUT = "compiler crashes", "compiler timed out"
"""Reasons. Earlier versions wrote "compiler crashed" for the machine's failures too, so that text is not used again."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """A module's binary, or the measurement that says why there is none. `found`: the binary was in the disk cache.
    Making it took `seconds`."""

    module: Module
    made: Binary | Measurement
    found: bool = False
    seconds: float = 0.0


@dataclass(eq=False)
class _Task:
    """A module to compile or a probe to launch, once for all jobs that need it. `built_by` are the processes that
    compiled it, or a probe's modules: they need not load them."""

    key: str
    request: Module | Probe
    built_by: tuple[int, ...] = ()
    built: Built | None = None
    failure: Measurement | None = None
    tried: int = 0
    uncharged: float = 0.0
    found: bool = False


@dataclass(eq=False)
class _PoolProcess:
    """A process of the pool and its task. `running` says that a launch of the task runs."""

    child: Child
    task: _Task | None = None
    deadline: float = 0.0
    served: int = 0
    started: bool = False
    running: bool = False

    def allow(self, seconds: float) -> None:
        """Give the process so many seconds from now to answer. What it waited for a processor before is forgotten."""
        self.deadline = time.monotonic() + seconds
        self.child.watch()


class Compilers:
    """Builds what jobs need. Call `request`, `pump` whenever there is time, and ask `binaries` for a job's result.

    A process that crashed is replaced. Its task is tried once more in a fresh process before the task is blamed: a
    program that was probed before may have broken the process. A module that is in the cache is not compiled.
    """

    def __init__(
        self, spawner: Spawner, target: Target, policy: Policy, observe: Callable[[Event], None], cache: BinaryCache
    ) -> None:
        self._spawner, self._target, self._policy, self._observe = spawner, target, policy, observe
        self._cache = cache
        self.processes = policy.compile_processes or len(os.sched_getaffinity(0))
        self._tasks: dict[str, _Task] = {}
        self._queue: deque[_Task] = deque()
        self._pool: list[_PoolProcess] = []

    @property
    def busy(self) -> bool:
        return bool(self._queue) or any(process.task for process in self._pool)

    @property
    def connections(self) -> list[Connection]:
        return [process.child.connection for process in self._pool if process.task]

    @property
    def deadline(self) -> float:
        return min((process.deadline for process in self._pool if process.task), default=float("inf"))

    def request(self, modules: Iterable[tuple[str, Module]]) -> int:
        """Queue modules, which come with their digests; returns how many tasks this adds."""
        before = len(self._queue)
        for digest, module in modules:
            self._add(digest, module)
        return len(self._queue) - before

    def compilation(self, digest: str, module: Module) -> Compilation | None:
        """The result for a module that was requested; None if it is not decided yet."""
        task = self._tasks[digest]
        result = task.failure or (task.built and task.built.binary)
        return Compilation(module, result, task.found, task.built.seconds if task.built else 0.0) if result else None

    def supply(self, compilation: Compilation, is_charged: bool) -> None:
        """Take what was compiled elsewhere, unless the module is known here. `is_charged`: the next job that needs the
        module is charged for it, also if another job that needed it came first."""
        digest, made = compilation.module.digest(), compilation.made
        charge = compilation.seconds if is_charged else 0.0
        if digest in self._tasks:
            self._tasks[digest].uncharged += charge
            return
        task = self._tasks[digest] = _Task(digest, compilation.module, found=compilation.found)
        if isinstance(made, Measurement):
            task.built, task.failure = Built(compilation.seconds, None, made.reason, made.detail), made
        else:
            task.built = Built(compilation.seconds, made)
        task.uncharged = charge

    def pump(self) -> None:
        """Collect finished tasks, end those that take too long, and hand out waiting ones. Never blocks for long."""
        for process in list(self._pool):
            if process.task:
                self._collect(process, process.task)
        self.hand_out()

    def hand_out(self) -> None:
        """Give waiting tasks to idle processes."""
        while self._queue and (process := self._free_process(self._queue[0])):
            seconds = self._policy.compile_timeout_seconds if process.started else _STARTING_SECONDS
            process.task = self._next_task(process)
            process.child.send(process.task.request)
            process.allow(seconds)

    def binaries(self, job: JobDetails) -> tuple[Binary, ...] | Measurement | None:
        """The job's binaries; the measurement that says why there are none; None if it is not decided yet."""
        tasks = [self._tasks[digest] for digest, _ in job.modules]
        failure = self._failure(tasks)
        if failure or not all(task.built for task in tasks):
            return failure
        binaries = tuple(task.built.binary for task in tasks if task.built and task.built.binary)
        if not self._target.shares_the_host:
            return binaries
        built_by = tuple(pid for task in tasks for pid in task.built_by)
        probes = {
            probe: self._add(probe.key, Probe(binaries, probe.problem, probe.plan), built_by) for probe in job.probes
        }
        failure = self._failure([task for probe, task in probes.items() if probe.is_small])
        return failure or (binaries if all(task.built for task in probes.values()) else None)

    def charge(self, job: JobDetails) -> float:
        """Seconds that building the job took, without those that another job was charged for already."""
        keys = [digest for digest, _ in job.modules]
        keys += [probe.key for probe in job.probes] if self._target.shares_the_host else []
        seconds = 0.0
        for task in (self._tasks[key] for key in keys if key in self._tasks):
            seconds, task.uncharged = seconds + task.uncharged, 0.0
        return seconds

    def close(self) -> None:
        for process in self._pool:
            process.child.kill()
        self._spawner.end_all([process.child.end for process in self._pool])
        self._pool.clear()

    def _add(self, key: str, request: Module | Probe, built_by: tuple[int, ...] = ()) -> _Task:
        if key not in self._tasks:
            task = self._tasks[key] = _Task(key, request, built_by)
            if isinstance(request, Module) and (binary := self._cache.find(request)):
                task.found = True
                self._settle(task, Built(0.0, binary), Outcome.OK)
            else:
                self._queue.append(task)
        return self._tasks[key]

    def _failure(self, tasks: Sequence[_Task]) -> Measurement | None:
        return next((replace(task.failure, started=time.time()) for task in tasks if task.failure), None)

    def _next_task(self, process: _PoolProcess) -> _Task:
        """The first waiting task whose modules the process compiled, or else the first of all. Tasks that are tried
        again are not passed over."""
        first = self._queue[0]
        own = (task for task in self._queue if process.child.pid in task.built_by)
        task = first if first.tried else next(own, first)
        self._queue.remove(task)
        return task

    def _free_process(self, task: _Task) -> _PoolProcess | None:
        """An idle process for a task, started if need be. A task that is tried again gets a fresh process."""
        for process in self._pool:
            if process.task is None and not (task.tried and process.served):
                return process
        idle = next((process for process in self._pool if process.task is None), None)
        if len(self._pool) >= self.processes:
            if idle is None:
                return None
            self._end(idle)
        process = _PoolProcess(self._spawner.start("tunesmith.bench.processes.compiler", COMPILING))
        process.child.send(Start(self._target, self._policy))
        self._pool.append(process)
        return process

    def _end(self, process: _PoolProcess, patience: float = 0.0) -> str:
        self._pool.remove(process)
        return process.child.end(patience)

    def _collect(self, process: _PoolProcess, task: _Task) -> None:
        if process.child.has_message:
            message = process.child.receive()
            if isinstance(message, UserError):
                raise message
            if isinstance(message, CompilerReady):
                process.started = True
                process.allow(self._policy.compile_timeout_seconds)
            elif isinstance(message, Running):
                process.running = message.now
                process.allow(self._timeout(process))
            elif isinstance(message, Built):
                self._finished(process, task, message)
            else:
                self._died(process, task, self._end(process, _DYING_SECONDS))
        elif (late := time.monotonic() - process.deadline) > 0:
            seconds = self._timeout(process)
            if late > UNWATCHED_SECONDS:
                process.allow(seconds)
                return
            waited = process.child.kept_waiting(seconds)
            self._end(process)
            self._died(process, task, "", waited)

    def _timeout(self, process: _PoolProcess) -> float:
        """The timeout of a process's task: that of a launch while a kernel runs, else that of compiling."""
        return self._policy.timeout_seconds if process.running else self._policy.compile_timeout_seconds

    def _finished(self, process: _PoolProcess, task: _Task, built: Built) -> None:
        process.task, process.served = None, process.served + 1
        task.built_by = (process.child.pid,)
        if built.poisoned:
            self._end(process)
        if isinstance(task.request, Probe):
            self._settle(task, built, launch_outcome(built.reason))
            return
        if built.binary:
            self._cache.keep(task.request, built.binary)
        self._settle(task, built, Outcome.COMPILE_ERROR)

    def _died(self, process: _PoolProcess, task: _Task, cause: str, waited: bool = False) -> None:
        """Settle a task whose process crashed or timed out, or try it again in a fresh process.

        A crash is tried again. A timeout is tried again only if the process had finished another task before.
        """
        task.tried += 1
        if task.tried == 1 and (cause or process.served):
            self._queue.appendleft(task)
            return
        seconds = self._timeout(process)
        output = "\n".join(filter(None, [cause, process.child.last_words()]))
        activity = "the first launch" if isinstance(task.request, Probe) else "compiling"
        if not cause:
            reason = COMPILER_WAITED if waited else TIMEOUT if process.running else TIMED_OUT
            self._settle(
                task, Built(seconds, None, reason, f"{activity} took more than {seconds:g} s"), Outcome.TIMEOUT
            )
        elif isinstance(task.request, Probe):
            self._settle(task, Built(0.0, None, cause, f"at {activity}\n{output}"), Outcome.CRASH)
        else:
            reason = COMPILER_KILLED if ended_from_outside(cause) else CRASHED
            self._settle(task, Built(0.0, None, reason, output), Outcome.COMPILE_ERROR)

    def _settle(self, task: _Task, built: Built, failed: Outcome) -> None:
        task.built, task.uncharged = built, built.seconds
        task.failure = Measurement(failed, built.reason, built.detail) if built.reason else None
        waiting = sum(other.built is None for other in self._tasks.values())
        self._observe(ModuleCompiled(task.key, built.seconds, built.reason, waiting))


def facts(binaries: Sequence[Binary]) -> tuple[CompiledFacts, ...]:
    """The compiler's facts about every entry, in the order of the modules."""
    return tuple(fact for binary in binaries for fact in binary.facts)
