"""Processes that the server of the bench forks, for tests: they have imported already what most of them need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tunesmith.bench import Spawner
from tunesmith.bench.processes.process import Child

DYING_SECONDS = 60.0
"""How long a process may take to end once it has closed its connection."""


@dataclass(frozen=True)
class Call:
    """What a process executes: a function of a module, with its arguments, all variables, and files for its output."""

    function: Callable[..., None]
    arguments: tuple[Any, ...]
    environment: Mapping[str, str]
    folder: Path
    out: Path
    err: Path


@contextmanager
def started(function: Callable[..., None], *arguments: Any, env: Mapping[str, str]) -> Iterator[tuple[Child, Call]]:
    """Call a function of a module in a process of its own, in this folder with these variables. The process is killed
    if it is there at the end.

    What Python or a library reads only at its start is as the server found it.
    """
    with tempfile.TemporaryDirectory() as made, Spawner({}) as spawner:
        call = Call(function, arguments, dict(env), Path.cwd(), Path(made, "out"), Path(made, "err"))
        child = spawner.start("forked")
        try:
            child.send(call)
            yield child, call
        finally:
            child.end()


def code_of(child: Child) -> int:
    """Wait for a process's end: its exit status, or minus the number of the signal that killed it."""
    assert child.receive() is None, "it ends without an answer"
    end = child.end(patience=DYING_SECONDS)
    return -signal.Signals[end] if end in signal.Signals.__members__ else int(end.removeprefix("exit "))


def run_forked(
    function: Callable[..., None], *arguments: Any, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Call a function as `started` does, and wait for its end. The result is that of `subprocess.run`."""
    with started(function, *arguments, env=env) as (child, call):
        code = code_of(child)
        out, err = (file.read_text() if file.exists() else "" for file in (call.out, call.err))
        return subprocess.CompletedProcess(arguments, code, out, err)


def main(connection: Connection) -> None:
    call: Call = connection.recv()
    os.environ.clear()
    os.environ.update(call.environment)
    os.chdir(call.folder)
    for path, stream in ((call.out, sys.stdout), (call.err, sys.stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    call.function(*call.arguments)
