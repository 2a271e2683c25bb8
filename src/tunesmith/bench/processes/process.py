"""Processes of ours: how they are started, talked to and ended, so that none is ever left behind."""

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

from ..machine_failures import kept_waiting, waits

_PR_SET_PDEATHSIG = 1
_LAST_WORDS = 2000

UNWATCHED_SECONDS = 5.0
"""A deadline that is over for so long when it is looked at went by while this process was stopped, and its children
may have been with it (a container that was paused): they get their time again."""


class Spawner:
    """Starts children, all from one thread.

    The kernel sends a child its parent-death signal when the *thread* that started it ends, so a caller's thread that
    comes and goes must not be the one.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109  # what Python itself means by ""
        self._environment = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)}
        self._thread = ThreadPoolExecutor(1, "tunesmith-spawner")

    def start(self, module: str) -> Child:
        """Start a module as a child. Raises UserError where the system lets no process start."""
        try:
            return self._thread.submit(self._start, module).result()
        except OSError as error:
            remedy = "free memory, files or room, and run the same command again: it goes on where it stopped"
            raise UserError(module, f"the system starts no process ({error})", remedy) from error

    def _start(self, module: str) -> Child:
        ours, theirs = socket.socketpair()
        life, held = os.pipe()
        words = tempfile.TemporaryFile()  # noqa: SIM115  # the child's own to close
        descriptors = (theirs.fileno(), life)
        command = [sys.executable, "-P", "-m", module, *map(str, descriptors), str(os.getpid())]
        process = subprocess.Popen(
            command,
            env=self._environment,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
        )
        theirs.close()
        os.close(life)
        return Child(process, Connection(ours.detach()), held, words)

    def close(self) -> None:
        self._thread.shutdown()


class Child:
    """The parent's end of a process. It dies with the parent, whatever it is doing."""

    def __init__(self, process: subprocess.Popen[bytes], connection: Connection, held: int, words: Any) -> None:
        self.connection = connection
        self._process, self._held, self._words = process, held, words
        self._waits: dict[str, float] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object) -> None:
        """Say something; a child that is dead already is noticed when its answer is awaited."""
        with suppress(OSError):
            self.connection.send(message)

    def watch(self) -> None:
        """From now on its time counts, for `kept_waiting`."""
        self._waits = waits(self.pid)

    def kept_waiting(self, seconds: float) -> bool:
        """Whether others are to blame that it gave no answer for so many seconds; see `machine_failures.kept_waiting`."""
        return kept_waiting(self.pid, self._waits, seconds)

    def receive(self) -> object | None:
        """The next message; None when the child is gone."""
        try:
            message: object = self.connection.recv()
        except (EOFError, OSError):
            return None
        return message

    def end(self, patience: float = 0.0) -> str:
        """Make sure that the child and all that it started are gone; how it ended, as a signal's name or exit status.

        `patience` seconds are left to a child that is dying already, so that the cause found is its own. An idle child
        is killed like any other: it has nothing to lose, and its driver's clean-up may hang.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.connection.close()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        with suppress(ProcessLookupError):
            # Also when it ended by itself: a compiler that it started may go on in its group.
            os.killpg(self.pid, signal.SIGKILL)
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"exit {status}"

    def last_words(self) -> str:
        """The end of what the child printed, and forget it."""
        if self._words.closed:
            return ""
        end = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, end - _LAST_WORDS))
        text: str = self._words.read().decode(errors="replace").strip()
        self._words.close()
        return text


def connect_to_parent(arguments: list[str]) -> Connection:
    """A child's first act: die with the parent, leave no core file, and open the connection.

    Two means, since each misses a case: the parent-death signal does not need Python to run (a hang inside a driver
    holds the interpreter's lock), and the end of the lifeline pipe works where there is no such signal.
    """
    connection, life, parent = map(int, arguments)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_die_with, args=(life,), daemon=True).start()
    return Connection(connection)


def requests(connection: Connection) -> Iterator[Any]:
    """What the parent sends a child, until the parent is gone."""
    with suppress(EOFError):
        while True:
            yield connection.recv()


def _die_with(life: int) -> None:
    os.read(life, 1)
    # The whole group: compilers that this process started die too.
    os.killpg(os.getpid(), signal.SIGKILL)
