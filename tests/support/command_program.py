"""A program that is `tunesmith` to whoever starts it, and lets the tests' server fork the command."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forked import run_forked
from tunesmith.cli.main import main

PROGRAM = """#!{python} -IS
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    server.sendall(json.dumps([os.getcwd(), sys.argv[1:], dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    code, out, err = json.load(server.makefile())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""
"""It needs a twentieth of a second, of which Python's start is the most; the command by itself would import for more
than a second."""


@contextmanager
def command_program(folder: Path) -> Iterator[Path]:
    """The path of the program, which lies in a folder and works within the context."""
    path, address = folder / "tunesmith", f"\0{folder}/tunesmith"
    path.write_text(PROGRAM.format(python=sys.executable, address=address))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        serving = threading.Thread(target=_serve, args=(server,), daemon=True)
        serving.start()
        try:
            yield path
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket) -> None:
    """Carry out one command after the other, until the socket is shut down."""
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile() as request:
                folder, words, variables = json.load(request)
                done = run_forked(execute_in, folder, *words, env=variables)
                connection.sendall(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


def execute_in(folder: str, *words: str) -> None:
    """Execute a command in this process and a folder."""
    os.chdir(folder)
    sys.argv = ["tunesmith", *words]
    main()
