"""A PostgreSQL server of the tests' own: in a temporary folder, on a socket there, ended with the tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from unprivileged import NOBODY

USER = "tunesmith"
INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian has a folder for each version of PostgreSQL, which are not in PATH."""


def program(name: str) -> str | None:
    """The path of one of PostgreSQL's programs, of the newest version; None if there is none."""
    found = sorted(INSTALLED.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return shutil.which(name) or (str(found[-1]) if found else None)


def missing() -> str:
    """Why there can be no server here; empty if there can."""
    absent = [name for name in ("initdb", "postgres") if program(name) is None]
    if absent:
        return f"PostgreSQL's {' and '.join(absent)} are not installed"
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        return f"psycopg cannot be imported: {error}"
    return ""


class PostgreSQLServer:
    """A running server. The one database has a schema for each store (`fresh`)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._schemas = folder, 0
        self._as_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        else:
            self._as_user = ["setpriv"]
        options = ["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        self._run(str(program("initdb")), "-D", str(folder / "data"), *options)
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it answers. It ends with the process that calls this."""
        settings = ("fsync=off", "listen_addresses=", "max_connections=50", f"unix_socket_directories={self.folder}")
        command = [str(program("postgres")), "-D", str(self.folder / "data")]
        for setting in settings:
            command += ["-c", setting]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [*self._as_user, "--pdeathsig=QUIT", "--", *command], stdout=log, stderr=log, cwd="/"
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End the server with a signal: SIGINT ends sessions in order, SIGQUIT at once, as a crash does."""
        self.process.send_signal(how)
        self.process.wait(60)

    @property
    def database(self) -> str:
        """The URL of the database itself."""
        return f"postgresql://{USER}@/postgres?host={quote(str(self.folder), safe='')}"

    def fresh(self) -> str:
        """The URL of an empty schema."""
        self._schemas += 1
        name = f"store_{os.getpid()}_{self._schemas}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.database}&options=-csearch_path%3D{name}"

    def execute(self, statement: str, url: str = "") -> list[tuple[object, ...]]:
        """Carry out a statement, in the database or in the schema of a URL; its rows if it has any."""
        import psycopg

        with psycopg.connect(url or self.database, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, *command: str) -> None:
        done = subprocess.run([*self._as_user, "--", *command], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr + done.stdout

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + 60
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                log = (self.folder / "log").read_text()
                assert self.process.poll() is None, log
                assert time.monotonic() < deadline, log
                time.sleep(0.02)


@contextmanager
def postgresql_server() -> Iterator[PostgreSQLServer]:
    """A context with a server; it skips the test with the reason if there can be none."""
    if why := missing():
        pytest.skip(why)
    # The path of a socket has at most about 100 bytes, so pytest's own folders are too long.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        server = PostgreSQLServer(folder)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
