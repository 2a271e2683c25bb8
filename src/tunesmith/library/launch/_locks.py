"""Locks of calls that a forked child finds free, whatever other threads of its parent were doing."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

_MADE: WeakSet[Any] = WeakSet()


def call_lock() -> RLock:
    """A lock for calls that come one after the other."""
    lock = RLock()
    _MADE.add(lock)
    return lock


def _free_all() -> None:
    # Python's own modules free their locks in a child in this way (logging, concurrent.futures, random).
    for lock in list(_MADE):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
