"""One run at a time works in a folder: two would compile and time against each other (`held_folder`).

The lock is `flock` on a file in the folder, so it ends with its process, however that ends. On NFS, Linux passes it on
to the server, which excludes other hosts' processes too; a host that loses its power keeps the lock until the server
notices. The file's content says who holds it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tunesmith.records import UserError, printable
from tunesmith.store import without_password

LOCK = "tuning.lock"
"""The file's name in a run's folder. It stays there; only the lock on it counts."""

PAUSE = 0.2
"""Seconds between two attempts of a run that waits."""

_UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What a file system without locks answers."""


@dataclass(frozen=True)
class LockHolder:
    """The run that holds a folder. `since` is in seconds since the epoch."""

    host: str
    pid: int
    command: str
    since: float

    @staticmethod
    def here() -> LockHolder:
        """This process, from now on."""
        command = " ".join(without_password(word) for word in sys.argv)
        return LockHolder(socket.gethostname(), os.getpid(), command, time.time())

    @staticmethod
    def read(text: str) -> LockHolder | None:
        """From a lock's file; None if it is empty or damaged, as between taking the lock and writing the file."""
        try:
            raw = json.loads(text)
            return LockHolder(str(raw["host"]), int(raw["pid"]), str(raw["command"]), float(raw["since"]))
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return printable(f"process {self.pid} on {self.host} ({self.command}) has tuned in it since {since}")


class _FolderLock:
    """The lock of one folder in this process. The thread that holds it may take it again, any number of times."""

    def __init__(self) -> None:
        self.thread = threading.RLock()
        self.depth = 0
        self.file: IO[str] | None = None


_LOCKS: dict[tuple[int, int], _FolderLock] = {}
"""By device and inode of the folder, so that several names of it have one lock."""


@contextmanager
def held_folder(folder: Path, wait: bool = False, say: Callable[[str], None] = lambda sentence: None) -> Iterator[None]:
    """A context in which no other process, and no other thread of this process, holds the folder.

    If another holds it, raise UserError that says who and since when; with `wait`, `say` gets that sentence and the
    call waits. Raises UserError, too, if the lock's file cannot be made. If the file system has no locks, `say` gets a
    sentence and nothing is locked.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise UserError(str(folder), f"the folder cannot be made ({error.strerror})", "name another place") from None
    lock = _LOCKS.setdefault((found.st_dev, found.st_ino), _FolderLock())
    path = folder / LOCK
    _repeat(lambda: lock.thread.acquire(blocking=False), path, wait, say)
    try:
        lock.depth += 1
        if lock.depth == 1:
            lock.file = _taken(path, wait, say)
        yield
    finally:
        lock.depth -= 1
        if lock.depth == 0 and lock.file:
            lock.file.truncate(0)
            lock.file.close()
            lock.file = None
        lock.thread.release()


def _taken(path: Path, wait: bool, say: Callable[[str], None]) -> IO[str]:
    """The lock's file, locked."""
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        what = f"the folder cannot be written ({error.strerror})"
        raise UserError(str(path.parent), what, "name another folder, or make this one writable") from None
    try:
        _repeat(lambda: _is_locked(file, say), path, wait, say)
        file.truncate(0)
        file.write(json.dumps(asdict(LockHolder.here())))
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


def _is_locked(file: IO[str], say: Callable[[str], None]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        say(f"{file.name} cannot be locked ({error.strerror}): make sure that no other run works in the folder")
    return True


def _repeat(attempt: Callable[[], bool], path: Path, wait: bool, say: Callable[[str], None]) -> None:
    """Attempt until it succeeds. Raises UserError after the first failure unless `wait`."""
    last_told = ""
    while not attempt():
        try:
            holder = LockHolder.read(path.read_text(encoding="utf-8"))
        except OSError:
            holder = None
        what = str(holder or "another process tunes in it")
        if not wait:
            remedy = "wait for it with --wait, or read what is there with `tunesmith show`"
            raise UserError(str(path.parent), what, remedy)
        if what != last_told:
            say(f"waiting for {path.parent}: {what}")
            last_told = what
        time.sleep(PAUSE)
