"""Triton's own launcher of a call, made while the call's configurations are measured.

Before the first launch of a signature, Triton compiles a small C program. That takes a quarter of a second, whatever
the configuration is. A thread lets Triton do so as soon as a configuration is known to compile and to run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LauncherAhead:
    """`compiled` compiles the configuration at a position for the call, without a launch: Triton's compiled kernel."""

    compiled: Callable[[int], Any]
    _thread: threading.Thread | None = field(default=None, init=False)

    def begin(self, position: int) -> None:
        """Begin with the configuration at a position, at the first call."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._make, args=(position,), name="tunesmith-launcher", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until Triton is done."""
        if self._thread is not None:
            self._thread.join()

    def _make(self, position: int) -> None:
        # What fails here fails again at the launch, where the caller sees it.
        with suppress(Exception):
            self.compiled(position)._init_handles()
