"""The cache that every kind of call has: what was found out for each layout of arguments."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

from ._launcher import Launcher, LaunchRecord

REMEMBERED = 4096
"""The most layouts that are kept."""

Entry = TypeVar("Entry")


class LayoutCache(Generic[Entry]):
    """Entries by layout. `launcher_of` gives the launcher of a device by its selector ("": the library's own device).
    `launched`, if given, is called after every launch."""

    def __init__(
        self, launcher_of: Callable[[str], Launcher], lock: RLock, launched: Callable[[LaunchRecord], None] | None
    ) -> None:
        self._launcher_of, self._lock, self._launched = launcher_of, lock, launched
        self._entries: dict[Any, Entry] = {}

    def clear(self) -> None:
        """Forget all entries: the launchers that they were made for are closed."""
        self._entries.clear()

    def _remember(self, key: Any, entry: Entry) -> Entry:
        if len(self._entries) >= REMEMBERED:
            self._entries.clear()
        self._entries[key] = entry
        return entry
