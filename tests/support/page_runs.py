"""Commands and programs of the documentation, executed in forked processes, which have imported already what they need.

A new Python imports for a second of processor time, and so does the server of its bench.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from forked import run_forked
from forked_server import serve_by_fork
from shared_programs import share_programs
from tunesmith.cli import output
from tuning_runs import execute


def run_command(command: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a `tunesmith` command in a folder."""
    with chdir(folder):
        done = run_forked(_command, *shlex.split(command)[1:], env=variables)
    return done.returncode, (done.stdout + done.stderr).replace(f"{folder}/", "")


def run_program(text: str, folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a Python program in a folder."""
    with chdir(folder):
        done = run_forked(_program, text, env=variables)
    return done.returncode, done.stdout + done.stderr


def _program(text: str) -> None:
    share_programs()
    serve_by_fork()
    exec(compile(text, "<page>", "exec"), {"__name__": "__main__"})


def _command(*words: str) -> None:
    output.console.width = output.messages.width = int(os.environ["COLUMNS"])
    execute(*words)
