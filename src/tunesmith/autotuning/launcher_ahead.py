"""Triton's own launcher of a call, made while the call's configurations are measured.

Before the first launch of a signature, some releases of Triton (3.6) compile a small C program. That takes a quarter of
a second, whatever the configuration is, and Triton keeps the program. A thread makes a launcher as soon as a
configuration is known to compile and to run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class LauncherAhead:
    """`make` makes a launcher for the configuration at a position. It loads and launches nothing."""

    make: Callable[[int], object]
    _thread: threading.Thread | None = field(default=None, init=False)

    def begin(self, position: int) -> None:
        """Begin with the configuration at a position. A second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, args=(position,), name="tunesmith-launcher", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until Triton is done."""
        if self._thread is not None:
            self._thread.join()

    def _work(self, position: int) -> None:
        # The launch makes a launcher of its own if there is none, and raises what is wrong.
        with suppress(Exception):
            self.make(position)
