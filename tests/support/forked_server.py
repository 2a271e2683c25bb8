"""The bench's server of a forked command, forked too: what it would import is there already.

A server of its own imports for half a second to a second of processor time, more than a short run on the fake device
needs for everything else. Commands that tests start as new Python processes keep the real server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from types import SimpleNamespace
from typing import IO, Any

from tunesmith.autotuning.tuning import PRELOADED
from tunesmith.bench import keep_server
from tunesmith.bench.processes import fork_server, process

MARK = "TUNESMITH_TEST_MARK"
"""A variable that every process of a run inherits, so that those that are left behind can be found. A forked server
shows the variables of the process that it is a fork of, so an open file with the mark in its name stands for it."""


class ForkedPopen:
    """What `subprocess.Popen` is to the bench: it starts a server, which is a fork of this process."""

    def __init__(
        self, command: list[str], *, env: dict[str, str], pass_fds: tuple[int, ...], stdout: IO[bytes], **_: Any
    ) -> None:
        self.returncode: int | None = None
        arguments = command[command.index(fork_server.__name__) + 1 :]
        self.pid = os.fork()
        if self.pid == 0:
            _serve(arguments, env, pass_fds, stdout.fileno())

    def poll(self) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _serve(arguments: list[str], variables: dict[str, str], kept: tuple[int, ...], output: int) -> None:
    """Be the server, or a child of it, to the end of this process."""
    code = 1
    try:
        os.setsid()
        os.environ.update(variables)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
            if descriptor > 2 and descriptor not in kept:
                with suppress(OSError):
                    os.close(descriptor)
        os.memfd_create(f"{MARK}={variables.get(MARK, '')}")
        fork_server.main(arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def start_servers_by_fork() -> None:
    """Let every server that this process or a fork of it starts be a fork of the process."""
    process.subprocess = SimpleNamespace(Popen=ForkedPopen, DEVNULL=subprocess.DEVNULL)  # type: ignore[assignment, attr-defined]


def serve_by_fork() -> None:
    """Let a fork of this process start the children of all its benches.

    Call it first in a process: a fork takes over what any other thread has locked. It returns when the fork is made.
    """
    start_servers_by_fork()
    # What `tunesmith.tune` asks for: its call would start another server, a fork amid its imports.
    keep_server(PRELOADED)
    assert process._kept_server() is not None
