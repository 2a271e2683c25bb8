"""Locks that are free in a forked child, whatever the other threads of its parent were doing; and one for imports, for
which a fork waits."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()

IMPORTS = RLock()
"""Held while a first use imports modules. A fork waits for it: a child would wait for ever for a module that another
thread of its parent was importing."""


def call_lock() -> RLock:
    """A reentrant lock that serializes calls."""
    lock = RLock()
    _LOCKS.add(lock)
    return lock


def _free_all() -> None:
    # Python's own modules free their locks in a child the same way (logging, concurrent.futures, random).
    for lock in list(_LOCKS):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
    os.register_at_fork(before=IMPORTS.acquire, after_in_parent=IMPORTS.release, after_in_child=IMPORTS.release)
