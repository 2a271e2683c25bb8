"""A worker that waits between two runs of one program, with its device open, so that the next run need not open it.

Only a worker that has had no request waits: another holds arrays of its run. It ends `IDLE_SECONDS` after its run, or
with the program.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from tunesmith.records import Target

from ..job import Policy
from .worker_handle import Worker

IDLE_SECONDS = 15.0
"""A waiting worker holds some hundred megabytes of the device's memory, so it does not wait long."""


@dataclass(frozen=True)
class WaitingWorker:
    """A worker, and what it was started for."""

    worker: Worker
    target: Target
    policy: Policy
    timer: threading.Timer

    def fits(self, target: Target, policy: Policy) -> bool:
        return (self.target, self.policy, self.worker.variables) == (target, policy, dict(os.environ))

    def end(self) -> None:
        self.timer.cancel()
        self.worker.end()


class Standbys:
    """The waiting worker of one process, if there is one. Threads may share it; a fork of the process may not."""

    def __init__(self) -> None:
        self._owner, self._lock = os.getpid(), threading.Lock()
        self._waiting: WaitingWorker | None = None

    @property
    def is_mine(self) -> bool:
        """Whether this process made it, and no fork of another process did."""
        return self._owner == os.getpid()

    def keep(self, worker: Worker, target: Target, policy: Policy) -> None:
        """Let a worker wait that has had no request. One that waited before ends."""
        timer = threading.Timer(IDLE_SECONDS, self._expire, (worker,))
        timer.daemon = True
        if (before := self._swap(WaitingWorker(worker, target, policy, timer))) is not None:
            before.end()
        timer.start()

    def take(self, target: Target, policy: Policy) -> Worker | None:
        """The waiting worker, which is the caller's from now on; None if there is none that lives and fits."""
        waiting = self._swap(None)
        if waiting is None:
            return None
        waiting.timer.cancel()
        if waiting.fits(target, policy) and waiting.worker.may_be_taken:
            return waiting.worker
        waiting.end()
        return None

    def _swap(self, new: WaitingWorker | None) -> WaitingWorker | None:
        """Let this one wait, or none; the one that waited before, which is the caller's now."""
        with self._lock:
            before, self._waiting = self._waiting, new
        return before

    def _expire(self, worker: Worker) -> None:
        with self._lock:
            if self._waiting is None or self._waiting.worker is not worker:
                return
            self._waiting = None
        worker.end()


_STANDBYS = Standbys()


def standbys() -> Standbys:
    """The waiting worker of this process."""
    global _STANDBYS
    if not _STANDBYS.is_mine:
        _STANDBYS = Standbys()
    return _STANDBYS
