"""The bench's child processes: starting them, sending messages, and ending them, so that none is left behind."""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe
from types import MappingProxyType
from typing import IO, Any

from tunesmith.records import UserError

from ..machine_failures import kept_waiting, waiting_seconds

_PR_SET_PDEATHSIG = 1
_LAST_OUTPUT_BYTES = 2000
_FORK_SERVER = "tunesmith.bench.processes.fork_server"

NUMBER = struct.Struct("i")
"""What the fork server answers: a child's process id, or minus the error number if the system forks no process; later
how the child ended: minus a signal's number, or the exit status."""

_ENDING: list[threading.Thread] = []
"""Threads that wait for the ends of killed children."""

_ENDING_SECONDS = 5.0
"""How long a run waits at most for the end of an earlier run's child, whose driver may hang."""

UNWATCHED_SECONDS = 5.0
"""If a deadline passed more than this long ago when it is looked at, this process was stopped meanwhile. Its children
may have been stopped too (a paused container), so they get their time again."""


def await_message(connections: Iterable[Connection], seconds: float) -> bool:
    """Sleep until a connection has a message or its other end is closed, at most so many seconds; whether one has.

    `multiprocessing.connection.wait` says the same in six times the time, and a measurement needs a dozen such calls.
    """
    waiting = select.poll()
    for connection in connections:
        waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(None if seconds == math.inf else math.ceil(1000 * seconds)))


class Spawner:
    """Starts children, through a server that forks them (`fork_server`) and that starts with the first child.

    `environment` has variables of the children. If `keep_server` was called, the kept server forks them. The kernel
    sends a process its parent-death signal when the *thread* that started it ends, so a caller's thread, which may end
    early, must not start the server. A thread of the spawner's own does. The server imports `preloaded`
    once for all children, beside the bench's own modules.
    """

    def __init__(self, environment: Mapping[str, str], preloaded: Sequence[str] = ()) -> None:
        self._environment, self._preloaded = dict(environment), tuple(preloaded)
        self._thread = ThreadPoolExecutor(1, "tunesmith-spawner")
        self._server: _Server | None = None

    def start(self, module: str, variables: Mapping[str, str] = MappingProxyType({})) -> Child:
        """Start a child that calls `main` of a module with its connection. `variables` of its own go before those of
        all children.

        Raises UserError if the system cannot start a process.
        """
        try:
            return self._thread.submit(self._start, module, variables).result()
        except OSError as error:
            remedy = "free memory, files or room, and run the same command again: it goes on where it stopped"
            raise UserError(module, f"the system starts no process ({error})", remedy) from error

    def _start(self, module: str, variables: Mapping[str, str]) -> Child:
        server = _kept_server() or self._server
        if server is None or server.ended:
            server = self._server = _Server({**_server_environment(), **self._environment}, self._preloaded)
        return server.fork(module, {**self._environment, **variables})

    @property
    def keeps_workers(self) -> bool:
        """Whether a worker that had no request may wait for the next run of this program."""
        return _KEPT is not None and _KEPT.keeps_workers and _kept_server() is not None

    def end_all(self, ends: Sequence[Callable[[], object]]) -> None:
        """Call functions that end killed children. If workers wait between runs, this does not wait for the ends:
        `await_ends` does, before the next run measures."""
        if not self.keeps_workers:
            for end in ends:
                end()
        elif ends:
            thread = threading.Thread(target=lambda: [end() for end in ends], name="tunesmith-ending", daemon=True)
            _ENDING.append(thread)
            thread.start()

    def await_ends(self) -> None:
        """Wait until the killed children of earlier runs have ended, so that they have left the device."""
        while _ENDING:
            _ENDING.pop().join(_ENDING_SECONDS)

    def close(self) -> None:
        self._thread.shutdown()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def keep_server(preloaded: Sequence[str], keeps_workers: bool = False) -> None:
    """Start a server that forks the children of all spawners of this process from now on, and lives as long as it does.

    So a program that tunes often imports `preloaded` once. Returns at once, while the server still imports. With
    `keeps_workers`, a GPU's worker that a run did not need waits for the next run (`standby`), and a run does not wait
    for the end of its processes. Later calls may ask for more: a server that imports more takes the place of the first,
    which lives on for the children that it has.
    """
    global _KEPT
    former = (_KEPT,) if _KEPT is not None and _KEPT.owner == os.getpid() else ()
    if _kept_server() is not None and _KEPT is not None:
        preloaded, keeps_workers = tuple({*_KEPT.preloaded, *preloaded}), _KEPT.keeps_workers or keeps_workers
        if len(preloaded) == len(_KEPT.preloaded):
            _KEPT = replace(_KEPT, keeps_workers=keeps_workers)
            return
    environment, keeper = _server_environment(), ThreadPoolExecutor(1, "tunesmith-server")
    server = keeper.submit(_Server, environment, tuple(preloaded))
    _KEPT = _Kept(os.getpid(), environment, server, keeper, frozenset(preloaded), keeps_workers, former)


@dataclass(frozen=True)
class _Kept:
    """A kept server: the process that it serves, the variables with which it started, the server to be, the thread with
    which it ends, what it imports, whether workers wait between runs, and the server whose place it took, which ends
    if nobody holds it."""

    owner: int
    environment: Mapping[str, str]
    server: Future[_Server]
    keeper: ThreadPoolExecutor
    preloaded: frozenset[str]
    keeps_workers: bool
    former: tuple[_Kept, ...] = ()


_KEPT: _Kept | None = None


STARTED_WITH = ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
"""Variables that act when a process starts. A child gets all others with the request for it."""


def _kept_server() -> _Server | None:
    """The kept server, if it lives, was started by this process (no fork of it), and still fits it."""
    if _KEPT is None or _KEPT.owner != os.getpid():
        return None
    now = _server_environment()
    if any(now.get(name) != _KEPT.environment.get(name) for name in STARTED_WITH):
        return None
    try:
        server = _KEPT.server.result()
    except OSError:
        return None
    return None if server.ended else server


def _server_environment() -> dict[str, str]:
    paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109  # what Python itself means by ""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class _Server:
    """The process that forks children."""

    def __init__(self, environment: Mapping[str, str], preloaded: Sequence[str] = ()) -> None:
        self._requests, theirs = socket.socketpair()
        self._environment, self._lock = dict(environment), threading.Lock()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        command = [sys.executable, "-P", "-m", _FORK_SERVER, str(theirs.fileno()), str(os.getpid()), *preloaded]
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def fork(self, module: str, environment: Mapping[str, str]) -> Child:
        """Start a child that executes a module's `main`, with this process's variables and these. Raises OSError if
        there is no such process."""
        ours, theirs = Pipe()
        lifeline, lifeline_end = Pipe(duplex=False)
        status, status_end = Pipe(duplex=False)
        output = tempfile.TemporaryFile()  # noqa: SIM115  # the Child closes it
        passed = [end.fileno() for end in (theirs, lifeline, output, status_end)]
        answer = b""
        variables: dict[str, str | None] = {**_server_environment(), **environment}
        changed = dict(variables.items() - self._environment.items()) | dict.fromkeys(
            self._environment.keys() - variables.keys()
        )
        request = json.dumps([module, changed]).encode()
        with self._lock, theirs, lifeline, status_end, suppress(ConnectionError):
            socket.send_fds(self._requests, [request], passed)
            answer = self._requests.recv(NUMBER.size)
        if not answer:
            self._process.wait()
            raise OSError(f"the process that starts others ended\n{_end_of(self._output)}".strip())
        (pid,) = NUMBER.unpack(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return Child(pid, status, ours, lifeline_end, output)

    def close(self) -> None:
        """Kill the server, and with it all children that are left."""
        self._requests.close()
        self._process.kill()
        self._process.wait()
        self._output.close()


class Child:
    """A child process, as its parent sees it. The process dies with the parent, whatever it is doing.

    `status` gives the child's status once it has ended; `lifeline_end` is open as long as the child is to live.
    """

    def __init__(
        self, pid: int, status: Connection, connection: Connection, lifeline_end: Connection, output: IO[bytes]
    ) -> None:
        self.pid, self.connection = pid, connection
        self._status, self._lifeline_end, self._output = status, lifeline_end, output
        self._ended: int | None = None
        self._waits: dict[str, float] = {}

    def send(self, message: object) -> None:
        """Send a message. A dead child is noticed later, when its answer is awaited."""
        with suppress(OSError):
            self.connection.send(message)

    @property
    def has_message(self) -> bool:
        """Whether `receive` returns at once."""
        return await_message([self.connection], 0.0)

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
        if self._ended is None:
            self._status.poll(patience)
        self.connection.close()
        self._lifeline_end.close()
        # Also if the child ended by itself: a compiler that it started may still run in its group.
        self.kill()
        if self._ended is None:
            self._ended = self._wait()
        return signal.Signals(-self._ended).name if self._ended < 0 else f"exit {self._ended}"

    def kill(self) -> None:
        """Send the child and every process that it started the signal that ends them."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _wait(self) -> int:
        """Wait for the child's end: minus the signal's number, or the exit status."""
        with self._status:
            status = os.read(self._status.fileno(), NUMBER.size)
        # Without a status the server died, and the kernel killed its children.
        return int(NUMBER.unpack(status)[0]) if status else -signal.SIGKILL

    def last_words(self) -> str:
        """The end of what the child printed. A second call returns an empty text."""
        if self._output.closed:
            return ""
        with self._output:
            return _end_of(self._output)


def _end_of(output: IO[bytes]) -> str:
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - _LAST_OUTPUT_BYTES))
    return output.read().decode(errors="replace").strip()


def die_with_parent(parent: int) -> None:
    """Let this process die with the one that started it, as far as the system's kernel sees to that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def connect_to_parent(connection: int, lifeline: int) -> Connection:
    """Connect a child to its parent by these descriptors, and let it die with the parent. Every child begins with this.

    Two mechanisms end the child, since each misses a case. The parent-death signal (`die_with_parent`) does not need
    Python to run: a hang inside a driver holds the interpreter's lock. The end of the lifeline pipe works where there
    is no such signal.
    """
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
