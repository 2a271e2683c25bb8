"""The workers of one bench: the current one, and for a GPU its standby."""

from __future__ import annotations

from collections.abc import Callable

from tunesmith.records import Problem, Target, UserError

from ..events import Event, WorkerLost
from ..job import Policy
from .messages import Done, PrepareRequest
from .process import Spawner
from .standby import standbys
from .worker_handle import Death, Worker


class Workers:
    """The current worker and, for a GPU, a standby that has the device open already, since opening takes seconds.

    If the device is the host's CPU there is no standby, since its start would disturb the timing. If the spawner keeps
    workers, the standby then waits for the next run of the program.
    """

    def __init__(self, spawner: Spawner, target: Target, policy: Policy, observe: Callable[[Event], None]) -> None:
        self._spawner, self._target, self._policy, self._observe = spawner, target, policy, observe
        self._current: Worker | None = None
        self._standby: Worker | None = None

    def current(self) -> Worker:
        """The current worker, with its device open. Starts a worker if there is none."""
        if self._current is None:
            self._current, self._standby = self._standby or self._start(), None
            self._await_opened(self._current)
            self._spawner.await_ends()
            if not self._target.shares_the_host:
                self._standby = self._start()
        return self._current

    def begin(self) -> None:
        """Start a worker that opens the device meanwhile, unless there is one."""
        if self._current is None and self._standby is None:
            self._standby = self._start()

    @property
    def has_only_begun(self) -> bool:
        """Whether there is no current worker, and one was begun that will be."""
        return self._current is None and self._standby is not None

    def prepare(self, problems: tuple[Problem, ...]) -> None:
        """Let the worker that was begun prepare problems, while their candidates are compiled."""
        if self._standby is not None:
            self._standby.prepare(PrepareRequest(problems))

    def fresh(self) -> Worker:
        """A worker that has had no request yet."""
        if self._current is not None and self._current.served:
            self.drop()
        return self.current()

    def drop(self) -> None:
        """End the current worker, which may be dead already."""
        if self._current is not None:
            self._current.end()
            self._current = None

    def lost(self, death: Death, key: str) -> None:
        """Report a death. The standby becomes the current worker at the next request."""
        if self._current is not None:
            self._observe(WorkerLost(self._current.pid, death.cause, death.stage, key))
        self.drop()

    def close(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None and standby.is_fresh and self._spawner.keeps_workers:
            standbys().keep(standby, self._target, self._policy)
            standby = None
        # Both are killed before one is waited for: a driver takes its time to leave the device.
        ending = [worker for worker in (self._current, standby) if worker is not None]
        for worker in ending:
            worker.kill()
        self._current = None
        self._spawner.end_all([worker.end for worker in ending])

    def _start(self) -> Worker:
        kept = standbys().take(self._target, self._policy) if self._spawner.keeps_workers else None
        return kept or Worker(self._spawner.start("tunesmith.bench.processes.worker"), self._target, self._policy)

    def _await_opened(self, worker: Worker) -> None:
        if worker.is_open or isinstance(answer := worker.answer(), Done):
            return
        self.drop()
        what = f"opening the device ended with {answer.cause}: {answer.detail}"
        raise UserError(self._target.name, what, "choose another device; `tunesmith devices` tries each one out")
