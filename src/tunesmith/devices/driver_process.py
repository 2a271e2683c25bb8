"""The process that loads drivers and answers questions about their devices, as its parent sees it."""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from typing import IO, Any
from weakref import WeakSet

COMMAND = (sys.executable, "-m", "tunesmith.devices.trial")
"""The last argument is the number of the socket for questions and answers."""

_MOST_BYTES = 65536

_LIVE: WeakSet[DriverProcess] = WeakSet()
"""A program may end while a thread in the background still waits for an answer (`choice.begin_to_choose`)."""


class DriverProcess:
    """A process that lists devices and tries them out (`trial.py`). It starts with the first question.

    Importing and loading take longer than an answer, so one process answers all questions, one after the other. A
    process that crashed or took too long is the problem of that question alone: the next one starts a new process.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._apis: set[str] = set()
        _LIVE.add(self)

    def ask(self, seconds: float, task: str, api: str, *selector: str) -> tuple[Any, str]:
        """The answer to `find API` or `trial API SELECTOR`; and how the process failed instead, if it did.

        If it failed after questions about other APIs, the question is asked again of a new process, so that one driver
        is not blamed for what another one left behind.
        """
        may_be_others_fault = bool(self._apis - {api})
        answer, problem = self._ask(seconds, task, api, *selector)
        return self._ask(seconds, task, api, *selector) if problem and may_be_others_fault else (answer, problem)

    def close(self) -> None:
        """Kill the process, which has nothing to lose: the clean-up of its drivers may hang."""
        if self._process is not None:
            self._socket.close()
            self._process.kill()
            self._process.wait()
            self._messages.close()
            self._process = None
        self._apis = set()

    def __enter__(self) -> DriverProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, seconds: float, *question: str) -> tuple[Any, str]:
        if self._process is None:
            self._start()
        self._apis.add(question[1])
        deadline = time.monotonic() + seconds
        try:
            answer = self._answer(question, deadline)
            problem = "" if answer else self._end(deadline)
        except (TimeoutError, subprocess.TimeoutExpired):
            answer, problem = b"", f"took more than {seconds:.0f} s"
        if problem:
            self.close()
            return "", problem
        return json.loads(answer), ""

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair()
        # Drivers may print lines of their own, so the answers do not come by the standard output.
        self._messages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        with theirs:
            self._process = subprocess.Popen(
                [*COMMAND, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
            )

    def _answer(self, question: tuple[str, ...], deadline: float) -> bytes:
        """The line that answers the question; nothing if the process is gone. Raises TimeoutError."""
        line = b""
        try:
            self._socket.sendall(json.dumps(question).encode() + b"\n")
            while not line.endswith(b"\n"):
                readable, _, _ = select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))
                if not readable:
                    raise TimeoutError
                received = self._socket.recv(_MOST_BYTES)
                if not received:
                    return b""
                line += received
        except ConnectionError:
            return b""
        return line

    def _end(self, deadline: float) -> str:
        """How the process ended, which closed the socket. Raises TimeoutExpired if it does not end."""
        assert self._process is not None
        status = self._process.wait(max(0.0, deadline - time.monotonic()))
        if status < 0:
            return f"crashed with signal {-status}"
        self._messages.seek(0, os.SEEK_SET)
        messages = self._messages.read().decode(errors="replace").strip()
        return f"failed: {(messages.splitlines() or ['no message'])[-1]}"


@atexit.register
def _close_all() -> None:
    for drivers in list(_LIVE):
        drivers.close()
