"""Pauses the garbage collector while many objects are made and none is lost."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_lock = RLock()
"""Held over a fork, so that a child sees no half of a change."""
_pauses = 0
"""The pauses now, in all threads, of a collector that was not stopped before."""
_forks = 0
"""How many forks lie between this process and its first ancestor that imported this."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector starts after every 700 new objects and looks at old ones again and again, so it takes a tenth of
    the time of an import or of reading a large file. A collector that was stopped before stays stopped."""
    paused, forks = _pause(), _forks
    try:
        yield
    finally:
        if paused and forks == _forks:
            _resume()


def _pause() -> bool:
    """Stop the collector; False if a program has stopped it."""
    global _pauses
    with _lock:
        if not (_pauses or gc.isenabled()):
            return False
        _pauses += 1
        gc.disable()
        return True


def _resume() -> None:
    global _pauses
    with _lock:
        _pauses -= 1
        if not _pauses:
            gc.enable()


def _resume_in_child() -> None:
    """The threads that paused it are the parent's. If the forking thread did, its own end of the pause does nothing."""
    global _pauses, _forks
    _forks += 1
    if _pauses:
        _pauses = 0
        gc.enable()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_resume_in_child)
