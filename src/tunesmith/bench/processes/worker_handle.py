"""The parent's side of one worker: requests, and answers or deaths."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tunesmith.records import Outcome, Target, UserError

from ..job import Policy
from ..machine_failures import WAITED
from .messages import Done, InterleaveRequest, MeasureRequest, PrepareRequest, StageEntered, Start
from .process import UNWATCHED_SECONDS, Child, await_message

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

    The worker sends one answer without being asked: when it has opened the device. `is_open` says whether `poll` has
    given that answer, `is_fresh` that the worker has had no request, and `variables` are those of the program at the
    start. `deadline` is when `poll` must be called if no message comes before.
    """

    def __init__(self, child: Child, target: Target, policy: Policy) -> None:
        self._child, self._policy = child, policy
        self._at = StageEntered("opening the device")
        self.pid, self.connection = child.pid, child.connection
        self.deadline = self._end_of_stage = time.monotonic() + _OPENING_SECONDS
        self.served, self.is_open, self.is_fresh = 0, False, True
        self.variables = dict(os.environ)
        child.send(Start(target, policy))

    def ask(self, request: MeasureRequest | InterleaveRequest) -> None:
        self._enter(StageEntered("preparing"))
        self.served += 1
        self.is_fresh = False
        self._child.send(request)

    def prepare(self, request: PrepareRequest) -> None:
        """Let the worker prepare problems before it is asked. It gives no answer."""
        self.is_fresh = False
        self._child.send(request)

    @property
    def may_be_taken(self) -> bool:
        """Whether a worker without a request has its device open, or still opens it."""
        if self.is_open:
            return not self._child.has_message  # The only message of an idle worker is its end.
        try:
            return isinstance(self.poll(), Done | None)
        except UserError:
            return False

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
                    self.is_open = True
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
