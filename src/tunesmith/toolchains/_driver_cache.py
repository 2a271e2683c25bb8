"""The folder where a driver keeps machine code for the processes of a run, in the user's own cache folder.

A results folder is data that people send to one another. A driver loads and runs whatever its cache holds (PoCL loads
shared libraries), so the cache must not lie in a results folder. Its name is a hash of the run's cache folder.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from .cache import is_private, size_limit, user_cache

FOLDER = "drivers"
"""The parent of these folders, in the user's cache folder."""

_LOCK = "in_use"
_locks: list[int] = []
"""Open lock files, held until this process ends."""


@cache
def driver_cache(run_cache: Path) -> Path:
    """The private folder for a driver's machine code of the run with this cache folder, the same in every process.

    If all such folders together hold more than TUNESMITH_CACHE_BYTES, those of other runs are removed, the least
    recently used first. If the user's cache folder cannot be used, the result is a temporary folder of this process.
    """
    name = hashlib.sha256(str(run_cache.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    folder = user_cache().absolute() / FOLDER / name
    with suppress(OSError):
        if size_limit() and _usable(folder):
            _make_room(folder.parent, folder)
            return folder
    import shutil
    import tempfile

    temporary = Path(tempfile.mkdtemp(prefix="tunesmith-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _usable(folder: Path) -> bool:
    """Make the folder if it does not exist, and mark it as in use; False if others could write to it."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (is_private(folder.parent) and is_private(folder) and os.access(folder, os.W_OK)):
        return False
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)
    _locks.append(lock)
    os.utime(folder)
    return True


def _make_room(parent: Path, own: Path) -> None:
    """Remove folders that are not in use, the least recently used first, until the rest fits the limit."""
    sizes = {folder: sum(_sizes(folder)) for folder in parent.iterdir() if folder.is_dir() and not folder.is_symlink()}
    excess = sum(sizes.values()) - size_limit()
    for folder in sorted(sizes, key=lambda folder: folder.stat().st_mtime_ns):
        if excess <= 0:
            break
        if folder != own and _remove(folder):
            excess -= sizes[folder]


def _remove(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _sizes(folder: Path) -> Iterator[int]:
    for location, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                yield Path(location, name).lstat().st_size
