"""Locks that are free in a forked child, whatever the other threads of its parent were doing; and one for imports, for
which a fork waits."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from threading import RLock
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()


def call_lock() -> RLock:
    """A reentrant lock that serializes calls."""
    lock = RLock()
    _LOCKS.add(lock)
    return lock


IMPORTS: Any = RLock()
"""Held while a first call imports the modules of products. A fork waits for it: a child would wait for ever for a
module that another thread of its parent was importing."""
_LONGEST_IMPORT = 10.0
"""Seconds for which a fork waits at most. The thread that imports may itself wait for a lock that the forking thread
holds, as `logging` holds its own over a fork."""


def _release_imports() -> None:
    with suppress(RuntimeError):  # not held: the wait was too long
        IMPORTS.release()


def _release_imports_in_child() -> None:
    try:
        IMPORTS.release()
    except RuntimeError:
        IMPORTS._at_fork_reinit()


def _free_all() -> None:
    # Python's own modules free their locks in a child the same way (logging, concurrent.futures, random).
    for lock in list(_LOCKS):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
    os.register_at_fork(
        before=partial(IMPORTS.acquire, timeout=_LONGEST_IMPORT),
        after_in_parent=_release_imports,
        after_in_child=_release_imports_in_child,
    )
