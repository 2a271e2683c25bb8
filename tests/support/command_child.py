"""A command of the command line in a process that the tests' server forks: `tuning_runs.tunesmith` starts it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tunesmith.cli.main import main as run_command


@dataclass(frozen=True)
class Command:
    """What the process gets: the command's words, all of its variables, its folder, and the files for its output."""

    words: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    out: Path
    err: Path


def main(connection: Connection) -> None:
    command: Command = connection.recv()
    os.environ.clear()
    os.environ.update(command.environment)
    os.chdir(command.folder)
    for path, stream in ((command.out, sys.stdout), (command.err, sys.stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    sys.argv = ["tunesmith", *command.words]
    run_command()
