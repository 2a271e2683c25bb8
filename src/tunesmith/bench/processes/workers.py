"""The parent's side of timing: the current worker, its standby, and their answers or deaths."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tunesmith.records import Outcome, Target, UserError

from ..events import Event, WorkerLost
from ..job import Policy
from ..machine_failures import WAITED
from .messages import Done, InterleaveRequest, MeasureRequest, StageEntered, Start
from .process import UNWATCHED_SECONDS, Child, Spawner, await_message

_OPENING_SECONDS = 120.0
_PREPARING_FACTOR = 10.0
"""The timeout of preparing over that of a launch: the host computes a big problem's reference, which takes long."""
_UNWATCHED_SHARE = 0.1
"""The share of a timeout after which a stage's threads are looked at for the first time (`kept_waiting`)."""
_DYING_SECONDS = 5.0
TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Death:
    """A worker died without an answer. `cause` is a signal's name, an exit status or "timeout"; `stage` and `index` say
    what the worker was doing.

    If the worker ended because its context was poisoned, `done` holds its last answer.
    """

    cause: str
    stage: str
    index: int
    detail: str
    done: Done | None = None

    @property
    def outcome(self) -> Outcome:
        return Outcome.TIMEOUT if self.cause in (TIMEOUT, WAITED) else Outcome.CRASH


def wait_until(connections: Sequence[Connection], deadline: float) -> None:
    """Sleep until a connection has a message, or until the deadline on the monotonic clock."""
    await_message(connections, max(0.0, deadline - time.monotonic()))


class Worker:
    """One process with the device open. Call `ask`, then `poll` for the answer; a Death is an answer too.

    The worker sends one answer without being asked: when it has opened the device. `deadline` is when `poll` must be
    called if no message comes before.
    """

    def __init__(self, child: Child, target: Target, policy: Policy) -> None:
        self._child, self._policy = child, policy
        self._at = StageEntered("opening the device")
        self.pid, self.connection = child.pid, child.connection
        self.deadline = self._end_of_stage = time.monotonic() + _OPENING_SECONDS
        self.served = 0
        child.send(Start(target, policy))

    def ask(self, request: MeasureRequest | InterleaveRequest) -> None:
        self._enter(StageEntered("preparing"))
        self.served += 1
        self._child.send(request)

    def poll(self) -> Done | Death | None:
        """The answer; None if there is none yet. Raises the UserError that the worker sent."""
        while self._child.has_message:
            message = self._child.receive()
            match message:
                case StageEntered():
                    self._enter(message)
                case UserError():
                    raise message
                case Done(poisoned=None):
                    return message
                case Done(measurements, int(poisoned)):
                    self._child.end(_DYING_SECONDS)
                    failure = measurements[poisoned]
                    return Death(failure.reason, self._at.stage, poisoned, failure.detail, message)
                case _:
                    return self._dead(self._child.end(_DYING_SECONDS))
        if (late := time.monotonic() - self.deadline) > 0:
            if self.deadline < self._end_of_stage:
                self._child.watch()
                self.deadline = self._end_of_stage
                return None
            if late > UNWATCHED_SECONDS:
                self._enter(self._at)
                return None
            cause = WAITED if self._child.kept_waiting(self._policy.timeout_seconds) else TIMEOUT
            self._child.end()
            return self._dead(cause)
        return None

    def answer(self) -> Done | Death:
        """Wait for the answer."""
        while (answer := self.poll()) is None:
            wait_until([self.connection], self.deadline)
        return answer

    def kill(self) -> None:
        """Send the signal that ends the worker, and do not wait for its end."""
        self._child.kill()

    def end(self) -> None:
        self._child.end()

    def _enter(self, at: StageEntered) -> None:
        self._at = at
        factor = _PREPARING_FACTOR if at.stage == "preparing" else 1.0
        now = time.monotonic()
        self._end_of_stage = now + factor * self._policy.timeout_seconds
        # Most stages end at once. To look at all threads of every one of them would cost milliseconds each.
        self.deadline = now + _UNWATCHED_SHARE * self._policy.timeout_seconds

    def _dead(self, cause: str) -> Death:
        doing = f"while {self._at.stage}"
        if cause in (TIMEOUT, WAITED):
            doing = f"no answer for {self._policy.timeout_seconds:g} s {doing}"
        return Death(cause, self._at.stage, self._at.index, "\n".join(filter(None, [doing, self._child.last_words()])))


class Workers:
    """The current worker and, for a GPU, a standby that has the device open already, since opening takes seconds.

    If the device is the host's CPU there is no standby, since its start would disturb the timing.
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
            if not self._target.shares_the_host:
                self._standby = self._start()
        return self._current

    def begin(self) -> None:
        """Start a worker that opens the device meanwhile, unless there is one."""
        if self._current is None and self._standby is None:
            self._standby = self._start()

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
        # Both are killed before one is waited for: a driver takes its time to leave the device.
        for worker in filter(None, (self._current, self._standby)):
            worker.kill()
        self.drop()
        if self._standby is not None:
            self._standby.end()
            self._standby = None

    def _start(self) -> Worker:
        return Worker(self._spawner.start("tunesmith.bench.processes.worker"), self._target, self._policy)

    def _await_opened(self, worker: Worker) -> None:
        answer = worker.answer()
        if isinstance(answer, Done):
            return
        self.drop()
        what = f"opening the device ended with {answer.cause}: {answer.detail}"
        raise UserError(self._target.name, what, "choose another device; `tunesmith devices` tries each one out")
