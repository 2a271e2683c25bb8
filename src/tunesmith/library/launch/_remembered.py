"""What calls of every kind share: a device by its selector, and what was found out for each layout of arguments."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

from ._launcher import Launched, Launcher

REMEMBERED = 4096
"""Layouts for which something is kept."""

Found = TypeVar("Found")


class RememberedCalls(Generic[Found]):
    """`launcher_of` opens a device by its selector, the library's own without one; `launched`, if given, hears of every
    launch."""

    def __init__(
        self, launcher_of: Callable[[str], Launcher], lock: RLock, launched: Callable[[Launched], None] | None
    ) -> None:
        self._launcher_of, self._lock, self._launched = launcher_of, lock, launched
        self._known: dict[Any, Found] = {}

    def clear(self) -> None:
        """Forget everything: what it was made for is closed."""
        self._known.clear()

    def _remember(self, key: Any, found: Found) -> Found:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[key] = found
        return found
