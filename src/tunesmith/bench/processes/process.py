"""The bench's child processes: starting them, sending messages, and ending them, so that none is left behind."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from tunesmith.records import UserError

from ..machine_failures import kept_waiting, waiting_seconds

_PR_SET_PDEATHSIG = 1
_LAST_OUTPUT_BYTES = 2000

UNWATCHED_SECONDS = 5.0
"""If a deadline passed more than this long ago when it is looked at, this process was stopped meanwhile. Its children
may have been stopped too (a paused container), so they get their time again."""


class Spawner:
    """Starts children, all from one thread of its own.

    The kernel sends a child its parent-death signal when the *thread* that started it ends, so a caller's thread, which
    may end early, must not start children.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109  # what Python itself means by ""
        self._environment = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)}
        self._thread = ThreadPoolExecutor(1, "tunesmith-spawner")

    def start(self, module: str) -> Child:
        """Start a module as a child. Raises UserError if the system cannot start a process."""
        try:
            return self._thread.submit(self._start, module).result()
        except OSError as error:
            remedy = "free memory, files or room, and run the same command again: it goes on where it stopped"
            raise UserError(module, f"the system starts no process ({error})", remedy) from error

    def _start(self, module: str) -> Child:
        ours, theirs = socket.socketpair()
        lifeline, lifeline_end = os.pipe()
        output = tempfile.TemporaryFile()  # noqa: SIM115  # the Child closes it
        descriptors = (theirs.fileno(), lifeline)
        command = [sys.executable, "-P", "-m", module, *map(str, descriptors), str(os.getpid())]
        process = subprocess.Popen(
            command,
            env=self._environment,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        theirs.close()
        os.close(lifeline)
        return Child(process, Connection(ours.detach()), lifeline_end, output)

    def close(self) -> None:
        self._thread.shutdown()


class Child:
    """A child process, as its parent sees it. The process dies with the parent, whatever it is doing."""

    def __init__(
        self, process: subprocess.Popen[bytes], connection: Connection, lifeline_end: int, output: Any
    ) -> None:
        self.connection = connection
        self._process, self._lifeline_end, self._output = process, lifeline_end, output
        self._waits: dict[str, float] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object) -> None:
        """Send a message. A dead child is noticed later, when its answer is awaited."""
        with suppress(OSError):
            self.connection.send(message)

    def watch(self) -> None:
        """Start the time that `kept_waiting` looks at."""
        self._waits = waiting_seconds(self.pid)

    def kept_waiting(self, seconds: float) -> bool:
        """Whether others are to blame that the child gave no answer for so many seconds: `machine_failures`."""
        return kept_waiting(self.pid, self._waits, seconds)

    def receive(self) -> object | None:
        """The next message; None if the child is gone."""
        try:
            message: object = self.connection.recv()
        except (EOFError, OSError):
            return None
        return message

    def end(self, patience: float = 0.0) -> str:
        """End the child and every process that it started; how the child ended, as a signal's name or exit status.

        A child that is dying already gets `patience` seconds, so that the cause is its own. An idle child is killed
        too: it has nothing to lose, and its driver's clean-up may hang.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.connection.close()
        if self._lifeline_end >= 0:
            os.close(self._lifeline_end)
            self._lifeline_end = -1
        with suppress(ProcessLookupError):
            # Also if the child ended by itself: a compiler that it started may still run in its group.
            os.killpg(self.pid, signal.SIGKILL)
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"exit {status}"

    def last_words(self) -> str:
        """The end of what the child printed. A second call returns an empty text."""
        if self._output.closed:
            return ""
        end = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, end - _LAST_OUTPUT_BYTES))
        text: str = self._output.read().decode(errors="replace").strip()
        self._output.close()
        return text


def connect_to_parent(arguments: list[str]) -> Connection:
    """Connect a child to its parent, and let it die with the parent and leave no core file. A child calls this first.

    Two mechanisms end the child, since each misses a case. The parent-death signal does not need Python to run (a hang
    inside a driver holds the interpreter's lock). The end of the lifeline pipe works where there is no such signal.
    """
    connection, lifeline, parent = map(int, arguments)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    return Connection(connection)


def requests(connection: Connection) -> Iterator[Any]:
    """The requests that the parent sends, until the parent is gone."""
    with suppress(EOFError):
        while True:
            yield connection.recv()


def _die_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    # Kill the whole group, so that compilers that this process started die too.
    os.killpg(os.getpid(), signal.SIGKILL)
