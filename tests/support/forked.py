"""Processes that the server of the bench forks, for tests: they have imported already what most of them need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tunesmith.bench import Spawner

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


def run_forked(
    function: Callable[..., None], *arguments: Any, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Call a function of a module in a process of its own, in this folder with these variables, and wait for its end.

    The result is that of `subprocess.run`. What Python or a library reads only at its start is as the server found it.
    """
    with tempfile.TemporaryDirectory() as made, Spawner({}) as spawner:
        out, err = Path(made, "out"), Path(made, "err")
        child = spawner.start("forked")
        child.send(Call(function, arguments, dict(env), Path.cwd(), out, err))
        assert child.receive() is None, "it ends without an answer"
        end = child.end(patience=DYING_SECONDS)
        code = -signal.Signals[end] if end in signal.Signals.__members__ else int(end.removeprefix("exit "))
        return subprocess.CompletedProcess(arguments, code, *(f.read_text() if f.exists() else "" for f in (out, err)))


def main(connection: Connection) -> None:
    call: Call = connection.recv()
    os.environ.clear()
    os.environ.update(call.environment)
    os.chdir(call.folder)
    for path, stream in ((call.out, sys.stdout), (call.err, sys.stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    call.function(*call.arguments)
